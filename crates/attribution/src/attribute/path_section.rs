//! Wake-ups taken apart, as stored.

use crate::attribute::Confidence;
use crate::attribute::bound::shape::WakeBound;
use crate::attribute::delay::Blocking;
use crate::attribute::section::SourceText;
use crate::attribute::step::Step;
use crate::prio::Prio;
use model::EventClass;
use model::sample::ProbeKind;
use serde::{Deserialize, Serialize};
use stats::serialize_as_array;

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
    /// Their latencies together, ns; what the boxes add up to.
    pub total_ns: u64,
    /// Most time first; at most 60.
    pub boxes: Vec<PathBox>,
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
    /// As people read it: `make[4711] (nice 0, cron.service)`.
    pub fn words(&self) -> String {
        let prio = self.prio.and_then(|prio| Prio::new(i64::from(prio)).words());
        let more: Vec<String> = prio.into_iter().chain(self.group.clone()).collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
        format!("{}[{}]{more}", self.comm, self.pid)
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
