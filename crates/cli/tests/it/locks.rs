//! Contention that a program plants on this machine: `trace watch` names the holder of each lock,
//! what that one did meanwhile, and priority inversion only where it was planted.

use crate::support::{Place, is_root, stillcore, text};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Contentions of each case.
const ROUNDS: usize = 5;

/// The plants, compiled; `None` where they cannot be, or nothing can be recorded.
fn contention(place: &Place) -> Option<PathBuf> {
    let tracing = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    if !is_root() || !tracing.iter().any(|path| Path::new(path).join("events/sched/sched_switch").is_dir()) {
        println!("skipped: recording takes root and a mounted tracefs");
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plants/contention.c");
    let program = place.path("contention");
    let compiled = Command::new("cc").args(["-O2", "-pthread", "-o"]).arg(&program).arg(source).status();
    match compiled {
        Ok(status) if status.success() => Some(program),
        other => {
            println!("skipped: no C compiler ({other:?})");
            None
        }
    }
}

/// The section of the locks of a planted case, and the threads by their part.
fn watched(place: &Place, program: &Path, kind: &str, case: &str) -> (Value, HashMap<String, i64>, String) {
    let run = place.path(&format!("{kind}-{case}"));
    let rounds = ROUNDS.to_string();
    let output = stillcore(&["trace", "watch", "--json", "--out"])
        .arg(&run)
        .arg("--state")
        .arg(place.state())
        .arg("--")
        .arg(program)
        .args([kind, case, &rounds, "1"])
        .output()
        .unwrap();
    let log = text(&output.stderr);
    assert!(output.status.success(), "{log}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    // With --json the command's own output is on standard error.
    let parts = log.lines().filter_map(|line| {
        let (part, tid) = line.split_once(' ')?;
        Some((part.to_owned(), tid.parse().ok()?))
    });
    let printed = stillcore(&["trace", "watch", "--from"]).arg(&run).output().unwrap();
    (answer["watch"]["locks"].clone(), parts.collect(), text(&printed.stdout))
}

/// The waits of the planted waiter, which are long.
fn waits(locks: &Value, waiter: i64) -> Vec<&Value> {
    let all = locks["worst"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter(|wait| wait["waiter"]["tid"] == waiter && wait["waiter"]["prio"] == 19).collect()
}

#[test]
fn holders_are_named_and_inversion_only_where_it_was_planted() {
    let place = Place::new();
    let Some(program) = contention(&place) else { return };
    // Whose time it is, and whether that is inversion.
    let cases = [
        ("plain", "holds", "holder", "ran", false),
        ("plain", "inverts", "holder", "middle", true),
        ("plain", "urgent", "holder", "urgent", false),
        ("plain", "sleeps", "holder", "slept", false),
        ("plain", "chain", "deepest", "middle", true),
        ("inherit", "inverts", "holder", "ran", false),
        ("robust", "inverts", "holder", "middle", true),
    ];
    for (kind, case, holder, what, inversion) in cases {
        let (locks, parts, printed) = watched(&place, &program, kind, case);
        let waits = waits(&locks, parts["waiter"]);
        assert_eq!(waits.len(), ROUNDS, "{kind} {case}: {locks:#}");
        let mut of_the_case = 0;
        for wait in waits {
            let message = format!("{kind} {case}: {wait:#}");
            assert_eq!(wait["holders"][0]["thread"]["tid"], parts["holder"], "{message}");
            assert_eq!(wait["holders"].as_array().unwrap().len(), 1, "{message}");
            assert_eq!(wait["inversion_ns"].as_u64().unwrap() > 0, inversion, "{message}");
            // A neighbour of this machine may take the CPU at any time, so not in each of them.
            let part = &wait["parts"][0];
            let doing = &part["doing"];
            let by = &doing["preempted"]["by"]["tid"];
            let right = match what {
                "ran" => doing == "ran",
                "slept" => doing["slept"]["call"] == "clock_nanosleep",
                name => *by == parts[name],
            };
            of_the_case += usize::from(right && part["holder"]["tid"] == parts[holder]);
        }
        assert!(of_the_case > ROUNDS / 2, "{kind} {case}: {of_the_case} of {ROUNDS}: {locks:#}");
        assert_eq!(printed.contains("priority inversion, not inherited"), inversion, "{printed}");
        assert_eq!(printed.contains("PTHREAD_PRIO_INHERIT"), inversion, "{printed}");
    }
}

#[test]
fn what_has_no_owner_is_no_lock() {
    let place = Place::new();
    let Some(program) = contention(&place) else { return };
    for kind in ["condition", "semaphore"] {
        let (locks, parts, _) = watched(&place, &program, kind, "holds");
        assert!(waits(&locks, parts["waiter"]).is_empty(), "{kind}: {locks:#}");
    }
}

#[test]
fn a_lock_that_nobody_releases_is_a_wait_that_the_end_cut_short() {
    let place = Place::new();
    let Some(program) = contention(&place) else { return };
    let (locks, parts, printed) = watched(&place, &program, "plain", "dies");
    let waits = waits(&locks, parts["waiter"]);
    assert_eq!((waits.len(), &waits[0]["end"]), (1, &Value::from("interrupted")), "{locks:#}");
    // Whoever ends the program wakes the waiter, and holds nothing.
    let holders = waits[0]["holders"].as_array().unwrap();
    assert!(holders.iter().all(|holder| holder["thread"]["tid"] == parts["holder"]), "{locks:#}");
    assert!(printed.contains("until a signal came"), "{printed}");
}
