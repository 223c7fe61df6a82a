//! `stillcore graph`: end-to-end communication.

mod answer;
pub(crate) mod convert;
pub(crate) mod judge;
pub(crate) mod latency;
pub(crate) mod list;
mod load;
pub(crate) mod run;
pub(crate) mod show;
mod text;

use clap::Subcommand;
use sys::signals::EndSignals;

/// Verbs under `graph`.
#[derive(Debug, Subcommand)]
pub(crate) enum GraphVerb {
    /// Run a graph: edge latency from the intended release, outcome of every message.
    Run(Box<run::RunArgs>),
    /// Show what a graph declares: nodes, executors, edges, rates.
    Show(show::ShowArgs),
    /// Convert any graph to TOML.
    Convert(convert::ConvertArgs),
    /// List the built-in graphs.
    List(list::ListArgs),
    /// Check result files of ros2-performance, or of a run, against a target file.
    Judge(judge::JudgeArgs),
    /// Measure message latency between two threads, by transport and size.
    Latency(latency::LatencyArgs),
}

impl GraphVerb {
    /// Whether it changes something on the machine.
    pub(crate) fn touches_the_machine(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Latency(_))
    }

    /// Whether answers and errors are to be JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Run(args) => args.common.json,
            Self::Show(args) => args.json,
            Self::Convert(_) => false,
            Self::List(args) => args.json,
            Self::Judge(args) => args.json,
            Self::Latency(args) => args.json,
        }
    }

    /// Carries it out.
    pub(crate) fn run(&self, signals: &EndSignals) -> anyhow::Result<u8> {
        match self {
            Self::Run(args) => run::run(args, signals),
            Self::Show(args) => show::run(args),
            Self::Convert(args) => convert::run(args),
            Self::List(args) => list::run(args),
            Self::Judge(args) => judge::run(args),
            Self::Latency(args) => latency::run(args, signals),
        }
    }
}
