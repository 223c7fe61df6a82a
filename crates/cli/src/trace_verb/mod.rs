//! `stillcore trace`: what a trace holds, and what it says of who interrupted whom.

mod any_trace;
mod counts;
mod coverage_text;
mod destination;
mod every_lock;
mod explain;
pub(crate) mod explain_text;
mod export;
mod functions;
mod kernel_locks;
mod kernel_results;
mod lint_text;
mod list;
mod lock_text;
mod options;
mod raw;
mod same_name;
mod source_table;
mod threads;
pub(crate) mod watch;
mod watch_text;

verbs! {
    /// Verbs under `trace`.
    TraceVerb {
        /// Count the events of a trace.dat by name and CPU.
        Counts(options::CountsArgs) => reads(counts::run),
        /// Count entries of the function tracer by list, function and CPU.
        Functions(options::FunctionsArgs) => reads(functions::run),
        /// Name what interrupted the measured CPUs of a run; break down wake-up latency.
        Explain(options::TraceExplainArgs) => reads(explain::run),
        /// Export every event of the measured CPUs with its source, and the samples.
        Export(options::TraceExportArgs) => reads(export::run),
        /// Watch a program: what released its threads, waits for a CPU, who preempted them.
        Watch(watch::WatchArgs) => changes(watch::run),
    }
}
