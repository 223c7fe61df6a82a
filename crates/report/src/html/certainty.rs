//! How sure the statistics of samples are: one row per window, one per limit.

use analysis::distribution::Distribution;
use minijinja::{Value, context};

use super::filters::typographic;
use crate::distribution::quantiles;
use crate::precision::times;
use crate::{Document, certainty, format};

pub(super) fn figures(document: &Document) -> Value {
    let windows = certainty::windows(document);
    let mut levels: Vec<f64> =
        windows.iter().flat_map(|d| quantiles(d)).filter(|q| q.value_ns.is_some()).map(|q| q.p).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let limits =
        windows.iter().flat_map(|d| certainty::deadlines(document, d).into_iter().map(|one| limit(d, &one)));
    context! {
        names => levels.iter().map(|&p| format::quantile_name(p)).collect::<Vec<_>>(),
        rows => windows.iter().filter(|d| d.dependence.is_some()).map(|d| row(d, &levels)).collect::<Vec<_>>(),
        limits => limits.collect::<Vec<_>>(),
        unanswered => certainty::no_deadline(document),
    }
}

fn row(d: &Distribution, levels: &[f64]) -> Value {
    let cell = |p: &f64| {
        let found = quantiles(d).iter().find(|quantile| (quantile.p - p).abs() < 1e-9);
        found
            .and_then(|quantile| quantile.interval_ns)
            .map(|[low, high]| typographic(&times([low as f64, high as f64])))
    };
    context! {
        window => certainty::window(d), n => d.n, dependence => super::value(&d.dependence),
        intervals => levels.iter().map(cell).collect::<Vec<_>>(),
        cluster => d.dependence.as_ref().and_then(|found| found.extremal).map(|tail| format!("{:.1}", 1.0 / tail.theta)),
    }
}

fn limit(d: &Distribution, sentence: &str) -> Value {
    context! { window => certainty::window(d), sentence => sentence }
}
