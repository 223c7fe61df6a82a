//! The page of two groups of runs: what differs, how sure, at which level of the distribution.

use analysis::groups::condition::Judged;
use analysis::groups::{FigureComparison, GroupComparison, WindowComparison};
use minijinja::{Value, context};
use stats::decide::Verdict;

use super::filters::typographic;
use super::{chart, environment, render};
use crate::svg::{ForestRow, Level, forest, shift};
use crate::{Error, format};

/// Units of statistics, each with a chart of its own.
const UNITS: [&str; 3] = ["ns", "share", "per s"];

/// The whole page; `judged`: what became of the conditions of a gate.
pub fn comparison_page(comparison: &GroupComparison, judged: &[Judged]) -> Result<String, Error> {
    let failed = judged.iter().any(|one| one.holds == Some(true));
    let open = judged.iter().any(|one| one.holds.is_none());
    let all = || comparison.windows.iter().flat_map(|window| &window.figures);
    let named = |verdict: Verdict| {
        let names = all().filter(move |figure| figure.verdict == verdict).map(|figure| figure.figure.name());
        names.collect::<Vec<_>>().join(", ")
    };
    let verdicts =
        [Verdict::Worse, Verdict::Better, Verdict::Equivalent, Verdict::CannotTell, Verdict::OneRun];
    let verdicts = verdicts.map(|verdict| (verdict, named(verdict)));
    let verdicts: Vec<Value> = verdicts
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(
            |(verdict, names)| context! { word => verdict.words(), class => class(*verdict), names => names },
        )
        .collect();
    let (word, tone) = match (judged.is_empty(), failed, open) {
        (false, true, _) => ("failed", "bad"),
        (false, false, true) => ("cannot be judged", "bad"),
        (false, false, false) => ("passed", "good"),
        _ => ("compared", "plain"),
    };
    let side =
        |runs: &[String], kernel: &Option<String>| context! { runs => runs.to_vec(), kernel => kernel };
    let values = context! {
        word => word,
        tone => tone,
        judged => super::value(&judged),
        verdicts => verdicts,
        warnings => comparison.warnings.clone(),
        windows => comparison.windows.iter().enumerate().map(window).collect::<Vec<_>>(),
        family => comparison.family,
        base => side(&comparison.base, &comparison.kernels[0]),
        other => side(&comparison.other, &comparison.kernels[1]),
    };
    render(&environment()?, "groups", values)
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
        forest(&id, &format!("Differences of {}", window.probe.name()), unit, &rows)
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

fn forest_row(figure: &FigureComparison) -> ForestRow {
    let more = figure.more_runs.filter(|_| figure.verdict == Verdict::CannotTell);
    let note = match (figure.difference, more) {
        (None, _) => figure.verdict.words().to_owned(),
        (Some(by), None) => format!("{}: {}", figure.verdict.words(), typographic(&signed(by, figure.unit))),
        (Some(by), Some(more)) => {
            let by = typographic(&signed(by, figure.unit));
            format!("{}: {by}; {more} more runs a side", figure.verdict.words())
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

fn row(figure: &FigureComparison) -> Value {
    let say = |value: Option<f64>| value.map(|value| typographic(&with_unit(value, figure.unit)));
    let each = |runs: &[f64]| runs.iter().map(|run| say(Some(*run))).collect::<Vec<_>>();
    context! {
        figure => figure.figure.name(),
        base => say(figure.base),
        other => say(figure.other),
        difference => figure.difference.map(|by| typographic(&signed(by, figure.unit))),
        interval => figure.interval.map(|[low, high]| {
            format!("{} to {}", typographic(&signed(low, figure.unit)), typographic(&signed(high, figure.unit)))
        }),
        margin => say(figure.margin),
        p => figure.p_differs.map(|p| format!("{:.3}", p.adjusted)),
        verdict => figure.verdict.words(),
        class => class(figure.verdict),
        why => figure.why.as_deref(),
        runs => figure.runs.iter().map(|runs| each(runs)).collect::<Vec<_>>(),
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "ns" => format::ns_f(value),
        "share" => format::share(value),
        _ => format::rate(value),
    }
}

fn signed(by: f64, unit: &str) -> String {
    let sign = if by > 0.0 {
        "+"
    } else if by < 0.0 {
        "-"
    } else {
        ""
    };
    format!("{sign}{}", with_unit(by.abs(), unit))
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
        }
    }

    #[test]
    fn the_page_says_what_is_worse_by_how_much_and_in_which_runs() {
        let judged = Judged {
            condition: "p99 > +1us".into(),
            holds: Some(true),
            sentence: "p99 is higher by 2.100 us".into(),
        };
        let page = comparison_page(&compared(), &[judged]).unwrap();
        for phrase in
            ["failed", "worse: +2.100", "11.00\u{a0}µs", "Shift function", "p99 &gt; +1us", "&lt;has&gt;"]
        {
            assert!(page.contains(phrase), "{phrase}");
        }
        assert!(!page.contains("<script>1") && !page.contains('\u{202e}') && !page.contains(">NaN"));
        assert_eq!(page.matches("<svg").count(), 2);
        crate::html::tests::assert_balanced(&page);
    }
}
