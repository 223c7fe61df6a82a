//! What was lost, or did not happen: it weakens every value below it, so it comes first.

use model::Cpus;
use model::stressor::StressorState;

use super::{Advice, AdviceKind, Facts};
use crate::format;

/// One piece of advice a kind of loss.
pub(super) fn losses(facts: &Facts) -> Vec<Advice> {
    let mut all = Vec::new();
    all.extend(partial(facts));
    all.extend(ring(facts));
    all.extend(trace(facts));
    all.extend(disturbance(facts));
    all.extend(weak(facts));
    all
}

fn loss(facts: &Facts, what: String, remedy: &str, source: &str) -> Advice {
    let cpus: Cpus = facts.run.measured_cpus.clone();
    Advice {
        kind: AdviceKind::Loss,
        what,
        class: None,
        cpus,
        cost: None,
        steps: Vec::new(),
        no_step: Some(remedy.to_owned()),
        source: source.to_owned(),
    }
}

fn partial(facts: &Facts) -> Option<Advice> {
    let why = facts.run.incomplete_reason.as_deref().unwrap_or("no reason recorded");
    (!facts.run.complete).then(|| {
        loss(
            facts,
            format!("the run is partial: {why}"),
            "figures cover only what was measured; run again",
            "run.json, incomplete_reason",
        )
    })
}

fn ring(facts: &Facts) -> Option<Advice> {
    let lost = facts.run.losses.ring_samples;
    (lost > 0).then(|| {
        loss(
            facts,
            format!(
                "{} lost to a full ring: a larger maximum may be among them",
                format::plural(lost, "sample")
            ),
            "keep a housekeeping CPU free for the process that drains, or measure fewer CPUs at once",
            "run.json, losses.ring_samples",
        )
    })
}

fn trace(facts: &Facts) -> Option<Advice> {
    let lost = facts.run.losses.trace_events;
    let balanced = facts.analysis.losses.reconciled;
    let what = match (lost, balanced) {
        (0, Some(false)) => {
            "the trace does not balance with the kernel's own account: events are missing".to_owned()
        }
        (0, _) => return None,
        (lost, _) => format!("{} lost: event counts are lower bounds", format::plural(lost, "trace event")),
    };
    Some(loss(facts, what, "verdicts on event rates are withheld", "analysis.json, losses.trace"))
}

/// Without the disturbance, "no difference from idle" means nothing.
fn disturbance(facts: &Facts) -> Option<Advice> {
    let broken: Vec<String> = facts
        .run
        .stressors
        .iter()
        .filter(|stressor| !stressor.state.happened())
        .map(|stressor| {
            let state = match stressor.state {
                StressorState::Absent => "not on this machine",
                other => other.word(),
            };
            let why = stressor.reason.as_deref().unwrap_or("no reason recorded");
            format!("{} ({state}: {why})", stressor.name)
        })
        .collect();
    (!broken.is_empty()).then(|| {
        loss(
            facts,
            format!("not every disturbance did its work: {}", broken.join("; ")),
            "what these would have provoked was not tested",
            "run.json, stressors",
        )
    })
}

/// A weaker load provokes less, and says nothing about the one that was asked for.
fn weak(facts: &Facts) -> Option<Advice> {
    let weak = facts.run.stressors.iter().filter(|stressor| stressor.state == StressorState::Weak);
    let weak: Vec<String> = weak
        .map(|stressor| {
            let asked = format::count(stressor.ops_asked.unwrap_or_default());
            format!("{} ({} of {asked} operations)", stressor.name, format::count(stressor.ops_ok))
        })
        .collect();
    (!weak.is_empty()).then(|| {
        loss(
            facts,
            format!("disturbances did less than half of what was asked for: {}", weak.join("; ")),
            "what was measured is the effect of a weaker load than the one asked for",
            "run.json, stressors",
        )
    })
}
