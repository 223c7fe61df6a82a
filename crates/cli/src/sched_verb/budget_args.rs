//! Arguments of `sched budget`.

use crate::sched_verb::overheads::OverheadsArgs;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use sched::global::GlobalTest;
use sched::locks::Protocol;
use sched::{BudgetTest, Heuristic};
use std::path::PathBuf;

/// Arguments of `sched budget`.
#[derive(Debug, Args)]
pub(crate) struct BudgetArgs {
    /// Task sets, one JSON object per line; - = standard input.
    #[arg(value_name = "FILE.jsonl")]
    pub(crate) file: PathBuf,
    /// Quantity to increase: the jitter of all tasks, the cost of all and of each, or the
    /// utilization of each core.
    #[arg(long, value_name = "WHAT", default_value = "jitter")]
    pub(crate) of: Of,
    /// Schedulability test that must still pass.
    #[arg(long, value_name = "NAME", default_value = "fp-rta", value_parser = PossibleValuesParser::new(tests()))]
    pub(crate) test: String,
    /// Assign tasks to cores first, by bin packing: first, worst, best or next fit; d = decreasing
    /// utilization.
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(Heuristic::ALL.map(|(name, _)| name)))]
    pub(crate) partition: Option<String>,
    /// Locking protocol for shared resources; critical sections grow with costs.
    #[arg(long, value_name = "PROTOCOL", value_parser = PossibleValuesParser::new(Protocol::ALL.map(Protocol::name)))]
    pub(crate) locks: Option<String>,
    #[command(flatten)]
    pub(crate) overheads: OverheadsArgs,
    /// Report a line that is not a task set, and continue.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Quantity to increase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Of {
    /// Release jitter.
    Jitter,
    /// Costs, as a factor.
    Cost,
    /// The same, reported as the utilization of each core.
    Utilization,
}

/// The tests that have a budget.
fn tests() -> Vec<&'static str> {
    let global = GlobalTest::ALL.into_iter().filter(|test| *test != GlobalTest::EdfDa);
    BudgetTest::ALL.iter().map(|(name, _)| *name).chain(global.map(GlobalTest::name)).collect()
}
