//! Which sections a page has. An assessment has all of its own, so that missing ones are visible;
//! a measurement has those that it measured.

use model::sample::ProbeKind;

use crate::{Document, heading};

/// Advice: of an assessment also that there is none.
pub(super) fn advice(document: &Document) -> bool {
    assessment(document) || !document.advice.is_empty()
}

/// The worst event of each kind.
pub(super) fn summary(document: &Document) -> bool {
    !crate::verdicts(document).is_empty()
}

pub(super) fn assessment(document: &Document) -> bool {
    !heading::is_measurement(&document.run)
}

/// Where what was sampled, or the kernel, is shown over time.
pub(super) fn timeline(document: &Document) -> bool {
    wakeup(document) || noise(document)
}

pub(super) fn wakeup(document: &Document) -> bool {
    assessment(document) || has(document, ProbeKind::Wakeup)
}

pub(super) fn noise(document: &Document) -> bool {
    assessment(document) || has(document, ProbeKind::Noise)
}

pub(super) fn certainty(document: &Document) -> bool {
    assessment(document) || !crate::certainty::windows(document).is_empty()
}

pub(super) fn tail(document: &Document) -> bool {
    !document.analysis.tail.is_empty()
}

pub(super) fn snapshots(document: &Document) -> bool {
    document.analysis.snapshots.is_some()
}

pub(super) fn sources(document: &Document) -> bool {
    assessment(document) || !document.analysis.attribution.is_empty()
}

pub(super) fn paths(document: &Document) -> bool {
    assessment(document) || document.analysis.paths.iter().any(|one| one.probe != ProbeKind::Noise)
}

fn has(document: &Document, probe: ProbeKind) -> bool {
    document.analysis.distributions.iter().any(|window| window.probe == probe)
}

pub(super) fn ipi(document: &Document) -> bool {
    !document.analysis.ipi.is_empty()
}

pub(super) fn overheads(document: &Document) -> bool {
    !document.analysis.overheads.is_empty()
}

pub(super) fn periodic(document: &Document) -> bool {
    !document.analysis.periodic.is_empty()
}

pub(super) fn graph(document: &Document) -> bool {
    document.analysis.graph.is_some()
}

/// Where something disturbed, or should have.
pub(super) fn disturbance(document: &Document) -> bool {
    assessment(document) || !document.run.stressors.is_empty()
}

pub(super) fn taskset(document: &Document) -> bool {
    !document.analysis.taskset.is_empty()
}

pub(super) fn clocks(document: &Document) -> bool {
    document.analysis.clocks.is_some()
}

/// Stretches with interrupts or preemption off, where they were recorded.
pub(super) fn off(document: &Document) -> bool {
    document.analysis.off.iter().any(|section| !section.rows.is_empty())
        || crate::off::nothing(&document.run, &document.analysis.off).is_some()
}

/// A program that was watched.
pub(super) fn watch(document: &Document) -> bool {
    document.analysis.watch.is_some()
}

pub(super) fn time(document: &Document) -> bool {
    assessment(document) || !document.analysis.time.is_empty()
}

/// Without a wake-up there is no jitter to conclude from.
pub(super) fn guarantee(document: &Document) -> bool {
    assessment(document) || document.guarantee.evidence.is_some()
}
