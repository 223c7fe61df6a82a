//! Fleets that are made here, of which one is stored for the examples of the documentation.

use super::*;
use model::monitor::{BOUNDS_NS, BreachKind, FateCount, InterferenceStatus};
use model::monitor_history::{Interval, PACKAGES, Packages, SCHEMA as INTERVAL, ThreadInterval};
use model::{Cpus, EventClass, store};
use std::fs;
use std::path::Path;

const DAYS: [&str; 2] = ["2026-01-01", "2026-01-02"];

/// A machine of a fleet: its kernel, its packages, and the time that interrupts take in an hour.
struct Node<'a> {
    kernel: &'a str,
    packages: &'a [(&'a str, &'a str)],
    irq_ns: u64,
}

/// An hour of it. The loop on its CPU wakes up a thousand times a second, and each tenth hour is
/// late once.
fn interval(node: &Node<'_>, host: &str, at: String, number: u64) -> Interval {
    let wakeups = 3_600_000;
    let mut counts = [0; BOUNDS_NS.len() + 1];
    counts[3] = wakeups;
    let control = ThreadInterval {
        comm: "control".to_owned(),
        cpu: 2,
        counts,
        sum_ns: wakeups * (7_000 + number % 5 * 100),
    };
    let irq = InterferenceStatus {
        cpu: 2,
        class: EventClass::Irq,
        source: "irq/24-nvme".to_owned(),
        count: 1,
        ns: node.irq_ns + number * 37 % 13 * 1_000,
    };
    let late = FateCount { kind: BreachKind::Wakeup, fate: "kept".to_owned(), why: None, count: 1 };
    Interval {
        schema: INTERVAL.to_owned(),
        at,
        watched_ns: 3_600_000_000_000,
        host: host.to_owned(),
        kernel: node.kernel.to_owned(),
        version: "1.0".to_owned(),
        cpus: Cpus::one(2),
        threads_watched: "threads with a real-time priority".to_owned(),
        limit_ns: 500_000,
        threads: vec![control],
        interference: vec![irq],
        offences: None,
        breaches: vec![late; usize::from(number % 10 == 9)],
        events: 7_200_000,
        lost_events: 0,
        unjudged: 0,
        steal_ns: vec![0],
        throttled: None,
        cpu_ns: 1_000_000_000,
    }
}

/// So many days of each, in a state directory of its own below `dir`.
fn lay(dir: &Path, days: &[&str], nodes: &[Node<'_>]) {
    for (at, node) in (1u64..).zip(nodes) {
        let history = dir.join(format!("rt-{at}/monitor/history"));
        fs::create_dir_all(&history).unwrap();
        for day in days {
            let line = |hour: u64| {
                let ended = format!("{day}T{hour:02}:30:00Z");
                let one = interval(node, &format!("rt-{at}"), ended, hour * 7 + at * 11);
                serde_json::to_string(&one).unwrap() + "\n"
            };
            fs::write(history.join(format!("{day}.jsonl")), (0..24).map(line).collect::<String>()).unwrap();
            let own = |(name, version): &(&str, &str)| ((*name).to_owned(), (*version).to_owned());
            let list = Packages {
                schema: PACKAGES.to_owned(),
                at: format!("{day}T00:30:00Z"),
                host: format!("rt-{at}"),
                packages: node.packages.iter().map(own).collect(),
            };
            if !node.packages.is_empty() {
                store::write_json(&history.join(format!("{day}.packages.json")), &list).unwrap();
            }
        }
    }
}

fn ask(dir: &Path, by: By) -> Answer {
    answer(&FleetArgs { histories: vec![dir.to_owned()], days: 7, by, json: false }).unwrap()
}

const OLD: &[(&str, &str)] = &[("irqbalance", "1.9.3"), ("libc6", "2.36"), ("tuned", "2.20")];
const NEW: &[(&str, &str)] = &[("irqbalance", "1.9.4"), ("libc6", "2.36"), ("tuned", "2.25")];

fn node(kernel: &'static str, packages: &'static [(&str, &str)], irq_ns: u64) -> Node<'static> {
    Node { kernel, packages, irq_ns }
}

#[test]
fn the_worse_machine_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut nodes: Vec<Node<'_>> = (0..4).map(|_| node("6.1", &[], 1_000_000)).collect();
    nodes[2].irq_ns *= 3;
    lay(dir.path(), &DAYS, &nodes);
    let text = words::words(&ask(dir.path(), By::Machine));
    assert!(text.starts_with("4 machines from 2026-01-01 to 2026-01-02 (UTC)\n"), "{text}");
    assert!(text.contains("\n  rt-3                     interference by irq: 0.8"), "{text}");
    assert_eq!(text.matches("interference by irq").count(), 1, "{text}");
    assert!(!text.contains("not the same"), "{text}");
}

/// Four machines of each kernel, of which the newer has twice the interference of the older.
fn of_two_kernels() -> Vec<Node<'static>> {
    let old = (0..4).map(|at| node("6.1.0-57-amd64", OLD, 1_000_000 + at * 1_000));
    old.chain((0..4).map(|at| node("6.12.118-amd64", NEW, 2_000_000 + at * 1_000))).collect()
}

#[test]
fn the_worse_kernel_and_package_are_named_with_what_differs_alike() {
    let dir = tempfile::tempdir().unwrap();
    lay(dir.path(), &DAYS, &of_two_kernels());
    let by_kernel = ask(dir.path(), By::Kernel);
    let irq = by_kernel.groups.iter().filter(|one| one.row.what == "interference by irq");
    let verdicts: Vec<_> = irq.map(|one| (one.row.group.as_str(), one.verdict, one.row.machines)).collect();
    assert_eq!(verdicts, [("6.1.0-57-amd64", "better", [4, 4]), ("6.12.118-amd64", "worse", [4, 4])]);
    let text = words::words(&ask(dir.path(), By::Package));
    assert!(text.contains("  irqbalance 1.9.4, tuned 2.25: worse\n"), "{text}");
    assert!(!text.contains("libc6") && !text.contains("better"), "of two the worse one says all: {text}");
}

/// The histories that the examples of docs/monitor-fleet.md are run on are those that are made here.
#[test]
fn the_stored_fleet() {
    let dir = tempfile::tempdir().unwrap();
    lay(dir.path(), &DAYS[..1], &of_two_kernels());
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/histories");
    for at in 1..=8 {
        for file in ["2026-01-01.jsonl", "2026-01-01.packages.json"] {
            let file = format!("rt-{at}/monitor/history/{file}");
            let made = fs::read_to_string(dir.path().join(&file)).unwrap();
            snapbox::assert_data_eq!(made, snapbox::Data::read_from(&stored.join(&file), None).raw());
        }
    }
    // What the page shows of it.
    let page = fs::read_to_string(stored.join("../../docs/monitor-fleet.md")).unwrap();
    let text = words::words(&ask(&stored, By::Package));
    let shown: Vec<&str> = text.lines().filter(|line| line.contains("irq")).collect();
    assert_eq!(shown.len(), 2, "{text}");
    shown.iter().for_each(|line| assert!(page.contains(&format!("  {line}\n")), "{line}"));
}

/// Four lists that differ from each other in every way.
const OTHERS: [&[(&str, &str)]; 4] =
    [&[("a", "1")], &[("b", "1"), ("a", "2")], &[("c", "1")], &[("d", "1"), ("e", "1")]];

#[test]
fn many_ways_to_differ_are_many_questions_and_machines_without_a_list_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut nodes: Vec<Node<'_>> =
        (0..8).map(|at| node("6.1", OTHERS[at % 4], 1_000_000 * (1 + at as u64 % 2))).collect();
    nodes.push(node("6.1", &[], 1_000_000));
    lay(dir.path(), &DAYS, &nodes);
    let answer = ask(dir.path(), By::Package);
    assert_eq!(answer.packages_unknown, ["rt-9"]);
    assert!(answer.groups.iter().all(|one| one.verdict != "worse"), "{}", words::words(&answer));
    assert!(words::words(&answer).contains("packages are not known of rt-9\n"));
    // Without lists it is not said that they are the same.
    let dir = tempfile::tempdir().unwrap();
    lay(dir.path(), &DAYS, &[node("6.1", OLD, 1_000_000), node("6.1", &[], 1_000_000)]);
    let text = words::words(&ask(dir.path(), By::Package));
    assert!(text.contains("nothing is known of packages") && !text.contains("the same everywhere"), "{text}");
}

#[test]
fn a_place_may_be_given_in_three_ways_and_the_wrong_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    lay(dir.path(), &DAYS, &[node("6.1", &[], 1_000_000), node("6.1", &[], 1_000_000)]);
    let places = ["rt-1", "rt-1/monitor", "rt-1/monitor/history"];
    for place in places {
        let histories = vec![dir.path().join(place), dir.path().join("rt-2")];
        let found = answer(&FleetArgs { histories, days: 1, by: By::Machine, json: false }).unwrap();
        assert_eq!(found.days, ["2026-01-02", "2026-01-02"]);
        assert_eq!(found.machines.iter().map(|one| one.hours).collect::<Vec<_>>(), [24, 24]);
    }
    let refused = |histories: &[&str]| {
        let histories = histories.iter().map(|place| dir.path().join(place)).collect();
        let Err(error) = answer(&FleetArgs { histories, days: 1, by: By::Machine, json: false }) else {
            panic!("it is taken")
        };
        error.to_string()
    };
    assert!(refused(&["rt-1"]).contains("only one machine"), "{}", refused(&["rt-1"]));
    fs::create_dir(dir.path().join("empty")).unwrap();
    assert!(refused(&["rt-1", "empty"]).contains("no history of a monitor there"));
    // Copies of one image have one name.
    let copies = ["rt-1", "rt-1"].map(|place| dir.path().join(place)).to_vec();
    let found = answer(&FleetArgs { histories: copies, days: 1, by: By::Machine, json: false }).unwrap();
    assert!(found.machines[0].name.starts_with("rt-1 ("), "{}", found.machines[0].name);
}

/// All became slower with time, and all changed: that says nothing of what they became.
#[test]
fn machines_that_changed_are_on_neither_side() {
    let dir = tempfile::tempdir().unwrap();
    lay(dir.path(), &DAYS[..1], &(0..4).map(|_| node("6.1", &[], 1_000_000)).collect::<Vec<_>>());
    lay(dir.path(), &DAYS[1..], &(0..4).map(|_| node("6.12", &[], 2_000_000)).collect::<Vec<_>>());
    let answer = ask(dir.path(), By::Kernel);
    assert!(answer.groups.is_empty(), "{}", words::words(&answer));
    let text = words::words(&answer);
    assert!(text.contains("no two groups of machines to compare") && text.contains("compare --at"), "{text}");
}

#[test]
fn a_name_stays_in_its_line_whatever_a_machine_calls_itself() {
    let dir = tempfile::tempdir().unwrap();
    lay(dir.path(), &DAYS[..1], &[node("6.1", &[], 1_000_000), node("6.1", &[], 1_000_000)]);
    let path = dir.path().join("rt-2/monitor/history/2026-01-01.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"rt-2\"", "\"rt\\nworse\"")).unwrap();
    let text = words::words(&ask(dir.path(), By::Machine));
    assert!(!text.contains("\nworse"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("24 hours")).count(), 2, "{text}");
    // One that has begun and has no line yet is named by its place.
    fs::write(&path, "{\"schema\":").unwrap();
    let text = words::words(&ask(dir.path(), By::Machine));
    assert!(text.contains("rt-2/monitor/history"), "{text}");
}
