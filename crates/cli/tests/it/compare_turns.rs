//! `compare -- A -- B`: both commands run in turns; measurements are compared as runs, others by
//! their wall times; what is done is kept however it ends.

use crate::support::{
    Place, answer_of, assert_refused, eventually, read_json, signal, start, stillcore, text,
};
use serde_json::Value;
use std::process::Command;

fn compare(place: &Place, arguments: &[&str]) -> Command {
    let mut command = stillcore(&["compare"]);
    command.current_dir(place.dir.path()).args(arguments);
    command
}

#[test]
fn a_command_that_sleeps_longer_is_worse() {
    let place = Place::new();
    // Others of this machine may keep a command for a while.
    let order =
        ["--turns", "4", "--json", "--fail-if", "time > +100%", "--", "sleep", "0.05", "--", "sleep", "0.5"];
    let answer = answer_of(&compare(&place, &order).output().unwrap(), 2);
    assert_eq!(
        (&answer["schema"], &answer["figures"][0]["figure"]),
        (&"stillcore.compare/1".into(), &"time".into())
    );
    assert_eq!(answer["figures"][0]["verdict"], "worse", "{answer}");
    let turns = answer["turns"]["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 10, "four pairs and one to warm up");
    for pair in turns.chunks(2) {
        assert_eq!(pair[0]["pair"], pair[1]["pair"]);
        assert_ne!(pair[0]["side"], pair[1]["side"], "each pair has one of each");
    }
    assert_eq!(turns.iter().filter(|turn| turn["warm_up"] == true).count(), 2);
    assert_eq!(answer["figures"][0]["runs"][0].as_array().unwrap().len(), 4);
    let left = std::fs::read_dir(place.dir.path()).unwrap().count();
    assert_eq!(left, 0, "no directory that nobody asked for");
}

#[test]
fn the_answer_in_words_names_both_commands_and_what_was_decided() {
    let place = Place::new();
    let order = [
        "--turns",
        "3",
        "--markdown",
        "summary.md",
        "--fail-if",
        "any worse",
        "--",
        "sleep",
        "0.3",
        "--",
        "sleep",
        "0.01",
    ];
    let output = compare(&place, &order).output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    for part in ["base:  sleep 0.3 (3 turns, ", "other: sleep 0.01 (3 turns, ", "better", "passed"] {
        assert!(said.contains(part), "{part:?}: {said}");
    }
    let summary = std::fs::read_to_string(place.path("summary.md")).unwrap();
    assert!(summary.contains("base: `sleep 0.3`") && summary.contains("| time | "), "{summary}");
}

#[test]
fn measurements_are_compared_as_runs_in_their_own_directories() {
    let place = Place::new();
    let (own, state) = (env!("CARGO_BIN_EXE_stillcore"), place.state());
    let measure =
        |period| [own, "measure", "wakeup", "-D", "400ms", "-i", period, "--state", state.to_str().unwrap()];
    let (a, b) = (measure("1ms"), measure("1ms"));
    let order = [&["--turns", "2", "--out", "turns", "--json", "--"][..], &a, &["--"], &b].concat();
    let answer = answer_of(&compare(&place, &order).output().unwrap(), 0);
    assert_eq!(answer["base"], serde_json::json!(["turns/base/001", "turns/base/002"]));
    assert_eq!(answer["other"], serde_json::json!(["turns/other/001", "turns/other/002"]));
    assert!(answer["windows"][0]["figures"].as_array().unwrap().len() > 3, "{answer}");
    let kept = read_json(&place.path("turns/turns.json"));
    assert_eq!(kept["turns"].as_array().unwrap().len(), 6);
    assert!(place.path("turns/warm-up/base-001/run.json").exists());
    // The same by directories.
    let again = compare(&place, &["turns/base", "turns/other", "--json"]).output().unwrap();
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["windows"], answer["windows"]);
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn ctrl_c_ends_the_running_command_and_compares_what_is_done() {
    let place = Place::new();
    // The second run of `other` does not end by itself.
    let slow = "test -e second && exec sleep 1000; test -e first && touch second; touch first";
    let order = ["--warm-up", "0", "--out", "turns", "--", "true", "--", "sh", "-c", slow];
    let child = start(&mut compare(&place, &order));
    let pid = child.id();
    let sleeping = eventually("a sleeping command", || {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        let sleeps = |child: &&str| {
            std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name.trim() == "sleep")
        };
        children.split_whitespace().find(sleeps).map(str::to_owned)
    });
    signal(pid, "INT");
    let output = child.wait_with_output().unwrap();
    let (said, why) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{why}");
    assert!(why.contains("interrupted by SIGINT: 2 of 10 pairs are compared"), "{why}");
    assert!(said.contains("(2 turns, "), "{said}");
    assert!(!std::path::Path::new(&format!("/proc/{sleeping}")).exists(), "it was ended, not left");
    assert_eq!(read_json(&place.path("turns/turns.json"))["interrupted"], "SIGINT");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let place = Place::new();
    let own = env!("CARGO_BIN_EXE_stillcore");
    let refused = |order: &[&str], expected: &[&str]| {
        assert_refused(&compare(&place, order).output().unwrap(), expected);
    };
    refused(&["--", "true"], &["one command", "compare -- A -- B"]);
    refused(&["--", "true", "--", "true", "--", "true"], &["3 commands", "sh -c"]);
    refused(&["--", own, "assess", "--", "true"], &["a measurement of stillcore beside"]);
    refused(&["--", own, "assess", "--out", "x", "--", own, "assess"], &["--out before the first --"]);
    refused(&["--html", "x.html", "--", "true", "--", "true"], &["--html", "wall times"]);
    refused(&["--turns", "3", "a", "b"], &["--turns", "compare -- A -- B"]);
    let failing = ["--out", "turns", "--", "true", "--", "sh", "-c", "echo broken >&2; exit 7"];
    let output = compare(&place, &failing).output().unwrap();
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{why}");
    assert!(why.contains("the other command failed in pair 1: exit status: 7: broken"), "{why}");
    refused(&["--out", "turns", "--", "true", "--", "true"], &["not empty"]);
}
