//! What both sides ask of a probe. A probe is one file that answers, and one row of
//! [`super::spec::Task`].

use super::releases::Releases;
use super::ring::{Record, Ring};
use model::growth::Growth;
use model::probe::ProbeDetail;
use model::run::ProbeRecord;
use model::sample::Policy;
use model::usage::{Stretch, Usage};
use model::{Cpus, Sample};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use sys::clock::ClockId;
use sys::counter::Counter;

/// The order of a probe.
pub(crate) trait Probe {
    /// Interval of its releases, ns, where it has any.
    fn period_ns(&self) -> Option<i64> {
        None
    }

    /// The clock that they are set in.
    fn clock(&self) -> ClockId {
        ClockId::Monotonic
    }

    /// Whether under SCHED_DEADLINE the kernel releases its jobs.
    fn yields(&self) -> bool {
        false
    }

    /// The executable of its own, if it is to have one.
    fn program(&self) -> Option<&Path> {
        None
    }

    /// Whether it stays on its CPUs; one that moves about says at its end whether it could go back.
    fn stays(&self) -> bool {
        true
    }

    /// The columns of its samples besides those of all.
    fn columns(&self) -> Vec<String> {
        Vec::new()
    }

    /// The measuring side. Called before the policy is requested: a SCHED_DEADLINE thread cannot
    /// fork.
    fn prepare(&self, place: Place) -> io::Result<Box<dyn Loop>>;

    /// The draining side of a window that begins at `start_ns`, under the requested policy.
    fn drain(&self, policy: &Policy, start_ns: i64) -> Box<dyn Drain>;

    /// Adds to its record what the draining side knows before the window: the probe has no memory
    /// to spare.
    fn complete(&self, _record: &mut ProbeRecord) {}
}

/// Where a probe measures, and as what.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Where it may run.
    pub(crate) cpus: Cpus,
    /// The requested policy.
    pub(crate) policy: Policy,
}

impl Place {
    /// The CPU it is pinned to, or the first of those it may run on.
    pub(crate) fn cpu(&self) -> u32 {
        self.cpus.iter().next().unwrap_or(0)
    }
}

/// What a loop measures in.
pub(crate) struct Window<'a> {
    /// Where its records go.
    pub(crate) ring: &'a mut Ring,
    /// Its start, CLOCK_MONOTONIC ns.
    pub(crate) start_ns: i64,
    /// Its length, ns.
    pub(crate) duration_ns: i64,
    /// The releases of SCHED_DEADLINE, under that policy.
    pub(crate) releases: Option<&'a Releases>,
}

/// Runs a loop as the window will: through the trait, whose function can lie on a page of its own.
pub(crate) fn rehearsed(short_loop: &mut dyn Loop, short: Window<'_>) {
    // What it returns is of no interest, and its errors come again in the window.
    let _ = std::hint::black_box(short_loop).run(short);
}

/// The measuring side of a probe.
pub(crate) trait Loop {
    /// Runs all that the window will run, once and in a short one, so that no page of code or data
    /// is touched there for the first time. The policy is in force, and nobody drains the ring.
    fn rehearse(&mut self, _short: Window<'_>) {}

    /// Measures until the end of the window or until asked to stop. A rehearsal calls it by
    /// [`rehearsed`].
    fn run(&mut self, window: Window<'_>) -> io::Result<LoopResult>;

    /// What the values are read from.
    fn counter(&self) -> Counter {
        Counter::Monotonic
    }

    /// What only this probe says of itself; its releases are counted on the other side.
    fn detail(&self) -> ProbeDetail;

    /// Ends what runs beside the loop, and adds to the report what is known only now.
    fn close(self: Box<Self>, _report: &mut ProbeReport) -> io::Result<()> {
        Ok(())
    }
}

/// The draining side of a probe: from ring records to samples.
pub(crate) trait Drain {
    /// Takes a record, and gives out what it completes.
    fn convert(&mut self, record: Record, out: &mut Drained);

    /// Gives out what still waits for more records.
    fn flush(&mut self, _out: &mut Drained) {}

    /// How far the time of a sample may be off at most, ns.
    fn error_ns(&self) -> u64 {
        0
    }

    /// Jobs that ran out of the runtime reserved for them.
    fn postponed(&self) -> u64 {
        0
    }

    /// Adds what it has counted to the probe's record.
    fn account(&self, _record: &mut ProbeRecord, _result: LoopResult) {}
}

/// What a drain gives out, until it is stored.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    /// Samples in their order.
    pub(crate) samples: Vec<Sample>,
    /// Their values in the columns of the probe's own, row by row.
    pub(crate) own: Vec<i64>,
    /// Stretches of a busy loop.
    pub(crate) stretches: Vec<Stretch>,
    /// How the thread's own counters grew.
    pub(crate) growths: Vec<Growth>,
}

impl Drained {
    /// Adds a sample with its values in the columns of the probe's own.
    pub(crate) fn push(&mut self, sample: Sample, own: &[i64]) {
        self.samples.push(sample);
        self.own.extend_from_slice(own);
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
    pub deadline_unread: Option<String>,
    /// Timer slack in force, ns.
    pub timer_slack_ns: u64,
    /// Why memory could not be locked.
    pub memory_unlocked: Option<String>,
    /// First release, or start of the first stretch, ns.
    pub t0_ns: i64,
    /// What it could not do, one sentence each.
    pub limits: Vec<String>,
    /// What the loop said at its end.
    pub result: LoopResult,
    /// Page faults and context switches in the window.
    pub used: Usage,
    /// CPU time of the thread in the window, ns.
    pub cpu_time_ns: u64,
    /// Peak resident memory, KiB.
    pub rss_kib: u64,
    /// What only this probe says.
    pub detail: ProbeDetail,
    /// Whether the kernel has changed where it may run, as it does when a CPU goes offline.
    pub taken: bool,
}

/// What a measuring loop says to the skeleton.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoopResult {
    /// End of the measurement, ns.
    pub t1_ns: i64,
    /// Releases requested.
    pub released: u64,
    /// Turns of a busy loop.
    pub iterations: u64,
}
