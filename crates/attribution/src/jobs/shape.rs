//! What is known of the jobs of a program's threads.

use super::kind::Kind;
use infer::bucket::Buckets;
use infer::cost::CostCurve;
use infer::periodic::PeriodicModel;
use infer::regular::Regular;
use model::Cpus;
use model::sample::Reservation;
use serde::{Deserialize, Serialize};

/// All threads that were followed.
#[derive(Debug)]
pub struct ProgramJobs {
    /// Of the first and the last event, ns of the trace's clock.
    pub extent_ns: [i64; 2],
    /// The threads, by number.
    pub threads: Vec<ThreadJobs>,
    /// The demand of the interrupts of each CPU.
    pub interrupts: Vec<(u32, Buckets)>,
    /// How late the kernel let real-time threads run, by CPU.
    pub dispatches: Vec<Dispatches>,
    /// Places where events are missing.
    pub holes: u64,
    /// Context switches missing between two others, which the kernel does not count.
    pub missing_switches: u64,
    /// Whether system calls were recorded.
    pub has_calls: bool,
}

/// One thread.
#[derive(Debug)]
pub struct ThreadJobs {
    /// Thread id.
    pub tid: i32,
    /// Its last name.
    pub comm: String,
    /// Its priority as the scheduler's events give it (`task_struct.prio`).
    pub prio: Option<i16>,
    /// Policy and priority in words, as last polled where the events agree.
    pub policy: Option<String>,
    /// Its reservation under `SCHED_DEADLINE`, where it was looked up.
    pub reservation: Option<Reservation>,
    /// Whether it belongs to the program that was asked for, or only competes with it.
    pub is_of_program: bool,
    /// The CPUs that it ran on; of a new thread, since its first sleep.
    pub cpus: Cpus,
    /// On a CPU, interrupts not counted, ns.
    pub executed_ns: u64,
    /// The longest from a wake-up to the switch to it, tasks that go before it or are its equals
    /// not counted, ns.
    pub dispatch_ns: u64,
    /// Who kept the CPU meanwhile.
    pub kept: Option<Kept>,
    /// The demand of its activations, whatever separates its jobs.
    pub demand: Buckets,
    /// Whether each release came after the one before.
    pub in_order: bool,
    /// What may separate its jobs, most jobs first.
    pub kinds: Vec<KindJobs>,
    /// Activations after sleeps of further kinds.
    pub unkept: u64,
}

/// How late the kernel lets real-time threads run on a CPU, whichever these are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatches {
    /// The CPU.
    pub cpu: u32,
    /// Dispatches that were seen: from a wake-up to the switch, tasks at least as urgent not
    /// counted.
    pub n: u64,
    /// The longest, ns.
    pub longest_ns: u64,
    /// The less urgent task that kept the CPU for the longest of it.
    #[serde(default)]
    pub kept: Option<Kept>,
    /// Wake-ups by timers that were seen, also where the dispatch behind one was not.
    pub timers: u64,
    /// The longest from such an intended expiry to the wake-up, ns.
    pub late_ns: u64,
}

/// A less urgent task that kept a CPU while a thread waited for it: no switch was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its name; its number where no event names it.
    pub by: String,
    /// How long, ns.
    pub ns: u64,
}

/// Jobs of a thread if sleeps of one kind separate them.
#[derive(Debug)]
pub struct KindJobs {
    /// That kind.
    pub kind: Kind,
    /// How many jobs.
    pub n: u64,
    /// Of these, those whose release is uncertain: the thread was not done when it came.
    pub uncertain: u64,
    /// Whether there is a period.
    pub regular: Regular,
    /// The same of the intended releases alone, where timers had one: without their lateness.
    pub intended: Regular,
    /// The model that LiME's heuristic fits, whether there is a period or not.
    pub lime: Option<PeriodicModel>,
    /// `[n]`: the shortest interval with n releases, ns.
    pub shortest_ns: Vec<i64>,
    /// Execution times.
    pub costs: CostCurve,
    /// The demand of the jobs.
    pub demand: Buckets,
    /// The longest that a job slept, all its suspensions together, ns.
    pub suspended_ns: u64,
    /// The most suspensions of a job.
    pub suspensions: u64,
    /// How often jobs suspended, and how long.
    pub suspending: Suspending,
    /// The longest response: from the release (the intended one, where a timer had one) to the last
    /// sleep of the job, ns.
    pub response_ns: u64,
    /// The longest from a timer's intended expiry to the wake-up, ns.
    pub late_ns: Option<u64>,
    /// Of the first and the last release, ns of the trace's clock.
    pub extent_ns: [i64; 2],
    /// Who released how many, the most first.
    pub releasers: Vec<(Releaser, u64)>,
}

/// Sums over the jobs that slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Suspending {
    /// How many.
    pub jobs: u64,
    /// Their suspensions.
    pub suspensions: u64,
    /// How long these were together, ns.
    pub total_ns: u64,
}

/// Who released jobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Releaser {
    /// A high-resolution timer, by its function.
    Timer(String),
    /// Another interrupt; empty where no event names it.
    Interrupt(String),
    /// A thread, by number.
    Thread(i32),
    /// Not known, or one of many.
    Unknown,
}

/// A job of a thread, as the separator that was chosen makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedJob {
    /// The thread.
    pub tid: i32,
    /// Its release, ns of the trace's clock: the intended one where a timer had one, the latest
    /// possible where it is uncertain.
    pub release_ns: i64,
    /// Its end.
    pub ended_ns: i64,
    /// From the release to the end, ns.
    pub response_ns: u64,
    /// Executed, ns.
    pub executed_ns: u64,
    /// Asleep within it, ns.
    pub suspended_ns: u64,
    /// Its longest dispatch, as [`ThreadJobs::dispatch_ns`] defines it, ns.
    pub dispatch_ns: u64,
    /// The number of the less urgent task that kept the CPU meanwhile, and how long, ns.
    pub kept: Option<(i32, u64)>,
    /// When it was woken, ns; the release is earlier where a timer was late.
    pub woken_ns: i64,
    /// The thread that woke it.
    pub released_by: Option<i32>,
}
