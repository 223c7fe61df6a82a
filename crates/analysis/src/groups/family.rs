//! Verdicts of several statistics at once.

use super::figures::Figure;
use super::{FigureComparison, Probability, WindowComparison};
use stats::decide::{Verdict, more_runs, verdict};
use stats::rates::holm;

impl FigureComparison {
    /// What the runs say of this statistic alone, where beside the others they cannot tell.
    pub fn alone(&self) -> Option<Verdict> {
        let (differs, equivalent) = (self.p_differs?.alone, self.p_equivalent?.alone);
        let alone = verdict(self.difference?, differs, equivalent);
        (self.verdict == Verdict::CannotTell && alone != Verdict::CannotTell).then_some(alone)
    }
}

/// Holm over all statistics, then the verdicts; over those that are `asked` for by themselves,
/// since a question that was put beforehand does not grow harder by what is printed beside its
/// answer. Returns the number of all.
pub(super) fn adjust(windows: &mut [WindowComparison], asked: &[Figure]) -> usize {
    let all = decide(windows.iter_mut().flat_map(|window| &mut window.figures));
    let figures = windows.iter_mut().flat_map(|window| &mut window.figures);
    decide(figures.filter(|figure| asked.contains(&figure.figure)));
    all
}

/// The same of these statistics as one family; returns their number.
pub(super) fn decide<'a>(figures: impl Iterator<Item = &'a mut FigureComparison>) -> usize {
    let mut figures: Vec<&mut FigureComparison> =
        figures.filter(|figure| figure.p_differs.is_some()).collect();
    let adjusted = |p: fn(&FigureComparison) -> Option<Probability>| {
        let alone = figures.iter().map(|figure| p(figure).map_or(1.0, |p| p.alone));
        holm(&alone.collect::<Vec<_>>())
    };
    let differs = adjusted(|figure| figure.p_differs);
    let equivalent = adjusted(|figure| figure.p_equivalent);
    for (at, figure) in figures.iter_mut().enumerate() {
        if let (Some(p), Some(q)) = (&mut figure.p_differs, &mut figure.p_equivalent) {
            (p.adjusted, q.adjusted) = (differs[at], equivalent[at]);
        }
        let difference = figure.difference.unwrap_or(0.0);
        figure.verdict = verdict(difference, differs[at], equivalent[at]);
        figure.more_runs = None;
        if figure.verdict == Verdict::CannotTell {
            // As for the interval: what chance within runs makes alone is the least they can vary
            // by.
            let sd = |sd: Option<f64>| sd.unwrap_or(0.0);
            let larger = |at: usize| sd(figure.between_sd[at]).max(sd(figure.within_sd[at]));
            let variances = [0, 1].map(|at| larger(at).powi(2));
            let runs = [figure.runs[0].len(), figure.runs[1].len()];
            figure.more_runs = more_runs(difference, figure.margin.unwrap_or(0.0), variances, runs);
        }
    }
    figures.len()
}
