//! Where the threads of a disturbance have run: the last CPU of each, every 100 ms,
//! in a long one up to every second.
//!
//! Affinity and cpusets should make a leak impossible, and one was seen all the same (5.10, a
//! cpuset changed meanwhile). A disturbance that ran on a measured CPU is no interference through
//! the kernel but a neighbour, so a leak voids its record. Format: Linux
//! `Documentation/filesystems/proc.rst`, `/proc/PID/stat`: field 39 is the CPU last run on, field 5
//! the process group.

use model::Cpus;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What was seen of one disturbance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sightings {
    /// Threads looked at, over all looks.
    pub(super) looked: u64,
    /// How often a thread had last run on a CPU outside the set, by CPU.
    pub(super) leaks: BTreeMap<u32, u64>,
}

impl Sightings {
    /// Looks at all threads of a process and of its descendants in the same process group.
    pub(super) fn look(&mut self, proc_dir: &Path, pid: i32, cpus: &Cpus) {
        // Kernels without CONFIG_PROC_CHILDREN do not list children; then every process is checked
        // for its group.
        let lists_children = proc_dir.join(format!("{pid}/task/{pid}/children")).exists();
        let mut pending = if lists_children { vec![pid] } else { processes(proc_dir) };
        // A process tree is finite, but it changes while it is read; the bound keeps a recycled id
        // from leading in circles.
        for _ in 0..pending.len() + 1024 {
            let Some(process) = pending.pop() else { return };
            let Ok(threads) = fs::read_dir(proc_dir.join(process.to_string()).join("task")) else { continue };
            for thread in threads.flatten() {
                let dir = thread.path();
                // What has ended meanwhile cannot be read, and has nothing to say.
                let Some((group, cpu)) =
                    fs::read_to_string(dir.join("stat")).ok().as_deref().and_then(parse_stat)
                else {
                    continue;
                };
                if group != pid {
                    continue;
                }
                self.looked += 1;
                if !cpus.contains(cpu) {
                    *self.leaks.entry(cpu).or_default() += 1;
                }
                let children = fs::read_to_string(dir.join("children")).unwrap_or_default();
                pending.extend(children.split_whitespace().filter_map(|word| word.parse::<i32>().ok()));
            }
        }
    }

    /// What a record says of the leaks, if there were any.
    pub(super) fn complaint(&self) -> Option<String> {
        let count: u64 = self.leaks.values().sum();
        let cpus: Cpus = self.leaks.keys().copied().collect();
        (count > 0).then(|| {
            format!("leaked: {count} of {} looks at its threads found one on CPU {cpus}", self.looked)
        })
    }
}

fn processes(proc_dir: &Path) -> Vec<i32> {
    let entries = fs::read_dir(proc_dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Process group and last CPU of a `stat` line. The name, second, is in parentheses and may hold
/// both spaces and parentheses.
fn parse_stat(text: &str) -> Option<(i32, u32)> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    // `rest` begins with field 3.
    let group = fields.nth(2)?.parse().ok()?;
    let cpu = fields.nth(39 - 5 - 1)?.parse().ok()?;
    Some((group, cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: i32, group: i32, cpu: u32) -> String {
        let after = "0 ".repeat(39 - 6);
        format!("{pid} (a) b (c) S 1 {group} {after}{cpu} 40 41\n")
    }

    fn put(proc_dir: &Path, process: i32, thread: i32, stat: &str, children: &str) {
        let dir = proc_dir.join(format!("{process}/task/{thread}"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("stat"), stat).unwrap();
        fs::write(dir.join("children"), children).unwrap();
    }

    #[test]
    fn threads_and_children_are_followed_and_strangers_are_not_counted() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), 100, 100, &stat(100, 100, 0), "200 300 999");
        put(root.path(), 100, 101, &stat(101, 100, 3), "");
        put(root.path(), 200, 200, &stat(200, 100, 1), "100");
        put(root.path(), 300, 300, &stat(300, 300, 3), "");
        let mut seen = Sightings::default();
        seen.look(root.path(), 200, &Cpus::from_iter([0, 1]));
        assert_eq!(seen.looked, 0, "the group of process 200 is 100");
        fs::write(root.path().join("200/task/200/children"), "").unwrap();
        seen.look(root.path(), 100, &Cpus::from_iter([0, 1]));
        assert_eq!((seen.looked, seen.leaks.clone()), (3, BTreeMap::from([(3, 1)])));
        assert_eq!(seen.complaint().unwrap(), "leaked: 1 of 3 looks at its threads found one on CPU 3");
    }

    #[test]
    fn without_lists_of_children_the_whole_group_is_found_all_the_same() {
        let root = tempfile::tempdir().unwrap();
        for (pid, group, cpu) in [(100, 100, 0), (200, 100, 7), (300, 300, 7)] {
            put(root.path(), pid, pid, &stat(pid, group, cpu), "");
            fs::remove_file(root.path().join(format!("{pid}/task/{pid}/children"))).unwrap();
        }
        let mut seen = Sightings::default();
        seen.look(root.path(), 100, &Cpus::one(0));
        assert_eq!((seen.looked, seen.leaks), (2, BTreeMap::from([(7, 1)])));
    }

    #[test]
    fn a_circle_ends() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), 5, 5, &stat(5, 5, 0), "5");
        let mut seen = Sightings::default();
        seen.look(root.path(), 5, &Cpus::one(0));
        assert!(seen.looked > 0 && seen.complaint().is_none());
    }

    #[test]
    fn this_thread_runs_where_it_may() {
        let text = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (group, cpu) = parse_stat(&text).unwrap();
        assert_eq!(group, rustix::process::getpgrp().as_raw_nonzero().get());
        assert!(sys::sched::affinity().unwrap().contains(cpu));
        assert_eq!(parse_stat("1 (x) S 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }
}
