//! Isolation applied, verified and undone on real kernels: the machine is as before, also when
//! every call is killed in turn.

use crate::machine::Guest;
use crate::state::the_same;
use crate::support::print_row;
use crate::support::read_json;
use result::Row;
use serde_json::Value;
use std::path::Path;

/// Arguments of `isolate.sh`: the CPUs to isolate, the mask of a task that runs there, at how many
/// writes calls are killed, the version of the control groups, the interval of those writes.
struct Order {
    cpus: model::Cpus,
}

impl Order {
    fn of(guest: &Guest) -> Self {
        let [cpus, ..] = &guest.case.arguments[..] else { panic!("no CPUs") };
        Self { cpus: cpus.parse().unwrap() }
    }
}

/// All that must hold; prints what was seen.
pub(crate) fn applied_and_undone(guest: &Guest) {
    let (root, order) = (&guest.root, Order::of(guest));
    let read = |name: &str| guest.read(name);
    let name = guest.kernel();
    assert_eq!(read("applied.code").trim(), "0", "{name}: {} {}", read("applied.err"), read("applied.json"));
    let applied = read_json(&root.join("applied.json"));
    assert!(applied["stray"].as_array().unwrap().is_empty(), "{name}: {applied}");
    assert_eq!(
        read("verified.code").trim(),
        "0",
        "{name}: {} {}",
        read("verified.err"),
        read("verified.json")
    );
    assert_eq!(read("undone.code").trim(), "0", "{name}: {} {}", read("undone.err"), read("undone.json"));
    the_forking_victim_is_gone(&read("victim"), &order, name);
    the_same(&read_json(&root.join("before.json")), &read_json(&root.join("after.json")), name);
    assert_eq!(read("crash-failures"), "", "{name}: after a call was killed and undone");
    let points: u32 = read("crash-points").trim().parse().unwrap();
    let wanted = if guest.case.arguments[4] == "1" { 8 } else { 2 };
    assert!(points >= wanted, "{name}: only {points} crash points");
    assert!(!read("left").contains("jsonl"), "{name}: {}", read("left"));
    the_machine_was_changed(root, &order, name);
    let status = read_json(&root.join("status.json"));
    let mechanisms: Vec<_> = status["changes"].as_object().unwrap().keys().map(String::as_str).collect();
    // A kernel that refuses the partition is left with affinities.
    let refused = !applied["fallback"].as_array().unwrap().is_empty();
    let placement = if refused { "affinity" } else { applied["placement"].as_str().unwrap() };
    let changes = applied["applied"].as_array().unwrap().len();
    let boot = if guest.machine.append.is_empty() { "isolated at boot" } else { "plain" };
    let (smp, groups) = (guest.machine.smp, &guest.case.arguments[3]);
    let of = format!("{name}, {smp} CPUs, {boot}, groups {groups}");
    let counted = Row::new(format!("{of}: changes"), changes as f64, "");
    print_row(&Row { why: Some(format!("placed by {placement}")), ..counted });
    let what = format!("{of}: writes at which it was killed and undone");
    print_row(&Row::new(what, f64::from(points), ""));
    let which = if guest.case.arguments[4] == "1" { "each of " } else { "some, " };
    println!(
        "{}: {} changes of {} mechanisms ({}), placed by {placement}: applied, verified, undone; killed at {which}{points} writes and \
         undone; the machine as before each time",
        guest.machine.name,
        changes,
        mechanisms.len(),
        mechanisms.join(", ")
    );
}

/// Neither it nor its children may run on the isolated CPUs.
fn the_forking_victim_is_gone(victim: &str, order: &Order, kernel: &str) {
    assert!(!victim.is_empty());
    for line in victim.lines() {
        let allowed = model::Cpus::parse_list(line.split(':').nth(1).unwrap()).unwrap();
        assert!(allowed.and(&order.cpus).is_empty(), "{kernel}: {line}");
    }
}

/// While it stood: the hex mask of workqueues set where it can be, no movable interrupt on the
/// isolated CPUs.
fn the_machine_was_changed(root: &Path, order: &Order, kernel: &str) {
    let during = read_json(&root.join("during.json"));
    let mask = during["mechanisms"]["workqueue-cpumask"].as_str().unwrap();
    let mask = model::Cpus::parse_hex(mask).unwrap();
    assert!(mask.and(&order.cpus).is_empty(), "{kernel}: {mask}");
    let applied = read_json(&root.join("applied.json"));
    let immovable: Vec<_> =
        applied["immovable"].as_array().unwrap().iter().map(|one| &one["target"]).collect();
    for (irq, allowed) in during["irq_affinity"].as_object().unwrap() {
        let file = Value::from(format!("/proc/irq/{irq}/smp_affinity_list"));
        let allowed = model::Cpus::parse_list(allowed.as_str().unwrap()).unwrap();
        let has_reason =
            immovable.contains(&&file) || applied["left"].to_string().contains("cannot be moved");
        assert!(allowed.and(&order.cpus).is_empty() || has_reason, "{kernel}: interrupt {irq} on {allowed}");
    }
}

/// Four cores of two threads: siblings come and go, and every deployment leaves the machine as it
/// was.
pub(crate) fn deployments_and_a_journal_without_room(guest: &Guest) {
    let read = |name: &str| guest.read(name);
    let state = |name: &str| guest.json(&format!("{name}.json"));
    let every: model::Cpus = "0-7".parse().unwrap();
    for (name, online) in
        [("CHM", "0-7"), ("HM", "0-7"), ("M", "0,2,4,6"), ("MI", "0,2,4,6"), ("HMI", "0-7"), ("Single", "0")]
    {
        for step in ["applied", "verified", "undone"] {
            let output = read(&format!("{step}-{name}"));
            assert_eq!(read(&format!("{step}-{name}.code")).trim(), "0", "{name} {step}: {output}");
        }
        let expected: model::Cpus = online.parse().unwrap();
        assert_eq!(model::Cpus::parse_list(&read(&format!("online-{name}"))).unwrap(), expected, "{name}");
        the_same(&state(&format!("before-{name}")), &state(&format!("after-{name}")), name);
        let applied = state(&format!("applied-{name}"));
        let measured = applied["measure"].as_u64().unwrap() as u32;
        assert!(expected.contains(measured) && every.contains(measured), "{name}: {measured}");
        let kept = applied["housekeeping"].as_str().unwrap();
        assert_eq!(name.ends_with('I'), kept == "0" && name != "Single", "{name}: {kept}");
    }
    for name in ["full", "read-only"] {
        assert_eq!(read(&format!("{name}.code")).trim(), "1", "{}", read(&format!("{name}.log")));
        the_same(&state("before-full"), &state(&format!("after-{name}")), name);
    }
    assert!(read("full.log").contains("were taken back: cannot write the journal"), "{}", read("full.log"));
    assert_eq!(read("second.code").trim(), "1");
    assert!(read("second.log").contains("CPUs 2,3 are isolated already"), "{}", read("second.log"));
    assert!(read("ran").trim().ends_with("2-3"), "{} {}", read("ran"), read("ran.err"));
    the_same(&state("before-run"), &state("after-run"), "run");
}

/// Siblings that go, CPUs that were offline before, swap, a device that is removed, groups and
/// isolations of others, a watcher.
pub(crate) fn others_are_at_work_too(guest: &Guest) {
    let read = |name: &str| guest.read(name).trim().to_owned();
    let state = |name: &str| guest.json(&format!("{name}.json"));
    let online = |name: &str| model::Cpus::parse_list(&read(name)).unwrap().to_string();
    for (name, during, after) in [
        ("smt", "0,2,4,6", "0-7"),
        ("M", "0,2,5,6", "0-2,5-7"),
        ("MI", "0,2,5,6", "0-2,5-7"),
        ("swap", "0-7", "0-7"),
    ] {
        let whole = after == "0-7";
        for (step, code) in [("applied", "0"), ("verified", "0"), ("undone", if whole { "0" } else { "2" })] {
            let output = read(&format!("{step}-{name}"));
            assert_eq!(read(&format!("{step}-{name}.code")), code, "{name} {step}: {output}");
        }
        assert_eq!(
            (online(&format!("online-{name}")).as_str(), online(&format!("online-after-{name}")).as_str()),
            (during, after),
            "{name}"
        );
        let (before, after) = (state(&format!("before-{name}")), state(&format!("after-{name}")));
        if whole {
            the_same(&before, &after, name);
        } else {
            offline_cpus_apart(before, after, name);
            let output = read(&format!("undone-{name}"));
            assert!(output.contains("had CPUs that are offline now"), "{name}: {output}");
        }
    }
    for name in ["M", "MI"] {
        let applied = state(&format!("applied-{name}"));
        assert_eq!(applied["measure"], 6, "{name}");
        assert!(applied["left"].to_string().contains("CPUs 3,4 are offline already"), "{name}: {applied}");
    }
    assert!(
        read("swaps-before").lines().count() == 4 && read("swaps-before") == read("swaps-after"),
        "{}",
        read("swaps-after")
    );
    what_is_gone_can_be_given_up(&read);
    assert_eq!(
        (read("others-undo.code"), read("others-status")),
        ("2".to_owned(), "nothing is isolated by stillcore".to_owned())
    );
    assert!(
        read("others-undo").contains("because /sys/fs/cgroup/others.slice uses it"),
        "{}",
        read("others-undo")
    );
    assert!(read("others-controllers").contains("cpuset") && read("others-cpus") == "0-1");
    assert!(
        read("balanced") == "root" && read("ran").ends_with("2-3"),
        "{} {}",
        read("balanced"),
        read("ran.err")
    );
    assert_eq!(
        (read("second.code"), read("third.code"), read("second-left")),
        ("1".to_owned(), "0".to_owned(), "isolation.lock".to_owned())
    );
    assert!(read("second.log").contains("/sys/fs/cgroup/stillcore-isolated"), "{}", read("second.log"));
    let watched = read("watched");
    let drifts =
        watched.lines().filter(|line| line.contains("stat_interval is 9") && !line.contains("no longer"));
    assert!(drifts.count() == 1 && watched.ends_with("nothing stands any more: it was undone"), "{watched}");
    assert_eq!(read("watched.code"), "2");
}

/// Every call of undo fails until one has the option to give up.
fn what_is_gone_can_be_given_up(read: &dyn Fn(&str) -> String) {
    for (name, code) in [("gone-undo", "1"), ("gone-again", "1"), ("gone-forget", "2")] {
        assert_eq!(read(&format!("{name}.code")), code, "{}", read(name));
        assert!(read(name).contains("swap /dev/zram1: cannot switch on swap"), "{}", read(name));
    }
    assert!(read("gone-forget").contains("is kept as /var/lib/stillcore/isolation.forgotten-1.jsonl"));
    assert_eq!(read("gone-left"), "isolation.forgotten-1.jsonl\nisolation.lock");
}

/// The kernel gives a thread no CPU that is offline; all else is as before.
fn offline_cpus_apart(before: Value, after: Value, what: &str) {
    let offline: model::Cpus = "3,4".parse().unwrap();
    let without = |mut state: Value| {
        for list in state["kthread_affinity"].as_object_mut().unwrap().values_mut() {
            let cpus = model::Cpus::parse_list(list.as_str().unwrap()).unwrap();
            *list = cpus.minus(&offline).to_string().into();
        }
        state
    };
    the_same(&without(before), &without(after), what);
}

/// A kernel that holds a partition over CPUs of `isolcpus=` invalid has refused it, whatever the
/// write returned.
pub(crate) fn an_invalid_partition_is_refused(guest: &Guest) {
    let (root, read) = (&guest.root, |name: &str| guest.read(name));
    for (name, code) in [("applied", "2"), ("verified", "0"), ("undone", "0"), ("chosen", "0")] {
        assert_eq!(read(&format!("{name}.code")).trim(), code, "{name}: {}", read(name));
    }
    let applied = read_json(&root.join("applied.json"));
    assert_eq!(applied["placement"], "affinity");
    let reason = applied["fallback"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("isolated invalid (partition config conflicts with housekeeping setup)"),
        "{reason}"
    );
    assert!(
        applied["applied"].as_array().unwrap().iter().all(|change| change["mechanism"] != "cpuset-partition")
    );
    assert!(read("groups").contains("No such file"), "{}", read("groups"));
    the_same(&read_json(&root.join("before.json")), &read_json(&root.join("after.json")), "refused");
}

/// Values, daemons and tasks that were right at first; a daemon that no service manager holds;
/// programs that were put there.
pub(crate) fn verify_names_what_others_do(guest: &Guest) {
    let (root, read) = (&guest.root, |name: &str| guest.read(name));
    for call in ["applied", "again", "undone"] {
        let outputs = (read(&format!("{call}.err")), read(&format!("{call}.json")));
        assert_eq!(read(&format!("{call}.code")).trim(), "0", "{call}: {outputs:?}");
    }
    assert_eq!(read("daemons-during").split_whitespace().collect::<String>(), "TT", "stopped where they are");
    assert_eq!(read("daemons-after").split_whitespace().collect::<String>(), "TS", "as they were");
    let placed = read("placed");
    assert!(placed.lines().count() >= 2, "{placed}");
    assert!(placed.lines().all(|line| line.ends_with("2-3")), "{placed}");
    for (name, code, part) in [
        ("quiet", "0", ""),
        ("placed", "0", ""),
        ("merging", "2", "ksm-run: was right when isolated, is not now: 1 is set"),
        ("value", "2", "compact_unevictable_allowed"),
        ("daemon", "2", "irqbalance: was right when isolated, is not now: irqbalance runs"),
        ("stranger", "2", "/stranger may run on 0-3"),
        ("healed", "0", ""),
    ] {
        let verified = read(&format!("verified-{name}.json"));
        assert_eq!(read(&format!("verified-{name}.code")).trim(), code, "{name}: {verified}");
        assert!(verified.contains(part), "{name}: {verified}");
    }
    the_same(&read_json(&root.join("before.json")), &read_json(&root.join("after.json")), "after others");
    assert!(!read("left").contains("jsonl") && !read("left").contains("placed"), "{}", read("left"));
}
