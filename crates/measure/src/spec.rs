//! What a probe is asked to do, and what it says of itself afterwards: the two messages between stillcore and a measuring process.

use super::job::Work;
use super::job::files::Pair;
pub use crate::ipi::method::Method;
use model::Cpus;
use model::run::{JobRecord, NoiseRecord};
use model::sample::{Policy, ProbeKind};
use model::usage::Usage;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use sys::clock::ClockId;
use sys::counter::Counter;
use sys::perf::Chosen;

/// The order for one measuring thread, which is a process of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSpec {
    /// Its number in the window, from 0.
    pub thread: u32,
    /// Where it may run: one CPU, or a set that the scheduler chooses from.
    pub cpus: Cpus,
    /// The policy to ask for.
    pub policy: Policy,
    /// Timer slack of a policy that is not real-time, ns; 0 leaves it as it is (50 µs by default).
    pub timer_slack_ns: u64,
    /// Length of the measurement, ns.
    pub duration_ns: i64,
    /// What to do.
    pub task: Task,
}

/// What a measuring thread does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Sleep until the next release, look at the clock.
    Wakeup(WakeupSpec),
    /// Spin and look for gaps.
    Noise(NoiseSpec),
    /// Do a computation at each release, with clocks and counters around it.
    Periodic(PeriodicSpec),
    /// Burn an execution time at each release.
    Taskset(TasksetSpec),
    /// Be woken from other CPUs.
    Ipi(IpiSpec),
    /// What the kernel's own work costs.
    Overheads(OverheadsSpec),
}

/// The wake-up probe's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupSpec {
    /// Interval of releases, ns.
    pub period_ns: i64,
    /// First release after the window's start, ns.
    pub offset_ns: i64,
    /// Samples at the start that every statistic excludes.
    pub warm_up: u32,
    /// The clock that releases are set in.
    pub clock: ClockId,
    /// Ends after so many releases; 0 for as many as the duration holds.
    pub loops: u64,
}

/// The noise probe's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseSpec {
    /// Shortest gap stored, ns; 0 lets the probe choose (five turns of its loop, at least 500 ns).
    pub threshold_ns: u64,
    /// How long the loop runs at a stretch, ns.
    pub spin_ns: i64,
    /// How long it pauses between, ns.
    pub pause_ns: i64,
    /// Bytes copied each turn, as oslat's `memmove` workload does; 0 for none.
    pub memmove_bytes: u64,
    /// How long the loop runs before what it finds counts, ns; a part of the duration.
    pub preheat_ns: u64,
    /// Whether to subtract the smallest turn from every gap, as oslat's `--bias` does.
    pub bias: bool,
}

/// The periodic probe's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodicSpec {
    /// Interval of releases, ns.
    pub period_ns: i64,
    /// Jobs at the start that every statistic excludes.
    pub warm_up: u32,
    /// What wakes it.
    pub wake: Wake,
    /// What a job computes.
    pub work: Work,
    /// Where it reads its inputs.
    pub input: ReadFrom,
    /// Inputs and expected outputs.
    pub files: Pair,
    /// Where the processes at its pipes run.
    pub io_cpus: Cpus,
    /// Its own executable, if not the common one.
    pub program: Option<PathBuf>,
    /// What is counted around each job.
    pub counters: Vec<Chosen>,
}

/// What begins a periodic job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wake {
    /// A timer in CLOCK_MONOTONIC.
    Timer,
    /// SCHED_DEADLINE's own: a yield ends the job, and the scheduler's clock begins the next.
    Scheduler,
}

/// Where a periodic job reads its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadFrom {
    /// From its own memory.
    Memory,
    /// From a file; it compares its outputs itself.
    File,
    /// From a pipe, which another process fills; a third compares the outputs.
    Pipe,
}

impl Wake {
    /// The word that a run records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Scheduler => "scheduler",
        }
    }
}

impl ReadFrom {
    /// The word that a run records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::File => "file",
            Self::Pipe => "pipe",
        }
    }
}

/// One task of a task set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksetSpec {
    /// Its name.
    pub name: String,
    /// Interval of releases, ns.
    pub period_ns: i64,
    /// Relative deadline, ns.
    pub deadline_ns: i64,
    /// First release after the window's start, ns.
    pub offset_ns: i64,
    /// Execution time of a job, ns.
    pub cost_ns: i64,
    /// What it is burnt by.
    pub burn: Burn,
}

/// What the execution time of a job is measured by while it burns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Burn {
    /// Slots of wall-clock time: what others run inside a slot counts as the job's own.
    Slots {
        /// Length of a slot, ns.
        slot_ns: i64,
    },
    /// CPU time of the thread.
    CpuTime,
}

impl ProbeSpec {
    /// Which probe.
    pub fn kind(&self) -> ProbeKind {
        match self.task {
            Task::Wakeup(_) => ProbeKind::Wakeup,
            Task::Noise(_) => ProbeKind::Noise,
            Task::Periodic(_) => ProbeKind::Periodic,
            Task::Taskset(_) => ProbeKind::Taskset,
            Task::Ipi(_) => ProbeKind::Ipi,
            Task::Overheads(_) => ProbeKind::Overheads,
        }
    }

    /// Interval of its releases, ns, where it has any.
    pub fn period_ns(&self) -> Option<i64> {
        match &self.task {
            Task::Wakeup(task) => Some(task.period_ns),
            Task::Periodic(task) => Some(task.period_ns),
            Task::Taskset(task) => Some(task.period_ns),
            Task::Noise(_) | Task::Ipi(_) | Task::Overheads(_) => None,
        }
    }

    /// The executable of its own, if it is to have one.
    pub fn program(&self) -> Option<&Path> {
        match &self.task {
            Task::Periodic(task) => task.program.as_deref(),
            _ => None,
        }
    }

    /// The CPU it is pinned to, or the first of those it may run on.
    pub fn cpu(&self) -> u32 {
        self.cpus.iter().next().unwrap_or(0)
    }
}

/// What a probe says when its window is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Clock or counter of the values.
    pub counter: Counter,
    /// Policy the kernel reports.
    pub policy_effective: Policy,
    /// Why the requested policy was refused.
    pub policy_refused: Option<String>,
    /// Why the releases of SCHED_DEADLINE are not known but taken from the wake-ups.
    #[serde(default)]
    pub deadline_unread: Option<String>,
    /// Timer slack in force, ns.
    pub timer_slack_ns: u64,
    /// Why memory could not be locked.
    pub memory_unlocked: Option<String>,
    /// First release, or start of the first stretch, ns.
    pub t0_ns: i64,
    /// Shortest gap stored, in ns (noise).
    pub threshold_ns: u64,
    /// What it could not do, one sentence each.
    #[serde(default)]
    pub limits: Vec<String>,
    /// What the loop said at its end.
    pub result: LoopResult,
    /// Page faults and context switches in the window.
    pub used: Usage,
    /// CPU time of the thread in the window, ns.
    pub cpu_time_ns: u64,
    /// Peak resident memory, KiB.
    pub rss_kib: u64,
    /// What the jobs were and what came of them (periodic).
    pub jobs: Option<JobRecord>,
    /// What the busy loop was (noise).
    pub noise: Option<NoiseRecord>,
    /// Whether the kernel has changed where it may run, as it does when a CPU goes offline.
    #[serde(default)]
    pub taken: bool,
}

/// What a measuring loop says to the skeleton.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoopResult {
    /// End of the measurement, ns.
    pub t1_ns: i64,
    /// Releases requested (wake-up).
    pub released: u64,
    /// Turns of the loop (noise).
    pub iterations: u64,
}

/// The IPI probe's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpiSpec {
    /// The CPUs that wake it, one after the other.
    pub from: Vec<u32>,
    /// The methods, one after the other.
    pub methods: Vec<Method>,
    /// Wake-ups a pair and method.
    pub count: u32,
    /// Of these, the first so many are stored, and every statistic excludes them.
    pub warm_up: u32,
    /// Interval of wake-ups, ns.
    pub interval_ns: i64,
    /// Whether a SCHED_OTHER task keeps both CPUs busy.
    pub busy: bool,
    /// Begins so long after the window's start, ns: the targets before it have their turn first.
    pub offset_ns: i64,
}

/// The overheads probe's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverheadsSpec {
    /// Samples of each term.
    pub count: u32,
    /// Samples of each cache term and size.
    pub cache_count: u32,
    /// Working sets, bytes.
    pub bytes: Vec<u64>,
    /// Another CPU, for interprocessor interrupts and migration; none where there is no other.
    pub partner: Option<u32>,
    /// How long the loop looks for ticks, ns.
    pub gaps_ns: i64,
}
