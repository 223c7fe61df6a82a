//! The `stillcore` command: one match, one file per verb. All printing lives here and in `report`.
//!
//! Exit status: 0 pass, 1 error (wrong usage included), 2 a finding or a threshold that failed.
#![forbid(unsafe_code)]

#[macro_use]
mod stdout;

mod args;
mod assess;
mod audit;
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

use args::{Cli, LabVerb, Verb};
use clap::Parser;
use std::process::ExitCode;
use sys::signals::EndSignals;

/// musl's allocator takes one lock for all threads, and maps and unmaps memory for each large
/// block. The measuring loops allocate nothing, with any allocator.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if lab::guest::init::is_wanted() {
        lab::guest::init::run();
    }
    if let Some(code) = internal::run() {
        return code;
    }
    let cli = match Cli::try_parse_from(measure::cyclictest::command_line(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error, std::env::args().any(|word| word == "--json")),
    };
    sys::signals::outlive_file_size_limit();
    let json = cli.verb.json();
    match dispatch(cli.verb) {
        Ok(code) => ExitCode::from(code),
        Err(error) => failure::show(&error, json),
    }
}

/// Undoes what a stillcore that was killed together with its guardian has left. `assess` looks
/// again and reports what cannot be undone.
fn restore_what_was_left() -> anyhow::Result<()> {
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
    if let Some(state) = journal::session::default_state(home.as_deref()) {
        restore_what_was_left_in(&state)?;
    }
    Ok(())
}

/// The same for one state directory; returns what could not be undone.
pub(crate) fn restore_what_was_left_in(state: &std::path::Path) -> anyhow::Result<Vec<String>> {
    let restored = journal::guardian::recover(state, owners::all())?;
    if !restored.undone.is_empty() {
        eprintln!("note: took back what a killed run had left: {}", restored.undone.join(", "));
    }
    Ok(restored.failed)
}

/// Turns a signal into the lab's request to stop; the thread ends with the process.
pub(crate) fn stop_on(signals: EndSignals) -> lab::Stop {
    let stop = lab::Stop::default();
    let asked = stop.clone();
    std::thread::spawn(move || {
        while signals.arrived().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        asked.stop();
    });
    stop
}

/// Ends a call that only reads and computes as soon as a signal arrives: all that it has to remove
/// is a tree that it has unpacked. The thread ends with the process.
fn end_at_once_on(signals: EndSignals) {
    std::thread::spawn(move || {
        loop {
            if let Some(signal) = signals.arrived() {
                machine::remove_unpacked();
                sys::signals::end_by(signal);
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
}

fn dispatch(verb: Verb) -> anyhow::Result<u8> {
    // Signals are blocked before any thread exists, so that every thread inherits it.
    let signals = EndSignals::block()?;
    if verb.touches_the_machine() {
        restore_what_was_left()?;
    } else if !matches!(verb, Verb::Lab(_)) {
        end_at_once_on(signals.try_clone()?);
    }
    match verb {
        Verb::Assess(args) => assess::run(&args, &signals),
        Verb::Audit(args) => audit::run(&args),
        Verb::Explain(args) => explain_verb::run(&args),
        Verb::Disturb(args) => disturb_verb::run(&args, &signals),
        Verb::Sched { verb } => verb.run(),
        Verb::Resources(args) => resources_verb::run(&args),
        Verb::Snapshot(args) => snapshot_verb::run(&args),
        Verb::Report(args) => report_verb::run(&args),
        Verb::Summary(args) => summary_verb::run(&args),
        Verb::Compare(args) => compare_verb::run(&args),
        Verb::Isolate { verb } => verb.run(&signals),
        Verb::Measure { verb } => verb.run(&signals),
        Verb::Graph { verb } => verb.run(&signals),
        Verb::Trace(verb) => trace_verb::run(&verb, &signals),
        Verb::Study { verb } => verb.run(signals),
        Verb::Lab(LabVerb::Run(args)) => lab_verb::run(*args, &stop_on(signals)),
        Verb::Lab(LabVerb::Matrix(args)) => lab_matrix::run(&args, signals),
    }
}
