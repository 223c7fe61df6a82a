//! `stillcore measure ipi` and `measure overheads` on this machine: structure and accounts, never
//! times.

use crate::support::{Place, answer, measure, read_json, text};
use model::samples_file;
use serde_json::Value;
use sys::sched;

/// Two CPUs that this process may use; none on a machine of one.
fn two_cpus() -> Option<(u32, u32)> {
    let cpus: Vec<u32> = sched::affinity().unwrap().iter().collect();
    if cpus.len() < 2 {
        println!("skipped: needs two CPUs");
        return None;
    }
    Some((cpus[cpus.len() - 2], cpus[cpus.len() - 1]))
}

fn every_wake_up_is_accounted_for(place: &Place, answer: &Value) -> u64 {
    let account = |name: &str| answer["accounts"][name].as_u64().unwrap();
    assert_eq!(account("sent"), account("received") + account("lost"), "{}", answer["accounts"]);
    let mut rows = 0;
    for record in answer["threads"].as_array().unwrap() {
        let (_, samples) =
            samples_file::read(&place.path("run").join(record["file"].as_str().unwrap())).unwrap();
        assert_eq!(samples.len() as u64, record["samples"].as_u64().unwrap());
        rows += samples.len() as u64;
    }
    assert_eq!(rows, account("received"));
    let pairs = answer["pairs"].as_array().unwrap().iter();
    let counted: u64 = pairs
        .map(|way| way["figures"]["n"].as_u64().unwrap() + way["figures"]["excluded"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, rows, "a sample belongs to one pair and method");
    account("sent")
}

#[test]
fn every_wake_up_of_every_method_is_accounted_for() {
    let Some((one, other)) = two_cpus() else { return };
    let place = Place::alone();
    let pairs = format!("{one}:{other},{other}:{one}");
    let answer = answer(measure(&place, "ipi", &["-n", "40", "--pairs"]).arg(pairs), 0);
    assert_eq!(answer["schema"], "stillcore.measure-ipi/2");
    assert!(every_wake_up_is_accounted_for(&place, &answer) > 0);
    let ways: Vec<_> = answer["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|way| (way["to"].as_u64().unwrap(), way["method"].as_str().unwrap()))
        .collect();
    let methods = ["futex", "eventfd", "pipe", "signal", "spin"];
    let wanted: Vec<_> =
        [one, other].iter().flat_map(|to| methods.iter().map(|&method| (u64::from(*to), method))).collect();
    assert_eq!(ways, wanted);
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn a_busy_target_under_the_ordinary_policy_loses_nothing() {
    let Some((one, other)) = two_cpus() else { return };
    let place = Place::alone();
    let order = ["-n", "30", "--target", "busy", "--policy", "other", "--methods", "pipe,futex", "--pairs"];
    let answer = answer(measure(&place, "ipi", &order).arg(format!("{one}:{other}")), 0);
    assert!(every_wake_up_is_accounted_for(&place, &answer) > 0);
    assert_eq!(answer["threads"][0]["policy_effective"]["name"], "SCHED_OTHER");
}

#[test]
fn pairs_that_cannot_be_are_refused_in_one_sentence() {
    for (order, what) in [
        (["--pairs", "1:1"], "invalid pair"),
        (["--pairs", "0:7000"], ""),
        (["--interval", "1us"], "50us"),
        (["--policy", "deadline"], "fifo, rr or other"),
        (["--cpus", "0"], "two CPUs"),
    ] {
        let place = Place::new();
        let output = measure(&place, "ipi", &order).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{order:?}");
        assert!(text(&output.stderr).contains(what), "{order:?}: {}", text(&output.stderr));
        assert!(!place.path("run").exists(), "{order:?}");
    }
}

#[test]
fn overheads_come_with_what_was_subtracted_and_in_the_form_for_analysis() {
    let Some((_, cpu)) = two_cpus() else { return };
    let place = Place::alone();
    let order = ["-n", "60", "--cache-count", "25", "--sizes", "4K,16K", "--take", "median", "--cpus"];
    let answer = answer(measure(&place, "overheads", &order).arg(cpu.to_string()), 0);
    assert_eq!(answer["schema"], "stillcore.measure-overheads/2");
    let record = &answer["threads"][0];
    assert!(record["samples"].as_u64() > Some(0) && record["ring_lost"] == 0, "{record}");
    let terms = answer["terms"].as_array().unwrap();
    for (name, bytes, n) in
        [("sched", 0, 60), ("switch", 0, 60), ("crpd", 4096, 25), ("crpd", 16384, 25), ("cpmd", 16384, 25)]
    {
        let term = terms.iter().find(|term| term["term"] == name && term["bytes"] == bytes);
        let term = term.unwrap_or_else(|| panic!("{name} of {bytes} bytes is missing: {}", answer["limits"]));
        assert_eq!(term["figures"]["n"], n, "{name}");
        assert!(term["subtracted_ns"].as_i64().unwrap() > 0, "the observer's cost: {name}");
    }
    let given = &answer["overheads_ns"];
    assert!(given["sched"].is_i64() && given["switch"].is_i64(), "{given}");
    assert_eq!(given["crpd"].as_array().unwrap().len(), 2);
    assert_eq!(given["crpd"][1]["bytes"], 16384);
    assert_eq!(given["tick"].is_null(), answer["tick_period_ns"].is_null());
    // Where events could be recorded, the terms by tracepoints are there; else the run says why
    // not.
    let run = read_json(&place.path("run/run.json"));
    let traced = answer["traced"].as_array().unwrap();
    if run["trace"].is_null() {
        assert!(traced.is_empty() && answer["limits"].to_string().contains("no events were recorded"));
    } else {
        assert!(run["trace"]["cpus"].as_array().unwrap().iter().all(|cpu| cpu["left"] == 0));
        let term = |name: &str| traced.iter().find(|term| term["term"] == name);
        let woken = term("wake-to-switch").expect("a thread that is woken every millisecond");
        assert!(woken["lengths"]["n"].as_u64().unwrap() >= 1, "{woken}");
        assert!(woken["events_within"].as_u64().unwrap() >= 1, "the switch is an event: {woken}");
    }
    assert_eq!(place.leftovers(), Vec::<String>::new());
}
