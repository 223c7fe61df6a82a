//! Hidden verbs: what stillcore's own children run. They bypass the command line's parser, so that
//! a measuring process is small.

use crate::{failure, lab_verb, monitor, owners, study_verb};
use journal::guardian;
use measure::job::feed;
use measure::probe;
use measure::spec::ProbeReport;
use model::sample::Policy;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Runs a hidden verb, if the command line is one.
pub(crate) fn run() -> Option<ExitCode> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if words.first()? == lab_verb::EXEC_BOUND {
        return Some(finish(Err(lab_verb::exec_bound(&words[1..]))));
    }
    if words.first()? != "internal" {
        return None;
    }
    let verb = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let rest = words.get(2..).unwrap_or_default();
    let text = rest.first().and_then(|word| word.to_str()).unwrap_or_default();
    Some(finish(match verb {
        "probe" => run_probe(text),
        "job-reader" | "job-writer" => run_feed(rest, verb == "job-reader"),
        "graph" => run_graph(text),
        "graph-latency" => graph::latency::serve(text).map_err(anyhow::Error::from),
        "stress" => run_stress(rest),
        "hold" => journal::settings::hold(text).map_err(anyhow::Error::from),
        "occupy" => journal::settings::occupy(text).map_err(anyhow::Error::from),
        "real-time" => become_real_time(rest),
        "held" => return Some(ExitCode::from(sys::held::become_command(rest) as u8)),
        monitor::keeping::VERB => monitor::keeping::run(rest),
        "provoke" => crate::provoke::run(rest),
        "plant" => crate::provoke::run_plant(rest),
        study_verb::experiment::inside::VERB => study_verb::experiment::inside::run(rest),
        study_verb::experiment::hosts::playbook::VERB => {
            Err(study_verb::experiment::hosts::playbook::become_ansible(rest))
        }
        "state" => print_state(),
        "guardian" => guardian::watch(Path::new(text), owners::all()).map_err(anyhow::Error::from),
        _ => Err(anyhow::anyhow!("`internal` is for this program's own use")),
    }))
}

fn run_probe(order: &str) -> anyhow::Result<()> {
    let say = |report: &ProbeReport| -> std::io::Result<()> {
        println!("{}", serde_json::to_string(report)?);
        Ok(())
    };
    let report = probe::run(&serde_json::from_str(order)?, &mut { say })?;
    say(&report)?;
    Ok(())
}

/// One process of a graph, with this number of descriptors from its parent.
fn run_graph(descriptors: &str) -> anyhow::Result<()> {
    let report = graph::run::process::run(descriptors.parse()?)?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// Becomes a command under `SCHED_FIFO`, for tests where no chrt(1) is: the priority, then the
/// command.
fn become_real_time(words: &[OsString]) -> anyhow::Result<()> {
    let [priority, program, arguments @ ..] = words else {
        anyhow::bail!("a priority and a command are needed")
    };
    let priority = priority.to_str().unwrap_or_default().parse()?;
    sys::policy::set_policy(&Policy::fifo(priority))?;
    sys::signals::unblock_end();
    Err(Command::new(program).args(arguments).exec().into())
}

/// The processes at a periodic job's pipes.
fn run_feed(words: &[OsString], reads: bool) -> anyhow::Result<()> {
    let (Some(file), Some(cpus)) = (words.first(), words.get(1).and_then(|word| word.to_str())) else {
        anyhow::bail!("a file and CPUs are needed")
    };
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout());
    if reads {
        feed::read_into(Path::new(file), cpus, &mut stdout)?;
    } else {
        feed::compare_from(Path::new(file), cpus, &mut stdin, &mut stdout)?;
    }
    Ok(())
}

fn run_stress(words: &[OsString]) -> anyhow::Result<()> {
    let word = |index: usize| words.get(index).and_then(|word| word.to_str()).unwrap_or_default();
    Ok(disturb::child::serve(word(0), word(1), &mut std::io::stdout())?)
}

/// Prints the machine's settings, to compare before with after.
fn print_state() -> anyhow::Result<()> {
    let root = machine::Root::open(Path::new("/"))?;
    let snapshot = audit::snapshot(&root, &audit::Catalogue::embedded()?)?;
    println!("{}", serde_json::to_string_pretty(&snapshot.state)?);
    Ok(())
}

fn finish(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", failure::sentence(&error));
            ExitCode::from(1)
        }
    }
}
