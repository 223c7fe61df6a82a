//! The box at the top: the worst wake-up and the longest gap of a run, what took most of each, how
//! sure that is, what is against it, and where to look closer. Made once, here; terminal, page and
//! JSON show the same.
//!
//! The cause is the largest part of that one sample, as
//! [`attribution::attribute::path_section::SamplePath`] cuts it; other late samples may have
//! others, and the advice ranks what costs most over all. Nothing is proposed against a cause that
//! no event shows.

mod unexplained;

pub(crate) use unexplained::STEAL_STEP_NS;
pub use unexplained::replaced;

use analysis::distribution::Distribution;
use attribution::attribute::Confidence;
use attribution::attribute::delay::Blocking;
use attribution::attribute::path_section::{PathBox, SamplePath};
use attribution::attribute::section::BlockingCoverage;
use attribution::attribute::step::Step;
use model::events::EventCatalogue;
use model::sample::ProbeKind;
use model::{EventClass, Finding, FindingState, Machine, Run};
use serde::Serialize;

use crate::advice::{apply_command, label_of, name_in_files};
use crate::distribution::maximum;
use crate::outcome::{self, is_contested, is_settable};
use crate::words::source_words;
use crate::{Document, format};

/// How a cause is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known {
    /// Events show it, and both ends of a request name the same object.
    Exact,
    /// Events show it; who asked is known by order in time.
    ByOrder,
    /// No event shows it; everything else that the events could show is ruled out.
    Inferred,
    /// Not recorded.
    Unknown,
}

impl Known {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::ByOrder => "by order in time",
            Self::Inferred => "inferred",
            Self::Unknown => "not known",
        }
    }
}

/// The largest sample of a kind, and what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// `worst wake-up`, `longest gap`.
    pub what: &'static str,
    /// The probe.
    pub probe: ProbeKind,
    /// Phase of its window.
    pub phase: String,
    /// The CPU.
    pub cpu: u32,
    /// The largest sample, ns.
    pub value_ns: i64,
    /// When it was due, or the gap began, CLOCK_MONOTONIC ns.
    pub t_ns: Option<i64>,
    /// What took most of it, or why that is not known; a sentence without its end.
    pub cause: String,
    /// How the cause is known.
    pub confidence: Known,
    /// The part of the value that it took, 0 to 1; `None` where the sample was not taken apart.
    pub share: Option<f64>,
    /// Commands against it, best first; none against what is not shown.
    pub against: Vec<String>,
    /// Mechanisms against it that are in place already.
    pub in_place: Vec<String>,
    /// Commands that show more.
    pub look: Vec<String>,
}

/// What a cause is concluded from, beside the sample itself.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// `run.json`.
    pub run: &'a Run,
    /// Whether there is a hypervisor.
    pub machine: &'a Machine,
    /// `findings.json`; empty where the run was not audited.
    pub findings: &'a [Finding],
    /// Waits that events of this trace would show.
    pub blocking: &'a [BlockingCoverage],
}

/// Whose samples they are.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The probe.
    pub probe: ProbeKind,
    /// Phase of its window.
    pub phase: &'a str,
    /// The CPU.
    pub cpu: u32,
}

impl<'a> Place<'a> {
    fn of(window: &'a Distribution) -> Self {
        Self { probe: window.probe, phase: &window.phase, cpu: window.cpu }
    }
}

/// What took most of one sample, and what is against it; no command that shows more.
pub fn of_sample(facts: &Facts, place: Place, sample: &SamplePath) -> Verdict {
    let what = if place.probe == ProbeKind::Noise { "gap" } else { "wake-up" };
    let unknown = Verdict {
        what,
        probe: place.probe,
        phase: place.phase.to_owned(),
        cpu: place.cpu,
        value_ns: sample.value_ns,
        t_ns: Some(sample.t_ns),
        cause: unexplained::NO_WAY.to_owned(),
        confidence: Known::Unknown,
        share: None,
        against: Vec::new(),
        in_place: Vec::new(),
        look: Vec::new(),
    };
    caused(facts, place, sample, unknown)
}

/// Of each kind that was measured the largest sample: wake-ups first.
pub fn verdicts(document: &Document) -> Vec<Verdict> {
    let kinds = [(ProbeKind::Wakeup, "worst wake-up"), (ProbeKind::Noise, "longest gap")];
    kinds.into_iter().filter_map(|(probe, what)| verdict(document, probe, what)).collect()
}

fn verdict(document: &Document, probe: ProbeKind, what: &'static str) -> Option<Verdict> {
    let ours = document.analysis.distributions.iter().filter(|one| one.probe == probe);
    let (window, value_ns) =
        ours.filter_map(|one| Some((one, served(one)?))).max_by_key(|(_, max_ns)| *max_ns)?;
    let mut verdict = of_window(document, window, value_ns, what);
    verdict.cause.extend(later(window));
    Some(verdict)
}

fn of_window(document: &Document, window: &Distribution, value_ns: i64, what: &'static str) -> Verdict {
    let empty = Verdict {
        what,
        probe: window.probe,
        phase: window.phase.clone(),
        cpu: window.cpu,
        value_ns,
        t_ns: window.observed_max_at_ns,
        cause: unexplained::not_recorded(document, window),
        confidence: Known::Unknown,
        share: None,
        against: Vec::new(),
        in_place: Vec::new(),
        look: vec![unexplained::record(document, window)],
    };
    let sample = taken_apart(document, window).or_else(|| kept(document, window));
    let Some(sample) = sample else { return empty };
    let look = format!("stillcore trace explain {} --sample {}", document.dir, format::instant(sample.t_ns));
    let verdict = caused(&Facts::of(document), Place::of(window), sample, empty);
    // A measurement that ended at its first late sample has no other to look at, and the trace of
    // this one has just been read.
    let is_over = document.run.stopped_at.is_some() && verdict.confidence == Known::Unknown;
    let once_more = is_over.then(|| unexplained::once_more(&document.run)).flatten();
    Verdict { look: once_more.into_iter().chain([look]).collect(), ..verdict }
}

/// The largest sample: what is taken apart. A release that passed unserved while a wake-up of the
/// warm-up was late may have been later; see [`later`].
fn served(one: &Distribution) -> Option<i64> {
    one.observed_max_ns.or_else(|| maximum(one))
}

/// That a release was later than every sample, which no sample's parts explain.
fn later(window: &Distribution) -> Option<String> {
    let charged_ns = window.corrected_max_ns.filter(|ns| Some(*ns) > window.observed_max_ns)?;
    Some(format!("; a release that passed unserved is charged with {}", format::ns(charged_ns)))
}

fn taken_apart<'a>(document: &'a Document, window: &Distribution) -> Option<&'a SamplePath> {
    let ours = document.analysis.paths.iter().find(|one| {
        (one.probe, &one.phase, one.cpu, one.thread)
            == (window.probe, &window.phase, window.cpu, window.thread)
    })?;
    ours.worst.iter().find(|one| Some(one.t_ns) == window.observed_max_at_ns)
}

/// The same of a run that has kept its trace around the largest samples only.
fn kept<'a>(document: &'a Document, window: &Distribution) -> Option<&'a SamplePath> {
    let samples = document.analysis.snapshots.iter().flat_map(|section| &section.samples);
    let mut ours = samples.filter(|one| {
        (one.probe, one.sample.cpu, one.sample.thread, Some(one.sample.t_ns))
            == (window.probe, window.cpu, window.thread, window.observed_max_at_ns)
    });
    ours.find_map(|one| one.path.as_ref())
}

/// The part with the most time, those of the same kind together.
fn caused(facts: &Facts, place: Place, sample: &SamplePath, empty: Verdict) -> Verdict {
    let mut parts: Vec<(&PathBox, u64)> = Vec::new();
    for part in &sample.parts {
        match parts.iter_mut().find(|(known, _)| same(known, part)) {
            Some((_, ns)) => *ns += part.ns,
            None => parts.push((part, part.ns)),
        }
    }
    let Some((part, ns)) = parts.into_iter().max_by_key(|(_, ns)| *ns).filter(|(_, ns)| *ns > 0) else {
        return empty;
    };
    let share = Some(ns as f64 / empty.value_ns.max(1) as f64);
    let here = part.cpu == place.cpu;
    // The embedded catalogue is checked by tests; without it there would be no remedies to name.
    let catalogue = EventCatalogue::embedded().ok();
    let speaks = |finding: &Finding| outcome::speaks(finding, part.class, !here && part.is_step());
    let against = |ids: &[String]| commands(facts.findings, ids, speaks);
    if part.is_step() && here {
        let mut cause = unexplained::of_step(facts, place, part.step, ns);
        if let Some(task) = sample.replaced.as_ref().filter(|_| part.step == Step::Switch) {
            cause = format!("{cause}; {}", unexplained::replaced(task, place.cpu));
        }
        // An IPI that the task's own timer would not have needed.
        let timer = |one: &&PathBox| matches!(one.step, Step::TimerLate | Step::TimerHandler);
        let from = sample.parts.iter().filter(timer).find(|one| one.cpu != place.cpu);
        let Some(from) = from.filter(|_| part.step == Step::IpiInFlight) else {
            return Verdict { cause, share, ..empty };
        };
        cause = format!("{cause}; it was needed because the timer expired on CPU {}", from.cpu);
        let steps = catalogue.as_ref().and_then(|catalogue| catalogue.steps.get(&name_in_files(part.step)));
        let speaks = |finding: &Finding| outcome::speaks(finding, None, true);
        let (against, in_place) =
            steps.map_or_else(Default::default, |ids| commands(facts.findings, ids, speaks));
        return Verdict { cause, share, against, in_place, ..empty };
    }
    if part.is_step() {
        let (cause, confidence) = unexplained::of_step_elsewhere(facts.run, part);
        let steps = catalogue.as_ref().and_then(|catalogue| catalogue.steps.get(&name_in_files(part.step)));
        let (against, in_place) = steps.map_or_else(Default::default, |ids| against(ids));
        return Verdict { cause, confidence, share, against, in_place, ..empty };
    }
    let label = part.label.as_deref().unwrap_or("");
    let ids = catalogue.as_ref().and_then(|catalogue| match (part.class, part.blocking) {
        (Some(class), _) => Some(label_of(catalogue.classes.get(&class)?, label, part.source.as_ref())),
        (_, Some(blocking)) => catalogue.blockings.get(&name_in_files(blocking)).map(Vec::as_slice),
        _ => None,
    });
    let (against, in_place) = ids.map_or_else(Default::default, against);
    if part.blocking == Some(Blocking::NotExecuting) {
        let cause = format!("{}{}", ran(part, place.cpu), unexplained::steal(facts, place, Some(ns)));
        return Verdict { cause, confidence: Known::Inferred, share, ..empty };
    }
    let confidence = match (part.class, part.source.as_ref().and(part.confidence)) {
        // The events show that the scheduler passed over the task; a budget is the reason left.
        (Some(EventClass::Throttle), _) => Known::Inferred,
        _ if part.blocking.is_some_and(Blocking::is_inferred) => Known::Inferred,
        (_, Some(Confidence::Order)) => Known::ByOrder,
        _ => Known::Exact,
    };
    Verdict { cause: ran(part, place.cpu), confidence, share, against, in_place, ..empty }
}

/// What ran, in which task, and who asked for it.
fn ran(part: &PathBox, own: u32) -> String {
    let place = if part.cpu == own { String::new() } else { format!(" on CPU {}", part.cpu) };
    let what = part.what().unwrap_or_default();
    // Who keeps a CPU from being preempted does so itself; whoever woke a task did not run.
    let by = match (part.blocking, part.class) {
        (Some(_), _) => "by",
        (None, Some(EventClass::Switch)) => "woken by",
        _ => "asked for by",
    };
    let by = part.source.as_ref().map(|source| format!(", {by} {}{}", source_words(source), inside(part)));
    format!("{what}{place}{}", by.unwrap_or_default())
}

/// The innermost functions that a stack shows of kernel code that could not be preempted.
fn inside(part: &PathBox) -> String {
    let source = part.source.as_ref().filter(|_| part.blocking == Some(Blocking::KernelCode));
    let frames: Vec<&str> =
        source.into_iter().flat_map(|source| &source.frames).take(4).map(String::as_str).collect();
    if frames.is_empty() { String::new() } else { format!(", seen in {}", frames.join(" < ")) }
}

/// One command for the mechanisms that it sets, named behind it, and the names of those in place. A
/// setting that could as well be otherwise is proposed where it `speaks` to what was seen, and is
/// never in place.
fn commands(
    findings: &[Finding],
    ids: &[String],
    speaks: impl Fn(&Finding) -> bool,
) -> (Vec<String>, Vec<String>) {
    let found = ids.iter().filter_map(|id| findings.iter().find(|finding| finding.id == *id));
    let (mut commands, mut in_place) = (Vec::<(String, Vec<String>)>::new(), Vec::new());
    for finding in found {
        let is_proposed = is_settable(finding) || speaks(finding);
        if !is_proposed {
            let is_in_place = finding.state == FindingState::Ok && !is_contested(finding);
            in_place.extend(is_in_place.then(|| finding.id.clone()));
            continue;
        }
        let command = apply_command(finding);
        match commands.iter_mut().find(|(known, _)| *known == command) {
            Some((_, sets)) => sets.push(outcome::named(finding)),
            None => commands.push((command, vec![outcome::named(finding)])),
        }
    }
    let named = |(command, sets): (String, Vec<String>)| format!("{command}  # {}", sets.join(", "));
    (commands.into_iter().map(named).collect(), in_place)
}

/// Whether two parts are of one thing: that it ran in two steps does not make it two causes.
fn same(a: &PathBox, b: &PathBox) -> bool {
    let step = |part: &PathBox| part.is_step().then_some(part.step);
    let by = match (&a.source, &b.source) {
        (Some(one), Some(other)) => one.is(other),
        (one, other) => one.is_none() && other.is_none(),
    };
    by && (a.class, a.blocking, &a.label, &a.task, a.cpu, step(a))
        == (b.class, b.blocking, &b.label, &b.task, b.cpu, step(b))
}

impl<'a> Facts<'a> {
    fn of(document: &'a Document) -> Self {
        Self {
            run: &document.run,
            machine: &document.machine.machine,
            findings: &document.findings,
            blocking: &document.analysis.blocking,
        }
    }
}

impl Verdict {
    /// The value with its place: `12.77 ms on CPU 1, phase idle-before`.
    pub fn value_words(&self) -> String {
        format!("{} on CPU {}, phase {}", format::ns(self.value_ns), self.cpu, self.phase)
    }

    /// The cause with its share: `12.7 ms (99.0 %): …`.
    pub fn cause_words(&self) -> String {
        let part = self.share.map(|share| {
            format!("{} ({}): ", format::ns((share * self.value_ns as f64) as i64), format::share(share))
        });
        format!("{}{}", part.unwrap_or_default(), self.cause)
    }

    /// The cause with its share, and how it is known behind what is known that way: what follows a
    /// semicolon is beside it.
    pub fn sure_words(&self) -> String {
        let words = self.cause_words();
        if self.confidence == Known::Unknown {
            return words;
        }
        let sure = self.confidence.words();
        match words.split_once("; ") {
            Some((known, beside)) => format!("{known} ({sure}); {beside}"),
            None => format!("{words} ({sure})"),
        }
    }

    /// What is against it: commands, what is in place already, or that there is nothing to propose.
    pub fn against_words(&self) -> Vec<String> {
        if !self.against.is_empty() {
            return self.against.clone();
        }
        if !self.in_place.is_empty() {
            return vec![format!("in place already: {}", self.in_place.join(", "))];
        }
        vec![match self.confidence {
            Known::Unknown => "nothing is proposed against a cause that is not shown".to_owned(),
            _ => "nothing in the catalogue removes it".to_owned(),
        }]
    }
}

#[cfg(test)]
mod tests;
