//! Which of the kernel's events are recorded beside a measurement.
//!
//! The recorder is that of `assess`: the measured CPUs in one instance, what the others aim at them
//! in another. It is set up before the window opens; its counts are read after the window.

use crate::run::off_stretches;
use crate::run::output::RunOutput;
use crate::run::place::Place;
use crate::run::recording::{self, Wanted};
use crate::values::TraceMode;
use clap::Args;
use journal::session::Session;
use measure::spec::ProbeSpec;
use model::Error;
use model::events::{EventCatalogue, Stacks};
use model::quantity::duration;
use record::live::Keep;
use record::recorder::Recorder;
use record::snapshots::SnapshotOrder;
use std::time::Duration;

/// What is kept before a sample at least, ns, and at most where nothing was said.
const BEFORE_NS: i64 = 50_000_000;
const MOST_BEFORE_NS: i64 = 10_000_000_000;

/// Options of measurements that can be traced.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Tracing {
    /// Record kernel events while measuring, and report who took the time; --trace alone = on,
    /// which fails if events cannot be recorded [default: off].
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub(crate) trace: Option<TraceMode>,
    /// With a trace, find senders of IPIs without an event by kprobes; this patches kernel text
    /// before the window.
    #[arg(long)]
    pub(crate) kprobes: bool,
    /// With a trace, also record the kernel stack on the measured CPUs when a real-time task
    /// replaces an ordinary task. Shows kernel code that could not be preempted. Adds microseconds
    /// to each wake-up of a busy CPU.
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Also record the user-space stacks of senders, for functions with frame pointers. Costs them
    /// some microseconds per event.
    #[arg(long)]
    pub(crate) user_stacks: bool,
    /// With a trace, also record stretches with interrupts or preemption off on the measured CPUs:
    /// by the kernel's events, else by two probes on each FUNCTION [default: ten that are known to
    /// be long]. Costs microseconds per call; --stacks adds their stacks.
    #[arg(long, value_name = "FUNCTION,...", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) off_stretches: Option<String>,
    /// Record into a ring buffer; keep the trace only around samples at or above this value. Lets
    /// runs of days use constant disk space.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) trace_over: Option<Duration>,
    /// With --trace-over, most samples to keep the trace around; keeps the largest.
    #[arg(long, default_value_t = 10, value_name = "N", requires = "trace_over", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) keep: u64,
    /// With --trace-over or --stop-over, length of trace to keep before each sample [default: two
    /// periods, at least 50ms].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) keep_before: Option<Duration>,
}

impl Tracing {
    fn stacks(&self) -> Stacks {
        Stacks { own: self.stacks, users: self.user_stacks }
    }

    /// The mode that the user chose, or that follows from the other options.
    fn mode(&self) -> TraceMode {
        let unsaid = if self.trace_over.is_some() { TraceMode::On } else { TraceMode::Off };
        self.trace.unwrap_or(unsaid)
    }

    /// Where only snapshots are wanted: which, if that can be. A measurement that ends at a sample
    /// of `stop_over_ns` keeps what is around that one. Refuses options that contradict each other.
    pub(crate) fn snapshots(
        &self,
        probes: &[ProbeSpec],
        stop_over_ns: Option<i64>,
    ) -> Result<Option<SnapshotOrder>, Error> {
        if self.mode() == TraceMode::Off {
            let expected = "--trace or --trace-over beside it";
            recording::only_with_a_trace(self.stacks(), self.kprobes, expected)?;
            if self.off_stretches.is_some() {
                let what = "an option of a trace, and none is recorded";
                return Err(Error::invalid(off_stretches::OPTION, what, expected));
            }
        }
        let last_over_ns = stop_over_ns.filter(|_| self.mode() != TraceMode::Off);
        let over = self.trace_over.or(last_over_ns.map(|ns| Duration::from_nanos(ns.unsigned_abs())));
        let Some(over) = over else {
            let unused = self.keep_before.map(|_| "a length of trace, and nothing is cut out of one");
            let expected = "--trace-over, or --trace and --stop-over beside it";
            return unused.map_or(Ok(None), |what| Err(Error::invalid("--keep-before", what, expected)));
        };
        if self.trace == Some(TraceMode::Off) {
            return Err(Error::invalid("--trace-over", "a limit for a trace that is off", "no --trace=off"));
        }
        if over.is_zero() {
            return Err(Error::invalid("--trace-over", "0s", "at least 1ns"));
        }
        let over_ns = over.as_nanos() as i64;
        if last_over_ns.is_some_and(|last_ns| last_ns < over_ns) {
            let what = "more than --stop-over, which ends the measurement before";
            return Err(Error::invalid("--trace-over", what, "at most --stop-over, or only that"));
        }
        let longest_ns = probes.iter().filter_map(ProbeSpec::period_ns).max().unwrap_or(0);
        let before_ns = match self.keep_before {
            Some(before) if before > Duration::from_secs(60) => {
                return Err(Error::invalid("--keep-before", format!("{before:?}"), "at most 60s"));
            }
            Some(before) => before.as_nanos() as i64,
            None => longest_ns.saturating_mul(2).clamp(BEFORE_NS, MOST_BEFORE_NS),
        };
        // Without --trace-over only the sample that ends the measurement has a stretch.
        let keep = if self.trace_over.is_some() { self.keep } else { 1 };
        Ok(Some(SnapshotOrder { over_ns, before_ns, keep, last_over_ns }))
    }

    /// The events to record.
    pub(crate) fn events(&self) -> Result<EventCatalogue, Error> {
        recording::events(self.stacks())
    }

    /// The recorder, ready; none where none is wanted, or where none is available and that is no
    /// error. `live`: whether somebody looks on.
    pub(crate) fn prepare(
        &self,
        place: &Place,
        snapshots: Option<SnapshotOrder>,
        live: bool,
        output: &mut RunOutput,
        session: &mut Session,
    ) -> anyhow::Result<Option<Recorder>> {
        let mode = self.mode();
        if mode == TraceMode::Off {
            return Ok(None);
        }
        let keep = if live { Keep::FileAndLive } else { Keep::File };
        let off_stretches = self.off_stretches.as_deref();
        let wanted = Wanted { kprobes: self.kprobes, tids: &[], snapshots, keep, off_stretches };
        match recording::prepare_for(session, output, &self.events()?, place, &wanted) {
            Ok(recorder) => Ok(Some(recorder)),
            Err(error) if mode == TraceMode::Auto => {
                let why = format!("no events were recorded ({error}): who took the time is not known");
                output.run.limits.push(why);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Ends recording. A measurement that has failed anyway keeps what it can of its trace, and says
/// what it cannot.
pub(crate) fn finish(
    recorder: Option<Recorder>,
    output: &mut RunOutput,
    session: &mut Session,
    failed: bool,
) -> anyhow::Result<()> {
    let Some(recorder) = recorder else { return Ok(()) };
    match recording::finish(recorder, session, output) {
        Err(error) if failed => output.run.limits.push(format!("the trace is lost: {error}")),
        result => result?,
    }
    Ok(())
}
