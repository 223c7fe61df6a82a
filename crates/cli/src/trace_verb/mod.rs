//! `stillcore trace`: what a trace holds, and what it says of who interrupted whom.

mod any_trace;
mod counts;
mod destination;
mod explain;
mod export;
mod functions;
mod kernel_results;
mod list;
mod raw;
mod threads;
mod watch;
mod watch_text;

use crate::args::TraceVerb;
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
