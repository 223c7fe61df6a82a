//! A comparison as tables and sentences.

use crate::measure::table::table;
use analysis::groups::best::{Ranked, Ranking};
use analysis::groups::condition::Judged;
use analysis::groups::figures::Figure;
use analysis::groups::{Distance, FigureComparison, GroupComparison, Shift, WindowComparison};
use model::sample::ProbeKind;
use report::format;
use report::precision::{Precision, Quantity};
use stats::decide::Verdict;
use stats::permute::Exchanged;
use std::fmt::Write;

/// Everything that the comparison says.
pub(super) fn comparison(comparison: &GroupComparison) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "base:  {}", side(&comparison.base, comparison.kernels[0].as_deref()));
    let _ = writeln!(text, "other: {}\n", side(&comparison.other, comparison.kernels[1].as_deref()));
    for window in &comparison.windows {
        text.push_str(&window_text(window));
    }
    if comparison.family > 1 {
        text.push_str(&folded(&format!(
            "Differences are other less base; lower is better. Intervals hold 95 % each; verdicts allow for all {} figures together \
             (Holm){}.",
            comparison.family,
            asked(&comparison.asked)
        )));
    }
    comparison.warnings.iter().for_each(|one| text.push_str(&folded(&format!("note: {one}"))));
    text
}

/// What the conditions name is held against nothing else.
fn asked(figures: &[Figure]) -> String {
    match figures {
        [] => String::new(),
        [one] => format!("; that of {}, which the condition names, stands by itself", one.name()),
        several => {
            let names: Vec<String> = several.iter().map(|figure| figure.name()).collect();
            format!("; those of {}, which the conditions name, allow for one another only", names.join(", "))
        }
    }
}

fn side(runs: &[String], kernel: Option<&str>) -> String {
    let kernel = kernel.map(|kernel| format!(", kernel {kernel}")).unwrap_or_default();
    match runs {
        [one] => format!("{one}{kernel}"),
        [first, .., last] => format!("{} runs, {first} to {last}{kernel}", runs.len()),
        [] => "no runs".to_owned(),
    }
}

fn window_text(window: &WindowComparison) -> String {
    let every = |ns: u64| format!("every {}", format::ns_round(ns as f64));
    let period = match (window.period_ns, window.other_period_ns) {
        (Some(base), Some(other)) => format!(", {} and {}", every(base), every(other)),
        (Some(ns), None) | (None, Some(ns)) => format!(", {}", every(ns)),
        (None, None) => String::new(),
    };
    let of = if window.probe == ProbeKind::Noise { "gaps" } else { "releases" };
    let mut text = format!(
        "{}, phase {}, {} thread{} a run{period}: {} and {} {of}, {} and {} missed\n",
        window.probe.name(),
        window.phase,
        window.threads,
        if window.threads == 1 { "" } else { "s" },
        format::count(window.n[0]),
        format::count(window.n[1]),
        format::count(window.missed[0]),
        format::count(window.missed[1]),
    );
    missed(window).iter().for_each(|line| text.push_str(&folded(line)));
    text.push('\n');
    text.push_str(&figures(&window.figures));
    if let Some(distance) = &window.distance {
        text.push_str(&folded(&distance_text(distance)));
    }
    if !window.shift.is_empty() {
        text.push('\n');
        text.push_str(&shift_text(&window.shift));
    }
    if !text.ends_with("\n\n") {
        text.push('\n');
    }
    text
}

/// How missed releases are counted, where there are any: the table of `measure` leaves them out.
pub(super) fn missed(window: &WindowComparison) -> Option<String> {
    if window.missed == [0, 0] {
        return None;
    }
    let elsewhere = [0, 1].map(|at| window.missed[at].saturating_sub(window.charged[at]));
    let elsewhere = match elsewhere {
        [0, 0] => String::new(),
        [base, other] => format!(
            " {} and {} of them were missed during the warm-up or when the clock was set, and are left out.",
            format::count(base),
            format::count(other)
        ),
    };
    Some(format!(
        "Missed releases are among these, with the lateness they had; the table that `measure` prints of one run leaves them out of n, p50 and p99, that of `--runs` out of n alone.{elsewhere}"
    ))
}

/// A table of statistics, with sentences where a verdict needs one.
pub(super) fn figures(figures: &[FigureComparison]) -> String {
    let head = ["figure", "base", "other", "difference", "95 % interval", "margin", "verdict"];
    let mut text = table(&head, figures.iter().map(row).collect());
    text.push('\n');
    figures.iter().filter_map(beside).for_each(|sentence| text.push_str(&folded(&sentence)));
    text
}

/// The numbers of a statistic, with the digits that the interval of its difference leaves certain;
/// a dash where there is none.
pub(super) struct Said {
    pub(super) base: String,
    pub(super) other: String,
    pub(super) difference: String,
    pub(super) interval: String,
    pub(super) margin: String,
}

pub(super) fn said(figure: &FigureComparison) -> Said {
    let (precision, quantity) = (Precision::of(figure.interval), Quantity::of(figure.unit));
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let say = |value: Option<f64>| or_dash(value.map(|value| precision.text(value, quantity)));
    Said {
        base: say(figure.base),
        other: say(figure.other),
        difference: or_dash(figure.difference.map(|by| precision.signed(by, quantity))),
        interval: or_dash(figure.interval.map(|interval| precision.signed_range(interval, quantity))),
        // A margin is chosen and has no interval.
        margin: or_dash(figure.margin.map(|margin| value(margin, figure.unit))),
    }
}

fn row(figure: &FigureComparison) -> Vec<String> {
    let Said { base, other, difference, interval, margin } = said(figure);
    vec![figure.figure.name(), base, other, difference, interval, margin, figure.verdict.words().to_owned()]
}

/// Text beside a verdict.
fn beside(figure: &FigureComparison) -> Option<String> {
    let name = figure.figure.name();
    match figure.verdict {
        Verdict::CannotTell => Some(match figure.more_runs {
            Some(more) => {
                let more = format::plural(more as u64, "more run");
                format!(
                    "{name}: {}about {more} a side would probably decide{}.",
                    alone(figure),
                    rough(figure)
                )
            }
            None => format!(
                "{name}: more runs than a thousand would be needed; the difference is too small beside what runs differ by."
            ),
        }),
        Verdict::Withheld => {
            Some(format!("{name} is withheld: {}.", figure.why.as_deref().unwrap_or("it has no value")))
        }
        _ => None,
    }
}

/// Why the interval of a statistic may lie on one side, and its verdict be open.
fn alone(figure: &FigureComparison) -> String {
    figure.alone().map_or_else(String::new, |verdict| {
        format!("{} by itself, but not once the other figures are allowed for; ", verdict.words())
    })
}

/// Runs a side from which on their number needed is more than an order of magnitude.
const ENOUGH: usize = 5;

/// How sure the number of runs needed is.
fn rough(figure: &FigureComparison) -> String {
    let fewest = figure.runs[0].len().min(figure.runs[1].len());
    if fewest < ENOUGH { format!(" (a rough number: estimated from {fewest} a side)") } else { String::new() }
}

/// A value in its unit.
fn value(value: f64, unit: &str) -> String {
    match unit {
        "ns" => format::ns_f(value),
        "share" => format::share(value),
        _ => format::rate(value),
    }
}

/// The loss of a configuration and its interval.
pub(super) fn loss(one: &Ranked, unit: &str) -> [String; 2] {
    let (precision, quantity) = (Precision::of(one.interval), Quantity::of(unit));
    let range = |interval| precision.range(interval, |precision, end| precision.text(end, quantity));
    [precision.text(one.value, quantity), one.interval.map_or_else(|| "-".to_owned(), range)]
}

fn distance_text(distance: &Distance) -> String {
    let tail = distance.tail_ns.map(|ns| format!(", {} of it from the base's p99 on", format::ns_f(ns)));
    format!(
        "The average release would have to move by {} (Wasserstein distance{}){}{}.",
        format::ns_f(distance.wasserstein_ns),
        if distance.beyond_bins { ", samples beyond the last bin taken to be at its end" } else { "" },
        tail.unwrap_or_default(),
        exchanged(distance.exchanged)
    )
}

/// Result of exchanging the labels of runs.
pub(super) fn exchanged(exchange: Option<Exchanged>) -> String {
    exchange.map_or(String::new(), |exchange| {
        format!("; were the runs' labels exchanged, as much would come with probability {:.3} ({:.3} at the least)", exchange.p, exchange.least)
    })
}

fn shift_text(shift: &[Shift]) -> String {
    let widest = shift.iter().map(|one| one.difference_ns.abs()).fold(0.0, f64::max);
    let bar = |value: f64| {
        const HALF: usize = 12;
        let length = if widest > 0.0 { (value.abs() / widest * HALF as f64).round() as usize } else { 0 };
        let (left, right) = if value < 0.0 { (length, 0) } else { (0, length) };
        format!(
            "{}{}|{}{}",
            " ".repeat(HALF - left),
            "-".repeat(left),
            "+".repeat(right),
            " ".repeat(HALF - right)
        )
    };
    let row = |one: &Shift| {
        let precision = Precision::of(one.interval_ns);
        let interval = one.interval_ns.map(|interval| precision.signed_range(interval, Quantity::Time));
        vec![
            format!("p{}", format::short(one.p * 100.0)),
            precision.text(one.base_ns, Quantity::Time),
            precision.signed(one.difference_ns, Quantity::Time),
            interval.unwrap_or_else(|| "-".to_owned()),
            bar(one.difference_ns),
        ]
    };
    table(&["level", "base", "shift", "95 % interval", "better | worse"], shift.iter().map(row).collect())
}

/// The result of each condition.
pub(super) fn gate(judged: &[Judged]) -> String {
    let mut text = String::new();
    for one in judged {
        let word = match one.holds {
            Some(true) => "FAILED",
            Some(false) => "passed",
            None => "cannot be judged",
        };
        text.push_str(&folded(&format!("fail-if {:?}: {word}: {}", one.condition, one.sentence)));
    }
    text
}

/// Groups by their loss.
pub(super) fn ranking(ranking: &Ranking) -> String {
    let mut text = format!(
        "{} of {}, phase {}; lower is better\n\n",
        ranking.loss.name(),
        ranking.probe.name(),
        ranking.phase
    );
    let row = |one: &Ranked| {
        let [loss, interval] = loss(one, ranking.unit);
        vec![
            one.name.clone(),
            one.runs.len().to_string(),
            loss,
            interval,
            one.p_best.map_or("-".to_owned(), |p| format!("{:.1} %", p * 100.0)),
            if one.p_best.is_none() {
                "not judged"
            } else if one.may_be_best {
                "may be the best"
            } else {
                "worse"
            }
            .to_owned(),
            one.letters.clone(),
        ]
    };
    let head =
        ["configuration", "runs", &ranking.loss.name(), "95 % interval", "best with", "verdict", "alike"];
    text.push_str(&table(&head, ranking.groups.iter().map(row).collect()));
    text.push('\n');
    text.push_str(&folded(&verdict(ranking)));
    if ranking.groups.iter().any(|one| !one.letters.is_empty()) {
        text.push_str(&folded(
            "Configurations that share a letter cannot be distinguished, allowing for all pairs.",
        ));
    }
    ranking.warnings.iter().for_each(|one| text.push_str(&folded(&format!("note: {one}"))));
    text
}

/// The ranking in a sentence.
pub(super) fn verdict(ranking: &Ranking) -> String {
    let Some(first) = ranking.groups.first() else { return String::new() };
    if first.p_best.is_none() {
        return "With one run of a configuration nothing is concluded about configurations: the order is that of these runs.".to_owned();
    }
    let able: Vec<&str> =
        ranking.groups.iter().filter(|one| one.may_be_best).map(|one| one.name.as_str()).collect();
    match able[..] {
        [one] if ranking.family == 1 => format!("{one} is the best: the other is worse."),
        [one] => {
            format!("{one} is the best: every other is worse, allowing for all {} pairs.", ranking.family)
        }
        _ => format!(
            "{} cannot be distinguished; {} has the lowest {} of these runs.",
            able.join(", "),
            first.name,
            ranking.loss.name()
        ),
    }
}

/// A sentence, its further lines behind two blanks.
pub(super) fn folded(sentence: &str) -> String {
    crate::folded::folded(sentence, "  ")
}
