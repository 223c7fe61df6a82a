//! Causes of the time that a busy loop lost. Input: gaps, the kernel's counters over their
//! intervals, and the machine's throttling settings. Output: for each thief the number of gaps,
//! their total length, and its certainty.
//!
//! A counter names an interval, never a gap. Within an interval gaps are taken longest first, as
//! many and as long together as the counter grew, so what is left without a cause is the shorter
//! part. The thieves, in the order in which gaps are given to them:
//!
//! - *Off the CPU*: the thread waited though it could run (`/proc/<pid>/schedstat`). Of those,
//!   real-time throttling takes period − runtime once a period and leaves the CPU idle or to
//!   ordinary tasks (Linux `Documentation/scheduler/sched-rt-group.rst`); the fair server of 6.12
//!   takes up to its runtime once a period, if an ordinary task waits (`kernel/sched/deadline.c`);
//!   anybody else preempted.
//! - *Stopped*: the loop makes no system call, so a voluntary switch is a signal that stopped it,
//!   or a fault that waited for input.
//! - *Hypervisor*: steal time of `/proc/stat`, in steps of the clock tick: over all gaps no more
//!   than it grew and one step.
//! - *SMI*: the CPU's own count.
//! - *Interrupts*: as many as `/proc/interrupts` and `/proc/softirqs` count, the shortest gaps
//!   first.
//!
//! Only waiting, stops and throttling on an idle CPU are counted as such; all else fits a pattern,
//! and has a range.

mod assign;
mod tests;

use assign::Ledger;
use model::growth::{Growth, ReadBy};
use model::run::Budget;
use model::sample::{ProbeKind, Sample};
use serde::{Deserialize, Serialize};

/// All evidence on the gaps of one busy loop.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// The gaps that statistics include, by time.
    pub gaps: &'a [Sample],
    /// How counters grew, in any order.
    pub growths: &'a [Growth],
    /// Whether the loop ran under a real-time policy.
    pub real_time: bool,
    /// What throttling leaves to real-time threads, where it is on.
    pub throttling: Option<Budget>,
    /// What the fair server may take, where it is on.
    pub fair_server: Option<Budget>,
    /// Whether the kernel logged that it throttles.
    pub throttling_logged: bool,
}

/// Who takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Thief {
    /// Real-time throttling.
    Throttling,
    /// The fair server.
    FairServer,
    /// Another task, or another server.
    Preemption,
    /// A signal that stopped the thread.
    Stopped,
    /// A page fault that waited for input.
    Fault,
    /// The hypervisor.
    Hypervisor,
    /// A system management interrupt.
    Smi,
    /// Interrupts and softirqs.
    Interrupts,
    /// Unknown: no counter or pattern fits.
    Unknown,
}

/// How certain the cause of a gap is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// A counter of the kernel or the CPU grew by as much in the interval.
    Counted,
    /// Length, number or distance are those of the cause; no counter says that it was this one.
    Fits,
    /// No cause is known.
    None,
}

/// The time that one thief took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Who.
    pub thief: Thief,
    /// How sure.
    pub certainty: Certainty,
    /// Gaps.
    pub gaps: u64,
    /// All of them together, ns.
    pub total_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    /// Least and most time that it took, ns. Both are equal if counted; else the counters allow
    /// more or fewer gaps than the pattern fits.
    #[serde(default)]
    pub range_ns: [u64; 2],
}

/// The counters themselves, over all intervals; `None` where they were not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// ns that the thread waited for its CPU inside stretches.
    pub run_delay_ns: Option<u64>,
    /// Voluntary switches inside stretches: the loop makes none.
    pub voluntary: Option<u64>,
    /// Involuntary switches inside stretches.
    pub involuntary: Option<u64>,
    /// Page faults inside stretches, of both kinds.
    pub page_faults: Option<u64>,
    /// System management interrupts inside stretches.
    pub smi: Option<u64>,
    /// Time inside stretches that the scheduler charged to no task: interrupts and the hypervisor,
    /// on kernels that account for them.
    pub not_charged_ns: Option<u64>,
    /// ns that the hypervisor took over the window.
    pub steal_ns: Option<u64>,
    /// ns that the CPU idled over the window, the loop's pauses included.
    pub idle_ns: Option<u64>,
    /// Interrupts over the window, those of the pauses included.
    pub interrupts: Option<u64>,
    /// Softirqs over the window.
    pub softirqs: Option<u64>,
}

/// Causes of the time that one busy loop lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseCauses {
    /// Phase of the window.
    pub phase: String,
    /// The probe: noise.
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// Thieves that took anything. Their gaps are all gaps.
    pub causes: Vec<Cause>,
    /// Totals of the counters.
    pub counted: Totals,
}

/// Attributes every gap to a cause. The gaps of all causes are all gaps, each once.
pub fn causes(evidence: &Evidence<'_>) -> Vec<Cause> {
    let mut ledger = Ledger::new(evidence.gaps);
    ledger.stopped(evidence.growths, true);
    ledger.off_the_cpu(evidence);
    ledger.stopped(evidence.growths, false);
    ledger.hypervisor(evidence.growths);
    ledger.smi(evidence.growths);
    ledger.interrupts(evidence.growths);
    ledger.causes()
}

/// Sums of the counters.
pub fn totals(growths: &[Growth]) -> Totals {
    let of = |read_by: ReadBy, count: fn(&Growth) -> Option<u64>| {
        let counts = growths.iter().filter(|growth| growth.read_by == read_by).filter_map(count);
        counts.fold(None, |sum: Option<u64>, count| Some(sum.unwrap_or(0).saturating_add(count)))
    };
    let own = |count| of(ReadBy::Stretch, count);
    let cpu = |count| of(ReadBy::Drain, count);
    Totals {
        run_delay_ns: own(|growth| growth.run_delay_ns),
        voluntary: own(|growth| growth.voluntary),
        involuntary: own(|growth| growth.involuntary),
        page_faults: own(|growth| Some(growth.minor_faults? + growth.major_faults?)),
        smi: own(|growth| growth.smi),
        not_charged_ns: own(|growth| {
            let length_ns = growth.t1_ns.saturating_sub(growth.t0_ns).max(0) as u64;
            Some(length_ns.saturating_sub(growth.cpu_ns?).saturating_sub(growth.run_delay_ns?))
        }),
        steal_ns: cpu(|growth| growth.steal_ns),
        idle_ns: cpu(|growth| growth.idle_ns),
        interrupts: cpu(|growth| growth.interrupts),
        softirqs: cpu(|growth| growth.softirqs),
    }
}
