//! How a machine is set, for "identical before and after": affinities, mounts, tracing instances,
//! control groups; no counters.
//!
//! User threads come and go, so they are no table of tasks: kept is by which lists threads of a
//! name are narrowed. Processes that others start meanwhile inherit their forebears' lists and
//! change nothing; what has the first process's list is left out, so that a machine whose services
//! are all confined is no different. What still shows is a *new* name with a list of its own, and
//! the end of the last thread that had one: these are changes of how the machine is set, by
//! whomever.

use super::{KernelThread, Root, UserThread, irqs, mounts, processes, user_threads};
use model::Cpus;
use model::machine::MachineState;
use std::collections::{BTreeMap, BTreeSet};

/// How deep control groups of ours are looked for: beside services and slices, never inside their
/// trees.
const CGROUP_DEPTH: usize = 3;

/// Reads the state. `mechanisms` are the catalogue's values, read by whoever has the catalogue.
/// Kworkers are left out: the kernel starts and ends them as it likes, and none of them can be
/// moved. So are rescuers of workqueues, which are kworkers by another name since 6.9 and take on
/// the CPU of whatever they rescue.
pub fn state(root: &Root, mechanisms: BTreeMap<String, String>) -> MachineState {
    let all = processes(root);
    let threads = all.kernel.into_iter().filter(|thread| !is_worker(thread));
    let everywhere = root.cpus("sys/devices/system/cpu/online").unwrap_or_default();
    let mounted = mounts(root);
    let cgroups =
        mounted.iter().filter(|mount| mount.kind.starts_with("cgroup")).map(|mount| mount.target.as_str());
    let mut targets: Vec<_> =
        mounted.iter().map(|mount| format!("{} {}", mount.target, mount.kind)).collect();
    targets.sort();
    MachineState {
        mechanisms,
        irq_affinity: irqs(root).into_iter().map(|irq| (irq.number, irq.allowed.to_string())).collect(),
        kthread_affinity: named(threads),
        thread_affinity: narrowed(&user_threads(root, &all.user), &everywhere),
        mounts: targets,
        instances: super::mounts::tracefs(root)
            .map(|tracefs| root.names(&format!("{tracefs}/instances")))
            .unwrap_or_default(),
        cgroups: cgroups.flat_map(|mount| ours(root, mount, CGROUP_DEPTH)).collect(),
    }
}

/// Threads of one CPU have its number behind a slash; what else cannot be moved is a rescuer.
fn is_worker(thread: &KernelThread) -> bool {
    thread.name.starts_with("kworker/") || !thread.movable && !thread.name.contains('/')
}

/// Threads of one name are distinguished by their order: a thread that ends and is started anew, as
/// khugepaged is, has another number.
fn named(threads: impl Iterator<Item = KernelThread>) -> BTreeMap<String, String> {
    let (mut named, mut seen) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
    for thread in threads {
        let order = seen.entry(thread.name.clone()).or_default();
        named.insert(format!("{}/{order}", thread.name), thread.allowed.to_string());
        *order += 1;
    }
    named
}

/// Lists by which user threads are narrowed, by name.
fn narrowed(threads: &[UserThread], everywhere: &Cpus) -> BTreeMap<String, String> {
    let first = threads.iter().find(|thread| thread.tid == 1).map(|thread| &thread.allowed);
    let mut lists = BTreeMap::<String, BTreeSet<String>>::new();
    for thread in threads {
        let name = if thread.tid == 1 { "1".to_owned() } else { folded(&thread.name) };
        if !everywhere.is_subset(&thread.allowed) && (thread.tid == 1 || Some(&thread.allowed) != first) {
            lists.entry(name).or_default().insert(thread.allowed.to_string());
        }
    }
    lists.into_iter().map(|(name, lists)| (name, lists.into_iter().collect::<Vec<_>>().join("; "))).collect()
}

/// Threads of a pool have numbers, which are others after a restart.
fn folded(name: &str) -> String {
    let mut folded = String::new();
    for letter in name.chars() {
        match letter {
            '0'..='9' if folded.ends_with('#') => {}
            '0'..='9' => folded.push('#'),
            _ => folded.push(letter),
        }
    }
    folded
}

/// Control groups under `place` whose names start with `stillcore`.
fn ours(root: &Root, place: &str, depth: usize) -> Vec<String> {
    let groups = root.names(place).into_iter().map(|name| (format!("{place}/{name}"), name));
    let mut found = Vec::new();
    for (path, name) in groups.filter(|(path, _)| root.is_directory(path)) {
        if name.starts_with("stillcore") {
            found.push(path);
        } else if depth > 1 {
            found.extend(ours(root, &path, depth - 1));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_instances_are_found_and_kworkers_are_not() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("proc/mounts", "c /cg cgroup2 rw 0 0\nt /tr tracefs rw 0 0\n"),
            ("cg/system.slice/stillcore-7/cgroup.procs", ""),
            ("cg/a/b/c/stillcore-deep/cgroup.procs", ""),
            ("tr/instances/stillcore-7/trace", ""),
            ("proc/5/stat", "5 (kworker/u8:1) I 2 0 0 0 -1 69238880 0"),
            ("proc/5/status", "Cpus_allowed_list:\t0-3"),
            ("proc/4/stat", "4 (rcu_gp) I 2 0 0 0 -1 69238848 0"),
            ("proc/4/status", "Cpus_allowed_list:\t1"),
            ("proc/6/stat", "6 (ksmd) S 2 0 0 0 -1 2129984 0"),
            ("proc/6/status", "Cpus_allowed_list:\t0-3"),
        ] {
            std::fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        let state = state(&Root::open(dir.path()).unwrap(), BTreeMap::new());
        assert_eq!(state.cgroups, ["/cg/system.slice/stillcore-7"]);
        assert_eq!(state.instances, ["stillcore-7"]);
        assert_eq!(state.kthread_affinity, BTreeMap::from([("ksmd/0".to_owned(), "0-3".to_owned())]));
        assert_eq!(state.mounts, ["/cg cgroup2", "/tr tracefs"]);
    }

    #[test]
    fn threads_that_were_narrowed_show_and_those_that_follow_the_first_do_not() {
        let thread = |tid: u32, name: &str, allowed: &str| UserThread {
            tid,
            pid: tid,
            name: name.to_owned(),
            start: 0,
            allowed: allowed.parse().unwrap(),
            last: 0,
            policy: crate::Policy::Other,
            priority: 0,
        };
        let everywhere: Cpus = "0-3".parse().unwrap();
        let table = |threads: &[UserThread]| narrowed(threads, &everywhere);
        let pinned = [thread(8, "pool-1", "2"), thread(9, "pool-12", "3"), thread(10, "web", "0-3")];
        let before = table(&[&[thread(1, "init", "0-3")][..], &pinned].concat());
        assert_eq!(before, BTreeMap::from([("pool-#".to_owned(), "2; 3".to_owned())]));
        let forked = [&[thread(1, "init", "0-3"), thread(77, "pool-77", "3")][..], &pinned].concat();
        assert_eq!(table(&forked), before, "what somebody starts meanwhile");
        let confined = [thread(1, "init", "0-1"), thread(5, "sh", "0-1"), thread(6, "cat", "0-1")];
        assert_eq!(table(&confined), BTreeMap::from([("1".to_owned(), "0,1".to_owned())]));
        let left = [thread(1, "init", "0-3"), thread(10, "web", "0-1")];
        assert_eq!(table(&left), BTreeMap::from([("web".to_owned(), "0,1".to_owned())]), "not given back");
    }

    #[test]
    fn two_readings_of_this_machine_agree() {
        let root = Root::live();
        let (before, after) = (state(&root, BTreeMap::new()), state(&root, BTreeMap::new()));
        assert_eq!(
            before.irq_affinity.keys().collect::<Vec<_>>(),
            after.irq_affinity.keys().collect::<Vec<_>>()
        );
        assert!(!before.mounts.is_empty());
    }
}
