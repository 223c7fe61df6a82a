//! Any trace, whoever recorded it: what its events can answer, who interrupted its CPUs, and the
//! wake-ups of its threads, taken apart as if they were samples of a measurement.
//!
//! [`first`] follows the wanted threads and finds when each was to run and when it did;
//! [`crate::attribute::wakeups`] makes spans of the CPUs where they ran, names their sources and
//! takes the wake-ups apart. [`at_once`] does both in one reading of the trace where that is
//! possible. [`events`] reports what was recorded, and what to record for the rest; [`shape`] is
//! the answer.

mod at_once;
mod events;
mod first;
pub mod shape;
#[cfg(test)]
mod tests;

use crate::Error;
use crate::attribute::coverage::{Drivers, blocking_coverage, coverage};
use crate::attribute::paths::Keep;
use crate::attribute::wakeups::{self, Chosen};
use crate::attribute::watch::program::Wakeup;
use crate::timerlat::of_tracers;
use at_once::Reading;
pub(crate) use events::{arch, clock};
use ftrace::TraceFile;
use model::Cpus;
use model::events::EventCatalogue;
use shape::AnyTrace;

/// Which threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Threads {
    /// Those under a real-time policy and those with deadlines, except the kernel's stoppers.
    RealTime,
    /// Those of this name, as the events give it: at most 15 bytes.
    Named(String),
    /// Those of these numbers.
    Numbers(Vec<i32>),
}

/// Selects part of a trace.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Whose wake-ups.
    pub threads: Threads,
    /// On which CPUs; on all where they are `None`.
    pub cpus: Option<Cpus>,
    /// From when to when, ns of the trace's clock, both included.
    pub window: [i64; 2],
    /// What to keep of each thread.
    pub keep: Keep,
}

/// Analyses a trace.
///
/// `buffers`: names of the file's buffers, "" for the top one. An error where the file cannot be
/// read, or its times are no nanoseconds.
pub fn any_trace(file: &TraceFile, buffers: &[&str], wanted: &Wanted) -> Result<AnyTrace, Error> {
    let said = said(file, buffers, wanted, &[])?;
    Ok(said.expect("nothing ends the reading"))
}

/// The same; `None` if it holds events of the kernel's own tracers, which may be their results
/// ([`crate::timerlat::kernel_results`]).
pub fn unless_of_tracers(
    file: &TraceFile,
    buffers: &[&str],
    wanted: &Wanted,
) -> Result<Option<AnyTrace>, Error> {
    said(file, buffers, wanted, &of_tracers(file))
}

fn choose(wakeups: &[Wakeup], recorded: &Cpus, wanted: &Wanted) -> Chosen {
    let all = matches!(wanted.threads, Threads::Numbers(_));
    wakeups::choose(wakeups, recorded, wanted.cpus.as_ref(), all)
}

fn said(
    file: &TraceFile,
    buffers: &[&str],
    wanted: &Wanted,
    end: &[bool],
) -> Result<Option<AnyTrace>, Error> {
    let clock = clock(file)?;
    let catalogue = EventCatalogue::embedded()?;
    let Some(reading) = at_once::read(file, buffers, wanted, clock == "mono", &catalogue, end)? else {
        return Ok(None);
    };
    let Reading { mut found, chosen, apart, mut decoder } = reading;
    let window = [found.t0_ns, found.t1_ns];
    let mut statements = found.statements(wanted, &clock);
    // Of a busy thread there may be millions; those that are taken apart are chosen.
    found.wakeups = Vec::new();
    let apart = if let Some(apart) = apart {
        apart
    } else {
        wakeups::take_apart(file, &mut decoder, buffers, window, &chosen, wanted.keep)?
    };
    found.section.paths = apart.paths;
    if let Some(cpus) = &wanted.cpus {
        found.section.threads.retain(|thread| thread.cpus.iter().any(|cpu| cpus.contains(cpu)));
    }
    statements.extend(apart.statements);
    Ok(Some(AnyTrace {
        kernel: file.uname().map(str::to_owned),
        clock,
        t0_ns: found.t0_ns,
        t1_ns: found.t1_ns,
        events: found.events,
        holes: found.holes,
        damage: apart.damage,
        coverage: coverage(&decoder.observable(&catalogue, &found.seen), &found.seen, &found.seen),
        blocking: blocking_coverage(&found.seen, decoder.has_symbols(), Drivers::UNKNOWN),
        record: events::record(&catalogue, &found.seen, file.uname()),
        cpus: found.cpus,
        threads: found.section,
        attribution: apart.attribution,
        statements,
    }))
}
