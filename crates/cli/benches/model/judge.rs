//! What was found of a program against what it is.

use super::programs::{Program, Thread};
use serde_json::Value;

/// Sums over programs.
#[derive(Debug, Default)]
pub(crate) struct Score {
    pub(crate) threads: u64,
    pub(crate) periodic: u64,
    pub(crate) exact: u64,
    pub(crate) class: u64,
    pub(crate) links: u64,
    pub(crate) links_reported: u64,
    pub(crate) links_right: u64,
    pub(crate) suspension: u64,
    pub(crate) jobs: u64,
    pub(crate) refuted: u64,
}

/// Whether jobs of a thread follow a period; stages follow the thread that begins their chain.
fn is_periodic(program: &Program, thread: &Thread) -> bool {
    let first = if thread.kind == "stage" { &program.threads[0] } else { thread };
    !["sporadic", "relative"].contains(&first.kind)
}

/// Adds a program.
pub(crate) fn judge(program: &Program, model: &Value, score: &mut Score) {
    let empty = Vec::new();
    let threads = model["threads"].as_array().unwrap_or(&empty);
    for thread in &program.threads {
        let found = threads.iter().find(|one| one["comm"] == thread.name.as_str());
        let release = found.map_or(&Value::Null, |one| &one["release"]);
        let periodic = is_periodic(program, thread);
        let class = release["kind"].as_str().unwrap_or("none");
        let period = release["period_ns"].as_u64().unwrap_or(0);
        score.threads += 1;
        let is_class = if periodic { class == "periodic" } else { ["sporadic", "curve"].contains(&class) };
        score.class += u64::from(is_class);
        if periodic {
            score.periodic += 1;
            score.exact += u64::from(period == thread.period_us * 1000);
        }
        let suspends = found.is_some_and(|one| one["suspension"]["most"].as_u64() > Some(0));
        // A thread that shares a lock may wait for it, or not; conditions have one, too.
        let either = thread.lock.is_some() || thread.sends.is_some() || thread.receives.is_some();
        let is_right = if thread.suspend_us > 0 { suspends } else { either || !suspends };
        score.suspension += u64::from(is_right);
        if !is_class || periodic && period != thread.period_us * 1000 {
            eprintln!(
                "{}: {class} {period}, waits in {}, {}",
                thread.argument(),
                found.map_or(&Value::Null, |one| &one["waits_in"]),
                found.map_or(&Value::Null, |one| &one["why"])
            );
        }
    }
    links(program, model, score);
    score.jobs += sum(model, "jobs");
    score.refuted += sum(model, "refuted");
}

fn sum(model: &Value, key: &str) -> u64 {
    let threads = model["checked"]["threads"].as_array();
    threads.into_iter().flatten().filter_map(|one| one[key].as_u64()).sum()
}

/// A stage is released by the thread that sends to it.
fn links(program: &Program, model: &Value, score: &mut Score) {
    let sender = |channel| program.threads.iter().find(|one| one.sends == Some(channel));
    let there: Vec<(&str, &str)> = program
        .threads
        .iter()
        .filter_map(|one| Some((sender(one.receives?)?.name.as_str(), one.name.as_str())))
        .collect();
    let reported: Vec<(&str, &str)> = model["chains"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| Some((one["from_comm"].as_str()?, one["to_comm"].as_str()?)))
        .collect();
    score.links += there.len() as u64;
    score.links_reported += reported.len() as u64;
    score.links_right += reported.iter().filter(|one| there.contains(one)).count() as u64;
    for one in reported.iter().filter(|one| !there.contains(one)) {
        eprintln!("link that is not there: {one:?} in {:?}", model["source"]);
    }
    for one in there.iter().filter(|one| !reported.contains(one)) {
        eprintln!("link not reported: {one:?}");
    }
}
