//! The worst sample of a run, what took most of its time, and what is known against that: the first thing a reader asks.
//!
//! The cause is the largest part of that one sample, as [`analysis::shape::SamplePath`] cuts it; other late samples may have others, and
//! the advice ranks what costs most over all.

use analysis::attribute::Confidence;
use analysis::attribute::blocking::Blocking;
use analysis::attribute::path::Step;
use analysis::shape::{Distribution, PathBox, SamplePath, SourceText};
use model::events::EventCatalogue;
use model::sample::ProbeKind;
use model::{EventClass, Finding};
use serde::Serialize;

use crate::Document;
use crate::advice::against;
use crate::distribution::maximum;

/// The largest sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worst {
    /// The probe: wake-ups where there are any, else the busy loop.
    pub probe: ProbeKind,
    /// Phase of its window.
    pub phase: String,
    /// The CPU.
    pub cpu: u32,
    /// Observed maximum, missed releases charged, ns.
    pub value_ns: i64,
    /// When it was due, or the gap began, CLOCK_MONOTONIC ns.
    pub t_ns: Option<i64>,
    /// What took most of it, where the trace tells.
    pub cause: Option<Cause>,
}

/// What took most of a sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// What ran; of a step in which nothing ran that was recorded, none.
    pub class: Option<EventClass>,
    /// Its name, or what kept the task waiting.
    pub label: Option<String>,
    /// The step of the wake-up that waited for it.
    pub step: Step,
    /// Where it ran.
    pub cpu: u32,
    /// Time in it, ns.
    pub ns: u64,
    /// Who asked for it.
    pub source: Option<SourceText>,
    /// How that is known.
    pub confidence: Option<Confidence>,
    /// Mechanisms against it that are not set, best first: places in the findings.
    pub settable: Vec<usize>,
    /// Mechanisms against it that are in place already.
    pub in_place: Vec<String>,
}

/// The worst sample; none where nothing was sampled.
pub fn worst(document: &Document) -> Option<Worst> {
    let of = |probe: ProbeKind| {
        let ours = document.analysis.distributions.iter().filter(move |one| one.probe == probe);
        ours.filter_map(|one| Some((one, maximum(one)?))).max_by_key(|(_, max_ns)| *max_ns)
    };
    let (window, value_ns) = of(ProbeKind::Wakeup).or_else(|| of(ProbeKind::Noise))?;
    let sample = taken_apart(document, window);
    Some(Worst {
        probe: window.probe,
        phase: window.phase.clone(),
        cpu: window.cpu,
        value_ns,
        t_ns: window.observed_max_at_ns,
        cause: sample.and_then(|sample| cause(document, sample)),
    })
}

fn taken_apart<'a>(document: &'a Document, window: &Distribution) -> Option<&'a SamplePath> {
    let ours = document.analysis.paths.iter().find(|one| {
        (&one.phase, one.cpu, one.thread) == (&window.phase, window.cpu, window.thread)
            && window.probe == ProbeKind::Wakeup
    })?;
    ours.worst.iter().find(|one| Some(one.t_ns) == window.observed_max_at_ns)
}

/// The part with the most time, those of the same kind together.
fn cause(document: &Document, sample: &SamplePath) -> Option<Cause> {
    let mut parts: Vec<(&PathBox, u64)> = Vec::new();
    for part in &sample.parts {
        match parts.iter_mut().find(|(known, _)| same(known, part)) {
            Some((_, ns)) => *ns += part.ns,
            None => parts.push((part, part.ns)),
        }
    }
    let (part, ns) = parts.into_iter().max_by_key(|(_, ns)| *ns).filter(|(_, ns)| *ns > 0)?;
    // The embedded catalogue is checked by tests; without it there would be no remedies to name.
    let known = part.class.zip(EventCatalogue::embedded().ok());
    let against = known.map(|(class, catalogue)| {
        against(&catalogue, &document.findings, class, part.label.as_deref().unwrap_or_default())
    });
    let place = |id: &str| document.findings.iter().position(|finding: &Finding| finding.id == id);
    let (settable, in_place) = against.map_or_else(Default::default, |against| {
        let settable = against.settable.iter().filter_map(|(id, _)| place(id)).collect();
        (settable, against.in_place)
    });
    Some(Cause {
        class: part.class,
        label: part.label.clone().or_else(|| part.blocking.map(|one: Blocking| one.words().to_owned())),
        step: part.step,
        cpu: part.cpu,
        ns,
        source: part.source.clone(),
        confidence: part.confidence.filter(|_| part.source.is_some()),
        settable,
        in_place,
    })
}

/// Whether two parts are of one thing: that it ran in two steps does not make it two causes.
fn same(a: &PathBox, b: &PathBox) -> bool {
    let step = |part: &PathBox| part.is_step().then_some(part.step);
    (a.class, a.blocking, &a.label, &a.task, &a.source, a.cpu, step(a))
        == (b.class, b.blocking, &b.label, &b.task, &b.source, b.cpu, step(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn it_is_the_largest_of_all_wake_ups_and_its_cause_the_largest_part() {
        let mut document = fixture::document();
        let told = worst(&document).unwrap();
        let largest = document.analysis.distributions.iter().filter(|one| one.probe == ProbeKind::Wakeup);
        assert_eq!(told.value_ns, largest.filter_map(maximum).max().unwrap());
        let window = document
            .analysis
            .distributions
            .iter_mut()
            .find(|one| (one.probe, &one.phase, one.cpu) == (told.probe, &told.phase, told.cpu));
        let path =
            document.analysis.paths.iter_mut().find(|one| (&one.phase, one.cpu) == (&told.phase, told.cpu));
        let (window, path) = (window.unwrap(), path.unwrap());
        path.worst[0].t_ns = window.observed_max_at_ns.unwrap();
        let most = path.worst[0].parts.iter().map(|part| part.ns).max().unwrap();
        let cause = worst(&document).unwrap().cause.unwrap();
        assert!(cause.ns >= most, "{cause:?}");
    }

    #[test]
    fn parts_of_one_thing_are_added_and_own_time_of_two_steps_is_not() {
        let part = |step, class, ns| PathBox { class, ..fixture::part(step, 1, ns, false) };
        let ran = Some(EventClass::Softirq);
        let parts = vec![
            part(Step::TimerLate, ran, 30),
            part(Step::Switch, None, 50),
            part(Step::Return, None, 40),
            part(Step::Switch, ran, 30),
        ];
        let sample = SamplePath { t_ns: 0, value_ns: 150, parts, pieces: Vec::new() };
        let cause = cause(&fixture::document(), &sample).unwrap();
        assert_eq!((cause.class, cause.ns), (ran, 60));
    }

    #[test]
    fn without_samples_there_is_none() {
        let mut document = fixture::document();
        document.analysis.distributions.clear();
        assert_eq!(worst(&document), None);
    }
}
