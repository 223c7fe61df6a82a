//! `stillcore measure`: one file a probe. `carry_out` is what they share: one window of probes, its run directory, its conclusions.

mod carry_out;
mod schedule;
pub(crate) mod spin;
mod table;
pub(crate) mod wakeup;

use clap::{Args, Subcommand};
use linux::sys::signals::EndSignals;
use model::Cpus;
use std::path::PathBuf;

/// Verbs under `measure`.
#[derive(Debug, Subcommand)]
pub(crate) enum MeasureVerb {
    /// Wake-up latency of periodic tasks, every release accounted for.
    Wakeup(wakeup::WakeupArgs),
    /// Noise: time stolen from a busy loop, every gap with its time.
    Spin(spin::SpinArgs),
}

/// What all of them take.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// CPUs to measure, as a list such as 2,3 or 4-7 [default: the isolated CPUs, else the highest one].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// New or empty directory for the run [default: stillcore-TIME in the current directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object instead of the summary.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show nothing while it measures.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Directory for the journal [default: /var/lib/stillcore; without root .local/state/stillcore in the home directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

impl MeasureVerb {
    /// Whether answers and errors are to be JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Wakeup(args) => args.common.json,
            Self::Spin(args) => args.common.json,
        }
    }

    /// Carries it out.
    pub(crate) fn run(&self, signals: &EndSignals) -> anyhow::Result<u8> {
        match self {
            Self::Wakeup(args) => wakeup::run(args, signals),
            Self::Spin(args) => spin::run(args, signals),
        }
    }
}
