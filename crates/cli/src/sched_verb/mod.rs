//! `stillcore sched`: guarantees for task sets. The `sched` crate has the theory; here are files,
//! options and printing.

mod analyze;
mod analyze_args;
mod answer;
mod budget;
mod budget_args;
mod budget_cost;
mod budget_whole;
mod chains;
mod check_certificate;
mod executors;
mod generate;
pub(crate) mod jitter;
mod lines;
mod overheads;
mod probabilistic;
mod sets;
mod simple_answer;
pub(crate) mod study;
mod tables;

verbs! {
    /// What to ask.
    SchedVerb {
        /// Test task sets from JSON lines or a table: response times, blocking, verdicts.
        Analyze(analyze_args::AnalyzeArgs) => reads(analyze::run),
        /// Generate random task sets for `sched analyze`, one JSON object per line.
        Generate(generate::GenerateArgs) => reads(generate::run),
        /// Run a declared study: share of random sets accepted, over utilization or cores.
        Study(study::StudyArgs) => reads(study::run),
        /// Compute how much more release jitter, or cost, task sets tolerate.
        Budget(budget_args::BudgetArgs) => reads(budget::run),
        /// Bound how late data may be at the end of chains of tasks.
        Chains(chains::ChainsArgs) => reads(chains::run),
        /// Bound response times of ROS 2 callbacks in executors, and of chains of them.
        Executors(executors::ExecutorsArgs) => reads(executors::run),
        /// Check the certificates that prove verdicts of analyze --certificate.
        CheckCertificate(check_certificate::CheckArgs) => reads(check_certificate::run),
    }
}
