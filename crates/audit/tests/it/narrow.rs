//! Others' CPUs on a machine where some are to be isolated: masks are narrowed and return no
//! owner's CPU to the kernel; a CPU with an owner is neither isolated unasked nor housekeeping.

use audit::{Catalogue, Request, audit, plan};
use fixture::tree;

use model::plan::{Placement, Plan};

/// A machine of eight CPUs on which somebody has taken CPU 5 out of every mask.
const TAKEN: [(&str, &str); 12] = [
    ("sys/devices/system/cpu/online", "0-7"),
    ("proc/irq/default_smp_affinity", "df"),
    ("proc/irq/9/smp_affinity_list", "0-4,6-7"),
    ("proc/irq/9/effective_affinity_list", "6"),
    ("proc/irq/9/eth0/keep", ""),
    ("sys/devices/virtual/workqueue/cpumask", "df"),
    ("sys/devices/virtual/workqueue/writeback/cpumask", "9f"),
    ("proc/sys/kernel/watchdog_cpumask", "0-4,6-7"),
    ("sys/class/net/eth0/queues/rx-0/rps_cpus", "c0"),
    ("proc/7/stat", "7 (ksmd) S 2 0 0 0 -1 2129984 0"),
    ("proc/7/status", "Cpus_allowed_list:\t0-4,6-7"),
    ("proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0"),
];

fn planned(files: &[(&str, &str)], request: &Request) -> Result<Plan, String> {
    let (_tree, root) = tree(files);
    let machine = machine::read(&root).unwrap();
    let catalogue = Catalogue::embedded().unwrap();
    plan(&root, &machine, &catalogue, request).map_err(|error| error.to_string())
}

fn cpus(list: &str) -> Request {
    Request { cpus: list.parse().unwrap(), ..Request::default() }
}

#[test]
fn a_mask_becomes_its_old_self_without_the_isolated_cpus() {
    let request = Request { with: vec!["net-rps".to_owned(), "workqueue-each".to_owned()], ..cpus("6,7") };
    let plan = planned(&TAKEN, &request).unwrap();
    for (target, new, noted) in [
        ("/proc/irq/default_smp_affinity", "1f", false),
        ("/proc/irq/9/smp_affinity_list", "0-4", false),
        ("/sys/devices/virtual/workqueue/cpumask", "1f", false),
        ("/sys/devices/virtual/workqueue/writeback/cpumask", "1f", false),
        ("/proc/sys/kernel/watchdog_cpumask", "0-4", false),
        ("7/0/ksmd", "0-4", false),
        // Nothing of it is left.
        ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "3f", true),
    ] {
        let step = plan.steps.iter().find(|step| step.target == target);
        let step = step.unwrap_or_else(|| panic!("no step for {target}: {plan:#?}"));
        assert_eq!((step.new.as_str(), step.note.is_some()), (new, noted), "{target}");
    }
}

/// What the audit has a user type does the same.
#[test]
fn commands_narrow_too() {
    let (_tree, root) = tree(&TAKEN);
    let machine = machine::read(&root).unwrap();
    let found = audit(&root, &machine, &Catalogue::embedded().unwrap(), &"6,7".parse().unwrap());
    for (id, command) in [
        ("irqaffinity", "echo 1f > /proc/irq/default_smp_affinity"),
        ("irq-affinity", "echo 0-4 > /proc/irq/9/smp_affinity_list"),
        ("workqueue-cpumask", "echo 1f > /sys/devices/virtual/workqueue/cpumask"),
        ("watchdog_cpumask", "echo 0-4 > /proc/sys/kernel/watchdog_cpumask"),
        ("kthread-affinity", "taskset -pc 0-4 7"),
    ] {
        let finding = found.iter().find(|finding| finding.id == id).unwrap();
        assert_eq!(finding.remedy.as_deref(), Some(command), "{finding:?}");
    }
}

/// CPUs 4 and 5 in a partition three groups deep, which none above is.
const DEEP: [(&str, &str); 8] = [
    ("sys/devices/system/cpu/online", "0-7"),
    ("proc/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0"),
    ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu"),
    ("sys/fs/cgroup/cpuset.cpus.isolated", "4-5"),
    ("sys/fs/cgroup/x/cpuset.cpus.partition", "member"),
    ("sys/fs/cgroup/x/y/cpuset.cpus.partition", "member"),
    ("sys/fs/cgroup/x/y/z/cpuset.cpus.partition", "isolated"),
    ("sys/fs/cgroup/x/y/z/cpuset.cpus", "4-5"),
];

#[test]
fn cpus_of_somebody_are_neither_mine_nor_housekeeping() {
    let kubelet = r#"{"policyName":"static","defaultCpuSet":"0-3,6-7","entries":{"p":{"c":"4-5"}}}"#;
    let online = DEEP[0];
    for (files, owner) in [
        (DEEP.to_vec(), "the cpuset partition /sys/fs/cgroup/x/y/z"),
        (vec![online, ("var/lib/kubelet/cpu_manager_state", kubelet)], "containers of the kubelet"),
        (
            vec![
                online,
                ("etc/tuned/active_profile", "cpu-partitioning"),
                ("etc/tuned/cpu-partitioning-variables.conf", "isolated_cores=4-5"),
            ],
            "tuned's profile cpu-partitioning",
        ),
    ] {
        for wanted in ["5", "5,6"] {
            let refused = planned(&files, &cpus(wanted)).unwrap_err();
            assert!(refused.contains(&format!("CPU 5 belongs to {owner}")), "{refused}");
            assert!(planned(&files, &Request { allow_split: true, ..cpus(wanted) }).is_err());
            assert!(planned(&files, &Request { force: true, ..cpus(wanted) }).is_ok());
        }
        let plan = planned(&files, &cpus("6,7")).unwrap();
        assert_eq!((plan.isolated.to_string(), plan.housekeeping.to_string()), ("6,7".into(), "0-3".into()));
        let refused = planned(&files, &cpus("1-3,6-7")).unwrap();
        assert_eq!(refused.housekeeping.to_string(), "0", "{owner}");
        let nobody = planned(&files, &Request { force: true, ..cpus("0-3,6-7") }).unwrap_err();
        assert!(nobody.contains(&format!("4,5 belong to {owner}")), "{nobody}");
    }
}

#[test]
fn a_partition_of_somebody_is_not_what_the_kernel_was_booted_with() {
    let plan = planned(&DEEP, &Request { force: true, ..cpus("4,5") }).unwrap();
    assert_eq!(plan.placement, Placement::Affinity);
    assert!(
        plan.placement_reason.contains("/sys/fs/cgroup/x/y/z is somebody else's"),
        "{}",
        plan.placement_reason
    );
    let booted = [DEEP[0], ("sys/devices/system/cpu/isolated", "4-5")];
    assert_eq!(planned(&booted, &cpus("4,5")).unwrap().placement, Placement::Boot);
    let asked = Request { force: true, placement: Some(Placement::Boot), ..cpus("4,5") };
    assert!(planned(&DEEP, &asked).unwrap_err().contains("placement boot"));
    // We may resume one of our own that is in force.
    let ours: Vec<_> =
        DEEP.iter().map(|(file, text)| (file.replace("x/y/z", "stillcore-isolated"), *text)).collect();
    let ours: Vec<_> = ours.iter().map(|(file, text)| (file.as_str(), *text)).collect();
    assert_eq!(planned(&ours, &cpus("4,5")).unwrap().placement, Placement::Partition);
}
