//! Wake-ups taken apart, as stored.

use crate::attribute::Confidence;
use crate::attribute::bound::shape::WakeBound;
use crate::attribute::delay::Blocking;
use crate::attribute::section::SourceText;
use crate::attribute::step::Step;
use crate::prio::Prio;
use model::EventClass;
use model::groups::TaskGroup;
use model::sample::ProbeKind;
use serde::{Deserialize, Serialize};
use stats::serialize_as_array;
use std::collections::BTreeMap;

/// Where the latencies of one window's wake-ups on one CPU went, or the time that gaps took from
/// its busy loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathSection {
    /// Phase of the window.
    pub phase: String,
    /// Probe of the window: wake-ups, messages of a graph, or the gaps of a busy loop.
    #[serde(default = "wakeup")]
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// Number of its thread in the window.
    #[serde(default)]
    pub thread: u32,
    /// Samples explained: those that statistics include and that were not early.
    pub samples: u64,
    /// Their latencies together, ns; what `boxes` and `others` add up to.
    pub total_ns: u64,
    /// Most time first; at most 60.
    pub boxes: Vec<PathBox>,
    /// The smaller boxes, summed by step; none where `boxes` has all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherBoxes>,
    /// The largest samples, each taken apart.
    pub worst: Vec<SamplePath>,
    /// How late a wake-up could have come; absent for gaps, which are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<WakeBound>,
}

/// What runs of the first round were about.
fn wakeup() -> ProbeKind {
    ProbeKind::Wakeup
}

/// Boxes of a step that are not listed one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherBoxes {
    /// The step.
    pub step: Step,
    /// Whether they are the step itself ([`PathBox::is_step`]), or what took its time.
    pub itself: bool,
    /// The number of boxes.
    pub boxes: u64,
    /// Their counts of samples, added.
    pub count: u64,
    /// Time in them, ns.
    pub ns: u64,
    /// The most in one box of one sample, ns.
    pub max_ns: u64,
}

/// A task that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskText {
    /// Its number.
    pub pid: i32,
    /// Its name at that moment.
    pub comm: String,
    /// Its effective priority as the scheduler's events give it ([`crate::prio::Prio`]).
    pub prio: Option<i16>,
    /// Its container, service, or control group; absent where none was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// Time of one step, or of what ran meanwhile on the CPU that the step waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathBox {
    /// The step.
    pub step: Step,
    /// The CPU it waited for.
    pub cpu: u32,
    /// The class of what else ran; absent for the step itself, and where nothing ran.
    pub class: Option<EventClass>,
    /// What it waited for though nothing else ran.
    #[serde(default)]
    pub blocking: Option<Blocking>,
    /// What that was: what ran, who turned off interrupts or preemption, which lock.
    pub label: Option<String>,
    /// The task that ran it; absent for what runs in interrupts, and in sums of very many tasks.
    #[serde(default)]
    pub task: Option<TaskText>,
    /// Who caused that.
    pub source: Option<SourceText>,
    /// How the source is known; of the step `timer-late` itself, how it is known that the timer was
    /// the task's.
    pub confidence: Option<Confidence>,
    /// Samples with this box.
    pub count: u64,
    /// Time in it, ns.
    pub ns: u64,
    /// The most in one sample, ns.
    pub max_ns: u64,
}

impl TaskText {
    /// Sets its control group, by task number.
    fn find_group(&mut self, groups: &BTreeMap<i32, &TaskGroup>) {
        self.group = groups.get(&self.pid).map(|group| group.words());
    }

    /// As people read it: `make[4711] (nice 0, cron.service)`.
    pub fn words(&self) -> String {
        let prio = self.prio.and_then(|prio| Prio::new(i64::from(prio)).words());
        let more: Vec<String> = prio.into_iter().chain(self.group.clone()).collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
        format!("{}[{}]{more}", self.comm, self.pid)
    }
}

impl PathSection {
    /// Sets the control groups of the tasks that are named, by task number.
    pub fn find_groups(&mut self, groups: &BTreeMap<i32, &TaskGroup>) {
        let samples = self.worst.iter_mut().flat_map(|sample| &mut sample.parts);
        for part in self.boxes.iter_mut().chain(samples) {
            part.source.iter_mut().for_each(|source| source.find_group(groups));
            part.task.iter_mut().for_each(|task| task.find_group(groups));
        }
    }

    /// Lists the first `most` of `boxes` one by one, and of the others the sums.
    pub(crate) fn list(&mut self, most: usize) {
        let Self { boxes, others, .. } = self;
        for one in boxes.drain(boxes.len().min(most)..) {
            let (step, itself) = (one.step, one.is_step());
            let known = others.iter().position(|sum| (sum.step, sum.itself) == (step, itself));
            let at = known.unwrap_or_else(|| {
                others.push(OtherBoxes { step, itself, boxes: 0, count: 0, ns: 0, max_ns: 0 });
                others.len() - 1
            });
            let sum = &mut others[at];
            sum.boxes += 1;
            sum.count = sum.count.saturating_add(one.count);
            sum.ns = sum.ns.saturating_add(one.ns);
            sum.max_ns = sum.max_ns.max(one.max_ns);
        }
        others.sort_by_key(|sum| std::cmp::Reverse(sum.ns));
    }
}

impl PathBox {
    /// Whether it is what is left of the step itself.
    pub fn is_step(&self) -> bool {
        self.class.is_none() && self.blocking.is_none()
    }

    /// What took the time, in words with what ran; `None` for the step itself.
    pub fn what(&self) -> Option<String> {
        let between = match self.blocking {
            Some(Blocking::KernelCode) => ", ",
            Some(Blocking::NotExecuting | Blocking::IdleExit) => ": ",
            _ => " ",
        };
        let taker = self.class.map(EventClass::name).or(self.blocking.map(Blocking::words))?;
        Some(match self.ran() {
            Some(ran) => format!("{taker}{between}{ran}"),
            None => taker.to_owned(),
        })
    }

    /// What ran, and in which task, where it ran in one.
    pub fn ran(&self) -> Option<String> {
        match (&self.label, &self.task) {
            (Some(label), Some(task)) if *label != task.comm => Some(format!("{label} in {}", task.words())),
            (_, Some(task)) => Some(task.words()),
            (label, None) => label.clone(),
        }
    }
}

/// One sample taken apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplePath {
    /// The intended release, CLOCK_MONOTONIC, ns.
    pub t_ns: i64,
    /// The latency, ns; what the parts add up to.
    pub value_ns: i64,
    /// In order of time.
    pub parts: Vec<PathBox>,
    /// The same time as it passed. Without holes, unless there are more than 400: then the longest,
    /// in order of time.
    #[serde(default)]
    pub pieces: Vec<SamplePiece>,
    /// Whom the scheduler took the CPU from for it: who was there, not who held it up. Absent where
    /// no switch to it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<TaskText>,
}

/// A stretch of time in which one part went on; in JSON `[from_ns, ns, part]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct SamplePiece {
    /// Start, ns after the release.
    pub from_ns: u64,
    /// Length.
    pub ns: u64,
    /// Place in the parts of the sample.
    pub part: u64,
}

serialize_as_array!(SamplePiece { from_ns, ns, part });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_that_are_not_listed_are_summed_by_step() {
        let one = |step, class, ns| PathBox {
            step,
            cpu: 1,
            class,
            blocking: None,
            label: None,
            task: None,
            source: None,
            confidence: None,
            count: 2,
            ns,
            max_ns: ns - 1,
        };
        let ran = Some(EventClass::Switch);
        let boxes: Vec<PathBox> = [
            (Step::Switch, ran, 90),
            (Step::WakeUp, None, 80),
            (Step::Switch, ran, 30),
            (Step::Switch, None, 20),
            (Step::Switch, ran, 10),
        ]
        .map(|(step, class, ns)| one(step, class, ns))
        .to_vec();
        let mut path = PathSection {
            phase: String::new(),
            probe: ProbeKind::Wakeup,
            cpu: 1,
            thread: 0,
            samples: 2,
            total_ns: 230,
            boxes,
            others: Vec::new(),
            worst: Vec::new(),
            bound: None,
        };
        path.list(5);
        assert!(path.others.is_empty());
        path.list(2);
        let sum = |itself, boxes, ns, max_ns| OtherBoxes {
            step: Step::Switch,
            itself,
            boxes,
            count: 2 * boxes,
            ns,
            max_ns,
        };
        assert_eq!(path.others, [sum(false, 2, 40, 29), sum(true, 1, 20, 19)]);
        let ns: u64 = path.boxes.iter().map(|one| one.ns).chain(path.others.iter().map(|sum| sum.ns)).sum();
        assert_eq!(ns, path.total_ns);
    }
}
