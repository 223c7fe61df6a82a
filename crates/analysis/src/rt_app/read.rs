//! A file of rt-app → a load. What cannot be played is refused by its key and place.

use super::names::Reading;
use super::ordered::{Node, without_comments};
use super::place::Place;
use super::{US, task};
use model::Error;
use model::load::{Load, LoadThread, MOST_THREADS};

/// Keys of `global` that change nothing of what threads do.
const NO_EFFECT: [&str; 12] = [
    "calibration",
    "cumulative_slack",
    "frag",
    "ftrace",
    "gnuplot",
    "io_device",
    "lock_pages",
    "log_basename",
    "log_size",
    "logdir",
    "mem_buffer_size",
    "pi_enabled",
];
/// Reads the text of a file; `place` is its name for errors.
pub fn read(place: &str, text: &str) -> Result<Load, Error> {
    let root: Node = serde_json::from_str(&without_comments(text))
        .map_err(|error| Error::invalid(place, error, "a JSON file of rt-app"))?;
    let root = Place { path: place.to_owned(), node: &root };
    let mut reading = Reading::default();
    "SCHED_OTHER".clone_into(&mut reading.default_policy);
    let mut tasks = None;
    for (key, value) in root.object()? {
        match key.as_str() {
            "global" => read_global(&mut reading, &value)?,
            // Made of what events name, since version 1.0.
            "resources" => drop(value.object()?),
            "tasks" => tasks = Some(value),
            _ => return Err(value.refuse("the key is none of rt-app's", "tasks, global, resources")),
        }
    }
    let tasks = tasks.ok_or_else(|| root.refuse("it has no tasks", "an object \"tasks\""))?;
    read_tasks(&mut reading, &tasks)?;
    Ok(reading.load)
}

fn read_global(reading: &mut Reading, global: &Place<'_>) -> Result<(), Error> {
    for (key, value) in global.object()? {
        match key.as_str() {
            "duration" => {
                let seconds = value.number(-1)?;
                let ns = u64::try_from(seconds).ok().map(|seconds| seconds * 1_000_000 * US);
                reading.load.duration_ns = ns.filter(|ns| *ns > 0);
            }
            "default_policy" => reading.default_policy = value.name()?,
            "pi_enabled" if *value.node == Node::Bool(true) => {
                return Err(value.refuse("mutexes that inherit priorities are not played", "false"));
            }
            other if NO_EFFECT.contains(&other) => {}
            _ => return Err(value.refuse("the key is none of rt-app's", "a key of \"global\"")),
        }
    }
    Ok(())
}

fn read_tasks(reading: &mut Reading, tasks: &Place<'_>) -> Result<(), Error> {
    let all = tasks.object()?;
    let mut threads = 0;
    for (name, place) in &all {
        place.check_name(name)?;
        threads += task::instances(place)?;
        if threads > MOST_THREADS {
            return Err(
                place.refuse(format!("{threads} threads up to here"), format!("at most {MOST_THREADS}"))
            );
        }
    }
    if threads == 0 {
        return Err(tasks.refuse("it has no thread", "a task with an instance"));
    }
    // A task may resume one that comes later.
    for (name, place) in &all {
        if task::suspends(place)? {
            for _ in 0..task::instances(place)? {
                let channel = reading.channel(name);
                reading.suspends.entry(name.clone()).or_default().push(channel);
            }
        }
    }
    for (name, place) in &all {
        for instance in 0..task::instances(place)? {
            let thread = task::read(reading, name, instance, place)?;
            reading.load.threads.push(thread);
        }
    }
    for at in 0..reading.load.barriers.len() {
        reading.load.barriers[at].1 = users(&reading.load, at);
    }
    Ok(())
}

/// How many threads' steps meet at a barrier: rt-app counts each event.
fn users(load: &Load, barrier: usize) -> usize {
    let steps = |thread: &LoadThread| {
        let steps = thread.phases.iter().flat_map(|phase| &phase.steps);
        steps.filter(|step| **step == model::load::Step::Barrier(barrier)).count()
    };
    load.threads.iter().map(steps).sum()
}
