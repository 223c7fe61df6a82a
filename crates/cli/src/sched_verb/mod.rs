//! `stillcore sched`: what can be guaranteed, from task sets. The theory is the `sched` crate's; here are files, options and printing.

mod analyze;

use clap::Subcommand;

/// What to ask.
#[derive(Debug, Subcommand)]
pub(crate) enum SchedVerb {
    /// Test task sets, a set a line of JSON: response times, blocking, verdicts.
    Analyze(analyze::AnalyzeArgs),
}

impl SchedVerb {
    /// Whether answers and errors are to be JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Analyze(args) => args.json,
        }
    }

    /// Answers.
    pub(crate) fn run(&self) -> anyhow::Result<u8> {
        match self {
            Self::Analyze(args) => analyze::run(args),
        }
    }
}
