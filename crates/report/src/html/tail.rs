//! Estimates of tails: each in a box with its verdict, the levels, both diagnostic charts, and
//! every check.

use analysis::tail::{Check, Tail};
use minijinja::{Value, context};

use super::chart;
use super::filters::typographic;
use crate::svg::{qq, return_levels};
use crate::{Document, tail};

/// Windows with charts; the others are in `analysis.json`.
const WINDOWS: usize = 4;

pub(super) fn figures(document: &Document) -> Value {
    let all = &document.analysis.tail;
    context! {
        windows => all.iter().take(WINDOWS).enumerate().map(|(at, one)| window(at, one)).collect::<Vec<_>>(),
        left_out => all.len().saturating_sub(WINDOWS),
        head => tail::HEAD,
    }
}

fn window(at: usize, one: &Tail) -> Value {
    let rows = one
        .levels
        .iter()
        .map(|level| tail::row(level).iter().map(|cell| typographic(cell)).collect::<Vec<_>>());
    let title = tail::window(one);
    let quantiles: Vec<[f64; 2]> = one.qq_ns.iter().map(|pair| [pair.fitted, pair.observed]).collect();
    context! {
        title => title.as_str(), estimated => one.estimated, verdict => tail::verdict(one),
        reasons => one.reasons.clone(), rows => rows.collect::<Vec<_>>(), fits => tail::fits(one),
        checks => one.checks.iter().map(check).collect::<Vec<_>>(), caveats => tail::caveats(one),
        levels => chart(return_levels(&format!("tl{at}"), &title, &one.curve, &one.observed)),
        qq => chart(qq(&format!("tq{at}"), &title, ["excess by the law", "excess observed"], &quantiles, None)),
    }
}

fn check(one: &Check) -> Value {
    let [name, statistic, p, verdict] = tail::check(one);
    let class = if verdict == "failed" { "bad" } else { "dim" };
    context! { name => name, statistic => typographic(&statistic), p => p, verdict => verdict, class => class }
}

#[cfg(test)]
mod tests {
    use analysis::tail::estimate;

    /// Latencies with an exponential tail, one of them of `last_ns`.
    fn releases(seed: u64, last_ns: i64) -> Vec<(i64, i64)> {
        let mut state = seed;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut latency = |k: i64| {
            let drawn = (5_000.0 - 900.0 * (1.0 - uniform()).ln()) as i64;
            (k * 1_000_000, if k == 3_333 { last_ns } else { drawn })
        };
        (0..10_000).map(&mut latency).collect()
    }

    #[test]
    fn a_verdict_stands_above_every_estimate_and_a_refused_one_has_no_levels() {
        let mut document = crate::fixture::document();
        let record = document.run.probes[0].clone();
        // Seven checks at 0.01 refuse some good series.
        let good =
            (1..9).map(|seed| estimate(&record, &releases(seed, 5_000), &[])).find(|tail| tail.estimated);
        document.analysis.tail = vec![good.unwrap(), estimate(&record, &releases(1, 900_000), &[])];
        let page = crate::html::page(&document).unwrap();
        let section = page.split("id=\"tail\"").nth(1).unwrap().split("</section>").next().unwrap();
        assert_eq!((section.matches("note good").count(), section.matches("note bad").count()), (1, 1));
        assert!(section.contains("a rarer mechanism of its own"), "{section}");
        assert_eq!(section.matches("Levels reached once in").count(), 1);
        assert_eq!(section.matches("<svg").count(), 4);
        assert!(!section.contains("NaN"));
        let text = crate::summary(&document, crate::TextOptions::default());
        assert!(text.contains("estimate: once in 1.0e6 releases") && text.contains("refused: "), "{text}");
        assert!(text.contains("3.0e-4 a release"), "the unseen is reported");
    }
}
