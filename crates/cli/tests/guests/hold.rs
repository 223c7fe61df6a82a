//! A held isolation: a hundred changes by other programs are set again, once each, with the name of
//! who made them; nothing is written while nobody changes anything; an undo is obeyed; killed, it
//! leaves a journal that gives everything back.

use crate::machine::{Case, Guest};
use crate::state::the_same;
use crate::support::print_row;
use result::{Limit, Of, Row};
use serde_json::Value;

/// Changes that are made.
const PLANTS: &str = "100";

/// The cases for a plain boot of four CPUs: in a partition, and by affinities alone, where kernel
/// threads are settings too.
pub(crate) fn cases() -> Vec<Case> {
    vec![case("hold", "partition", "40").limit(1500), case("hold-affinity", "affinity", "40").limit(1500)]
}

/// An hour in which nobody changes anything.
pub(crate) fn quiet_hour() -> Vec<Case> {
    vec![case("hold-hour", "affinity", "3600").limit(6000)]
}

/// Of a placement, with so many seconds in which nobody changes anything.
fn case(name: &'static str, placement: &'static str, quiet_s: &'static str) -> Case {
    Case::new(name, "hold.sh", what_is_planted_is_healed_once_and_named)
        .with(&["2,3", PLANTS, placement, quiet_s])
}

/// The events of a name.
fn events(guest: &Guest, file: &str, name: &str) -> Vec<Value> {
    let text = guest.read(file);
    let all = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    all.filter(|value| value["event"] == name).collect()
}

fn what_is_planted_is_healed_once_and_named(guest: &Guest) {
    let [_, _, placement, quiet_s] = &guest.case.arguments[..] else { panic!("{:?}", guest.case.arguments) };
    let name = format!("{}, {placement}", guest.kernel());
    let read = |file: &str| guest.read(file).trim().to_owned();
    let planted = read("planted");
    let planted: Vec<_> = planted.lines().map(|line| line.splitn(3, ' ').collect::<Vec<_>>()).collect();
    assert_eq!(planted.len().to_string(), PLANTS, "{name}: {planted:?}");
    let settled = events(guest, "before-quiet.jsonl", "healed");
    let targets = |target: &str| match target.strip_prefix("task ") {
        Some(id) => format!("{id}/"),
        None => target.to_owned(),
    };
    // Before the first one, holding may have found something that came while it began.
    let first = settled.len().saturating_sub(planted.len());
    let healed = &settled[first..];
    assert_eq!(healed.len(), planted.len(), "{name}: each once: {}", read("held.jsonl"));
    let (mut named, mut wrong) = (0, Vec::new());
    for (event, plant) in healed.iter().zip(&planted) {
        let [number, by, target] = plant[..] else { panic!("{plant:?}") };
        let found = event["target"].as_str().unwrap();
        assert!(found.starts_with(&targets(target)), "{name} change {number}: {target}, and {event}");
        match event["changer"]["comm"].as_str() {
            Some(comm) if comm == by => named += 1,
            // Neither a number without a name nor a reason is wrong.
            None => {}
            Some(_) => wrong.push(format!("{number} by {by}: {event}")),
        }
        let unknown = event["changer_unknown"].as_str().is_some_and(|why| !why.is_empty());
        assert!(event["changer"]["pid"].is_u64() || unknown, "{name}: {event}");
    }
    assert!(wrong.is_empty(), "{name}: a name that is wrong: {wrong:#?}");
    assert!(named * 10 >= planted.len() * 9, "{name}: {named} of {} named: {healed:#?}", planted.len());
    let lines = |file: &str| read(file).lines().count();
    assert_eq!(lines("before-quiet.jsonl"), lines("after-quiet.jsonl"), "{name}: nobody changes anything");
    let writes = |file: &str| -> u64 {
        let text = read(file);
        let line = text.lines().find_map(|line| line.strip_prefix("syscw: "));
        line.unwrap_or_else(|| panic!("{file}: {text}")).trim().parse().unwrap()
    };
    let writes = writes("after-quiet.io") - writes("before-quiet.io");
    let what = format!("{name}: write calls in {quiet_s} s in which nobody changes anything");
    print_row(&Row::new(what, writes as f64, "").budget(Of::Value, Limit::AtMost(0.0)));
    assert_eq!(writes, 0, "{name}");
    let in_partition = placement == "partition";
    assert_eq!(!read("partition.before").is_empty(), in_partition, "{name}");
    assert_eq!(
        planted.iter().any(|plant| plant[2].starts_with("task ")),
        !in_partition,
        "{name}: {planted:?}"
    );
    if in_partition {
        assert_eq!(read("partition.after"), read("partition.before"), "{name}: a partition comes back");
    }
    assert_eq!(read("second.code"), "1", "{name}: {}", read("second"));
    assert!(read("second").contains("holds the isolation"), "{name}: {}", read("second"));
    assert!(read("status").contains("held: process "), "{name}: {}", read("status"));
    for (step, code) in [("undone", "0"), ("held", "0"), ("killed-undone", "0")] {
        assert_eq!(
            read(&format!("{step}.code")),
            code,
            "{name} {step}: {} {}",
            read(step),
            read("held.jsonl")
        );
    }
    let end = events(guest, "held.jsonl", "end");
    assert!(end.len() == 1 && end[0]["reason"].as_str().unwrap().contains("undone"), "{name}: {end:?}");
    for after in ["after-undo.json", "after-kill.json"] {
        the_same(&guest.json("before.json"), &guest.json(after), &format!("{name} {after}"));
    }
    assert_eq!([read("instances"), read("mounts")], ["", ""], "{name}: what a killed hold leaves");
    let left = read("left");
    assert!(!left.contains("hold"), "{name}: {left}");
    let trials = planted.len() as u64;
    print_row(
        &Row::new(format!("{name}: planted changes set again, once each"), healed.len() as f64, "").n(trials),
    );
    print_row(
        &Row::new(format!("{name}: their changer named"), named as f64, "")
            .n(trials)
            .why("a name that is wrong fails the test; of the others it is said that it is not known"),
    );
}
