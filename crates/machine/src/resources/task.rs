//! Processes of user space with threads that may run on the CPU, or last ran there.
//!
//! Files: proc(5): `Cpus_allowed_list` of `/proc/PID/task/TID/status` is what is in force (the
//! asked mask cut down by the cpuset, which no file shows apart), field 39 of `stat` the last CPU,
//! 40 and 41 priority and policy. Workers that the kernel makes for a process are threads of it:
//! io_uring's (`iou-wrk-PID`, `iou-sqp-PID`, since 5.12) and vhost's (`vhost-PID`, since 6.4).

use super::id;
use super::scene::{Scene, unknown};
use crate::{UserThread, memberships};
use model::resource::{Kind, Resource};
use std::collections::BTreeMap;

/// A row for each process.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let threads = scene.threads();
    if threads.is_empty() {
        return vec![unknown(Kind::Task, "user threads", "no threads of user space could be read")];
    }
    let mut processes: BTreeMap<u32, Vec<&UserThread>> = BTreeMap::new();
    for thread in threads {
        processes.entry(thread.pid).or_default().push(thread);
    }
    processes.into_iter().filter_map(|(pid, threads)| row(scene, pid, &threads)).collect()
}

fn row(scene: &Scene, pid: u32, threads: &[&UserThread]) -> Option<Resource> {
    let may = threads.iter().filter(|thread| thread.allowed.contains(scene.cpu)).count();
    let here = threads.iter().filter(|thread| thread.last == scene.cpu).count();
    if may == 0 && here == 0 {
        return None;
    }
    let pinned = threads
        .iter()
        .filter(|thread| thread.allowed.contains(scene.cpu) && thread.allowed.len() == 1)
        .count();
    let of = |count: usize| {
        if threads.len() == 1 { String::new() } else { format!("{count} of {} threads ", threads.len()) }
    };
    let workers = threads.iter().filter(|thread| is_worker(&thread.name)).count();
    let ourselves = scene.root.is_live() && pid == std::process::id();
    let reason = match (ourselves, pinned) {
        (true, _) => "this command itself".to_owned(),
        (_, 0) if may == 0 => "it may not come back".to_owned(),
        (_, 0) => "its affinity can be set".to_owned(),
        (_, pinned) => format!("{}pinned to this CPU; the affinity can be set", of(pinned)),
    };
    let reason = match workers {
        0 => reason,
        workers => format!("{reason}; {workers} workers of the kernel (io_uring, vhost) among its threads"),
    };
    Some(Resource {
        asked: Some(policies(threads)).filter(|policies| policies != "other"),
        effective: Some(masks(threads)),
        observed: Some(if here > 0 {
            format!("{}last ran here", of(here))
        } else {
            format!("last ran on CPU {}", lasts(threads))
        }),
        owner: group(scene, pid),
        may_touch: Some(may > 0),
        in_force: Some(may > 0),
        touched: Some(here > 0),
        movable: Some(true),
        reason: Some(reason),
        mechanism: Some(id::USER_TASKS.to_owned()),
        ..Resource::new(Kind::Task, format!("{} ({pid})", name(scene, pid)))
    })
}

/// The process's name; a process may end while it is read.
fn name<'a>(scene: &'a Scene, pid: u32) -> &'a str {
    scene.processes().user.iter().find(|process| process.pid == pid).map_or("?", |process| &process.name)
}

/// Whether a thread is one that the kernel made to work for its process.
fn is_worker(name: &str) -> bool {
    ["iou-wrk-", "iou-sqp-", "vhost-"].iter().any(|prefix| name.starts_with(prefix))
}

/// Policies of the threads with their real-time priorities, each with how many have it unless all
/// have the same.
fn policies(threads: &[&UserThread]) -> String {
    counted(threads.iter().map(|thread| thread.policy.with_priority(thread.priority)))
}

/// Masks of the threads, each with how many have it unless all have the same.
fn masks(threads: &[&UserThread]) -> String {
    counted(threads.iter().map(|thread| thread.allowed.to_string()))
}

/// The most frequent of some words, each with its count unless there is but one.
fn counted(words: impl Iterator<Item = String>) -> String {
    let mut counts = BTreeMap::<String, usize>::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    if counts.len() == 1 {
        return counts.into_keys().collect();
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = counts.len().saturating_sub(3);
    let shown: Vec<_> = counts.iter().take(3).map(|(word, count)| format!("{word} ({count})")).collect();
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    format!("{}{more}", shown.join("; "))
}

fn lasts(threads: &[&UserThread]) -> model::Cpus {
    threads.iter().map(|thread| thread.last).collect()
}

/// The group whose CPU set holds the process: version 1's cpuset if there is one, else that of
/// version 2.
fn group(scene: &Scene, pid: u32) -> Option<String> {
    let all = memberships(scene.root, pid)?;
    let cpuset = all.iter().find(|one| one.controllers.split(',').any(|name| name == "cpuset"));
    let best = cpuset.or_else(|| all.iter().find(|one| one.controllers.is_empty()))?;
    Some(format!("cgroup {}", best.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn stat(tid: u32, name: &str, last: u32) -> String {
        format!("{tid} ({name}) S 1 7 7 0 -1 64 {}{last} 0", "0 ".repeat(29))
    }

    #[test]
    fn threads_are_counted_by_process() {
        let allowed = |list: &str| format!("Name:\tx\nCpus_allowed_list:\t{list}");
        let files = [
            ("proc/7/stat".to_owned(), stat(7, "we) b", 2)),
            ("proc/7/cgroup".into(), "9:name=systemd:/\n3:cpuset,cpu:/apps\n0::/".into()),
            ("proc/7/task/7/stat".into(), stat(7, "web", 2)),
            ("proc/7/task/7/status".into(), allowed("0-3")),
            ("proc/7/task/8/stat".into(), stat(8, "web", 3)),
            ("proc/7/task/8/status".into(), allowed("3")),
            ("proc/9/stat".into(), stat(9, "far", 0)),
            ("proc/9/task/9/stat".into(), stat(9, "far", 0)),
            ("proc/9/task/9/status".into(), allowed("0-1")),
            ("proc/11/stat".into(), stat(11, "left", 3)),
            ("proc/11/cgroup".into(), "0::/system.slice".into()),
            ("proc/11/task/11/stat".into(), stat(11, "left", 3)),
            ("proc/11/task/11/status".into(), allowed("0-1")),
        ];
        let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        let (_dir, root) = tree(&files);
        let rows = rows(&Scene::new(&root, 3));
        assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["we) b (7)", "left (11)"]);
        assert_eq!(rows[0].effective.as_deref(), Some("0-3 (1); 3 (1)"));
        assert_eq!(rows[0].observed.as_deref(), Some("1 of 2 threads last ran here"));
        assert_eq!(
            rows[0].reason.as_deref(),
            Some("1 of 2 threads pinned to this CPU; the affinity can be set")
        );
        assert_eq!(rows[0].owner.as_deref(), Some("cgroup /apps"));
        assert_eq!((rows[1].may_touch, rows[1].touched), (Some(false), Some(true)));
        assert_eq!(rows[1].owner.as_deref(), Some("cgroup /system.slice"));
    }

    #[test]
    fn policies_and_workers_are_said() {
        let stat = |tid: u32, name: &str, priority: u32, policy: u32| {
            format!("{tid} ({name}) S 1 7 7 0 -1 64 {}2 {priority} {policy} 0", "0 ".repeat(29))
        };
        let files = [
            ("proc/7/stat".to_owned(), stat(7, "db", 0, 0)),
            ("proc/7/task/7/stat".into(), stat(7, "db", 0, 0)),
            ("proc/7/task/8/stat".into(), stat(8, "iou-wrk-7", 0, 0)),
            ("proc/9/stat".into(), stat(9, "control", 80, 1)),
            ("proc/9/task/9/stat".into(), stat(9, "control", 80, 1)),
        ];
        let mut files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        let everywhere = "Cpus_allowed_list:\t0-3";
        files.extend(
            ["proc/7/task/7/status", "proc/7/task/8/status", "proc/9/task/9/status"]
                .map(|file| (file, everywhere)),
        );
        let (_dir, root) = tree(&files);
        let rows = rows(&Scene::new(&root, 2));
        assert_eq!((rows[0].asked.as_deref(), rows[1].asked.as_deref()), (None, Some("fifo 80")));
        assert!(
            rows[0]
                .reason
                .as_deref()
                .unwrap()
                .ends_with("; 1 workers of the kernel (io_uring, vhost) among its threads")
        );
    }

    #[test]
    fn this_command_says_that_it_is_itself() {
        let root = crate::Root::live();
        let cpu = scenes_cpu(&root);
        let rows = rows(&Scene::new(&root, cpu));
        let own = format!("({})", std::process::id());
        let row = rows.iter().find(|row| row.name.ends_with(&own)).unwrap();
        assert_eq!(row.reason.as_deref(), Some("this command itself"));
    }

    /// A CPU on which this test may run.
    fn scenes_cpu(root: &crate::Root) -> u32 {
        let status = root.text("proc/self/status").unwrap().unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        model::Cpus::parse_list(list).unwrap().iter().next().unwrap()
    }
}
