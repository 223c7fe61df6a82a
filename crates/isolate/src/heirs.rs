//! Tasks that started while isolation was in force inherited the affinity of their ancestors, and
//! have no entry in the journal. Undoing gives them the former affinity of their nearest ancestor
//! in the journal.

use super::setting::Setting;
use crate::head::Head;
use journal::settings::{Settings, value};
use machine::{Root, UserThread, lineage, processes, user_threads};
use model::Cpus;
use model::plan::StepKind;
use std::collections::BTreeMap;

/// How often new tasks are looked for at most.
const ROUNDS: usize = 20;

/// A task by number and start time: numbers are used again.
type Task = (u32, u64);

/// Restores the affinities of these tasks; returns their number.
pub(super) fn give_back(entries: &[Setting], head: &Head, settings: &mut dyn Settings) -> usize {
    let moved = moved(entries);
    let given = given(entries);
    let mut count = 0;
    for _ in 0..ROUNDS {
        let heirs = heirs(&Root::live(), &moved, &given, head.started_ticks);
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

/// Task → affinity before, of the tasks in the journal; the oldest entry of each says what was
/// before.
fn moved(entries: &[Setting]) -> BTreeMap<Task, String> {
    let mut moved = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.kind == StepKind::Task) {
        let mut parts = entry.target.splitn(3, '/').map_while(|part| part.parse::<u64>().ok());
        if let (Some(tid), Some(start), Some(old)) = (parts.next(), parts.next(), &entry.old) {
            moved.entry((tid as u32, start)).or_insert_with(|| old.clone());
        }
    }
    moved
}

/// The affinities that tasks were given.
fn given(entries: &[Setting]) -> Vec<String> {
    let tasks = entries.iter().filter(|entry| entry.kind == StepKind::Task);
    let mut given: Vec<_> = tasks.map(|entry| entry.new.clone()).collect();
    given.sort();
    given.dedup();
    given
}

/// `since`: in clock ticks since boot; tasks that are older were never touched.
fn heirs(root: &Root, moved: &BTreeMap<Task, String>, given: &[String], since: u64) -> Vec<(String, String)> {
    let all = processes(root).user;
    let starts: BTreeMap<u32, u64> = all.iter().map(|process| (process.pid, process.start)).collect();
    let threads = user_threads(root, &all);
    let is_heir = |thread: &&UserThread| {
        thread.start >= since
            && !moved.contains_key(&(thread.tid, thread.start))
            && given.iter().any(|mask| value::same(mask, &thread.allowed.to_string()))
    };
    let found = threads.iter().filter(is_heir).filter_map(|thread| {
        let old = inherited(root, moved, &starts, thread.pid)?;
        let wider = Cpus::parse_list(&old).is_ok_and(|old| old != thread.allowed);
        wider.then(|| (format!("{}/{}/{}", thread.tid, thread.start, thread.name), old))
    });
    found.collect()
}

/// The affinity that the nearest forebear had; the first process's where the line is broken.
/// `starts`: of every process there is.
fn inherited(
    root: &Root,
    moved: &BTreeMap<Task, String>,
    starts: &BTreeMap<u32, u64>,
    pid: u32,
) -> Option<String> {
    let of = |pid: u32| moved.get(&(pid, *starts.get(&pid)?)).cloned();
    let mut at = pid;
    for _ in 0..64 {
        if let Some(old) = of(at) {
            return Some(old);
        }
        at = u32::try_from(lineage(root, at)?.parent).ok()?;
        if at == 0 {
            break;
        }
    }
    of(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;

    fn entry(target: &str, old: &str, new: &str) -> Setting {
        Setting {
            mechanism: "user-tasks".to_owned(),
            target: target.to_owned(),
            old: Some(old.to_owned()),
            new: new.to_owned(),
            kind: StepKind::Task,
            read_back: None,
        }
    }

    /// Files of a process with one thread.
    fn process(pid: u32, parent: u32, start: u64, allowed: &str) -> Vec<(String, String)> {
        let zeros = "0 ".repeat(12);
        let stat = format!("{pid} (x) S {parent} 0 0 0 -1 64 {zeros}{start} 0");
        let status = format!("PPid:\t{parent}\nCpus_allowed_list:\t{allowed}\n");
        ["", &format!("/task/{pid}")]
            .iter()
            .flat_map(|below| {
                [
                    (format!("proc/{pid}{below}/stat"), stat.clone()),
                    (format!("proc/{pid}{below}/status"), status.clone()),
                ]
            })
            .collect()
    }

    #[test]
    fn a_number_that_was_used_again_is_another_task() {
        // 100 was moved and has ended; 100 is now a child of 50, as is 101 of the new 100. 60 was
        // moved and goes on, with a child.
        let entries = [
            entry("1/3/init", "0-3", "0-1"),
            entry("50/400/shell", "0-3", "0-1"),
            entry("60/401/daemon", "1-2", "0-1"),
            entry("100/500/gone", "2", "0-1"),
        ];
        let alive = [
            process(1, 0, 3, "0-1"),
            process(50, 1, 400, "0-1"),
            process(60, 1, 401, "0-1"),
            process(61, 60, 1001, "0-1"),
            process(100, 50, 1002, "0-1"),
            process(101, 100, 1003, "0-1"),
            process(102, 100, 1004, "1"),
        ];
        let files: Vec<_> = alive.concat();
        let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        let (_dir, root) = tree(&files);
        let found = heirs(&root, &moved(&entries), &given(&entries), 1000);
        let expected = [("61/1001/x", "1-2"), ("100/1002/x", "0-3"), ("101/1003/x", "0-3")];
        assert_eq!(found, expected.map(|(task, old)| (task.to_owned(), old.to_owned())));
    }
}
