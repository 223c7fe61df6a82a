//! The audit on captured machines: its findings, mechanism by mechanism, and that the commands it
//! proposes work.

use audit::catalogue::Probe;
use audit::fixes::{Fixes, fixes_page};
use audit::{Catalogue, audit, mechanisms_page, snapshot};
use machine::{Root, Selection, capture};
use model::{Finding, FindingState};
use snapbox::{assert_data_eq, file};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The machines, and the CPUs each is audited for.
const MACHINES: [(&str, &str); 7] = [
    ("cgroup-v1-5.10", "2-3"),
    ("isolated-6.1", "2-3"),
    ("isolcpus-dropped-6.1", "2-3"),
    ("rt-6.12", "2-3"),
    ("smt-i7-6.1", "3"),
    ("unplugged-6.1", "2"),
    ("vm-6.18", "3"),
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn open(name: &str) -> Root {
    Root::open(&repository().join("fixtures/machines").join(name)).unwrap()
}

fn audited(root: &Root, cpus: &str) -> BTreeMap<String, Finding> {
    let machine = machine::read(root).unwrap();
    let findings = audit(root, &machine, &Catalogue::embedded().unwrap(), &cpus.parse().unwrap());
    findings.into_iter().map(|finding| (finding.id.clone(), finding)).collect()
}

fn of(name: &str) -> BTreeMap<String, Finding> {
    let cpus = MACHINES.iter().find(|(machine, _)| *machine == name).unwrap().1;
    audited(&open(name), cpus)
}

/// Each expectation is a mechanism, its state, and a part of the reason.
fn expect(name: &str, expected: &[(&str, FindingState, &str)]) {
    let found = of(name);
    for (id, state, part) in expected {
        let finding = &found[*id];
        assert_eq!(finding.state, *state, "{name}: {finding:?}");
        assert!(finding.reason.contains(part), "{name}: {id}: {:?} lacks {part:?}", finding.reason);
    }
}

use FindingState::{Boot, Fixable, Immovable, NotApplicable, Ok, Unknown};

#[test]
fn a_well_isolated_machine_has_only_what_nobody_can_move() {
    let found = of("isolated-6.1");
    let wrong: Vec<_> = found.values().filter(|f| f.failed()).map(|f| f.id.as_str()).collect();
    assert_eq!(wrong, ["irq-affinity"]);
    expect(
        "isolated-6.1",
        &[
            ("irq-affinity", Immovable, "27 nvme0q3 is handled on CPUs 2,3"),
            ("kthread-affinity", Ok, "only rcu_gp, netns, slub_flushwq, kblockd may run"),
            ("isolcpus", Ok, "in force for CPUs 2,3"),
            ("irqbalance", Ok, "leaves CPUs 2,3 alone"),
            ("cpuset-partition", Ok, "would add nothing"),
            ("ksm-merge_across_nodes", Ok, "does not run"),
            ("config-no_hz", Ok, "CONFIG_NO_HZ_COMMON, which does the work"),
        ],
    );
}

#[test]
fn dropped_parameters_are_judged_by_what_is_in_force() {
    expect(
        "isolcpus-dropped-6.1",
        &[
            ("isolcpus", Boot, "names CPU 9 on a machine whose last CPU is 3"),
            ("nohz_full", Boot, "names CPU 20 on a machine whose last CPU is 3"),
            ("rcu_nocbs", Boot, "names CPUs 0,1, not CPUs 2,3"),
            ("cpuset-partition", Fixable, "not exclusive"),
            ("irqbalance", Fixable, "knows nothing of CPU 3"),
            ("irq-affinity", Fixable, "4 ttyS0, 24 virtio0-config may be handled"),
            ("workqueue-cpumask", Fixable, "f includes CPUs 2,3"),
            ("kswapd-affinity", Fixable, "kswapd0 may run on CPUs 2,3"),
        ],
    );
    let isolcpus = &of("isolcpus-dropped-6.1")["isolcpus"];
    assert_eq!(isolcpus.have.as_deref(), Some("isolcpus=2-9"));
    assert_eq!(isolcpus.effective.as_deref(), Some("none"));
    assert_eq!(
        isolcpus.remedy.as_deref(),
        Some(
            "replace isolcpus=2-9 with isolcpus=managed_irq,domain,2,3 on the kernel command line and reboot"
        )
    );
}

/// Beside it what the kernel does was counted: it ticked on idle CPUs, nobody polled, nothing
/// averaged pressure, interrupts had threads, and the CPUs ticked at different times.
#[test]
fn parameters_are_read_as_the_kernel_has_read_them() {
    let found = audited(&open("misspelt-6.1"), "2-3");
    for (id, state) in [
        ("nohz", Boot),
        ("rcu_nocb_poll", Boot),
        ("psi", Ok),
        ("threadirqs", Ok),
        ("skew_tick", Ok),
        ("mce", Ok),
        // The kernel has no such code; it does not show how it was built.
        ("csdlock_debug", Unknown),
    ] {
        assert_eq!(found[id].state, state, "{:?}", found[id]);
    }
    assert!(!found["irq-affinity"].reason.contains("0 timer"), "{:?}", found["irq-affinity"]);
}

#[test]
fn a_real_time_kernel_lacks_things_without_failing() {
    expect(
        "rt-6.12",
        &[
            ("transparent_hugepage", NotApplicable, "real-time kernels are built without"),
            ("numa_balancing", NotApplicable, "real-time kernels are built without"),
            ("sched_rt_runtime", Fixable, "the fair server still takes time"),
            ("rcu_nocbs", Ok, "without rcu_nocbs= on the command line"),
            ("rcutree-use_softirq", Ok, "offers no choice"),
            ("irq-affinity", Immovable, "28 virtio1-req.0 is handled on CPUs 2,3"),
            ("swap", Fixable, "swap is on"),
            ("kthread-affinity", Fixable, "kswapd0 may run"),
        ],
    );
}

#[test]
fn siblings_and_firmware_are_read_and_not_assumed() {
    expect(
        "smt-i7-6.1",
        &[
            ("isolcpus", Boot, "leave out domain"),
            ("pcie_aspm", Boot, "firmware left it on"),
            ("cpufreq-governor", Fixable, "CPU 3 is not set to performance"),
            ("pcrypt-pdecrypt", Fixable, "ff includes CPU 3"),
            ("ksm-merge_across_nodes", Fixable, "1 is set, isolation wants 0"),
            ("timer_migration", Ok, "contested"),
            ("sched_rt_period", Ok, "refuses -1"),
        ],
    );
    let found = of("smt-i7-6.1");
    assert_eq!(found["workqueue-cpumask"].want, "77", "CPU 7 is CPU 3's sibling and keeps no house");
    assert!(found["nohz_full"].remedy.as_deref().unwrap().contains("nohz_full=3,7"));
    assert_eq!(found["pcie_aspm"].effective.as_deref(), Some("on at 0000_00_1c.0"));
    let other_side = |machine| of(machine)["timer_migration"].otherwise.clone();
    assert_eq!(other_side("smt-i7-6.1"), None, "it is 0 there");
    assert_eq!(other_side("isolated-6.1").as_deref(), Some("echo 0 > /proc/sys/kernel/timer_migration"));
    let remedy = found["pcrypt-pdecrypt"].remedy.as_deref().unwrap();
    assert_eq!(
        remedy, "echo 77 > /sys/kernel/pcrypt/pdecrypt/parallel_cpumask",
        "the other file is as wanted"
    );
}

#[test]
fn unplugged_old_and_plain_machines_are_distinguished() {
    expect(
        "unplugged-6.1",
        &[
            ("irq-affinity", Fixable, "will at its next interrupt"),
            ("isolcpus", Ok, "in force for CPU 2"),
            ("kthread-affinity", Ok, "only the 3 threads that belong to CPU 2"),
        ],
    );
    expect(
        "cgroup-v1-5.10",
        &[
            ("config-cpu_isolation", Unknown, "build options are neither in"),
            ("config-no_hz_full", Boot, "there is no /sys/devices/system/cpu/nohz_full"),
            ("nohz_full", Boot, "built without CONFIG_NO_HZ_FULL"),
            ("move_charge_at_immigrate", Fixable, "1 is set"),
            ("isolcpus", Ok, "in force"),
        ],
    );
    expect(
        "vm-6.18",
        &[
            ("nohz_full", Boot, "built without CONFIG_NO_HZ_FULL"),
            ("irq-affinity", Fixable, "1 more cannot be moved by a user (36 virtio1-req.0)"),
            ("cpuset-partition", NotApplicable, "version 1 at /sys/fs/cgroup/cpuset"),
            ("cpufreq-governor", NotApplicable, "no cpufreq"),
        ],
    );
}

#[test]
fn default_cpus_and_topology_follow_the_machine() {
    for (name, cpus, house) in [
        ("smt-i7-6.1", "7", "0-2,4-6"),
        ("unplugged-6.1", "2", "0,1"),
        ("isolated-6.1", "2,3", "0,1"),
        ("vm-6.18", "3", "0-2"),
    ] {
        let machine = machine::read(&open(name)).unwrap();
        let chosen = machine::cpus_default(&machine, &machine.topology.online).unwrap();
        assert_eq!(chosen.to_string(), cpus, "{name}");
        assert_eq!(machine::housekeeping(&machine, &chosen).unwrap().to_string(), house, "{name}");
    }
    let real_time = machine::read(&open("rt-6.12")).unwrap();
    assert!(real_time.kernel.realtime);
    assert_eq!(real_time.limits.fair_server_runtime_ns.len(), 4);
    let virtual_machine = machine::read(&open("vm-6.18")).unwrap();
    assert_eq!(virtual_machine.kernel.config_source.as_deref(), Some("/proc/config.gz"));
    assert_eq!(virtual_machine.hypervisor.as_deref(), Some("kvm"));
}

#[test]
fn every_finding_is_whole() {
    let ids: BTreeSet<_> = Catalogue::embedded().unwrap().mechanisms.into_iter().map(|m| m.id).collect();
    for (name, _) in MACHINES {
        let found = of(name);
        assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), ids, "{name}");
        for finding in found.values() {
            let context = format!("{name}: {finding:?}");
            assert!(!finding.reason.is_empty() && !finding.reason.ends_with('.'), "{context}");
            assert!(!finding.reason.contains('\n') && !finding.want.is_empty(), "{context}");
            let to_do = matches!(finding.state, Fixable | Boot);
            assert_eq!(finding.remedy.is_some(), to_do, "{context}");
            assert!(
                !finding.remedy.iter().any(|remedy| remedy.contains("{isolated") || remedy.contains("0x")),
                "{context}"
            );
            assert!(
                finding.have.is_some() || !matches!(finding.state, Fixable) || finding.effective.is_some(),
                "{context}"
            );
        }
    }
}

#[test]
fn every_kind_of_probe_is_seen_in_two_states() {
    let catalogue = Catalogue::embedded().unwrap();
    let mut states: BTreeMap<&str, BTreeSet<FindingState>> = BTreeMap::new();
    for (name, _) in MACHINES {
        for (id, finding) in of(name) {
            states.entry(kind(&catalogue.get(&id).unwrap().probe)).or_default().insert(finding.state);
        }
    }
    for (kind, states) in states.iter().filter(|(kind, _)| !TESTED_BESIDE.contains(kind)) {
        assert!(states.len() >= 2, "{kind} was only ever {states:?}");
    }
    let shipped: BTreeSet<_> = catalogue.mechanisms.iter().map(|m| kind(&m.probe)).collect();
    assert_eq!(states.keys().copied().collect::<BTreeSet<_>>(), shipped);
}

/// Kinds whose files these machines lack: each is tested beside its code, on files made for it.
const TESTED_BESIDE: [&str; 14] = [
    "cpu-manager",
    "flag",
    "listing",
    "sched-domains",
    "cpulist-file",
    "tasks",
    "idle-states",
    "idle-driver",
    "held-latency",
    "resctrl",
    "cpuset-mems",
    "device-nodes",
    "units",
    "practice",
];

fn kind(probe: &Probe) -> &'static str {
    match probe {
        Probe::Kconfig { .. } => "kconfig",
        Probe::Cmdline { .. } => "cmdline",
        Probe::FileWord { .. } => "file-word",
        Probe::FileBracketedWord { .. } => "file-bracketed-word",
        Probe::FileInteger { .. } => "file-integer",
        Probe::CpulistFile { .. } => "cpulist-file",
        Probe::HexmaskFile { .. } => "hexmask-file",
        Probe::Flag { .. } => "flag",
        Probe::Listing { .. } => "listing",
        Probe::SchedDomains {} => "sched-domains",
        Probe::CpuManager {} => "cpu-manager",
        Probe::IrqAffinity {} => "irq-affinity",
        Probe::KthreadAffinity { .. } => "kthread-affinity",
        Probe::Swaps {} => "swaps",
        Probe::Daemon { .. } => "daemon",
        Probe::Governor {} => "governor",
        Probe::Aspm {} => "aspm",
        Probe::CpusetPartition {} => "cpuset-partition",
        Probe::Tasks { .. } => "tasks",
        Probe::Siblings {} => "siblings",
        Probe::IdleStates {} => "idle-states",
        Probe::IdleDriver {} => "idle-driver",
        Probe::HeldLatency {} => "held-latency",
        Probe::Resctrl {} => "resctrl",
        Probe::CpusetMems {} => "cpuset-mems",
        Probe::DeviceNodes {} => "device-nodes",
        Probe::Units { .. } => "units",
        Probe::Preemption {} => "preemption",
        Probe::Practice { .. } => "practice",
    }
}

/// Types every remedy that writes files into a copy of each machine, and audits again: the finding
/// must be gone.
#[test]
fn commands_that_the_audit_proposes_work() {
    let mut typed = 0;
    for (name, cpus) in MACHINES {
        let copy = tempfile::tempdir().unwrap();
        let at = copy.path().join("machine");
        let source = open(name);
        let copied = Command::new("cp").arg("-r").arg(source.at("")).arg(&at).status().unwrap();
        assert!(copied.success());
        let root = Root::open(&at).unwrap();
        for finding in audited(&root, cpus).values().filter(|finding| finding.state == Fixable) {
            let remedy = finding.remedy.as_deref().unwrap();
            // Not files, or files that only a kernel brings to life: /sys/fs/cgroup/isolated is
            // made by mkdir.
            if !remedy.contains("echo ") || remedy.contains("mkdir") || remedy.contains("brackets") {
                continue;
            }
            let prefix = at.display().to_string();
            let here = remedy.replace("> /", &format!("> {prefix}/"));
            assert!(Command::new("sh").arg("-c").arg(&here).status().unwrap().success(), "{here}");
            settle(&at, &finding.id);
            let after = &audited(&root, cpus)[&finding.id];
            let done = after.state == Ok
                || (after.state == Immovable && finding.id == "irq-affinity")
                // Without debugfs it is unknown whether a fair server takes over.
                || (after.state == Unknown && finding.id == "sched_rt_runtime");
            assert!(done, "{name}: after {remedy:?}: {after:?}");
            typed += 1;
        }
    }
    assert!(typed > 20, "only {typed} remedies were tried");
}

/// Does what the kernel would after such a write: shows the choice in brackets, moves the
/// interrupts.
fn settle(at: &Path, id: &str) {
    let file = at.join("sys/kernel/mm/transparent_hugepage/enabled");
    if id == "transparent_hugepage" {
        let word = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("always madvise [{}]\n", word.trim())).unwrap();
    }
    if id == "irq-affinity" {
        for entry in
            fs::read_dir(at.join("proc/irq")).unwrap().flatten().filter(|entry| entry.path().is_dir())
        {
            fs::copy(entry.path().join("smp_affinity_list"), entry.path().join("effective_affinity_list"))
                .unwrap();
        }
    }
}

#[test]
fn two_snapshots_of_an_untouched_machine_are_equal_and_a_capture_audits_alike() {
    let catalogue = Catalogue::embedded().unwrap();
    for (name, cpus) in MACHINES {
        let root = open(name);
        let before = snapshot(&root, &catalogue).unwrap();
        assert_eq!(before, snapshot(&root, &catalogue).unwrap(), "{name}");
        assert!(!before.state.mechanisms.is_empty() && !before.state.kthread_affinity.is_empty(), "{name}");
        let copy = tempfile::tempdir().unwrap();
        capture(&root, copy.path(), &catalogue.selection()).unwrap();
        let copied = Root::open(copy.path()).unwrap();
        assert_eq!(audited(&copied, cpus), audited(&root, cpus), "{name}");
        // Of command lines and mounts only the judged parts are copied.
        let mut after = snapshot(&copied, &catalogue).unwrap();
        assert!(after.state.mounts.iter().all(|mount| before.state.mounts.contains(mount)), "{name}");
        after.state.mounts.clone_from(&before.state.mounts);
        after.machine.cmdline.clone_from(&before.machine.cmdline);
        assert_eq!(after, before, "{name}");
    }
}

#[test]
fn a_changed_setting_shows_in_the_snapshot() {
    let catalogue = Catalogue::embedded().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let at = copy.path().join("machine");
    capture(&open("isolated-6.1"), &at, &catalogue.selection()).unwrap();
    let root = Root::open(&at).unwrap();
    let before = snapshot(&root, &catalogue).unwrap();
    for (file, text) in [
        ("proc/irq/4/smp_affinity_list", "0"),
        ("sys/devices/virtual/workqueue/cpumask", "1"),
        ("proc/sys/kernel/timer_migration", "0"),
    ] {
        let old = fs::read(at.join(file)).unwrap();
        fs::write(at.join(file), text).unwrap();
        assert_ne!(snapshot(&root, &catalogue).unwrap().state, before.state, "{file}");
        fs::write(at.join(file), old).unwrap();
    }
    assert_eq!(snapshot(&root, &catalogue).unwrap(), before);
}

#[test]
fn this_machine_can_be_audited_by_whoever_runs_the_tests() {
    let root = Root::live();
    let machine = machine::read(&root).unwrap();
    let Result::Ok(cpus) = machine::cpus_default(&machine, &machine.topology.online) else {
        println!("skipped: no CPU of this machine can be isolated");
        return;
    };
    let catalogue = Catalogue::embedded().unwrap();
    let findings = audit(&root, &machine, &catalogue, &cpus);
    assert_eq!(findings.len(), catalogue.mechanisms.len());
    let capture_of_it = tempfile::tempdir().unwrap();
    capture(&root, capture_of_it.path(), &Selection::default()).unwrap();
    assert_eq!(machine::read(&Root::open(capture_of_it.path()).unwrap()).unwrap().topology, machine.topology);
}

/// Every file of a machine in turn is replaced by nonsense: the audit says so, or not, and never
/// panics or loses a mechanism.
#[test]
fn no_content_of_any_file_makes_the_audit_fail() {
    let catalogue = Catalogue::embedded().unwrap();
    for (name, cpus) in [("smt-i7-6.1", "3"), ("rt-6.12", "2-3")] {
        let copy = tempfile::tempdir().unwrap();
        let at = copy.path().join("machine");
        capture(&open(name), &at, &catalogue.selection()).unwrap();
        let root = Root::open(&at).unwrap();
        for file in files(&at) {
            let old = fs::read(&file).unwrap();
            for nonsense in [&b""[..], b"\xff\0\n-1,(]", b"99999999999999999999", &old[..old.len() / 2]] {
                fs::write(&file, nonsense).unwrap();
                let Result::Ok(machine) = machine::read(&root) else { continue };
                let found = audit(&root, &machine, &catalogue, &cpus.parse().unwrap());
                assert_eq!(found.len(), catalogue.mechanisms.len(), "{}", file.display());
                snapshot(&root, &catalogue).unwrap();
            }
            fs::write(&file, old).unwrap();
        }
    }
}

/// The files under a directory that a reader may open: one of each kind of numbered ones is enough.
fn files(at: &Path) -> Vec<PathBuf> {
    let mut kinds = BTreeSet::new();
    let mut found = Vec::new();
    let mut waiting = vec![at.to_owned()];
    while let Some(directory) = waiting.pop() {
        let mut entries: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let kind: String = path.to_string_lossy().chars().filter(|c| !c.is_ascii_digit()).collect();
            if path.is_dir() {
                waiting.push(path);
            } else if kinds.insert(kind) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn the_page_of_mechanisms_is_up_to_date() {
    let page = mechanisms_page(&Catalogue::embedded().unwrap());
    assert_data_eq!(&page, file!["../../../../docs/mechanisms.md"].raw());
    for row in 1..=25 {
        assert!(page.contains(&format!("\n| {row} | [")), "row {row} of Table III is missing");
    }
}

#[test]
fn remedies_of_event_classes_are_mechanisms() {
    let catalogue = Catalogue::embedded().unwrap();
    let events = model::events::EventCatalogue::embedded().unwrap();
    for (class, remedy) in &events.classes {
        for id in &remedy.remedies {
            assert!(catalogue.get(id).is_some(), "{class}: no mechanism {id}");
        }
    }
}

#[test]
fn the_page_of_kernel_fixes_is_up_to_date() {
    let fixes = Fixes::embedded().unwrap();
    let page = fixes_page(&fixes);
    assert_data_eq!(&page, file!["../../../../docs/kernel-fixes.md"].raw());
    assert_eq!(page.matches("\n### ").count(), fixes.all.len());
}
