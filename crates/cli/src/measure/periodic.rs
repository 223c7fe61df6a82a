//! `stillcore measure periodic`: a job every period that computes, alone or beside copies of itself
//! (the process of ERTS 2022).

mod args;
mod text;

pub(crate) use args::PeriodicArgs;

use super::Common;
use super::carry_out::{Beside, Outcome, carry_out_in, open_session, place};
use super::repeating::STOPS;
use super::schedule::PolicyName;
use super::table::json;
use crate::run::place::{Place, default_out};
use args::{Files, InputName, Victim, WakeName, check, period, work};
use measure::job::files::{Copy, JobFiles};
use measure::spec::{PeriodicSpec, ProbeSpec, ReadFrom, Task, Wake};
use model::{Cpus, Error};
use serde_json::json;
use std::time::Duration;
use sys::perf::{Chosen, MOST, usable};
use sys::sched;
use sys::signals::EndSignals;

/// Above ordinary interrupt threads, below the kernel's own watchdogs.
const PRIORITY: u32 = 80;
/// Where every CPU is measured or attacked.
const CROWDED_PRIORITY: u32 = 49;

/// One measurement with what its files say.
struct Measured {
    files: Files,
    outcome: Outcome,
}

/// Measures and prints.
pub(crate) fn run(args: &PeriodicArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    check(args)?;
    let unfit = [
        ("--compare-files", args.compare_files, "makes two runs of its own and compares them"),
        ("--stop-over", args.stopping.stop_over.is_some(), STOPS),
    ];
    if let Some(status) = args.repeating.carry_out("measure periodic", &args.common, &unfit, signals)? {
        return Ok(status);
    }
    // Before this process goes to its own CPUs: a copy that is free inherits what it may use.
    let free = sched::affinity()?;
    let mut place = place(&args.common, true)?;
    let free = free.and(&place.machine.topology.online);
    let counters = counters(args, &mut place)?;
    let groups = if args.compare_files { vec![Files::Same, Files::Own] } else { vec![args.files] };
    let mut measured = Vec::new();
    for files in groups {
        let common = common(args, files);
        let own = (files == Files::Own).then_some(place.program.as_path());
        let dir = args.files_in.as_ref().unwrap_or(&place.state);
        // Before anything is made that its guardian has to undo.
        let session = open_session(&place)?;
        let held = JobFiles::create(dir, work(args), args.copies as usize, own)?;
        let probes = probes(args, &place, &free, &counters, &held.copies)?;
        let beside = Beside { tracing: args.tracing.clone(), stopping: args.stopping, ..Beside::default() };
        let outcome = carry_out_in(session, &place, &common, probes, beside, signals)?;
        let stopped = outcome.status() != 0;
        measured.push(Measured { files, outcome });
        if stopped {
            break;
        }
    }
    if args.common.json {
        println!("{}", object(&measured));
    } else {
        print!("{}", text::text(&measured));
    }
    Ok(code(&measured))
}

/// 1 where it was interrupted, 2 where an output was wrong.
fn code(measured: &[Measured]) -> u8 {
    let wrong = measured
        .iter()
        .flat_map(|one| &one.outcome.document.run.probes)
        .filter_map(model::run::ProbeRecord::jobs)
        .any(|jobs| jobs.outputs_wrong > 0);
    let incomplete = measured.iter().any(|one| one.outcome.status() == 1);
    if incomplete { 1 } else { measured.last().map_or(0, |one| one.outcome.status_or(wrong)) }
}

/// One measurement's object; of two, both under the names of their files.
fn object(measured: &[Measured]) -> serde_json::Value {
    const SCHEMA: &str = "stillcore.measure-periodic/2";
    let one = |measured: &Measured| {
        let mut value = json(&measured.outcome, SCHEMA);
        for (index, process) in measured.outcome.document.analysis.periodic.iter().enumerate() {
            value["threads"][index]["jobs"] = json!(process.jobs);
        }
        value
    };
    match measured {
        [single] => one(single),
        several => {
            let groups = several.iter().map(|group| (group.files.name().to_owned(), one(group)));
            json!({ "schema": SCHEMA, "groups": groups.collect::<serde_json::Map<_, _>>() })
        }
    }
}

/// Common arguments for one group of files; two groups lie in directories beside each other.
fn common(args: &PeriodicArgs, files: Files) -> Common {
    let common = &args.common;
    let out = match (&common.out, args.compare_files) {
        (out, false) => out.clone(),
        (Some(out), true) => Some(out.join(files.name())),
        (None, true) => Some(default_out().with_extension(files.name())),
    };
    Common {
        cpus: common.cpus.clone(),
        out,
        json: common.json,
        quiet: common.quiet,
        state: common.state.clone(),
        no_dma_latency: common.no_dma_latency,
        private: common.private,
        dma_latency_us: common.dma_latency_us,
        disturbing: common.disturbing.clone(),
    }
}

/// The counters there are; the run says why the others are not.
fn counters(args: &PeriodicArgs, place: &mut Place) -> Result<Vec<Chosen>, Error> {
    let mut chosen: Vec<Chosen> = Vec::new();
    for event in &args.counters {
        if chosen.iter().any(|one| one.event.name == event.name) {
            let what = format!("{} twice", event.name);
            return Err(Error::invalid("--counters", what, "each name once"));
        }
        match usable(event) {
            Ok(source) => chosen.push(Chosen { event: event.clone(), source }),
            Err(why) => place.limits.push(format!("counter {event} is unavailable: {why}")),
        }
    }
    if chosen.len() > MOST {
        let what = format!("{} counters", chosen.len());
        return Err(Error::invalid("--counters", what, format!("at most {MOST}")));
    }
    Ok(chosen)
}

fn probes(
    args: &PeriodicArgs,
    place: &Place,
    free: &Cpus,
    counters: &[Chosen],
    copies: &[Copy],
) -> Result<Vec<ProbeSpec>, Error> {
    let crowded = args.copies > 1 || place.housekeeping == place.machine.topology.online;
    let period = period(args);
    let policy = args.schedule.policy(period, if crowded { CROWDED_PRIORITY } else { PRIORITY })?;
    let deadline = args.schedule.policy == PolicyName::Deadline;
    let victim = args.victim.unwrap_or(if deadline { Victim::Free } else { Victim::Pinned });
    let first = place.measured.iter().next().unwrap_or(0);
    let nanos = |time: Duration| time.as_nanos() as i64;
    let one = |(thread, copy): (u32, &Copy)| ProbeSpec {
        thread,
        cpus: if thread == 0 && victim == Victim::Pinned { Cpus::one(first) } else { free.clone() },
        policy: policy.clone(),
        timer_slack_ns: nanos(args.schedule.timer_slack) as u64,
        duration_ns: nanos(period * args.warm_up + args.duration),
        task: Task::Periodic(PeriodicSpec {
            period_ns: nanos(period),
            warm_up: args.warm_up,
            wake: if args.wake.map_or(deadline, |wake| wake == WakeName::Scheduler) {
                Wake::Scheduler
            } else {
                Wake::Timer
            },
            work: work(args),
            input: match args.input {
                InputName::Memory => ReadFrom::Memory,
                InputName::File => ReadFrom::File,
                InputName::Pipe => ReadFrom::Pipe,
            },
            files: copy.files.clone(),
            io_cpus: args.io_cpus.clone().unwrap_or_else(|| free.clone()),
            program: copy.program.clone(),
            counters: counters.to_vec(),
        }),
    };
    Ok((0..).zip(copies).map(one).collect())
}
