//! `stillcore sched`: guarantees for task sets. The `sched` crate has the theory; here are files,
//! options and printing.

mod analyze;
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
    /// Test task sets, a set a line of JSON: response times, blocking, verdicts.
    Analyze(analyze::AnalyzeArgs),
    /// Draw random task sets, a set a line of JSON: what `sched analyze` reads.
    Generate(generate::GenerateArgs),
    /// Run a declared study: the share of random sets that tests accept, over utilization or cores.
    Study(study::StudyArgs),
    /// How much more release jitter, or cost, task sets tolerate.
    Budget(budget::BudgetArgs),
    /// Check the numbers that prove the verdicts of analyze --certificate.
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
