//! Isolation beside the kubelet's containers and a running tuned: nothing of theirs is touched or
//! counted as housekeeping.

use crate::machine::Guest;
use crate::state::the_same;
use model::Cpus;

/// CPU 3, which each of them owns, while CPU 1 is isolated.
const THEIRS: u32 = 3;

/// All checks.
pub(crate) fn owners_keep_what_is_theirs(guest: &Guest) {
    let read = |name: String| guest.read(&name).trim().to_owned();
    let name = guest.kernel();
    for (what, owner) in [
        ("kubelet", "containers of the kubelet (/var/lib/kubelet/cpu_manager_state)"),
        ("realtime", "tuned's profile realtime (isolated_cores in /etc/tuned/realtime-variables.conf)"),
        (
            "cpu-partitioning",
            "tuned's profile cpu-partitioning (isolated_cores in /etc/tuned/cpu-partitioning-variables.conf)",
        ),
    ] {
        for order in ["over", "both"] {
            let refused = read(format!("{order}-{what}"));
            assert_eq!(read(format!("{order}-{what}.code")), "1", "{name}: {refused}");
            assert!(refused.contains(&format!("CPU {THEIRS} belongs to {owner}")), "{name}: {refused}");
        }
        let plan = read(format!("plan-{what}"));
        let first = "plan to isolate CPUs 1, leaving 0,2 for everything else";
        assert_eq!(plan.lines().next(), Some(first), "{name} {what}: {plan}");
        for step in ["apply", "verify", "undo"] {
            let code = read(format!("{step}-{what}.code"));
            assert_eq!(code, "0", "{name} {step} {what}: {}", read(format!("{step}-{what}")));
        }
        the_same(
            &guest.json(&format!("before-{what}.json")),
            &guest.json(&format!("after-{what}.json")),
            &format!("{name} {what}"),
        );
        let sums = read(format!("sums-before-{what}"));
        assert!(!sums.is_empty() && read(format!("sums-after-{what}")) == sums, "{name} {what}: {sums}");
        let before = read(format!("look-before-{what}"));
        assert_eq!(read(format!("look-after-{what}")), before, "{name} {what}");
        if what == "kubelet" {
            containers_stay(&before, &read(format!("look-during-{what}")));
        } else {
            tuned_stays(guest, what);
        }
    }
    println!(
        "{}: the kubelet's containers and two profiles of a running tuned left alone",
        guest.machine.name
    );
}

/// The container that owns the CPU is as before, and the one on the shared CPUs has lost the
/// isolated one alone.
fn containers_stay(before: &str, during: &str) {
    let all: Vec<_> = before.lines().zip(during.lines()).collect();
    let [owner, sharer, rest @ ..] = &all[..] else { panic!("{before}") };
    assert_eq!(owner.0, owner.1);
    assert!(owner.0.ends_with(" 3") && sharer.0.ends_with(" 0-2"), "{before}");
    assert!(sharer.1.ends_with(" 0,2"), "{during}");
    assert!(rest.len() >= 4 && rest.iter().all(|(was, is)| was == is), "{before}\n{during}");
}

/// What tuned keeps off its CPU stays off it, and tuned keeps running.
fn tuned_stays(guest: &Guest, profile: &str) {
    let read = |name: &str| guest.read(name);
    let log = read(&format!("tuned-{profile}.log"));
    assert_eq!(read(&format!("tuned-{profile}.end")).trim(), "runs", "{log}");
    let masks = |when: &str| -> Vec<Cpus> {
        let text = read(&format!("masks-{when}-{profile}"));
        text.lines().map(|line| Cpus::parse_hex(line).unwrap()).collect()
    };
    let (before, during) = (masks("before"), masks("during"));
    assert!(
        before.iter().any(|mask| !mask.contains(THEIRS)),
        "tuned has kept nothing off: {before:?}: {log}"
    );
    for (was, is) in before.iter().zip(&during) {
        assert_eq!(*is, was.minus(&Cpus::one(1)), "{profile}: {before:?} then {during:?}");
    }
    assert_eq!(masks("after"), before, "{profile}");
}
