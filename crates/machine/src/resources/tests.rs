//! All kinds together: on this machine, on captures, on trees of rubbish.

use super::*;
use crate::tree::tree;
use crate::{Selection, capture};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

/// Captured machines of the repository, and an online CPU of each.
const MACHINES: [(&str, u32); 7] = [
    ("cgroup-v1-5.10", 3),
    ("isolated-6.1", 3),
    ("isolcpus-dropped-6.1", 3),
    ("rt-6.12", 3),
    ("smt-i7-6.1", 3),
    ("unplugged-6.1", 2),
    ("vm-6.18", 3),
];

fn captured(name: &str) -> Root {
    Root::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines").join(name)).unwrap()
}

/// The catalogue's mechanisms, which bear the names of their files.
fn mechanisms() -> BTreeSet<String> {
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalogue/mechanisms"));
    let stem = |file: std::fs::DirEntry| file.path().file_stem().unwrap().to_str().unwrap().to_owned();
    files.unwrap().map(|file| stem(file.unwrap())).collect()
}

/// What holds of every row.
fn assert_sound(rows: &[Resource]) {
    let mechanisms = mechanisms();
    for row in rows {
        assert!(!row.name.is_empty(), "{row:?}");
        if let Some(id) = &row.mechanism {
            assert!(mechanisms.contains(id), "no mechanism {id}: {row:?}");
        }
        let unsaid = row.may_touch.is_none() || row.movable.is_none();
        assert!(!unsaid || row.reason.is_some(), "not known, and no reason: {row:?}");
        assert!(row.count.is_none() || row.touched != Some(true) || row.count > Some(0), "{row:?}");
        assert!(
            row.movable != Some(false) || row.reason.is_some(),
            "cannot be moved, and no reason: {row:?}"
        );
    }
}

#[test]
fn every_mechanism_that_rows_name_is_in_the_catalogue() {
    let mechanisms = mechanisms();
    let missing: Vec<_> = id::ALL.iter().filter(|id| !mechanisms.contains(**id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(id::ALL.iter().collect::<BTreeSet<_>>().len(), id::ALL.len());
}

#[test]
fn this_machine_has_rows_whatever_the_user_may_read() {
    let root = Root::live();
    let online = root.cpus("sys/devices/system/cpu/online").unwrap();
    for cpu in online.iter().take(2) {
        let rows = resources(&root, cpu, Kind::ALL).unwrap();
        assert_sound(&rows);
        let kinds: BTreeSet<_> = rows.iter().map(|row| row.kind).collect();
        for kind in [
            Kind::Vector,
            Kind::Softirq,
            Kind::Kthread,
            Kind::Workqueue,
            Kind::Timer,
            Kind::Task,
            Kind::Throttle,
        ] {
            assert!(kinds.contains(&kind), "{kind} is missing");
        }
        assert!(rows.iter().any(|row| row.touched == Some(true)), "something has run here");
        assert!(rows.is_sorted_by_key(|row| row.kind));
    }
}

#[test]
fn every_captured_machine_can_be_asked() {
    for (name, cpu) in MACHINES {
        let rows = resources(&captured(name), cpu, Kind::ALL).unwrap();
        assert_sound(&rows);
        assert!(rows.iter().any(|row| row.kind == Kind::Irq), "{name}");
        let counts = rows.iter().find(|row| row.kind == Kind::Softirq).unwrap();
        assert_eq!(counts.touched, None, "{name} has no counters, so nothing is said to be untouched");
    }
}

#[test]
fn a_capture_shows_what_the_machine_shows() {
    let (live, dir) = (Root::live(), tempfile::tempdir().unwrap());
    let cpu = live.cpus("sys/devices/system/cpu/online").unwrap().iter().next().unwrap();
    capture(&live, dir.path(), &Selection::default()).unwrap();
    let rows_of = |root: &Root, kind: Kind| {
        let rows = resources(root, cpu, &[kind]).unwrap();
        rows.into_iter().map(|row| (row.name, row.asked, row.effective)).collect::<Vec<_>>()
    };
    let captured = Root::open(dir.path()).unwrap();
    for kind in [
        Kind::Vector,
        Kind::Softirq,
        Kind::Sibling,
        Kind::Cache,
        Kind::Clockevent,
        Kind::Cpuidle,
        Kind::PmQos,
        Kind::Watchdog,
    ] {
        assert_eq!(rows_of(&live, kind), rows_of(&captured, kind), "{kind}");
    }
    // Where an interrupt is routed may change while this is read; which queues and interrupts there
    // are does not.
    let named = |root: &Root, kind: Kind| {
        let rows = resources(root, cpu, &[kind]).unwrap();
        let irq =
            |row: &Resource| row.effective.as_ref().map(|text| text.split(" on ").next().unwrap().to_owned());
        rows.into_iter().map(|row| (irq(&row), row.name, row.asked, row.owner)).collect::<Vec<_>>()
    };
    for kind in [Kind::NetQueue, Kind::BlockQueue] {
        assert_eq!(named(&live, kind), named(&captured, kind), "{kind}");
    }
}

#[test]
fn only_the_requested_kinds_are_read() {
    let rows = resources(&captured("isolated-6.1"), 3, &[Kind::Kthread, Kind::Irq]).unwrap();
    let kinds: BTreeSet<_> = rows.iter().map(|row| row.kind).collect();
    assert_eq!(kinds, BTreeSet::from([Kind::Irq, Kind::Kthread]));
    assert!(resources(&captured("isolated-6.1"), 3, &[]).unwrap().is_empty());
}

#[test]
fn an_isolated_core_shows_what_is_left() {
    let rows = resources(&captured("isolated-6.1"), 2, Kind::ALL).unwrap();
    let of = |kind: Kind| rows.iter().filter(move |row| row.kind == kind);
    let stuck: Vec<_> = of(Kind::Irq).filter(|row| row.name.contains("nvme")).collect();
    assert!(!stuck.is_empty() && stuck.iter().all(|row| row.may_touch == Some(true)), "{stuck:?}");
    let rescuers = of(Kind::Kthread).filter(|row| row.mechanism.as_deref() == Some("workqueue-rescuers"));
    assert!(rescuers.clone().count() > 0 && rescuers.clone().all(|row| row.movable == Some(false)));
    assert_eq!(of(Kind::Workqueue).next().unwrap().may_touch, Some(false), "the mask leaves the CPU out");
}

#[test]
fn cpus_that_are_not_there_have_one_sentence_each() {
    let sentence = |name: &str, cpu: u32| resources(&captured(name), cpu, Kind::ALL).unwrap_err().to_string();
    assert!(sentence("unplugged-6.1", 3).contains("CPU 3 is offline; expected CPUs among 0-2"));
    assert!(sentence("isolated-6.1", 4000).contains("this machine has no CPU 4000"));
    let (_dir, root) = tree(&[("proc/x", "")]);
    let error = resources(&root, 0, Kind::ALL).unwrap_err().to_string();
    assert!(error.contains("no such file; expected the list of online CPUs"), "{error}");
}

/// Files of a machine that has something of every kind for CPU 1.
const WHOLE: &[(&str, &str)] = &[
    ("sys/devices/system/cpu/online", "0-1"),
    ("proc/mounts", "r /r resctrl rw 0 0\nt /t tracefs rw 0 0\nc /c cgroup2 rw 0 0"),
    (
        "proc/interrupts",
        "  CPU0 CPU1\n 9: 0 3 x vda0q1\nLOC: 4 5 Local timer interrupts\nMCP: 1 1 Machine check polls\n",
    ),
    ("proc/irq/9/smp_affinity_list", "1"),
    ("sys/kernel/irq/9/actions", "nvme0q1"),
    ("proc/softirqs", "  CPU0 CPU1\nRCU: 1 2\n"),
    ("sys/class/net/lo/queues/rx-0/rps_cpus", "2"),
    ("sys/block/nvme0n1/mq/0/cpu_list", "0, 1"),
    ("proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0"),
    ("proc/2/status", "Cpus_allowed_list:\t0-1"),
    ("sys/devices/virtual/workqueue/cpumask", "3"),
    (
        "proc/timer_list",
        "cpu: 1\n #0: <0>, hrtimer_wakeup, S:01\n # expires at 1-1 nsecs [in 5 to 5 nsecs]\n",
    ),
    ("proc/7/stat", "7 (a) S 1 7 7 0 -1 64 0"),
    ("proc/7/task/7/stat", "7 (a) S 1 7 7 0 -1 64 0"),
    ("proc/7/task/7/status", "Cpus_allowed_list:\t0-1"),
    ("c/cpuset.cpus.effective", "0-1"),
    ("c/cpu.max", "1000 2000"),
    ("proc/schedstat", "version 17\ncpu0 0\ndomain0 MC 3\ncpu1 0\ndomain0 MC 3"),
    ("sys/devices/system/cpu/cpu0/cpu_capacity", "512"),
    ("sys/devices/system/cpu/cpu1/cpu_capacity", "1024"),
    ("t/kprobe_profile", "mine 1 0"),
    ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0-1"),
    ("sys/devices/system/cpu/cpu1/cache/index0/level", "1"),
    ("sys/devices/system/cpu/cpu1/cache/index0/shared_cpu_list", "0-1"),
    ("sys/devices/system/cpu/cpu1/node0/.keep", ""),
    ("r/schemata", "L3:0=fff"),
    ("sys/devices/system/clockevents/clockevent1/current_device", "lapic"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave"),
    ("sys/devices/system/cpu/cpu1/cpuidle/state1/name", "C1"),
    ("sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us", "0"),
    ("proc/sys/kernel/sched_rt_runtime_us", "950000"),
    ("proc/sys/kernel/soft_watchdog", "1"),
    ("t/tracing_on", "1"),
    ("sys/devices/system/machinecheck/machinecheck1/check_interval", "300"),
];

#[test]
fn a_machine_that_has_everything_has_a_row_of_every_kind() {
    let (_dir, root) = tree(WHOLE);
    let rows = resources(&root, 1, Kind::ALL).unwrap();
    assert_sound(&rows);
    let kinds: BTreeSet<_> = rows.iter().map(|row| row.kind).collect();
    let missing: Vec<_> = Kind::ALL.iter().filter(|kind| !kinds.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_capture_of_a_capture_shows_the_same() {
    let (_dir, root) = tree(WHOLE);
    let to = tempfile::tempdir().unwrap();
    capture(&root, to.path(), &Selection::default()).unwrap();
    let again = Root::open(to.path()).unwrap();
    // The mount points of this tree are not the usual ones of resctrl, whose files a capture knows
    // by their usual place.
    let rows_of = |root: &Root| -> Vec<_> {
        let rows = resources(root, 1, Kind::ALL).unwrap().into_iter();
        rows.filter(|row| !matches!(row.kind, Kind::Resctrl | Kind::Task | Kind::Kthread | Kind::Bandwidth))
            .collect()
    };
    assert_eq!(rows_of(&root), rows_of(&again));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// A captured tree may hold anything.
    #[test]
    fn rubbish_in_every_file_is_survived(texts in proptest::collection::vec("[ -~\u{0}\t\n€0-9,:/-]{0,60}", 12)) {
        const FILES: [&str; 40] = [
            "proc/interrupts", "proc/softirqs", "proc/timer_list", "proc/mounts", "proc/cmdline", "proc/cpuinfo", "proc/filesystems",
            "proc/7/stat", "proc/7/status", "proc/7/schedstat", "proc/7/cgroup", "proc/7/task/7/stat", "proc/7/task/7/status",
            "proc/irq/4/smp_affinity_list", "proc/irq/4/effective_affinity_list", "sys/kernel/irq/4/actions",
            "proc/sys/kernel/sched_rt_runtime_us", "proc/sys/kernel/sched_rt_period_us", "proc/sys/kernel/watchdog_thresh",
            "proc/sys/kernel/soft_watchdog", "proc/sys/kernel/watchdog_cpumask", "sys/block/vda/mq/0/cpu_list", "sys/block/vda/size",
            "sys/class/net/e/queues/rx-0/rps_cpus", "sys/class/net/e/queues/tx-0/xps_cpus", "sys/class/net/e/device/uevent",
            "sys/devices/system/clockevents/broadcast/current_device", "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "sys/devices/system/cpu/cpu0/cache/index0/level", "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "sys/devices/system/cpu/cpu0/cpuidle/state0/name",
            "sys/devices/system/cpu/cpu0/cpuidle/state0/usage", "sys/devices/system/cpu/cpu0/node0/x",
            "sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us", "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
            "sys/devices/system/machinecheck/machinecheck0/check_interval", "sys/devices/system/node/node0/meminfo",
            "sys/devices/virtual/workqueue/cpumask", "sys/devices/virtual/workqueue/writeback/cpumask",
        ];
        let mut files: Vec<(&str, &str)> =
            FILES.iter().enumerate().map(|(at, file)| (*file, texts[at % texts.len()].as_str())).collect();
        files.push(("sys/devices/system/cpu/online", "0"));
        let (_dir, root) = tree(&files);
        for row in resources(&root, 0, Kind::ALL).unwrap() {
            prop_assert!(!row.name.is_empty());
        }
    }
}
