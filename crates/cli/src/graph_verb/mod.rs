//! `stillcore graph`: end-to-end communication.

pub(crate) mod latency;

use clap::Subcommand;
use linux::sys::signals::EndSignals;

/// Verbs under `graph`.
#[derive(Debug, Subcommand)]
pub(crate) enum GraphVerb {
    /// Measure how long a message takes from one thread to another, by transport and size.
    Latency(latency::LatencyArgs),
}

impl GraphVerb {
    /// Whether answers and errors are to be JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Latency(args) => args.json,
        }
    }

    /// Runs it.
    pub(crate) fn run(&self, signals: &EndSignals) -> anyhow::Result<u8> {
        match self {
            Self::Latency(args) => latency::run(args, signals),
        }
    }
}
