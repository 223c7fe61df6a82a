//! An application stays on its CPU, undisturbed, while that CPU is isolated around it; without a
//! request it is not moved.

use crate::machine::Guest;
use crate::state::the_same;

/// State of the application at one moment, by itself and by the kernel.
struct Look {
    /// How often it has checked itself.
    seen: u64,
    /// How often it was, or might have been, on another CPU.
    strange: u64,
    /// How often the kernel has moved it; none where the kernel does not say.
    migrations: Option<u64>,
}

fn look(guest: &Guest, name: &str) -> Look {
    let text = guest.read(&format!("{name}.app"));
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    let mut words = text.split_whitespace();
    let (seen, strange) = (number(words.next()), number(words.next()));
    let (Some(seen), Some(strange)) = (seen, strange) else { panic!("{name}: {text:?}") };
    Look { seen, strange, migrations: number(words.last()) }
}

/// The whole cycle, and its leftovers.
pub(crate) fn the_application_continues_undisturbed(guest: &Guest) {
    let read = |name: &str| guest.read(name).trim().to_owned();
    let name = guest.kernel();
    for (step, code) in [
        ("plan", "0"),
        ("refused", "1"),
        ("applied", "0"),
        ("verified", "0"),
        ("again", "0"),
        ("verified-again", "0"),
        ("undone", "0"),
        ("applied-policy", "0"),
        ("verified-policy", "0"),
        ("undone-policy", "0"),
        ("moved", "0"),
        ("moved-undone", "0"),
    ] {
        assert_eq!(read(&format!("{step}.code")), code, "{name} {step}: {}", read(step));
    }
    let first = look(guest, "first");
    let mut before = first.seen;
    let kept =
        ["plan", "refused", "applied", "verified", "again", "undone", "applied-policy", "undone-policy"];
    // Before 6.2 a process that changes its group gets all the CPUs of that one, until its affinity
    // is restored by the next call (`cpuset_attach`): the kernel may move it and back meanwhile,
    // which takes long where an emulated CPU stands still. It may see that itself, once a change.
    let forgets = matches!(name.split('-').next(), Some("5.10" | "6.1"));
    let mut strange = first.strange;
    for step in kept {
        let now = look(guest, step);
        let changes_group = ["applied", "undone"].contains(&step);
        let may = u64::from(forgets && changes_group);
        assert!(now.strange <= strange + may, "{name} {step}: {} after {strange}", now.strange);
        strange = now.strange;
        assert!(forgets || now.migrations == first.migrations, "{name} {step}: {:?}", now.migrations);
        assert!(now.seen >= before, "{name} {step}: it stopped");
        before = now.seen;
    }
    assert!(first.strange == 0 && before > first.seen + 10, "{name}: {} looks, then {before}", first.seen);
    let plan = read("plan");
    assert!(plan.contains("SCHED_FIFO 50") && plan.contains("apply asks"), "{name}: {plan}");
    let refused = read("refused");
    assert!(refused.contains("SCHED_FIFO 50") && refused.contains("--move-pinned"), "{name}: {refused}");
    assert!(refused.contains("--keep ") && refused.lines().count() == 1, "{name}: {refused}");
    assert!(read("status").contains("kept: pid:"), "{name}: {}", read("status"));
    let state = |name: &str| guest.json(&format!("{name}.json"));
    for after in ["refused", "after", "after-policy"] {
        the_same(&state("before"), &state(after), &format!("{name} {after}"));
    }
    let applied: serde_json::Value = serde_json::from_str(&read("applied")).unwrap();
    let fell_back = !applied["fallback"].as_array().unwrap().is_empty();
    let in_partition = applied["placement"] == "partition" && !fell_back;
    assert_eq!(read("applied.group").contains("stillcore-isolated"), in_partition, "{name}: {applied}");
    let [_, cpu, ..] = &guest.case.arguments[..] else { panic!("no CPU") };
    let allowed = |name: &str| read(&format!("{name}.allowed")).split_whitespace().last().unwrap().to_owned();
    // Making a partition gives tasks outside of it CPUs that they had not (6.1).
    assert_eq!(allowed("bystander"), "0", "{name}");
    assert_ne!(allowed("moved"), *cpu, "{name}");
    assert_eq!(allowed("moved-undone"), *cpu, "{name}");
    println!(
        "{}: {} looks of a SCHED_FIFO application at itself through apply --keep, verify and undo, placed by {}: found elsewhere {} times",
        guest.machine.name, before, applied["placement"], strange
    );
}
