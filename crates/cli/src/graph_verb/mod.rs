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

verbs! {
    /// Verbs under `graph`.
    GraphVerb {
        /// Run a graph: edge latency from the intended release, outcome of every message.
        Run(run::RunArgs) => changes(run::run),
        /// Show what a graph declares: nodes, executors, edges, rates.
        Show(show::ShowArgs) => reads(show::run),
        /// Convert any graph to TOML.
        Convert(convert::ConvertArgs) => reads(convert::run),
        /// List the built-in graphs.
        List(list::ListArgs) => reads(list::run),
        /// Check result files of ros2-performance, or of a run, against a target file.
        Judge(judge::JudgeArgs) => reads(judge::run),
        /// Measure message latency between two threads, by transport and size.
        Latency(latency::LatencyArgs) => changes(latency::run),
    }
}
