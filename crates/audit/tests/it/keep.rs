//! Isolating around what already runs: who is named as living on the CPUs, what `--keep` leaves,
//! and where it is put.

use audit::keep::Keep;
use audit::{Catalogue, Purpose, Request, plan};
use fixture::tree;

use model::plan::{Fate, Placement, Plan, StepKind};

/// A thread by process, number, name, policy, priority and affinity.
struct Thread(u32, u32, &'static str, u32, u32, &'static str);

/// Four CPUs, of which 2 and 3 are to be isolated.
const THREADS: [Thread; 8] = [
    Thread(1, 1, "init", 0, 0, "0-3"),
    // An application with its loop on CPU 3 and a thread that may be anywhere.
    Thread(70, 70, "rtapp", 0, 0, "0-3"),
    Thread(70, 71, "loop", 1, 50, "3"),
    // One that is there whole.
    Thread(80, 80, "whole", 2, 10, "3"),
    // Pinned and ordinary; real-time and narrowed; real-time and anywhere; pinned elsewhere.
    Thread(90, 90, "poller", 0, 0, "2-3"),
    Thread(91, 91, "audio", 1, 5, "1-2"),
    Thread(92, 92, "multipathd", 2, 99, "0-3"),
    Thread(93, 93, "house", 1, 7, "1"),
];

fn planned(keep: &[&str], with: impl FnOnce(&mut Request)) -> Result<Plan, String> {
    planned_on(&[], keep, with)
}

/// The same on a machine that also has these files.
fn planned_on(more: &[(&str, &str)], keep: &[&str], with: impl FnOnce(&mut Request)) -> Result<Plan, String> {
    let mut files = vec![
        ("sys/devices/system/cpu/online".to_owned(), "0-3".to_owned()),
        ("proc/mounts".to_owned(), "none /cg cgroup2 rw 0 0".to_owned()),
        ("cg/cgroup.controllers".to_owned(), "cpuset".to_owned()),
        ("proc/2/stat".to_owned(), "2 (kthreadd) S 0 0 0 0 -1 2129984 0".to_owned()),
        ("proc/5/stat".to_owned(), "5 (ksmd) S 2 0 0 0 -1 2129984 0".to_owned()),
        ("proc/5/status".to_owned(), "Cpus_allowed_list:\t3".to_owned()),
    ];
    for (irq, allowed, name) in [(30, "3", "eth0-rx-0"), (31, "0-3", "eth0-rx-1")] {
        files.push((format!("proc/irq/{irq}/smp_affinity_list"), allowed.to_owned()));
        files.push((format!("proc/irq/{irq}/effective_affinity_list"), "3".to_owned()));
        files.push((format!("proc/irq/{irq}/{name}/keep"), String::new()));
    }
    for Thread(pid, tid, name, policy, priority, allowed) in THREADS {
        let before = "0 ".repeat(15);
        let stat = format!(
            "{tid} ({name}) S 1 {pid} {pid} {before}{tid}00 {}{priority} {policy} 0",
            "0 ".repeat(17)
        );
        let status = format!("Name:\t{name}\nCpus_allowed_list:\t{allowed}\n");
        let folders = [Some(format!("proc/{pid}/task/{tid}")), (pid == tid).then(|| format!("proc/{pid}"))];
        for folder in folders.into_iter().flatten() {
            files.push((format!("{folder}/stat"), stat.clone()));
            files.push((format!("{folder}/status"), status.clone()));
        }
        files.push((format!("proc/{pid}/cgroup"), format!("0::/app-{pid}.scope\n")));
    }
    let files = files.iter().map(|(file, text)| (file.as_str(), text.as_str()));
    let files: Vec<_> = files.chain(more.iter().copied()).collect();
    let (_tree, root) = tree(&files);
    let keep: Result<Vec<Keep>, _> = keep.iter().map(|text| text.parse::<Keep>()?.found(&root)).collect();
    let purpose = Purpose { keep: keep.map_err(|error| error.to_string())?, ..Purpose::default() };
    let mut request = Request { cpus: "2,3".parse().unwrap(), purpose, ..Request::default() };
    with(&mut request);
    let machine = machine::read(&root).unwrap();
    plan(&root, &machine, &Catalogue::embedded().unwrap(), &request).map_err(|error| error.to_string())
}

fn moved(plan: &Plan, name: &str) -> bool {
    let tasks = plan.steps.iter().filter(|step| step.kind == StepKind::Task);
    tasks.into_iter().any(|step| step.target.ends_with(&format!("/{name}")))
}

#[test]
fn whoever_may_be_there_on_purpose_is_named() {
    let plan = planned(&[], |_| ()).unwrap();
    let found: Vec<_> = plan
        .residents
        .iter()
        .map(|one| (one.name.as_str(), one.policy.as_deref(), one.priority, one.deliberate, one.fate))
        .collect();
    let expected = [
        ("loop", Some("fifo"), Some(50), true),
        ("whole", Some("rr"), Some(10), true),
        ("poller", None, None, true),
        ("audio", Some("fifo"), Some(5), true),
        ("multipathd", Some("rr"), Some(99), false),
        ("ksmd", None, None, false),
        ("eth0-rx-0", None, None, false),
    ];
    let expected: Vec<_> = expected.map(|(a, b, c, d)| (a, b, c, d, Fate::Moves)).into();
    assert_eq!(found, expected);
    for one in &plan.residents {
        assert!(one.id > 0 && !one.cpus.is_empty(), "{one:?}");
    }
}

/// CPUs isolated at boot have only tasks that were pinned there; they leave only when asked to.
#[test]
fn who_is_pinned_to_cpus_isolated_at_boot_leaves_when_asked_to() {
    let isolated = [("sys/devices/system/cpu/isolated", "2-3")];
    let pinned = ["loop", "whole", "poller"];
    let fates = |plan: &Plan| -> Vec<Fate> {
        let ours = plan.residents.iter().filter(|one| pinned.contains(&one.name.as_str()));
        ours.map(|one| one.fate).collect()
    };
    let plan = planned_on(&isolated, &[], |_| ()).unwrap();
    assert_eq!(fates(&plan), [Fate::Stays; 3]);
    let plan = planned_on(&isolated, &[], |request| request.move_pinned = true).unwrap();
    assert_eq!(fates(&plan), [Fate::Moves; 3]);
    assert!(pinned.iter().all(|name| moved(&plan, name)));
    let plan = planned_on(&isolated, &["poller"], |request| request.move_pinned = true).unwrap();
    assert!(!moved(&plan, "poller") && moved(&plan, "loop"));
}

#[test]
fn what_is_kept_stays_and_nothing_else() {
    for (keep, names) in [
        (vec!["policy:fifo"], vec!["loop", "audio"]),
        (vec!["70"], vec!["loop", "rtapp"]),
        (vec!["71"], vec!["loop"]),
        (vec!["rtapp"], vec!["loop", "rtapp"]),
        (vec!["/app-80.scope", "poller"], vec!["whole", "poller"]),
        (vec!["ksmd"], vec!["ksmd"]),
        (vec!["policy:realtime"], vec!["loop", "whole", "audio", "multipathd"]),
    ] {
        let plan = planned(&keep, |_| ()).unwrap();
        for name in ["init", "rtapp", "loop", "whole", "poller", "audio", "multipathd", "ksmd"] {
            assert_eq!(moved(&plan, name), !names.contains(&name), "{keep:?} {name}");
        }
        let kept = plan.residents.iter().filter(|one| one.fate == Fate::Kept);
        assert_eq!(kept.count(), names.len(), "{keep:?}: {:#?}", plan.residents);
        assert_eq!(plan.keep.len(), keep.len());
    }
    assert!(planned(&["4711"], |_| ()).unwrap_err().contains("no process or thread has the number 4711"));
}

#[test]
fn a_kept_interrupt_is_not_moved() {
    let target = |plan: &Plan, number: u32| {
        let file = format!("/proc/irq/{number}/smp_affinity_list");
        plan.steps.iter().any(|step| step.target == file)
    };
    let plan = planned(&["irq:30"], |_| ()).unwrap();
    assert!(!target(&plan, 30) && target(&plan, 31));
    let plan = planned(&["irq:eth0*"], |_| ()).unwrap();
    assert!(!target(&plan, 30) && !target(&plan, 31));
}

/// What stands in the way of a placement is said, with the file or the group that does.
#[test]
fn a_placement_that_cannot_be_says_why() {
    let refused = |placement: Placement, more: &[(&str, &str)]| {
        planned_on(more, &[], |request| request.placement = Some(placement)).unwrap_err()
    };
    let mounted = ("proc/mounts", "none /c cgroup rw,cpuset 0 0");
    let balances = ("c/cpuset.sched_load_balance", "1");
    let theirs = [("c/pod/cpuset.cpus", "1-2"), ("c/pod/cpuset.sched_load_balance", "1")];
    for (placement, more, why) in [
        (Placement::Boot, vec![], "the kernel was not started with all of CPUs 2,3 isolated"),
        (Placement::Partition, vec![mounted], "no cpuset controller of cgroup version 2 is mounted"),
        (Placement::Cpuset, vec![], "no cpusets of cgroup version 1 are mounted"),
        (
            Placement::Cpuset,
            vec![mounted, ("c/cpuset.cpus", "0-3"), balances, theirs[0], theirs[1]],
            "another cpuset below /c balances over CPUs 2",
        ),
        (
            Placement::Cpuset,
            vec![mounted, ("c/cpuset.cpus", "0-3"), ("c/cpuset.sched_load_balance", "0")],
            "/c/cpuset.sched_load_balance is not 1, and it was not stillcore that set it",
        ),
    ] {
        let error = refused(placement, &more);
        assert!(error.contains(why), "{error}");
    }
    let possible = [mounted, balances, ("c/cpuset.cpus", "0-3"), ("c/cpuset.mems", "0")];
    let plan = planned_on(&possible, &[], |request| request.placement = Some(Placement::Cpuset));
    assert_eq!(plan.unwrap().placement, Placement::Cpuset);
}

/// A partition takes its CPUs from all outside of it, and whole processes.
#[test]
fn what_is_kept_joins_the_partition_or_there_is_none() {
    let plan = planned(&["whole"], |_| ()).unwrap();
    assert_eq!(plan.placement, Placement::Partition);
    let steps: Vec<_> = plan.steps.iter().filter(|step| step.mechanism == "cpuset-partition").collect();
    let [.., joins, becomes] = &steps[..] else { panic!("{steps:#?}") };
    assert_eq!((joins.kind, joins.target.as_str()), (StepKind::Member, "80/8000/whole"));
    assert_eq!(
        (joins.old.as_deref(), joins.new.as_str()),
        (Some("/cg/app-80.scope"), "/cg/stillcore-isolated")
    );
    assert!(becomes.target.ends_with("cpuset.cpus.partition"));

    let plan = planned(&["policy:fifo"], |_| ()).unwrap();
    assert_eq!(plan.placement, Placement::Affinity);
    let reason = &plan.placement_reason;
    assert!(
        reason.contains("process 70 rtapp is kept") && reason.contains("70 rtapp to these CPUs"),
        "{reason}"
    );
    assert!(plan.steps.iter().all(|step| step.kind != StepKind::Member));
    let asked = planned(&["policy:fifo"], |request| request.placement = Some(Placement::Partition)).unwrap();
    let note = asked.steps.iter().find(|step| step.kind == StepKind::Member).unwrap().note.clone();
    assert!(note.unwrap().contains("70 rtapp comes with it"));

    let plan = planned(&["ksmd"], |_| ()).unwrap();
    assert!(plan.placement == Placement::Affinity && plan.placement_reason.contains("kernel thread ksmd"));
    let asked = planned(&["ksmd"], |request| request.placement = Some(Placement::Partition));
    assert!(asked.unwrap_err().contains("kernel thread ksmd is kept"));
    assert_eq!(planned(&[], |_| ()).unwrap().placement, Placement::Partition);
}
