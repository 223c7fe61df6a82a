//! The task model as it is stored and printed (`stillcore.model/1`).

use super::choose::Confidence;
use super::lock_shape::{Locks, Request};
use attribution::jobs::shape::{Dispatches, Kept};
use infer::bucket::Bucket;
use infer::cost::CostCurve;
use infer::periodic::PeriodicModel;
use model::Cpus;
use serde::{Deserialize, Serialize};

/// Schema of the document.
pub const SCHEMA: &str = "stillcore.model/1";
/// Name of the file in a run directory.
pub const FILE: &str = "model.json";

/// A program. All times of a clock are those of the trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskModel {
    /// [`SCHEMA`].
    pub schema: String,
    /// Of the first event, ns.
    pub from_ns: i64,
    /// Of the last event, ns.
    pub to_ns: i64,
    /// The threads that have a model or should have: those of the program, and others under
    /// real-time policies on its CPUs. The most urgent first.
    pub threads: Vec<ThreadModel>,
    /// Who releases whose jobs.
    pub chains: Vec<Link>,
    /// What else competes for the CPUs of the program.
    pub interference: Vec<Interference>,
    /// The locks that were seen.
    #[serde(default, skip_serializing_if = "Locks::is_empty")]
    pub locks: Locks,
    /// The CPUs of which all that competes is in the model.
    #[serde(default)]
    pub cpus: Cpus,
    /// How late the kernel lets real-time threads run, by CPU.
    #[serde(default)]
    pub dispatches: Vec<Dispatches>,
    /// Places where events are missing. Above zero, no thread has a model.
    pub lost: u64,
    /// What is missing or not known, one sentence each.
    pub statements: Vec<String>,
}

impl TaskModel {
    /// Whether it is known what competes for a CPU.
    pub fn knows(&self, cpu: u32) -> bool {
        let interrupted = self.interference.iter().any(|one| one.cpu == cpu);
        let runs = self.threads.iter().any(|thread| thread.cpus.contains(cpu));
        self.cpus.contains(cpu) || interrupted || runs
    }
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadModel {
    /// Thread id.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// Policy and priority in words.
    pub policy: Option<String>,
    /// Its priority as the scheduler's events give it (`task_struct.prio`): −1 for
    /// `SCHED_DEADLINE`, 98 down to 0 for real-time priorities 1 to 99.
    pub prio: Option<i16>,
    /// The CPUs that it ran on.
    pub cpus: Cpus,
    /// Whether it belongs to the program.
    pub of_program: bool,
    /// In what it waits for its next job, in words.
    pub waits_in: Option<String>,
    /// Whether such a wait separates its jobs.
    pub confidence: Option<Confidence>,
    /// When jobs are released.
    pub release: Release,
    /// How long jobs executed, interrupts not counted.
    pub cost: CostCurve,
    /// How jobs suspend themselves; where every locking was recorded, without waits for locks.
    pub suspension: Suspension,
    /// What jobs request of locks, where every locking was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Request>,
    /// The longest from a wake-up to the switch to it, tasks at least as urgent not counted: what
    /// the kernel's own stretches without preemption and the way out of idle took, ns.
    pub dispatch_ns: u64,
    /// The less urgent task that kept the CPU meanwhile.
    #[serde(default)]
    pub kept: Option<Kept>,
    /// The longest response: from the intended release to the end of the job, ns.
    pub response_ns: u64,
    /// The demand of the thread, where nothing else is known of it.
    pub demand: Option<Bucket>,
    /// Why it has no model; `None` where it has one.
    pub why: Option<String>,
}

impl ThreadModel {
    /// Whether it can be analysed as a task.
    pub fn is_task(&self) -> bool {
        self.why.is_none()
    }

    /// Whether it goes before fair threads, as far as is known.
    pub fn executes_urgently(&self) -> bool {
        self.prio.is_none_or(|prio| !attribution::prio::Prio::new(i64::from(prio)).is_fair())
    }

    /// The real-time priority, 1 to 99.
    pub fn realtime(&self) -> Option<i16> {
        self.prio.and_then(|prio| attribution::prio::Prio::new(i64::from(prio)).realtime())
    }
}

/// What is known of when jobs are released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseKind {
    /// By a period, at most a jitter late; some may be left out.
    Periodic,
    /// At least some time apart.
    Sporadic,
    /// In bursts: only the curve limits them.
    Curve,
    /// Nothing.
    None,
}

/// When jobs are released.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// Which of the following counts.
    pub kind: ReleaseKind,
    /// The period, or the least distance that `jitter_ns` refers to, ns. In any interval of length
    /// d at most ⌈(d + jitter) / period⌉ jobs are released.
    pub period_ns: u64,
    /// The earliest release, ns of the trace's clock; of a periodic thread.
    pub offset_ns: Option<i64>,
    /// How late releases are at most, ns: from the intended expiry of the timer to the wake-up
    /// included.
    pub jitter_ns: u64,
    /// Of this, at most so much was from the intended expiry of a timer to the wake-up, ns.
    #[serde(default)]
    pub late_ns: u64,
    /// The same of the intended expiries of timers alone, without their lateness: what the program
    /// itself varies. `None` where there is no period, or no timer behind the releases.
    #[serde(default)]
    pub own_jitter_ns: Option<u64>,
    /// Releases that the period has and the trace does not.
    pub missed: u64,
    /// Jobs whose release is uncertain, because the job before was not done.
    pub uncertain: u64,
    /// The period, offset and jitter that LiME's heuristic fits to the releases (RTAS 2025), to
    /// compare with; it fits one to releases without a period, too.
    #[serde(default)]
    pub lime: Option<PeriodicModel>,
    /// Pairs: the shortest interval in which so many jobs were released, ns, and how many.
    pub curve: Vec<(i64, u64)>,
    /// The interval in which this was observed, ns of the trace's clock.
    pub from_ns: i64,
    /// Its end.
    pub to_ns: i64,
    /// Jobs observed.
    pub n: u64,
}

impl Release {
    /// Of a thread of which nothing is known.
    pub const NONE: Self = Self {
        kind: ReleaseKind::None,
        period_ns: 0,
        offset_ns: None,
        jitter_ns: 0,
        late_ns: 0,
        own_jitter_ns: None,
        missed: 0,
        uncertain: 0,
        lime: None,
        curve: Vec::new(),
        from_ns: 0,
        to_ns: 0,
        n: 0,
    };
}

/// How jobs suspend themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Suspension {
    /// The longest that one job slept, all its suspensions together, ns.
    pub total_ns: u64,
    /// The most suspensions of a job.
    pub most: u64,
    /// How many jobs suspended themselves.
    #[serde(default)]
    pub jobs: u64,
    /// Their suspensions.
    #[serde(default)]
    pub n: u64,
    /// How long these were together, ns.
    #[serde(default)]
    pub sum_ns: u64,
}

/// Jobs of one thread released by another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Who releases.
    pub from: i32,
    /// Its name.
    pub from_comm: String,
    /// Whose jobs.
    pub to: i32,
    /// Its name.
    pub to_comm: String,
    /// How many of that thread's jobs.
    pub n: u64,
    /// Of so many.
    pub of: u64,
}

/// What competes for a CPU without being a task of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interference {
    /// The CPU.
    pub cpu: u32,
    /// In words.
    pub what: String,
    /// Its priority as the scheduler's events give it; `None` for interrupts, which go first.
    pub prio: Option<i16>,
    /// Its demand.
    pub demand: Bucket,
}

/// How an urgent thread is named that competes without being a task.
pub(super) fn competitor(comm: &str, pid: i32) -> String {
    format!("{comm} ({pid})")
}
