//! `stillcore trace explain FILE`: explains a trace that anybody recorded.
//!
//! Prints the results of the kernel's tracers timerlat or osnoise, if the trace has them and the
//! user names no threads; else the wake-ups of threads, and who interrupted their CPUs.

use super::export::SENDER;
use super::{kernel_results, threads, watch_text};
use crate::trace_verb::coverage_text::{NONE_SEEN, Shows, answer};
use crate::trace_verb::explain_text::worst;
use crate::trace_verb::options::{TraceExplainArgs, TraceThreads};
use crate::trace_verb::source_table::{LONGEST_NAME, all_sources, record};
use attribution::any_trace::shape::AnyTrace;
use attribution::any_trace::{Threads, Wanted, any_trace, unless_of_tracers};
use attribution::attribute::path_section::PathSection;
use attribution::attribute::paths::Keep;
use attribution::attribute::thread_paths::ThreadPaths;
use attribution::attribute::watch::shape::ThreadSection;
use ftrace::TraceFile;
use model::{Cpus, Error};
use report::format;
use report::trace_answer::{self, Thread, Wakeup};
use serde_json::json;
use std::fmt::Write;

/// The first option that is given of those that only such a trace takes.
pub(super) fn given(threads: &TraceThreads) -> Option<&'static str> {
    let given = [
        ("--comm", threads.comm.is_some()),
        ("--pid", !threads.pid.is_empty()),
        ("--cpus", threads.cpus.is_some()),
        ("--window", threads.window.is_some()),
    ];
    given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
}

/// Explains a trace.
pub(super) fn run(args: &TraceExplainArgs) -> anyhow::Result<u8> {
    let file = TraceFile::open(&args.run)?;
    let asked = wanted(&file, args)?;
    let sender = file.buffer(SENDER).map(|buffer| buffer.name.as_str());
    let buffers: Vec<&str> = [Some(""), sender].into_iter().flatten().collect();
    let mut found = if given(&args.threads).is_some() {
        any_trace(&file, &buffers, &asked)?
    } else {
        // A kernel has these tracers whether they ran or not: the events themselves show it.
        let found = unless_of_tracers(&file, &buffers, &asked);
        match found {
            Ok(Some(found)) => found,
            other => {
                if let Some(results) = kernel_results::results(&file, args)? {
                    kernel_results::print(&file, &results, args)?;
                    return Ok(0);
                }
                other?;
                any_trace(&file, &buffers, &asked)?
            }
        }
    };
    if found.threads.threads.is_empty()
        && let Some(name) = &args.threads.comm
    {
        let expected = "the name of a thread as the scheduler's events in this trace give it";
        return Err(Error::invalid("--comm", name, expected).into());
    }
    let unseen = |thread: &ThreadSection| thread.comm.is_empty() && thread.cpus.is_empty();
    if !args.threads.pid.is_empty() && found.threads.threads.iter().all(unseen) {
        let numbers: Vec<String> = args.threads.pid.iter().map(i32::to_string).collect();
        let expected = "the number of a thread that an event of the trace names";
        return Err(Error::invalid("--pid", numbers.join(","), expected).into());
    }
    if let Some(wanted) = args.sample {
        anyhow::ensure!(
            found.threads.paths.iter().flat_map(|one| &one.path.worst).any(|sample| sample.t_ns == wanted),
            "{}: no wake-up of these threads was due at {} s: expected the time of one, as --worst N lists them",
            args.run.display(),
            format::instant(wanted)
        );
    }
    for one in &mut found.threads.paths {
        one.path = PathSection { worst: worst(&one.path, args), ..one.path.clone() };
    }
    if args.json {
        let mut answer = serde_json::to_value(&found)?;
        answer["schema"] = json!(trace_answer::SCHEMA);
        answer["questions"] = json!(trace_answer::questions(&found.coverage, &found.blocking));
        let caused = found.attribution.iter().flat_map(|one| trace_answer::caused(one.cpu, &one.rows));
        answer["sources"] = json!(caused.collect::<Vec<_>>());
        answer["wakeups"] = json!(wakeups(&found));
        println!("{answer}");
    } else {
        print!("{}", text(&found, args));
    }
    Ok(0)
}

/// The wake-ups of the threads that are kept.
fn wakeups(found: &AnyTrace) -> Vec<Wakeup> {
    let of_thread = |one: &ThreadPaths| {
        let section = found.threads.threads.iter().find(|thread| thread.tid == one.tid);
        let thread = Thread {
            pid: Some(one.tid),
            comm: one.comm.clone(),
            prio: section.and_then(|thread| thread.prio),
            policy: section.and_then(|thread| thread.policy.clone()),
            cgroup: None,
        };
        trace_answer::wakeups(&one.path, &thread, None).collect::<Vec<_>>()
    };
    found.threads.paths.iter().flat_map(of_thread).collect()
}

/// What the user asked for; an error where the trace cannot have it.
fn wanted(file: &TraceFile, args: &TraceExplainArgs) -> Result<Wanted, Error> {
    let TraceThreads { comm, pid, cpus, window } = args.threads.clone();
    let threads = match comm {
        Some(name) if name.is_empty() || name.len() > LONGEST_NAME => {
            return Err(Error::invalid(
                "--comm",
                name,
                format!("a name of at most {LONGEST_NAME} bytes, which is what the kernel keeps of it"),
            ));
        }
        Some(name) => Threads::Named(name),
        None if pid.is_empty() => Threads::RealTime,
        None => Threads::Numbers(pid),
    };
    let known: Cpus = file.buffer("").iter().flat_map(|top| &top.cpus).map(|data| data.cpu).collect();
    if let Some(other) = cpus.iter().flat_map(Cpus::iter).find(|cpu| !known.contains(*cpu)) {
        let expected = format!("some of {known}, the CPUs of the trace");
        return Err(Error::invalid("--cpus", format!("CPU {other}"), expected));
    }
    let keep = Keep { worst: args.of_each().max(Keep::default().worst), sample: args.sample };
    Ok(Wanted { threads, cpus, window: window.unwrap_or([i64::MIN, i64::MAX]), keep })
}

fn text(found: &AnyTrace, args: &TraceExplainArgs) -> String {
    let paths = &found.threads.paths;
    let stories = threads::stories(paths, args.in_all(paths.len()), args.stacks, found.t0_ns);
    let mut text = String::new();
    if args.sample.is_some() {
        text.push_str(&stories);
    } else {
        text.push_str(&head(found));
        found.damage.iter().for_each(|one| {
            let _ = writeln!(text, "INCOMPLETE: {one}; what follows is of what could be read\n");
        });
        text.push_str(&stories);
        // That none was seen to run is among the notes.
        if found.threads.threads.iter().any(|thread| thread.run_latency.is_some()) {
            text.push_str(&watch_text::latencies(&found.threads));
        }
        text.push_str(&threads::sums(paths, args.stacks));
        text.push_str(&all_sources(&found.attribution, args.stacks));
    }
    text.push_str(&shown(found, args));
    found.statements.iter().for_each(|one| {
        let _ = writeln!(text, "note: {one}");
    });
    text
}

/// What the trace shows of sources, and what would show more.
fn shown(found: &AnyTrace, args: &TraceExplainArgs) -> String {
    let of = if args.threads.window.is_some() { "this window" } else { "this trace" };
    let shows = Shows { of, absent: NONE_SEEN, classes: &found.coverage, waits: &found.blocking };
    let answer = answer(
        found.attribution.iter().flat_map(|one| &one.rows),
        found.threads.paths.iter().map(|one| &one.path),
    );
    match (args.sources || answer.is_empty(), args.sample) {
        (true, _) => shows.all() + &record(&found.record),
        (false, None) => shows.limits(&answer, ", and the command that records more"),
        (false, Some(_)) => String::new(),
    }
}

fn head(found: &AnyTrace) -> String {
    format!(
        "{}\n{} events of CPUs {} in {}, from {} s to {} s of clock {}\n\n",
        found.kernel.as_deref().unwrap_or("a kernel that the file does not name"),
        format::count(found.events),
        found.cpus,
        format::span(found.t1_ns.abs_diff(found.t0_ns)),
        format::instant(found.t0_ns),
        format::instant(found.t1_ns),
        found.clock
    )
}
