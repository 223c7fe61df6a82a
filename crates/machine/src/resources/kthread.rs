//! Kernel threads that may run on the CPU, or last ran there.
//!
//! Some belong to the CPU and sleep unless it gives them work; of those with `PF_NO_SETAFFINITY`
//! that may run anywhere, workqueue rescuers run only under memory pressure, and unbound kworkers
//! follow the mask of their workqueue.

use super::id;
use super::scene::{Scene, unknown};
use crate::{KernelThread, Policy};
use model::resource::{Kind, Resource};

/// A row for each.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let threads = &scene.processes().kernel;
    if threads.is_empty() {
        let why = "no kernel threads could be read; a PID namespace hides them";
        return vec![unknown(Kind::Kthread, "kernel threads", why)];
    }
    threads.iter().filter_map(|thread| row(scene, thread)).collect()
}

fn row(scene: &Scene, thread: &KernelThread) -> Option<Resource> {
    let may = thread.allowed.contains(scene.cpu);
    let last = thread.last;
    let here = last == Some(scene.cpu);
    if !may && !here {
        return None;
    }
    let bound = may && thread.allowed.len() == 1;
    // The count of runs describes this CPU only where the thread runs nowhere else.
    let count = bound.then(|| runs(scene, thread.pid)).flatten();
    let observed = match (count, last) {
        (Some(count), _) => Some(format!("ran {count} times")),
        (None, Some(last)) => Some(format!("last ran on CPU {last}")),
        (None, None) => None,
    };
    let (mechanism, reason) = governed(thread, bound);
    Some(Resource {
        asked: (thread.policy != Policy::Other).then(|| thread.policy.with_priority(thread.priority)),
        effective: Some(thread.allowed.to_string()),
        observed,
        count,
        owner: Some(owner(&thread.name).to_owned()),
        may_touch: Some(may),
        in_force: Some(may),
        touched: count.map(|count| count > 0).or(last.map(|_| here)),
        // An unbound worker goes where the mask of workqueues sends it.
        movable: Some(thread.movable || mechanism == id::WQ_MASK),
        reason: Some(reason.to_owned()),
        mechanism: Some(mechanism.to_owned()),
        ..Resource::new(Kind::Kthread, format!("{} ({})", thread.name, thread.pid))
    })
}

/// How often the thread was put on a CPU, any CPU (Linux
/// `Documentation/scheduler/sched-stats.rst`, third number).
pub(super) fn runs(scene: &Scene, pid: u32) -> Option<u64> {
    scene.root.maybe(&format!("proc/{pid}/schedstat"))?.split_whitespace().nth(2)?.parse().ok()
}

fn governed(thread: &KernelThread, bound: bool) -> (&'static str, &'static str) {
    let starts = |head: &str| thread.name.starts_with(head);
    match thread.name.as_str() {
        _ if starts("kworker/R-") => (id::WQ_RESCUERS, RESCUER),
        _ if starts("kworker/u") => (id::WQ_MASK, UNBOUND),
        _ if starts("kworker/") => {
            (id::WQ_PERCPU, "it runs work queued for this CPU; cure whoever queues it")
        }
        _ if starts("irq/") => (id::IRQ_THREADS, "it follows the affinity of its interrupt"),
        _ if starts("migration/") => {
            (id::STOP_MACHINE, "it belongs to the CPU and runs when the CPU is stopped or a task pushed away")
        }
        _ if ["ksoftirqd/", "ktimers/", "rcuc/", "irq_work/"].iter().any(|head| starts(head)) => {
            (id::SOFTIRQ_THREADS, "it belongs to the CPU and runs what its interrupts leave to do")
        }
        _ if starts("backlog_napi/") => {
            (id::NET_BACKLOG, "it belongs to the CPU and handles packets queued for it")
        }
        _ if starts("rcuo") || starts("rcub") || starts("rcu_") && thread.movable => {
            (id::RCU_THREADS, "its affinity can be set")
        }
        _ if starts("kswapd") => (id::KSWAPD, "its affinity can be set; CPU hotplug sets it back"),
        _ if starts("kcompactd") => (id::KCOMPACTD, "its affinity can be set; CPU hotplug sets it back"),
        _ if starts("idle_inject/") => {
            (id::THERMALD, "it belongs to the CPU and runs when idle time is injected")
        }
        _ if thread.movable => (id::KTHREAD, "its affinity can be set"),
        _ if bound => (id::KTHREAD, "it belongs to the CPU and sleeps unless that gives it work"),
        // Until 6.8 rescuers bear the names of their workqueues alone.
        _ => (id::WQ_RESCUERS, RESCUER),
    }
}

const RESCUER: &str = "the kernel lets nobody move it; it runs only when memory is short";
const UNBOUND: &str = "it follows the mask of its workqueue; by itself nobody can move it";

fn owner(name: &str) -> &'static str {
    const OWNERS: &[(&str, &str)] = &[
        ("kworker/", "workqueue"),
        ("irq/", "interrupt handler"),
        ("ksoftirqd/", "softirq"),
        ("ktimers/", "softirq"),
        ("irq_work/", "irq_work"),
        ("migration/", "scheduler"),
        ("cpuhp/", "CPU hotplug"),
        ("rcu", "RCU"),
        ("kswapd", "memory reclaim"),
        ("kcompactd", "memory compaction"),
        ("khugepaged", "transparent huge pages"),
        ("ksmd", "memory merging"),
        ("oom_reaper", "memory"),
        ("watchdog", "watchdog"),
        ("khungtaskd", "watchdog"),
        ("idle_inject/", "thermal"),
        ("backlog_napi/", "network"),
        ("napi/", "network"),
        ("jbd2/", "file system"),
        ("kauditd", "audit"),
        ("kthreadd", "kernel threads"),
    ];
    OWNERS.iter().find(|(head, _)| name.starts_with(head)).map_or("kernel", |(_, owner)| owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    const MOVABLE: u64 = 0x0020_8040;
    const FIXED: u64 = MOVABLE | 0x0400_0000;

    fn one(name: &str, flags: u64, allowed: &str, last: &str, schedstat: &str) -> Vec<Resource> {
        let stat = format!("7 ({name}) S 2 0 0 0 -1 {flags} {}{last} 0", "0 ".repeat(29));
        let status = format!("Cpus_allowed_list:\t{allowed}");
        let (_dir, root) =
            tree(&[("proc/7/stat", &stat), ("proc/7/status", &status), ("proc/7/schedstat", schedstat)]);
        rows(&Scene::new(&root, 3))
    }

    #[test]
    fn what_can_be_moved_and_what_governs_it() {
        for (name, flags, allowed, movable, mechanism) in [
            ("ksmd", MOVABLE, "0-3", true, "kthread-affinity"),
            ("kswapd0", MOVABLE, "0-3", true, "kswapd-affinity"),
            ("rcuop/2", MOVABLE, "0-3", true, "rcu-threads"),
            ("cpuhp/3", FIXED, "3", false, "kthread-affinity"),
            ("migration/3", FIXED, "3", false, "stop_machine"),
            ("ksoftirqd/3", FIXED, "3", false, "softirq-threads"),
            ("kworker/3:1H-kblockd", FIXED, "3", false, "workqueue-percpu"),
            ("kworker/u8:2-events_unbound", FIXED, "0-3", true, "workqueue-cpumask"),
            ("kworker/R-netns", FIXED, "0-3", false, "workqueue-rescuers"),
            ("rcu_gp", FIXED, "0-3", false, "workqueue-rescuers"),
            ("irq/9-acpi", MOVABLE, "0-3", true, "irq-threads"),
        ] {
            let rows = one(name, flags, allowed, "1", "");
            assert_eq!(rows.len(), 1, "{name}");
            assert_eq!(
                (rows[0].movable, rows[0].mechanism.as_deref()),
                (Some(movable), Some(mechanism)),
                "{name}"
            );
        }
    }

    #[test]
    fn evidence_is_the_last_cpu_and_all_runs_of_a_thread_bound_here() {
        let seen = |rows: Vec<Resource>| {
            rows.first().map(|row| (row.observed.clone().unwrap_or_default(), row.touched, row.count))
        };
        assert_eq!(
            seen(one("ksmd", MOVABLE, "0-3", "3", "1 2 9")),
            Some(("last ran on CPU 3".into(), Some(true), None))
        );
        assert_eq!(
            seen(one("ksmd", MOVABLE, "0-3", "0", "1 2 9")),
            Some(("last ran on CPU 0".into(), Some(false), None))
        );
        assert_eq!(
            seen(one("cpuhp/3", FIXED, "3", "3", "1 2 9")),
            Some(("ran 9 times".into(), Some(true), Some(9)))
        );
        assert_eq!(
            seen(one("cpuhp/3", FIXED, "3", "3", "x")),
            Some(("last ran on CPU 3".into(), Some(true), None))
        );
        assert_eq!(seen(one("cpuhp/2", FIXED, "2", "2", "")), None, "it can not and did not");
        assert_eq!(seen(one("left", MOVABLE, "0-1", "3", "")).unwrap().1, Some(true), "it has been here");
    }

    #[test]
    fn a_stat_that_ends_early_is_no_evidence() {
        let (_dir, root) = tree(&[
            ("proc/7/stat", &format!("7 (a) b) S 2 0 0 0 -1 {MOVABLE} 0")),
            ("proc/7/status", "Cpus_allowed_list:\t3"),
            ("proc/8/stat", "8 (broken"),
            ("proc/9/stat", &format!("9 (x) S 2 0 0 0 -1 {MOVABLE} 0")),
            ("proc/9/status", "Cpus_allowed_list:\t3-1"),
        ]);
        let rows = rows(&Scene::new(&root, 3));
        assert_eq!((rows.len(), rows[0].touched, rows[0].observed.as_deref()), (1, None, None));
        assert_eq!(rows[0].name, "a) b (7)");
    }

    #[test]
    fn hidden_threads_are_not_absent_ones() {
        let (_dir, root) = tree(&[("proc/x", "")]);
        assert!(rows(&Scene::new(&root, 3))[0].reason.as_deref().unwrap().contains("namespace"));
    }
}
