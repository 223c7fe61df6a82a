//! Probes on real kernels under changing conditions: the CPU goes offline, the clock is set, memory
//! runs out, throttling and the fair server step in. Structure and accounts alone are judged:
//! emulated CPUs have no times.

use crate::machine::Guest;
use crate::state::the_same;
use crate::support::read_json;
use model::sample::flag;
use model::samples_file;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn answer(root: &Path, name: &str, code: &str) -> Value {
    let log = fs::read_to_string(root.join(format!("{name}.log"))).unwrap();
    assert_eq!(fs::read_to_string(root.join(format!("{name}.code"))).unwrap().trim(), code, "{name}: {log}");
    read_json(&root.join(format!("{name}.json")))
}

/// Served + missed + lost = requested, exactly; and the file has the recorded rows.
fn accounts(root: &Path, name: &str, answer: &Value) -> (Value, Vec<model::Sample>) {
    let record = answer["threads"][0]["record"].clone();
    let number = |key: &str| record[key].as_u64().unwrap();
    let file = root.join(name).join(record["file"].as_str().unwrap());
    let (_, samples) = samples_file::read(&file).unwrap();
    assert_eq!(samples.len() as u64, number("samples"), "{name}: {record}");
    if record["probe"] == "wakeup" {
        assert_eq!(
            number("released"),
            number("samples") + number("missed") + number("ring_lost"),
            "{name}: {record}"
        );
        let missed: u64 = samples.iter().map(|sample| u64::from(sample.missed)).sum();
        assert!(missed <= number("missed"), "{name}: {record}");
    }
    (record, samples)
}

/// Samples up to the last sure moment count, those behind it are flagged, and the run says why it
/// is not complete.
fn taken(root: &Path, probe: &str) {
    let name = &format!("{probe}-offline");
    let answer = answer(root, name, "1");
    assert_eq!(answer["complete"], false);
    let reason = answer["incomplete_reason"].as_str().unwrap();
    assert!(reason.contains("CPU 3 was taken from it"), "{reason}");
    let (record, samples) = accounts(root, name, &answer);
    let sure = record["taken_ns"].as_i64().unwrap();
    assert!(
        (record["t0_ns"].as_i64().unwrap()..=record["t1_ns"].as_i64().unwrap()).contains(&sure),
        "{record}"
    );
    for sample in &samples {
        let after = sample.t_ns + sample.value_ns > sure;
        assert_eq!(after, sample.flags & flag::CPU_TAKEN != 0, "{name}: {sample:?}, sure until {sure}");
    }
    let figures = &answer["threads"][0]["figures"];
    let counted = samples.iter().filter(|sample| sample.counts()).count() as u64;
    assert_eq!(figures["n"].as_u64(), Some(counted));
    assert!(counted > 0, "{name}: a second was measured before the CPU went away");
    let slices: Vec<model::usage::Stretch> = serde_json::from_value(record["slices"].clone()).unwrap();
    assert!(slices.iter().all(|slice| slice.t0_ns < slice.t1_ns && slice.t1_ns <= sure), "{slices:?}");
    assert!(root.join(name).join("PARTIAL").exists());
}

fn causes<'a>(answer: &'a Value, thief: &str) -> Vec<&'a Value> {
    let causes = answer["threads"][0]["causes"]["causes"].as_array().unwrap();
    causes.iter().filter(|cause| cause["thief"] == thief).collect()
}

/// Every gap has one cause.
fn whole(answer: &Value) {
    let causes = answer["threads"][0]["causes"]["causes"].as_array().unwrap();
    let gaps: u64 = causes.iter().map(|cause| cause["gaps"].as_u64().unwrap()).sum();
    assert_eq!(Some(gaps), answer["threads"][0]["figures"]["n"].as_u64());
}

/// The process that took all memory is killed, and no other: run and machine are whole.
fn starved(guest: &Guest) {
    let kills = guest.read("starved.kills");
    assert!(
        kills.split_whitespace().last().is_some_and(|count| count != "0"),
        "memory did not run out: {kills}"
    );
    let answer = answer(&guest.root, "starved", "0");
    assert_eq!(answer["complete"], true, "{}", answer["incomplete_reason"]);
    let (record, _) = accounts(&guest.root, "starved", &answer);
    assert_eq!(record["ring_lost"], 0, "{record}");
    the_same(&guest.json("before.json"), &guest.json("after.json"), guest.kernel());
}

/// The CPU goes away, the clock is set, memory runs out, throttling steps in.
pub(crate) fn ground_that_moves(guest: &Guest) {
    let root = &guest.root;
    taken(root, "wakeup");
    taken(root, "spin");

    let forth = answer(root, "clock-forth", "0");
    let (record, samples) = accounts(root, "clock-forth", &forth);
    assert!(samples.iter().any(|sample| sample.flags & flag::CLOCK_STEP != 0), "{record}");
    assert!(record["missed"].as_u64() > Some(0), "the step put releases into the past: {record}");
    let worst = forth["threads"][0]["figures"]["corrected_max_ns"].as_i64().unwrap();
    assert!(worst < 1_000_000_000_000, "no release was late by the years that the clock was set: {worst} ns");

    let back = answer(root, "clock-back", "0");
    accounts(root, "clock-back", &back);
    assert!(back["limits"].to_string().contains("was set back"), "{}", back["limits"]);

    starved(guest);

    let throttled = answer(root, "throttled", "0");
    accounts(root, "throttled", &throttled);
    whole(&throttled);
    assert_eq!(throttled["threads"][0]["record"]["noise"]["throttling"]["runtime_ns"], 950_000_000);
    let run = read_json(&root.join("throttled/run.json"));
    let log = &run["windows"][0]["kernel_log"];
    assert!(log.to_string().contains("RT throttling activated"), "{log}");
    // Where the machine below took the emulated CPU away for long, gaps have other lengths than the
    // throttling in the log.
    let gap_causes = &throttled["threads"][0]["causes"];
    let starved = gap_causes["counted"]["not_charged_ns"].as_u64() > Some(200_000_000);
    let sure = causes(&throttled, "throttling");
    assert!(starved || sure.iter().any(|cause| cause["certainty"] == "counted"), "{gap_causes}");
    assert!(causes(&throttled, "fair-server").is_empty());
}

/// The CPU time of ordinary tasks on a kernel with a fair server (6.12).
pub(crate) fn the_fair_server_serves(guest: &Guest) {
    let root = &guest.root;
    let served = answer(root, "served", "0");
    accounts(root, "served", &served);
    whole(&served);
    let noise = &served["threads"][0]["record"]["noise"];
    assert_eq!(noise["fair_server"]["runtime_ns"], 50_000_000, "{noise}");
    assert_eq!(noise["throttling"], Value::Null, "{noise}");
    // An ordinary task got the CPU from a real-time loop, and the kernel counted that. On an
    // emulated CPU what the server gives may take longer than it may give.
    let away = [causes(&served, "fair-server"), causes(&served, "preemption")].concat();
    assert!(!away.is_empty(), "{}", served["threads"][0]["causes"]);
    assert!(served["threads"][0]["causes"]["counted"]["involuntary"].as_u64() > Some(0));
    assert!(causes(&served, "throttling").is_empty());
}
