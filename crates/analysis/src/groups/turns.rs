//! Commands that make no runs, compared by their wall times: a value per turn, and no samples
//! behind it. The statistics are those of runs, with the turn as the unit.

use super::draws;
use super::family::decide;
use super::figures::{Figure, InRun};
use super::{FigureComparison, contrast, nothing_known};
use stats::decide::Margin;

/// The wall times of two commands, ns, side by side.
pub fn times(base: &[i64], other: &[i64], margin: Margin) -> FigureComparison {
    let group = |times: &[i64], stream| {
        let runs: Vec<InRun> =
            times.iter().map(|ns| InRun { value: *ns as f64, draws: Vec::new() }).collect();
        draws::group(&runs, 0.0, stream)
    };
    let empty = nothing_known(Figure::Time, "ns");
    if base.is_empty() || other.is_empty() {
        return FigureComparison { why: Some("no turn has ended".to_owned()), ..empty };
    }
    let (a, b) = (group(base, 1), group(other, 2));
    let margin = margin.of("ns", a.value, 0.0);
    let known = FigureComparison { base: Some(a.value), other: Some(b.value), ..empty };
    let mut compared = contrast(known, a, b, margin, false);
    decide(std::iter::once(&mut compared));
    compared
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::decide::Verdict;

    const MS: i64 = 1_000_000;

    fn around(middle_ms: i64, turns: i64) -> Vec<i64> {
        (0..turns).map(|turn| middle_ms * MS + (turn * 7 % 5 - 2) * MS).collect()
    }

    #[test]
    fn a_slower_command_is_worse_and_the_same_one_equivalent() {
        let slower = times(&around(100, 10), &around(130, 10), Margin::default());
        assert_eq!((slower.verdict, slower.more_runs), (Verdict::Worse, None));
        assert!((slower.difference.unwrap() - 30e6).abs() < 1.0);
        assert_eq!(slower.runs[0].len(), 10);
        assert_eq!(times(&around(130, 10), &around(100, 10), Margin::default()).verdict, Verdict::Better);
        assert_eq!(times(&around(100, 10), &around(100, 10), Margin::default()).verdict, Verdict::Equivalent);
    }

    #[test]
    fn too_few_turns_say_how_many_more() {
        let undecided = times(&around(100, 3), &around(103, 3), Margin::default());
        assert_eq!(undecided.verdict, Verdict::CannotTell);
        assert!(undecided.more_runs.is_some_and(|more| more > 0), "{:?}", undecided.more_runs);
        assert_eq!(times(&around(100, 1), &around(103, 1), Margin::default()).verdict, Verdict::OneRun);
        assert_eq!(times(&[], &[MS], Margin::default()).verdict, Verdict::Withheld);
    }
}
