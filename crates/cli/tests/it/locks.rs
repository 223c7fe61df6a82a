//! Contention that a program plants on this machine: `trace watch` names the holder of each lock,
//! what that one did meanwhile, and priority inversion only where it was planted.

use crate::support::{Place, records_events, stillcore, text};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Contentions of each case.
const ROUNDS: usize = 5;

/// The plants, compiled; `None` where they cannot be, or nothing can be recorded.
fn contention(place: &Place) -> Option<PathBuf> {
    compiled(place, "contention")
}

fn compiled(place: &Place, name: &str) -> Option<PathBuf> {
    if !records_events() {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/plants/{name}.c"));
    let program = place.path(name);
    let compiled = Command::new("cc").args(["-O2", "-pthread", "-o"]).arg(&program).arg(source).status();
    match compiled {
        Ok(status) if status.success() => Some(program),
        other => {
            println!("skipped: no C compiler ({other:?})");
            None
        }
    }
}

/// The section of the locks of a planted case, the threads by their part, and the text.
fn watched(
    place: &Place,
    program: &Path,
    scene: &str,
    more: &[&str],
) -> (Value, HashMap<String, i64>, String) {
    let run = place.path(&scene.replace(':', "-"));
    let output = stillcore(&["trace", "watch", "--json", "--out"])
        .arg(&run)
        .arg("--state")
        .arg(place.state())
        .args(more)
        .arg("--")
        .arg(program)
        .args(["1", &ROUNDS.to_string(), scene])
        .output()
        .unwrap();
    let log = text(&output.stderr);
    assert!(output.status.success(), "{log}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    // With --json the command's own output is on standard error.
    let line = log.lines().find_map(|line| line.strip_prefix(scene)).unwrap_or_else(|| panic!("{log}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let parts = words.chunks(2).filter_map(|pair| Some((pair[0].to_owned(), number(pair.get(1)?)?)));
    let printed = stillcore(&["trace", "watch", "--from"]).arg(&run).output().unwrap();
    (answer["watch"]["locks"].clone(), parts.collect(), text(&printed.stdout))
}

/// The waits of the planted waiter for the planted lock: the C library's own hold new threads back.
fn waits<'l>(locks: &'l Value, parts: &HashMap<String, i64>) -> Vec<&'l Value> {
    let all = locks["worst"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_planted =
        |wait: &&Value| wait["waiter"]["tid"] == parts["waiter"] && wait["word"] == parts["lock"];
    all.iter().filter(is_planted).collect()
}

#[test]
fn holders_are_named_and_inversion_only_where_it_was_planted() {
    let place = Place::alone();
    let Some(program) = contention(&place) else { return };
    // Whose time it is, and whether that is inversion; the bench has more.
    let cases = [
        ("plain", "holds", "holder", "ran", false),
        ("plain", "inverts", "holder", "middle", true),
        ("plain", "chain", "deepest", "middle", true),
        ("inherit", "inverts", "holder", "ran", false),
    ];
    for (kind, case, holder, what, inversion) in cases {
        let (locks, parts, printed) = watched(&place, &program, &format!("{kind}:{case}"), &[]);
        let waits = waits(&locks, &parts);
        assert_eq!(waits.len(), ROUNDS, "{kind} {case}: {locks:#}");
        let mut of_the_case = 0;
        for wait in waits {
            let message = format!("{kind} {case}: {wait:#}");
            assert_eq!(wait["holders"][0]["thread"]["tid"], parts["holder"], "{message}");
            assert_eq!(wait["holders"].as_array().unwrap().len(), 1, "{message}");
            // Others of this machine may keep the holder from running, and that is inversion too.
            let own =
                |part: &&Value| parts.values().any(|tid| part["doing"]["preempted"]["by"]["tid"] == *tid);
            let mut inverted =
                wait["parts"].as_array().unwrap().iter().filter(|part| part["inversion"] == true);
            assert_eq!(inverted.any(|part| own(&part)), inversion, "{message}");
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
        if inversion {
            assert!(printed.contains(": priority inversion"), "{printed}");
            assert!(printed.contains("PTHREAD_PRIO_INHERIT"), "{printed}");
        }
    }
}

/// The mutex of an open file's position: whoever reads holds it until the call ends.
#[test]
fn the_holder_of_a_kernels_mutex_is_named_and_inversion_only_where_it_was_planted() {
    let place = Place::alone();
    let Some(program) = contention(&place) else { return };
    for (case, inversion) in [("holds", false), ("inverts", true)] {
        let (locks, parts, printed) = watched(&place, &program, &format!("position:{case}"), &[]);
        let all = locks["worst"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of_kernel = |wait: &&Value| wait["kind"].as_str().is_some_and(|kind| kind.starts_with("kernel-"));
        let all: Vec<_> = all.iter().filter(of_kernel).collect();
        if all.is_empty() {
            println!("skipped: this kernel has no events of its locks (since 5.19): {locks:#}");
            return;
        }
        let waits: Vec<_> = all.iter().filter(|wait| wait["waiter"]["tid"] == parts["waiter"]).collect();
        // A neighbour of this machine may keep the waiter away until the lock is free.
        assert!(waits.len() > ROUNDS / 2, "{case}: {locks:#}");
        for wait in &waits {
            let holders = wait["holders"].as_array().unwrap();
            assert!(holders.iter().all(|one| one["thread"]["tid"] == parts["holder"]), "{case}: {wait:#}");
        }
        let planted = |wait: &&&&Value| {
            let parts_of = wait["parts"].as_array().unwrap();
            let by = |part: &Value| part["doing"]["preempted"]["by"]["tid"] == parts["middle"];
            inversion && parts_of.iter().any(|part| part["inversion"] == true && by(part))
        };
        assert_eq!(waits.iter().filter(planted).count() > 1, inversion, "{case}: {locks:#}");
        assert!(printed.contains("in readv, held by holder["), "{case}: {printed}");
        assert_eq!(printed.contains("leave readv out of the loop"), inversion, "{case}: {printed}");
    }
}

#[test]
fn what_has_no_owner_is_no_lock() {
    let place = Place::alone();
    let Some(program) = contention(&place) else { return };
    for kind in ["condition", "semaphore", "futex"] {
        let (locks, parts, printed) = watched(&place, &program, &format!("{kind}:holds"), &[]);
        // A futex of the program's own may look like a lock where memory cannot be read.
        let of_holder = |wait: &&Value| {
            let holders = wait["holders"].as_array().unwrap();
            let by_value = kind == "futex" && wait["kind"] == "by-value" && locks["memory"] == false;
            !by_value && holders.iter().any(|holder| holder["thread"]["tid"] == parts["holder"])
        };
        let wrong = locks["worst"].as_array().into_iter().flatten().find(of_holder);
        assert!(wrong.is_none(), "{kind}: {wrong:#?}");
        assert!(!printed.contains("held by holder"), "{kind}: {printed}");
    }
}

#[test]
fn a_lock_that_nobody_releases_is_a_wait_that_the_end_cut_short() {
    let place = Place::alone();
    let Some(program) = contention(&place) else { return };
    let (locks, parts, printed) = watched(&place, &program, "plain:dies", &[]);
    let waits = waits(&locks, &parts);
    assert_eq!((waits.len(), &waits[0]["end"]), (1, &Value::from("interrupted")), "{locks:#}");
    // Whoever ends the program wakes the waiter, and holds nothing.
    let holders = waits[0]["holders"].as_array().unwrap();
    assert!(holders.iter().all(|holder| holder["thread"]["tid"] == parts["holder"]), "{locks:#}");
    assert!(printed.contains("until a signal came"), "{printed}");
}

#[test]
fn threads_that_wait_for_one_another_are_a_deadlock() {
    let place = Place::alone();
    let Some(program) = contention(&place) else { return };
    let (locks, parts, printed) = watched(&place, &program, "plain:deadlock", &["--duration", "1s"]);
    let of = |part: &str| -> Value {
        let waits = locks["worst"].as_array().unwrap().iter();
        let mut lasting = waits.filter(|wait| wait["end"] == "lasts");
        lasting.find(|wait| wait["waiter"]["tid"] == parts[part]).cloned().unwrap_or_default()
    };
    for (part, other) in [("waiter", "holder"), ("holder", "waiter")] {
        let wait = of(part);
        let circle: Vec<_> = wait["circle"].as_array().into_iter().flatten().map(|one| &one["tid"]).collect();
        assert_eq!(circle, [parts[part], parts[other]], "{part}: {locks:#}");
    }
    assert!(printed.contains("deadlock") && printed.contains("in the same order"), "{printed}");
}

#[test]
fn every_locking_is_counted_where_that_is_asked_for_and_no_probe_stays() {
    let place = Place::alone();
    let Some(program) = compiled(&place, "locking") else { return };
    let run = place.path("run");
    let output = stillcore(&["trace", "watch", "--json", "--locks=every", "--out"])
        .arg(&run)
        .arg("--state")
        .arg(place.state())
        .arg("--")
        .arg(&program)
        .args(["contended", "0.1"])
        .output()
        .unwrap();
    let log = text(&output.stderr);
    if log.contains("CONFIG_UPROBE_EVENTS") {
        println!("skipped: this kernel has no probes of programs");
        return;
    }
    assert!(output.status.success(), "{log}");
    assert!(log.contains("locking and unlocking a mutex takes about"), "{log}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    // CPU time of an iteration, iterations, and in how many the lock was taken.
    let line =
        log.lines().rfind(|line| line.split_whitespace().count() == 4).unwrap_or_else(|| panic!("{log}"));
    let counts: Vec<u64> = line.split_whitespace().skip(2).map(|word| word.parse().unwrap()).collect();
    let [iterations, taken] = counts[..] else { panic!("{line}") };
    let every = &answer["watch"]["locks"]["every"];
    let main = &answer["watch"]["command"]["pid"];
    // They are sorted by time held: one held while its thread was preempted may be the first.
    let by_main =
        |lock: &Value| lock["by"].as_array().unwrap().iter().find(|by| by["thread"]["tid"] == *main).cloned();
    let locks = every["locks"].as_array().unwrap().iter();
    let (lock, by) = locks
        .filter_map(|lock| Some((lock, by_main(lock)?)))
        .max_by_key(|(_, by)| by["taken"].as_u64())
        .unwrap_or_else(|| panic!("no lock of {main}: {every:#}"));
    assert_eq!(
        (by["taken"].as_u64(), by["held"]["n"].as_u64()),
        (Some(iterations), Some(iterations)),
        "{every:#}"
    );
    assert_eq!(lock["refused"], taken, "{every:#}");
    let printed = text(&stillcore(&["trace", "watch", "--from"]).arg(&run).output().unwrap().stdout);
    assert!(printed.contains("every locking: ") && printed.contains("held, median"), "{printed}");
    assert_eq!(place.leftovers(), Vec::<String>::new());
}
