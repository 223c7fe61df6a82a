//! The head of the page: the answer, the worst sample with its cause and remedy, and their values.

use analysis::distribution::Distribution;
use minijinja::{Value, context};
use model::sample::ProbeKind;

use super::value;
use super::windows::{of, seconds, style};
use crate::conditions::{Condition, conditions};
use crate::distribution::{maximum, quantile};
use crate::{Document, Known, Verdict, verdicts};

/// Pieces of advice that stand open; the others are folded.
const FIRST: usize = 3;

pub(super) fn figures(document: &Document) -> Value {
    let drawn = |d: &&Distribution| matches!(d.probe, ProbeKind::Wakeup | ProbeKind::Noise);
    let all: Vec<&Distribution> = document.analysis.distributions.iter().filter(drawn).collect();
    context! {
        wakeup => worst_by_phase(document, ProbeKind::Wakeup, |d| quantile(d, 0.999).map(|ns| ns as f64)),
        noise => worst_by_phase(document, ProbeKind::Noise, |d| d.stolen.as_ref().map(|stolen| stolen.share)),
        duration_ns => all.iter().map(|d| d.duration_ns).fold(0, u64::saturating_add),
        verdicts => verdicts(document).iter().map(|one| verdict_context(document, one)).collect::<Vec<_>>(),
        conditions => value(&brief(document)),
        first => FIRST,
    }
}

/// For each phase the largest of one value over the measured CPUs, with the observed maximum.
fn worst_by_phase(
    document: &Document,
    probe: ProbeKind,
    figure: impl Fn(&Distribution) -> Option<f64>,
) -> Vec<Value> {
    let windows = of(document, probe);
    let phase = |name: &str| {
        let here = || windows.iter().filter(|d| d.phase == name);
        let largest = here().filter_map(|d| figure(d)).reduce(f64::max);
        let max_ns = here().filter_map(|d| maximum(d)).max();
        context! { phase => name, style => style(document, name), figure => largest, max_ns => max_ns }
    };
    let phases = document.run.phases.iter().filter(|p| windows.iter().any(|d| d.phase == p.name));
    phases.map(|p| phase(&p.name)).collect()
}

/// A verdict, and where in the run it was.
fn verdict_context(document: &Document, one: &Verdict) -> Value {
    context! {
        what => one.what,
        value_ns => one.value_ns,
        cpu => one.cpu,
        phase => one.phase.as_str(),
        style => style(document, &one.phase),
        at_s => one.t_ns.and_then(|t_ns| seconds(document, t_ns)),
        cause => one.cause_words(),
        sure => one.confidence.words(),
        shown => one.confidence != Known::Unknown,
        commands => one.against.clone(),
        against => one.against_words(),
        look => one.look.clone(),
    }
}

/// The conditions without which the values mean nothing; the section of that name has all.
fn brief(document: &Document) -> Vec<Condition> {
    let first = ["measured", "policy", "kernel", "lost"];
    conditions(document).into_iter().filter(|one| first.contains(&one.name)).collect()
}
