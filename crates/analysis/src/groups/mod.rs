//! Groups of runs against each other: is one configuration or kernel better than another, beyond
//! what its runs differ by themselves?
//!
//! [`compare`] compares two groups in every statistic, [`best::best`] ranks any number by one loss,
//! [`chi2`] carries out a published selection method to the letter, [`condition`] turns a
//! comparison into a gate. Within one run [`crate::compare`] sets a disturbed phase against its
//! idle controls; nothing there is about another boot.

pub mod best;
pub mod bins;
pub mod chi2;
pub mod comparable;
pub mod condition;
pub mod draws;
mod family;
pub mod figures;
pub mod measured;
pub mod qq;
pub mod shift;
#[cfg(test)]
mod tests;
pub mod turns;
mod units;

use comparable::Matched;
use draws::GroupFigure;
use figures::{Figure, NoValue, in_run};
use measured::{MeasuredRun, MeasuredWindow};
use model::sample::ProbeKind;
use serde::Serialize;
use stats::decide::{Margin, Verdict};
use stats::permute::{self, Exchanged};
use stats::serialize_as_array;
use stats::wasserstein;

/// What to compare, and which difference matters.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Only this probe.
    pub probe: Option<ProbeKind>,
    /// Only this phase.
    pub phase: Option<String>,
    /// These statistics instead of the usual ones.
    pub figures: Vec<Figure>,
    /// Statistics in addition to the usual ones.
    pub more_figures: Vec<Figure>,
    /// Statistics that conditions name, chosen before the runs were seen: their verdicts allow for
    /// one another, and not for the others.
    pub asked: Vec<Figure>,
    /// What difference matters.
    pub margin: Margin,
    /// Whether to compute the difference at each level of the distribution and the distance as
    /// well.
    pub whole: bool,
    /// Whether to compare what differs in more than the configuration.
    pub anyway: bool,
}

/// Two groups of runs side by side.
#[derive(Debug, Clone, Serialize)]
pub struct GroupComparison {
    /// Names of the runs of the base.
    pub base: Vec<String>,
    /// Names of the others.
    pub other: Vec<String>,
    /// Kernels of the base and of the others, where known.
    pub kernels: [Option<String>; 2],
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// One entry a probe.
    pub windows: Vec<WindowComparison>,
    /// Statistics whose probabilities were adjusted together.
    pub family: usize,
    /// Those of them that conditions name and that were adjusted among themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Figure>,
}

/// One probe in one phase.
#[derive(Debug, Clone, Serialize)]
pub struct WindowComparison {
    /// The probe.
    pub probe: ProbeKind,
    /// The phase.
    pub phase: String,
    /// Samples of the base and of the others.
    pub n: [u64; 2],
    /// Missed releases of both.
    pub missed: [u64; 2],
    /// Threads a run.
    pub threads: usize,
    /// Missed releases of the base and of the others that are among the samples, with the lateness
    /// they had. The rest were missed while the probe warmed up or the clock was set.
    pub charged: [u64; 2],
    /// Interval between releases, ns.
    pub period_ns: Option<u64>,
    /// The same of the others, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_period_ns: Option<u64>,
    /// What was compared.
    pub figures: Vec<FigureComparison>,
    /// The difference at each level; empty for noise, and where it was not requested.
    pub shift: Vec<Shift>,
    /// How far apart the distributions are; none for noise, of which the short gaps are not stored.
    pub distance: Option<Distance>,
}

pub use shift::Shift;

/// How far apart two groups' distributions are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Distance {
    /// First Wasserstein distance, ns.
    pub wasserstein_ns: f64,
    /// Whether samples lie beyond the last bin of a histogram, where they were taken to be at its
    /// end.
    pub beyond_bins: bool,
    /// The part of it from the base's p99 on, ns; none where that is not known.
    pub tail_ns: Option<f64>,
    /// Probability of one as large were the runs' labels exchangeable.
    pub exchanged: Option<Exchanged>,
}

/// The probability of a test; in JSON `[alone, adjusted]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probability {
    /// By itself.
    pub alone: f64,
    /// Adjusted over the family.
    pub adjusted: f64,
}

serialize_as_array!(Probability { alone, adjusted });

/// One statistic of two groups.
#[derive(Debug, Clone, Serialize)]
pub struct FigureComparison {
    /// Which.
    pub figure: Figure,
    /// Unit of all values: `ns`, `share`, `per s`.
    pub unit: &'static str,
    /// Mean over the runs of the base.
    pub base: Option<f64>,
    /// Mean over the others.
    pub other: Option<f64>,
    /// Each run of the base, then each of the others; empty where withheld.
    pub runs: [Vec<f64>; 2],
    /// Other less base.
    pub difference: Option<f64>,
    /// 95 % interval of that; of one run a side that of chance within the runs.
    pub interval: Option<[f64; 2]>,
    /// 95 % interval of the other group's value.
    pub other_interval: Option<[f64; 2]>,
    /// What difference matters.
    pub margin: Option<f64>,
    /// Probability of no difference.
    pub p_differs: Option<Probability>,
    /// Probability of a difference as large as the margin.
    pub p_equivalent: Option<Probability>,
    /// Probability of a difference as large were labels exchangeable: a second opinion, with what
    /// it could be at the least.
    pub exchanged: Option<Exchanged>,
    /// Standard deviation between the runs of each group.
    pub between_sd: [Option<f64>; 2],
    /// Standard deviation that chance makes within one run of each.
    pub within_sd: [Option<f64>; 2],
    /// The verdict.
    pub verdict: Verdict,
    /// Runs a side that would probably decide, where these cannot; none beyond a thousand.
    pub more_runs: Option<usize>,
    /// Why there is no verdict.
    pub why: Option<String>,
}

/// Compares two groups; an error is a sentence that states what cannot be compared.
pub fn compare(
    base: &[MeasuredRun],
    other: &[MeasuredRun],
    question: &Question,
) -> Result<GroupComparison, String> {
    let groups = [base, other];
    let (matched, warnings) = admitted(&groups, question)?;
    let mut windows: Vec<WindowComparison> = matched.iter().map(|one| window(one, question)).collect();
    let family = family::adjust(&mut windows, &question.asked);
    let names = |runs: &[MeasuredRun]| runs.iter().map(|run| run.name.clone()).collect();
    let kernel = |runs: &[MeasuredRun]| runs.first().and_then(|run| run.kernel.clone());
    Ok(GroupComparison {
        base: names(base),
        other: names(other),
        kernels: [kernel(base), kernel(other)],
        warnings,
        windows,
        family,
        asked: question.asked.clone(),
    })
}

/// What of these groups can be compared, with warnings; an error says why nothing can.
pub fn admitted<'a>(
    groups: &[&'a [MeasuredRun]],
    question: &Question,
) -> Result<(Vec<Matched<'a>>, Vec<String>), String> {
    let matched = comparable::matched(groups, question.probe, question.phase.as_deref())?;
    let mut found = comparable::check(groups, &matched);
    if !question.anyway
        && let Some(first) = found.refused.first()
    {
        return Err(format!("cannot be compared: {first}"));
    }
    found.refused.append(&mut found.warned);
    Ok((matched, found.refused))
}

fn window(matched: &Matched<'_>, question: &Question) -> WindowComparison {
    let [base, other] = [&matched.groups[0][..], &matched.groups[1][..]];
    let figures = figures_of(base, question);
    let sum =
        |windows: &[&MeasuredWindow], of: fn(&MeasuredWindow) -> u64| windows.iter().map(|w| of(w)).sum();
    let [period_ns, other_period_ns] =
        [base, other].map(|windows| windows.first().and_then(|window| window.period_ns));
    WindowComparison {
        probe: matched.probe,
        phase: matched.phase.to_owned(),
        n: [base, other].map(|windows| sum(windows, |window| window.samples.n())),
        missed: [base, other].map(|windows| sum(windows, |window| window.missed)),
        threads: base.first().map_or(0, |window| window.threads),
        charged: [base, other].map(|windows| sum(windows, |window| window.charged)),
        period_ns,
        other_period_ns: other_period_ns.filter(|_| other_period_ns != period_ns),
        figures: figures
            .iter()
            .enumerate()
            .map(|(at, one)| figure(*one, at, base, other, question))
            .collect(),
        shift: if question.whole { shift::shift(base, other) } else { Vec::new() },
        distance: (question.whole && matched.probe != ProbeKind::Noise)
            .then(|| distance(base, other))
            .flatten(),
    }
}

/// The usual statistics of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    /// Which.
    pub figures: Vec<Figure>,
    /// Their values; none that the run cannot estimate.
    pub values: Vec<Option<f64>>,
    /// Their units, as those of [`FigureComparison`].
    pub units: Vec<&'static str>,
    /// Samples, without those of missed releases.
    pub n: u64,
    /// Releases that passed unserved.
    pub missed: u64,
}

/// The statistics of a run's first window, as a comparison has them.
pub fn overview(run: &MeasuredRun) -> Overview {
    let windows: Vec<&MeasuredWindow> = run.windows.iter().take(1).collect();
    let figures = figures_of(&windows, &Question::default());
    let value = |figure: &Figure| in_run(*figure, windows.first()?, 0).ok().map(|one| one.value);
    let unit = |figure: &Figure| windows.first().map_or("ns", |window| figure.unit(window.probe));
    Overview {
        values: figures.iter().map(value).collect(),
        units: figures.iter().map(unit).collect(),
        figures,
        n: windows.iter().map(|window| window.samples.n() - window.charged).sum(),
        missed: windows.iter().map(|window| window.missed).sum(),
    }
}

fn figures_of(base: &[&MeasuredWindow], question: &Question) -> Vec<Figure> {
    let mut figures = question.figures.clone();
    if figures.is_empty()
        && let Some(first) = base.first()
    {
        let binned = matches!(first.samples, measured::Samples::Binned(_));
        figures = Figure::usual(first.probe, first.threshold_ns, binned);
    }
    for more in &question.more_figures {
        if !figures.contains(more) {
            figures.push(*more);
        }
    }
    figures
}

/// The first run of a group without a value of the statistic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("run {run} {cause}")]
pub(crate) struct NoGroupValue {
    /// Counted from 1.
    run: usize,
    cause: NoValue,
}

/// A group's statistic, or why it has none.
pub(crate) fn of_group(
    figure: Figure,
    windows: &[&MeasuredWindow],
    stream: u64,
) -> Result<GroupFigure, NoGroupValue> {
    let runs = windows.iter().enumerate().map(|(at, window)| {
        in_run(figure, window, stream * 1000 + at as u64).map_err(|cause| NoGroupValue { run: at + 1, cause })
    });
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let unit = windows.first().map_or("ns", |window| figure.unit(window.probe));
    let resolution = if unit == "ns" { shift::resolution(windows) } else { 0.0 };
    let mut group = draws::group(&runs, resolution, stream);
    let whole = whole(windows, unit);
    if matches!(figure, Figure::Exceed(_)) && group.value == 0.0 && whole > 0.0 {
        group.deviations = draws::none_seen(whole, stream);
    }
    Ok(group)
}

fn figure(
    figure: Figure,
    at: usize,
    base: &[&MeasuredWindow],
    other: &[&MeasuredWindow],
    question: &Question,
) -> FigureComparison {
    let probe = base.first().map_or(ProbeKind::Wakeup, |window| window.probe);
    let unit = figure.unit(probe);
    let stream = (probe as u64) * 200 + 2 * at as u64;
    let (a, b) = (of_group(figure, base, stream), of_group(figure, other, stream + 1));
    let comparison = FigureComparison {
        base: a.as_ref().ok().map(|group| group.value),
        other: b.as_ref().ok().map(|group| group.value),
        ..nothing_known(figure, unit)
    };
    let withheld = |group: &str, why: NoGroupValue| Some(format!("of the {group}, {why}"));
    let (a, b) = match (a, b) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(why), _) => return FigureComparison { why: withheld("base", why), ..comparison },
        (_, Err(why)) => return FigureComparison { why: withheld("others", why), ..comparison },
    };
    let margin = question.margin.of(unit, a.value, floor(base, unit));
    let differ = figure.is_extreme() && lengths_differ(base, other);
    contrast(comparison, a, b, margin, differ)
}

/// A statistic before anything is known of it.
fn nothing_known(figure: Figure, unit: &'static str) -> FigureComparison {
    FigureComparison {
        figure,
        unit,
        base: None,
        other: None,
        runs: [Vec::new(), Vec::new()],
        difference: None,
        interval: None,
        other_interval: None,
        margin: None,
        p_differs: None,
        p_equivalent: None,
        exchanged: None,
        between_sd: [None; 2],
        within_sd: [None; 2],
        verdict: Verdict::Withheld,
        more_runs: None,
        why: None,
    }
}

/// What two groups' values of a statistic show beside each other; `lengths_differ` where that alone
/// would make extremes differ.
fn contrast(
    mut comparison: FigureComparison,
    a: GroupFigure,
    b: GroupFigure,
    margin: f64,
    lengths_differ: bool,
) -> FigureComparison {
    let drawn = draws::differences(&a, &b);
    comparison.difference = Some(b.value - a.value);
    comparison.margin = Some(margin);
    comparison.interval = draws::interval(&drawn);
    comparison.other_interval = own_interval(&b);
    comparison.between_sd = [a.between_sd, b.between_sd];
    comparison.within_sd = [a.within_sd, b.within_sd];
    if a.runs.len() > 1 && b.runs.len() > 1 {
        let all: Vec<f64> = a.runs.iter().chain(&b.runs).copied().collect();
        comparison.exchanged =
            permute::p_value(a.runs.len(), b.runs.len(), true, |labels| apart(&all, labels));
    }
    comparison.runs = [a.runs, b.runs];
    if lengths_differ {
        comparison.why =
            Some("the runs of the groups are not equally long, and extremes grow with time".to_owned());
    } else if comparison.runs.iter().any(|runs| runs.len() < 2) {
        comparison.verdict = Verdict::OneRun;
    } else {
        // Adjusted once all are known.
        let probability = |p| Some(Probability { alone: p, adjusted: p });
        comparison.p_differs = probability(draws::p_differs(&drawn));
        comparison.p_equivalent = probability(draws::p_equivalent(&drawn, margin));
    }
    comparison
}

/// 95 % interval of one group's value.
fn own_interval(group: &GroupFigure) -> Option<[f64; 2]> {
    let mut drawn: Vec<f64> = group.deviations.iter().map(|deviation| group.value + deviation).collect();
    drawn.sort_unstable_by(f64::total_cmp);
    draws::interval(&drawn)
}

/// The change of a share or rate by three events.
fn floor(windows: &[&MeasuredWindow], unit: &str) -> f64 {
    let whole = whole(windows, unit);
    if unit == "ns" || whole <= 0.0 { 0.0 } else { 3.0 / whole }
}

/// The denominator of shares and rates: all samples, or the seconds.
fn whole(windows: &[&MeasuredWindow], unit: &str) -> f64 {
    match unit {
        "per s" => windows.iter().filter_map(|window| window.duration_ns).map(|ns| ns as f64 / 1e9).sum(),
        _ => windows.iter().map(|window| window.samples.n() as f64).sum(),
    }
}

fn apart(values: &[f64], second: &[bool]) -> f64 {
    let mean = |label: bool| {
        let of = values.iter().zip(second).filter(|(_, one)| **one == label);
        let (sum, n) = of.fold((0.0, 0.0), |(sum, n), (value, _)| (sum + value, n + 1.0));
        sum / f64::max(n, 1.0)
    };
    (mean(true) - mean(false)).abs()
}

/// Whether the groups' run lengths differ by more than a tenth, so that their extremes are not
/// comparable.
fn lengths_differ(base: &[&MeasuredWindow], other: &[&MeasuredWindow]) -> bool {
    let mean = |windows: &[&MeasuredWindow]| {
        windows.iter().map(|window| window.samples.n() as f64 + window.lost as f64).sum::<f64>()
            / windows.len().max(1) as f64
    };
    let time = |windows: &[&MeasuredWindow]| {
        let total: Option<u64> = windows.iter().map(|window| window.duration_ns).sum();
        total.map(|ns| ns as f64 / windows.len().max(1) as f64)
    };
    let (a, b) = match (time(base), time(other)) {
        (Some(a), Some(b)) => (a, b),
        _ => (mean(base), mean(other)),
    };
    a.max(b) > 1.1 * a.min(b)
}

fn distance(base: &[&MeasuredWindow], other: &[&MeasuredWindow]) -> Option<Distance> {
    let steps = |windows: &[&MeasuredWindow]| -> Vec<wasserstein::Steps> {
        windows.iter().map(|window| window.samples.steps()).collect()
    };
    let (a, b) = (steps(base), steps(other));
    let (a, b): (Vec<_>, Vec<_>) = (a.iter().collect(), b.iter().collect());
    let wasserstein_ns = wasserstein::distance_ns(&a, &b, i64::MIN)?;
    let p99: Option<Vec<i64>> = base.iter().map(|window| window.samples.quantile(99_000)).collect();
    let tail_ns = p99.and_then(|p99| {
        let from = (p99.iter().map(|ns| *ns as f64).sum::<f64>() / p99.len().max(1) as f64) as i64;
        wasserstein::distance_ns(&a, &b, from)
    });
    let exchanged = (a.len() > 1 && b.len() > 1).then(|| {
        let all: Vec<_> = a.iter().chain(&b).copied().collect();
        let grid = wasserstein::Grid::new(&all);
        permute::p_value(a.len(), b.len(), true, |labels| grid.distance(labels))
    });
    let beyond_bins = base.iter().chain(other).any(|window| window.samples.beyond_bins());
    Some(Distance { wasserstein_ns, beyond_bins, tail_ns, exchanged: exchanged.flatten() })
}
