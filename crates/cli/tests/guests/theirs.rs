//! CPUs of another owner's partition, of tuned and of the kubelet on real kernels: none is touched
//! or counted as housekeeping.

use crate::machine::Guest;
use crate::state::the_same;

/// Begins the refusal where the kernel's workers are elsewhere.
const LOST: &str = "the kernel's own workers of CPUs";

/// All checks.
pub(crate) fn nothing_of_theirs_is_touched(guest: &Guest) {
    let read = |name: &str| guest.read(name).trim().to_owned();
    let name = guest.kernel();
    let group = read("theirs.group");
    let kind = read("theirs.state");
    assert!(["isolated", "root"].contains(&kind.as_str()), "{name}: {kind}: {}", read("theirs.err"));
    let partition = format!("the cpuset partition {group}");
    for (what, owner, house) in [
        ("tuned", "tuned's profile realtime (isolated_cores in /etc/tuned/realtime-variables.conf)", "0,2"),
        ("kubelet", "containers of the kubelet", "0,2"),
        ("partition", partition.as_str(), "0"),
    ] {
        for order in ["over", "both"] {
            let refused = read(&format!("{order}-{what}"));
            assert_eq!(read(&format!("{order}-{what}.code")), "1", "{name}: {refused}");
            assert!(refused.contains(&format!("CPU 3 belongs to {owner}")), "{name}: {refused}");
        }
        let beside = read(&format!("beside-{what}"));
        if what == "partition" && name.starts_with("5.10") {
            assert!(beside.contains(LOST), "{name}: {beside}");
            continue;
        }
        let first = format!("plan to isolate CPUs 1, leaving {house} for everything else");
        assert_eq!(beside.lines().next(), Some(first.as_str()), "{name} {what}: {beside}");
    }
    // A kernel from 6.7 on has remote partitions; each of the lab has some.
    let deep = group.ends_with("/x/y/z");
    assert!(deep || !name.starts_with("6.12"), "{name}: {group}");
    assert!(read("ran").ends_with("2-3"), "{name}: {}", read("ran"));
    if name.starts_with("5.10") {
        return where_workers_are_lost(guest, &group);
    }
    for step in ["applied", "verified", "undone", "forced", "forced-undone"] {
        assert_eq!(read(&format!("{step}.code")), "0", "{name} {step}: {}", read(step));
    }
    for when in ["during", "after"] {
        assert_eq!(read(&format!("theirs.state-{when}")), kind, "{name} {when}");
        assert_eq!(read(&format!("theirs.cpus-{when}")), read("theirs.cpus"), "{name} {when}");
    }
    let forced: serde_json::Value = serde_json::from_str(&read("forced")).unwrap();
    assert_eq!(forced["placement"], "affinity", "{name}: {forced}");
    the_same(&guest.json("before.json"), &guest.json("after.json"), name);
    println!(
        "{}: {kind} partition {group} of CPUs 2,3, tuned and the kubelet left alone",
        guest.machine.name
    );
}

/// The partition of 5.10 moves workers of the kernel off their CPUs, and a call that waited for one
/// hung in the kernel for good: nothing is begun there.
fn where_workers_are_lost(guest: &Guest, group: &str) {
    let read = |name: &str| guest.read(name).trim().to_owned();
    let name = guest.kernel();
    let moved = |line: &str| {
        let mut words = line.split([' ', '/', ':']).filter(|word| !word.is_empty());
        let (cpu, allowed) = (words.nth(1).unwrap(), words.next_back().unwrap());
        cpu != allowed
    };
    let workers = read("workers");
    assert!(workers.lines().any(moved), "{name}: {workers}");
    let refused = read("applied");
    assert_eq!(read("applied.code"), "1", "{name}: {refused}");
    assert!(refused.contains(LOST), "{name}: {refused}");
    the_same(&guest.json("before.json"), &guest.json("refused.json"), name);
    println!("{}: {group} has moved workers of the kernel, and isolating is refused", guest.machine.name);
}
