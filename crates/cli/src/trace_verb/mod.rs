//! `stillcore trace`: what a trace holds, and what it says of who interrupted whom.

mod counts;
mod destination;
mod explain;
mod export;

use crate::args::TraceVerb;

/// Carries out one verb.
pub(crate) fn run(verb: &TraceVerb) -> anyhow::Result<u8> {
    match verb {
        TraceVerb::Counts(args) => counts::run(args),
        TraceVerb::Explain(args) => explain::run(args),
        TraceVerb::Export(args) => export::run(args),
    }
}
