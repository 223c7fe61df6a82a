//! `stillcore sched`: guarantees for task sets. The `sched` crate has the theory; here are files,
//! options and printing.

mod analyze;
mod analyze_args;
mod answer;
mod budget;
mod budget_cost;
mod check_certificate;
mod generate;
pub(crate) mod jitter;
mod lines;
mod overheads;
mod probabilistic;
pub(crate) mod study;

use clap::Subcommand;

/// What to ask.
#[derive(Debug, Subcommand)]
pub(crate) enum SchedVerb {
    /// Test task sets, one JSON object per line: response times, blocking, verdicts.
    Analyze(crate::sched_verb::analyze_args::AnalyzeArgs),
    /// Generate random task sets for `sched analyze`, one JSON object per line.
    Generate(generate::GenerateArgs),
    /// Run a declared study: share of random sets accepted, over utilization or cores.
    Study(study::StudyArgs),
    /// Compute how much more release jitter, or cost, task sets tolerate.
    Budget(budget::BudgetArgs),
    /// Check the certificates that prove verdicts of analyze --certificate.
    CheckCertificate(check_certificate::CheckArgs),
}

impl SchedVerb {
    /// Whether answers and errors are to be JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Analyze(args) => args.json,
            Self::Generate(_) => false,
            Self::Study(args) => args.json,
            Self::Budget(args) => args.json,
            Self::CheckCertificate(args) => args.json,
        }
    }

    /// Answers.
    pub(crate) fn run(&self) -> anyhow::Result<u8> {
        match self {
            Self::Analyze(args) => analyze::run(args),
            Self::Generate(args) => generate::run(args),
            Self::Study(args) => study::run(args),
            Self::Budget(args) => budget::run(args),
            Self::CheckCertificate(args) => check_certificate::run(args),
        }
    }
}
