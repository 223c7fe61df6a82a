//! Mistakes of a real-time program, one at a time, on this machine: `trace watch --lint` finds each,
//! nothing else, and nothing in programs without any. `cargo xtask bench lint` plays all of them.

use crate::support::{Place, assert_refused, is_root, records_events, stillcore, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One of each rule, and one that does nothing wrong.
const PLAYED: [&str; 15] = [
    "fault-storage",
    "fault-late-map",
    "big-malloc",
    "usleep",
    "plain-lock",
    "kworker",
    "free-signal",
    "signal",
    "write",
    "print",
    "thread",
    "late-policy",
    "top-priority",
    "no-budget",
    "clean-inheriting",
];

/// Those that are recorded with where in the program they are, and a function of that; one that
/// calls no other, and the one that calls a function that is probed, have no frame of their own.
const PLACED: [(&str, &str); 3] = [
    ("fault-storage", "read_mapped_file (mistakes)"),
    ("write", "loop (mistakes)"),
    ("free-signal", "pthread_cond_signal"),
];

/// `f_type` of tmpfs (statfs(2)).
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Frame pointers lead through the functions of the plants.
const OPTIONS: [&str; 3] = ["-O1", "-pthread", "-fno-omit-frame-pointer"];

/// The plants, compiled; `None` where they cannot be, or nothing can be recorded.
fn mistakes(place: &Place) -> Option<PathBuf> {
    if !records_events() {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plants/mistakes.c");
    let program = place.path("mistakes");
    let compiled = Command::new("cc").args(OPTIONS).arg("-o").arg(&program).arg(source).arg("-lrt").status();
    match compiled {
        Ok(status) if status.success() => Some(program),
        other => {
            println!("skipped: no C compiler ({other:?})");
            None
        }
    }
}

/// The rules that a program breaks, by its own list.
fn rules(program: &Path, name: &str) -> BTreeSet<String> {
    let list = Command::new(program).arg("list").output().unwrap();
    let list = text(&list.stdout);
    let line = list.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let rules = line.unwrap_or_else(|| panic!("{name} is not in {list}"));
    rules.split(',').filter(|rule| !rule.is_empty()).map(str::to_owned).collect()
}

#[test]
fn each_mistake_is_found_and_nothing_else() {
    let place = Place::alone();
    let Some(program) = mistakes(&place) else { return };
    for name in PLAYED {
        let mut wanted = rules(&program, name);
        // Signals of conditions are recorded only with every locking.
        let locks = if wanted.contains("condition") { "--locks=every" } else { "--locks=contended" };
        let place_of = PLACED.iter().find(|(placed, _)| *placed == name).map(|(_, function)| *function);
        let stacks = if place_of.is_some() { &["--user-stacks"][..] } else { &[] };
        let output = stillcore(&["trace", "watch", "--lint", locks, "--json", "--out"])
            .arg(place.path(name))
            .args(stacks)
            .arg("--state")
            .arg(place.state())
            .arg("--")
            .arg(&program)
            .args([name, "1"])
            .output()
            .unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{name}: {error}: {}", text(&output.stderr)));
        let lint = &answer["watch"]["lint"];
        let findings = lint["findings"].as_array().unwrap();
        let found: BTreeSet<String> =
            findings.iter().map(|one| one["rule"].as_str().unwrap().to_owned()).collect();
        let not_applied = lint["not_applied"].as_array().unwrap();
        wanted.retain(|rule| not_applied.iter().all(|one| one["rule"] != **rule));
        assert_eq!(found, wanted, "{name}: {lint:#}");
        assert!(findings.iter().all(|one| one["comm"] == "control"), "{name}: {lint:#}");
        let callers = findings.iter().find_map(|one| one["callers"].as_str());
        let is_there = !wanted.is_empty() && place_of.is_some();
        assert_eq!(callers.is_some(), is_there, "{name}: {lint:#}");
        assert!(callers.is_none_or(|text| text.contains(place_of.unwrap())), "{name}: {lint:#}");
        let faults = |name: &str| findings.iter().find_map(|one| one["faults"][name].as_u64());
        if name == "fault-storage" {
            // Files in memory are never read from storage, and storage may answer at once.
            let printed = text(&output.stderr);
            let counted =
                printed.lines().find_map(|line| line.strip_prefix("slept ")?.strip_suffix(" times"));
            let counted: u64 = counted.unwrap_or_else(|| panic!("{printed}")).parse().unwrap();
            let on_storage = rustix::fs::statfs("/tmp").unwrap().f_type != TMPFS_MAGIC;
            assert!(on_storage || counted == 0, "{counted}");
            // The first turn belongs to no loop yet, and may sleep twice.
            let agrees = |slept: u64| slept <= counted && (slept > 0 || counted <= 2);
            assert!(faults("slept").is_none_or(agrees), "{counted}: {lint:#}");
        }
        if name == "fault-late-map" {
            assert!(faults("locked_kib").is_none_or(|kib| kib > 0), "{lint:#}");
        }
        assert_eq!(lint["threads"], 1, "{name}: {lint:#}");
        assert_eq!(output.status.code(), Some(if wanted.is_empty() { 0 } else { 2 }), "{name}");
    }
    // The run again: as text, with what its owners know of suppressed.
    let again = |suppressed: &str| {
        let file = place.path("known.lint");
        std::fs::write(&file, suppressed).unwrap();
        let mut command = stillcore(&["trace", "watch", "--from"]);
        command.arg(place.path("usleep")).arg("--suppress").arg(&file).output().unwrap()
    };
    let open = again("file control # another one\n");
    assert_eq!(open.status.code(), Some(2));
    for part in ["lint: 1 finding in 1 real-time thread", "relative-sleep", "TIMER_ABSTIME"] {
        assert!(text(&open.stdout).contains(part), "{part}: {}", text(&open.stdout));
    }
    let known = again("relative-sleep contr* # as agreed\n");
    assert_eq!(known.status.code(), Some(0), "{}", text(&known.stdout));
    assert!(text(&known.stdout).contains("0 findings in 1 real-time thread, 1 more suppressed"));
    let device = stillcore(&["trace", "watch", "--suppress", "/dev/zero", "--from"])
        .arg(place.path("usleep"))
        .output()
        .unwrap();
    assert_refused(&device, &["/dev/zero", "regular file"]);
    assert_refused(&again("sleeping control\n"), &["known.lint:1", "rule \"sleeping\"", "relative-sleep"]);
}

#[test]
fn suppressions_without_lint_are_refused_before_anything_is_recorded() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let output = stillcore(&["trace", "watch", "--suppress", "/dev/null", "--out"])
        .arg(place.path("run"))
        .args(["--", "true"])
        .output()
        .unwrap();
    assert_refused(&output, &["--suppress", "--lint"]);
    assert!(!place.path("run").exists());
}
