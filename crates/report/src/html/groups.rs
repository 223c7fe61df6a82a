//! The page of two groups of runs: what differs, how sure, at which level of the distribution.

use std::fmt::Write;

use analysis::groups::condition::Judged;
use analysis::groups::{FigureComparison, GroupComparison, WindowComparison};
use minijinja::{Value, context};
use stats::decide::Verdict;

use super::filters::{minus, typographic};
use super::front::{Front, PageNext};
use super::plot::rooms;
use super::{chart, environment, render};
use crate::opening::groups::{self, Compared};
use crate::precision::{Precision, Quantity};
use crate::svg::{ForestRow, Level, Room, forest, micro, shift};
use crate::{Error, format};

/// Units of statistics, each with a chart of its own.
const UNITS: [&str; 3] = ["ns", "share", "per s"];

/// The whole page; `judged`: what became of the conditions of a gate.
pub fn comparison_page(
    comparison: &GroupComparison,
    judged: &[Judged],
    next: Option<PageNext>,
) -> Result<String, Error> {
    let failed = judged.iter().any(|one| one.holds == Some(true));
    let open = judged.iter().any(|one| one.holds.is_none());
    let (word, tone) = match (judged.is_empty(), failed, open) {
        (false, true, _) => ("failed", "bad"),
        (false, false, true) => ("cannot be judged", "bad"),
        (false, false, false) => ("passed", "good"),
        _ => ("compared", "plain"),
    };
    let front = Front {
        word: word.to_owned(),
        tone,
        opening: groups::opening(comparison),
        lines: judged.iter().map(gate_line).collect(),
        warnings: comparison.warnings.clone(),
        plot: plot(comparison),
        next,
    };
    let side =
        |runs: &[String], kernel: &Option<String>| context! { runs => runs.to_vec(), kernel => kernel };
    let environment = environment()?;
    let front = render(&environment, "front", context! { x => front.values() })?;
    let values = context! {
        front => Value::from_safe_string(front),
        windows => comparison.windows.iter().enumerate().map(window).collect::<Vec<_>>(),
        family => comparison.family,
        asked => comparison.asked.iter().map(|figure| figure.name()).collect::<Vec<_>>().join(", "),
        base => side(&comparison.base, &comparison.kernels[0]),
        other => side(&comparison.other, &comparison.kernels[1]),
    };
    render(&environment, "groups", values)
}

fn gate_line(one: &Judged) -> String {
    let word = match one.holds {
        None => "cannot be judged",
        Some(true) => "failed",
        Some(false) => "passed",
    };
    format!("{}: {word}: {}", one.condition, one.sentence)
}

/// Rows of the plot of the opening.
const DRAWN: usize = 10;

/// What was decided, as shares of the base, so that all units are on one axis; where nothing was,
/// what was not.
fn plot(comparison: &GroupComparison) -> Value {
    let all = groups::ordered(comparison);
    let (decided, open): (Vec<Compared<'_>>, Vec<Compared<'_>>) = all.into_iter().partition(|one| {
        matches!(one.figure.verdict, Verdict::Worse | Verdict::Better | Verdict::Equivalent)
    });
    let (drawn, rest) = if decided.is_empty() {
        open.into_iter().partition(|one| one.figure.difference.is_some())
    } else {
        (decided, open)
    };
    let rows: Vec<ForestRow> = drawn.iter().take(DRAWN).map(|one| of_base(comparison, *one)).collect();
    let mut caption =
        "Difference from the base as a share of it, with 95 % intervals; lower is better. Shaded: \
                       the margin, inside which a difference does not matter."
            .to_owned();
    let more = drawn.len().saturating_sub(rows.len());
    if more > 0 {
        let _ = write!(caption, " {more} more below.");
    }
    let names = |verdict: Verdict| -> Vec<String> {
        rest.iter().filter(|one| one.figure.verdict == verdict).map(|one| one.name(comparison)).collect()
    };
    for (verdict, words) in [
        (Verdict::CannotTell, "These runs cannot distinguish"),
        (Verdict::OneRun, "Of one run a side"),
        (Verdict::Withheld, "Withheld"),
    ] {
        let names = names(verdict);
        if !names.is_empty() {
            let _ = write!(caption, " {words} {}: {}.", names.len(), names.join(", "));
        }
    }
    let title = "Differences as shares of the base";
    let draw = |room| forest(if room == Room::Desk { "fd" } else { "fh" }, title, "of base", &rows, room);
    rooms(draw, caption)
}

/// A row of that plot; without a point where the base is nought, of which nothing is a share.
fn of_base(comparison: &GroupComparison, one: Compared<'_>) -> ForestRow {
    let base = one.figure.base.filter(|base| *base > 0.0);
    let share = |value: Option<f64>| Some(value? / base?);
    ForestRow {
        label: one.name(comparison),
        point: share(one.figure.difference),
        interval: base.zip(one.figure.interval).map(|(base, interval)| interval.map(|end| end / base)),
        margin: share(one.figure.margin),
        class: class(one.figure.verdict),
        note: match one.difference() {
            Some(by) => format!(
                "{}: {}",
                one.figure.verdict.words(),
                micro(&minus(&format!("{by}{}", one.interval())))
            ),
            None => one.figure.verdict.words().to_owned(),
        },
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "bad",
        Verdict::Better => "good",
        Verdict::Withheld => "warn",
        Verdict::Equivalent | Verdict::CannotTell | Verdict::OneRun => "dim",
    }
}

fn window((index, window): (usize, &WindowComparison)) -> Value {
    let charts = UNITS.iter().filter_map(|unit| {
        let ours = window.figures.iter().filter(|figure| figure.unit == *unit);
        let rows: Vec<ForestRow> = ours.map(forest_row).collect();
        let id = format!("fo{index}{}", unit.replace(' ', "-"));
        forest(&id, &format!("Differences of {}", window.probe.name()), unit, &rows, Room::Desk)
            .map(Value::from_safe_string)
    });
    let level = |one: &analysis::groups::Shift| Level {
        label: format::quantile_name(one.p),
        difference_ns: one.difference_ns,
        interval_ns: one.interval_ns,
    };
    let levels: Vec<Level> = window.shift.iter().map(level).collect();
    let title = format!("Shift function of {}", window.probe.name());
    context! {
        gist => gist(window),
        probe => window.probe.name(),
        phase => window.phase.as_str(),
        n => window.n,
        missed => window.missed,
        threads => window.threads,
        period_ns => window.period_ns,
        charts => charts.collect::<Vec<_>>(),
        shift => chart(shift(&format!("sh{index}"), &title, &levels)),
        rows => window.figures.iter().map(row).collect::<Vec<_>>(),
        distance_ns => window.distance.as_ref().map(|distance| distance.wasserstein_ns),
        tail_ns => window.distance.as_ref().and_then(|distance| distance.tail_ns),
    }
}

/// How many of each verdict, for the folded section's heading.
fn gist(window: &WindowComparison) -> String {
    let count = |verdict| window.figures.iter().filter(|one| one.verdict == verdict).count();
    let each = [
        Verdict::Worse,
        Verdict::Better,
        Verdict::Equivalent,
        Verdict::CannotTell,
        Verdict::OneRun,
        Verdict::Withheld,
    ];
    let each = each.map(|verdict| (count(verdict), verdict.words()));
    let each = each.iter().filter(|(count, _)| *count > 0);
    each.map(|(count, words)| format!("{count} {words}")).collect::<Vec<_>>().join(", ")
}

fn forest_row(figure: &FigureComparison) -> ForestRow {
    let more = figure.more_runs.filter(|_| figure.verdict == Verdict::CannotTell);
    let (precision, quantity) = digits(figure);
    let by = figure.difference.map(|by| typographic(&precision.signed(by, quantity)));
    let note = match (by, more) {
        (None, _) => figure.verdict.words().to_owned(),
        (Some(by), None) => format!("{}: {by}", figure.verdict.words()),
        (Some(by), Some(more)) => {
            let more = format::plural(more as u64, "more run");
            format!("{}: {by}; about {more} a side", figure.verdict.words())
        }
    };
    ForestRow {
        label: figure.figure.name(),
        point: figure.difference,
        interval: figure.interval,
        margin: figure.margin,
        class: class(figure.verdict),
        note,
    }
}

/// How the numbers of a statistic are written: with the digits that the interval leaves certain.
fn digits(figure: &FigureComparison) -> (Precision, Quantity) {
    (Precision::of(figure.interval), Quantity::of(figure.unit))
}

fn row(figure: &FigureComparison) -> Value {
    let (precision, quantity) = digits(figure);
    let text = |value: f64| typographic(&precision.text(value, quantity));
    let each = |runs: &[f64]| runs.iter().map(|run| text(*run)).collect::<Vec<_>>();
    context! {
        figure => figure.figure.name(),
        base => figure.base.map(text),
        other => figure.other.map(text),
        difference => figure.difference.map(|by| typographic(&precision.signed(by, quantity))),
        interval => figure.interval.map(|interval| {
            precision.range(interval, |precision, end| typographic(&precision.signed(end, quantity)))
        }),
        margin => figure.margin.map(|margin| typographic(&Precision::of(None).text(margin, quantity))),
        p => figure.p_differs.map(|p| format!("{:.3}", p.adjusted)),
        verdict => figure.verdict.words(),
        class => class(figure.verdict),
        why => figure.why.as_deref(),
        runs => figure.runs.iter().map(|runs| each(runs)).collect::<Vec<_>>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::groups::Probability;
    use analysis::groups::figures::Figure;
    use model::sample::ProbeKind;

    fn figure(figure: Figure, verdict: Verdict, difference: Option<f64>) -> FigureComparison {
        FigureComparison {
            figure,
            unit: "ns",
            base: Some(9_000.0),
            other: difference.map(|by| 9_000.0 + by),
            runs: [vec![8_900.0, 9_100.0], vec![11_000.0, 11_200.0]],
            difference,
            interval: difference.map(|by| [by * 0.8, by * 1.2]),
            other_interval: None,
            margin: Some(1_000.0),
            p_differs: difference.map(|_| Probability { alone: 0.001, adjusted: 0.003 }),
            p_equivalent: None,
            exchanged: None,
            between_sd: [None; 2],
            within_sd: [None; 2],
            verdict,
            more_runs: None,
            why: difference.is_none().then(|| "of the base, run 1 <has> no samples".to_owned()),
        }
    }

    fn compared() -> GroupComparison {
        GroupComparison {
            base: vec!["a<script>1".into(), "a2".into()],
            other: vec!["b1".into(), "b2".into()],
            kernels: [Some("6.1".into()), None],
            warnings: vec!["measured in turns? \u{202e}no".into()],
            windows: vec![WindowComparison {
                probe: ProbeKind::Wakeup,
                phase: "measured".into(),
                n: [200_000, 200_000],
                missed: [0, 3],
                charged: [0, 3],
                other_period_ns: None,
                threads: 1,
                period_ns: Some(1_000_000),
                figures: vec![
                    figure(Figure::Quantile(99_000), Verdict::Worse, Some(2_100.0)),
                    figure(Figure::Max, Verdict::Withheld, None),
                ],
                shift: vec![analysis::groups::Shift {
                    p: 0.5,
                    base_ns: 5_000.0,
                    difference_ns: 150.0,
                    interval_ns: Some([-20.0, 320.0]),
                }],
                distance: None,
            }],
            family: 1,
            asked: Vec::new(),
        }
    }

    #[test]
    fn what_is_decided_is_drawn_and_what_is_not_is_one_line() {
        let page = comparison_page(&crate::fixture::pages::comparison(), &[], None).unwrap();
        crate::html::assert_balanced(&page);
        let opening = page.split("class=\"opening\"").nth(1).unwrap().split("</section>").next().unwrap();
        let flat = opening.replace('\u{a0}', " ").replace("&#x2f;", "/");
        for phrase in [
            "The other runs are worse in max of wakeup by 290 µs, exceed:5us of noise by 4.8/s and 1 more; \
             better in p50 of wakeup by 1.20 µs, of 8 statistics compared.",
            "These runs cannot distinguish 3: p99.9 of wakeup, stolen of noise, max of noise.",
        ] {
            assert!(flat.contains(phrase), "{phrase}: {flat}");
        }
        // Five that are decided, on a desk and in a hand; units share the axis.
        assert_eq!((opening.matches("<svg").count(), opening.matches("<circle").count()), (2, 10));
    }

    #[test]
    fn the_page_opens_with_what_is_worse_by_how_much_and_what_to_do() {
        let judged = Judged {
            condition: "p99 > +1us".into(),
            holds: Some(true),
            undecided: false,
            sentence: "p99 is higher by 2.100 us".into(),
        };
        let next = PageNext { command: "stillcore report b<1>".into(), why: "what was <worse>".into() };
        let page = comparison_page(&compared(), &[judged], Some(next)).unwrap();
        let opening = page.split("class=\"opening\"").nth(1).unwrap().split("</section>").next().unwrap();
        for phrase in [
            "Failed",
            "The other runs are worse in p99 by 2.10\u{a0}µs, of 2 statistics compared.",
            "95 %: +1.68\u{a0}µs to +2.52\u{a0}µs; n = 2 and 2 runs",
            "worse: +2.10 µs (+1.68 µs to +2.52 µs)",
            "Withheld 1: max.",
            "<span>report</span> <span>b&lt;1&gt;</span>",
            "p99 &gt; +1us: failed: p99 is higher by 2.100\u{a0}µs",
            "measured in turns?",
        ] {
            assert!(opening.contains(phrase), "{phrase}: {opening}");
        }
        for phrase in ["11.00\u{a0}µs", "Shift function", "&lt;has&gt;", "9.00\u{a0}µs"] {
            assert!(page.contains(phrase), "{phrase}");
        }
        assert!(!page.contains("<script>1") && !page.contains('\u{202e}') && !page.contains(">NaN"));
        // On a desk and in a hand, and what is folded.
        assert_eq!((opening.matches("<svg").count(), page.matches("<svg").count()), (2, 4));
        crate::html::tests::assert_balanced(&page);
    }
}
