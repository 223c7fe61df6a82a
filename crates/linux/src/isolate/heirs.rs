//! Tasks that started while isolation stood have the affinity that their forebears were given, and no entry in the journal: when it
//! is undone they get the affinity that their nearest forebear in the journal had before.

use super::change::{Settings, value};
use super::journal::Entry;
use super::standing::Head;
use crate::machine::{Root, UserThread, processes, user_threads};
use model::Cpus;
use model::plan::StepKind;
use std::collections::BTreeMap;

/// How often new tasks are looked for at most.
const ROUNDS: usize = 20;

/// Gives them theirs; how many there were.
pub(super) fn give_back(entries: &[Entry], head: &Head, settings: &mut dyn Settings) -> usize {
    let moved = moved(entries);
    let given = given(entries);
    let mut count = 0;
    for _ in 0..ROUNDS {
        let heirs = heirs(&moved, &given, head);
        if heirs.is_empty() {
            break;
        }
        for (target, old) in &heirs {
            if settings.write(StepKind::Task, target, old).is_ok() {
                count += 1;
            }
        }
    }
    count
}

/// Thread number → affinity before, of the tasks in the journal.
fn moved(entries: &[Entry]) -> BTreeMap<u32, String> {
    let tasks = entries.iter().filter(|entry| entry.kind == Some(StepKind::Task));
    tasks
        .filter_map(|entry| Some((entry.target.split('/').next()?.parse().ok()?, entry.old.clone()?)))
        .collect()
}

/// The affinities that tasks were given.
fn given(entries: &[Entry]) -> Vec<String> {
    let tasks = entries.iter().filter(|entry| entry.kind == Some(StepKind::Task));
    let mut given: Vec<_> = tasks.filter_map(|entry| entry.new.clone()).collect();
    given.sort();
    given.dedup();
    given
}

fn heirs(moved: &BTreeMap<u32, String>, given: &[String], head: &Head) -> Vec<(String, String)> {
    let root = Root::live();
    let threads = user_threads(&root, &processes(&root).user);
    let is_heir = |thread: &&UserThread| {
        thread.start >= head.started_ticks
            && !moved.contains_key(&thread.tid)
            && given.iter().any(|mask| value::same(mask, &thread.allowed.to_string()))
    };
    let found = threads.iter().filter(is_heir).filter_map(|thread| {
        let old = inherited(&root, moved, thread.pid)?;
        let wider = Cpus::parse_list(&old).is_ok_and(|old| old != thread.allowed);
        wider.then(|| (format!("{}/{}/{}", thread.tid, thread.start, thread.name), old))
    });
    found.collect()
}

/// The affinity that the nearest forebear had; the first process's where the line is broken.
fn inherited(root: &Root, moved: &BTreeMap<u32, String>, pid: u32) -> Option<String> {
    let mut at = pid;
    for _ in 0..64 {
        if let Some(old) = moved.get(&at) {
            return Some(old.clone());
        }
        let status = root.maybe(&format!("proc/{at}/status"))?;
        at = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
        if at == 0 {
            break;
        }
    }
    moved.get(&1).cloned()
}
