//! `stillcore trace`: what a trace holds, and what it says of who interrupted whom.

mod any_trace;
mod counts;
mod destination;
mod explain;
mod explain_text;
mod export;
mod functions;
mod kernel_results;
mod list;
mod options;
mod raw;
mod source_table;
mod threads;
mod watch;
mod watch_text;

use crate::trace_verb::options::{CountsArgs, FunctionsArgs, TraceExplainArgs, TraceExportArgs};
use clap::Subcommand;
use sys::signals::EndSignals;
pub(crate) use watch::WatchArgs;

/// Carries out one verb.
pub(crate) fn run(verb: &TraceVerb, signals: &EndSignals) -> anyhow::Result<u8> {
    match verb {
        TraceVerb::Counts(args) => counts::run(args),
        TraceVerb::Explain(args) => explain::run(args),
        TraceVerb::Export(args) => export::run(args),
        TraceVerb::Functions(args) => functions::run(args),
        TraceVerb::Watch(args) => watch::run(args, signals),
    }
}

/// Verbs under `trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceVerb {
    /// Count the events of a trace.dat by name and CPU.
    Counts(CountsArgs),
    /// Count entries of the function tracer by list, function and CPU.
    Functions(FunctionsArgs),
    /// Name what interrupted the measured CPUs of a run; break down wake-up latency.
    Explain(TraceExplainArgs),
    /// Export every event of the measured CPUs with its source, and the samples.
    Export(TraceExportArgs),
    /// Watch a program: what released its threads, waits for a CPU, who preempted them.
    Watch(Box<crate::trace_verb::WatchArgs>),
}
