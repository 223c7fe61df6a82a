//! The `stillcore` command: a table of verbs, one file per verb. All printing lives here and in
//! `report`.
//!
//! Exit status: 0 pass, 1 error (wrong usage included), 2 a finding or a threshold that failed.
#![forbid(unsafe_code)]

#[macro_use]
mod stdout;
#[macro_use]
mod verbs;

mod assess;
mod audit;
mod calls;
mod carried;
mod compare_verb;
mod conclude;
mod disturb_verb;
mod explain_verb;
mod failure;
mod folded;
mod graph_verb;
mod internal;
mod isolate;
mod lab_matrix;
mod lab_verb;
mod measure;
mod owners;
#[cfg(test)]
mod owners_tests;
mod provoke;
mod report_verb;
mod resources_verb;
mod run;
mod sched_verb;
mod snapshot_verb;
mod study_verb;
mod summary_verb;
mod trace_verb;
mod values;

use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::process::ExitCode;
use sys::signals::EndSignals;

/// musl's allocator takes one lock for all threads, and maps and unmaps memory for each large
/// block. The measuring loops allocate nothing, with any allocator.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

verbs! {
    /// Measure, attribute and remove interference on isolated CPUs; bound what remains.
    #[command(name = "stillcore", version, max_term_width = 100)]
    Verb {
        /// Audit, measure, disturb and judge this machine; write a run directory and report.
        Assess(assess::AssessArgs) => changes(assess::run),
        /// Check every isolation mechanism of this machine or of a snapshot.
        Audit(audit::AuditArgs) => reads(audit::run),
        /// Explain a mechanism, an event class or a kernel fix.
        Explain(explain_verb::ExplainArgs) => reads(explain_verb::run),
        /// Run interference workloads: confined, counted, and verified to have worked.
        Disturb(disturb_verb::DisturbArgs) => changes(disturb_verb::run),
        /// List everything that may use one CPU: requested, effective, observed, owner.
        Resources(resources_verb::ResourcesArgs) => reads(resources_verb::run),
        /// Archive everything that an audit reads, to audit it elsewhere.
        Snapshot(snapshot_verb::SnapshotArgs) => reads(snapshot_verb::run),
        /// Recompute the conclusions of a run directory and write its report.
        Report(report_verb::ReportArgs) => reads(report_verb::run),
        /// Summarise samples files in bounded memory: losses, quantiles, deadlines, maxima.
        Summary(summary_verb::SummaryArgs) => reads(summary_verb::run),
        /// Compare groups of runs: better, worse, equivalent, or runs still needed.
        Compare(compare_verb::CompareArgs) => commands(compare_verb::run),
        /// Isolate CPUs: plan, apply, verify and undo.
        #[command(subcommand)]
        Isolate(isolate::IsolateVerb) => nested(isolate::IsolateVerb::run),
        /// Measure wake-up latency, noise, cross-CPU wake-ups, overheads, jobs or clocks.
        #[command(subcommand)]
        Measure(measure::MeasureVerb) => nested(measure::MeasureVerb::run),
        /// Analyze the schedulability of task sets.
        #[command(subcommand)]
        Sched(sched_verb::SchedVerb) => nested(sched_verb::SchedVerb::run),
        /// Run communication graphs: end-to-end latency and outcome of every message.
        #[command(subcommand)]
        Graph(graph_verb::GraphVerb) => nested(graph_verb::GraphVerb::run),
        /// Analyze or export a trace; watch a program.
        #[command(subcommand)]
        Trace(trace_verb::TraceVerb) => nested(trace_verb::TraceVerb::run),
        /// Run a declared matrix of measurements, cell by cell.
        #[command(subcommand)]
        Study(study_verb::StudyVerb) => nested(study_verb::StudyVerb::run),
        /// Run stillcore on other kernels, in QEMU.
        #[command(subcommand)]
        Lab(LabVerb) => nested(LabVerb::run),
    }
}

verbs! {
    /// Verbs under `lab`.
    LabVerb {
        /// Boot a kernel under QEMU, run a command there as root, copy its files back.
        Run(lab_verb::RunArgs) => boots(lab_verb::run),
        /// Boot kernels under several isolation profiles; compare exposure to each stressor.
        Matrix(lab_matrix::MatrixArgs) => boots(lab_matrix::run),
    }
}

fn main() -> ExitCode {
    if lab::guest::init::is_wanted() {
        lab::guest::init::run();
    }
    if let Some(code) = internal::run() {
        return code;
    }
    let words = measure::cyclictest::command_line(std::env::args_os());
    let (verb, json) = match parse(words) {
        Ok(parsed) => parsed,
        Err(error) => return failure::usage(&error, std::env::args().any(|word| word == "--json")),
    };
    calls::check_by(what_is_wrong);
    sys::signals::outlive_file_size_limit();
    // Signals are blocked before any thread exists, so that every thread inherits it.
    let ended = EndSignals::block().map_err(Into::into).and_then(|signals| verb.run(&signals));
    ended.map_or_else(|error| failure::show(&error, json), ExitCode::from)
}

/// The verb of a command line, and whether answers and errors are to be JSON.
fn parse(words: Vec<OsString>) -> Result<(Verb, bool), clap::Error> {
    let mut matches = Verb::command().try_get_matches_from(words)?;
    let mut innermost = &matches;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    let json = innermost.try_get_one("json").is_ok_and(|json| json == Some(&true));
    Ok((Verb::from_arg_matches_mut(&mut matches)?, json))
}

/// What is wrong with a call, in one line.
fn what_is_wrong(words: &[String]) -> Option<String> {
    let line = std::iter::once("stillcore".to_owned()).chain(words.iter().cloned());
    let error = Verb::command().try_get_matches_from(line).err()?;
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    Some(first.trim_start_matches("error: ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_none_says_why_in_one_line() {
        let wrong = |line: &str| what_is_wrong(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(wrong("measure wakeup --cpus 1 --json"), None);
        assert_eq!(wrong("measur wakeup").unwrap(), "unrecognized subcommand 'measur'");
        assert!(wrong("measure wakeup --cpuss 1").unwrap().contains("--cpuss"));
        // Bounds of what is late need something that classifies.
        assert_eq!(wrong("graph run x --target y --late-percentage 30"), None);
        assert_eq!(wrong("graph run x --target y --tracking"), None);
        assert!(wrong("graph run x --late-percentage 30").is_some());
    }

    #[test]
    fn the_command_line_is_sound() {
        Verb::command().debug_assert();
    }

    #[test]
    fn only_a_verb_with_the_option_answers_in_json() {
        let json = |line: &str| parse(line.split(' ').map(Into::into).collect()).unwrap().1;
        assert!(json("stillcore audit --json") && json("stillcore measure spin --json"));
        assert!(!json("stillcore audit") && !json("stillcore sched generate"));
        assert!(!json("stillcore isolate run -- audit --json"));
    }
}
