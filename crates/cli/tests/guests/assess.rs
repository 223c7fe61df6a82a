//! `assess` on real kernels, one boot each: cores 2 and 3 isolated, so that what reaches core 2 can
//! be counted exactly.

use crate::machine::Guest;
use crate::support::{read_json, stillcore, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

pub(crate) fn check(guest: &Guest) {
    let root = &guest.root;
    let run = root.join("run");
    let log = fs::read_to_string(root.join("assess.log")).unwrap();
    let code = fs::read_to_string(root.join("assess.code")).unwrap();
    assert!(matches!(code.trim(), "0" | "2"), "{code}: {log}");
    let record = read_json(&run.join("run.json"));
    let analysis = read_json(&run.join("analysis.json"));
    assert_eq!(record["complete"], true);
    nothing_is_left(root);
    the_machine_is_as_before(&run);
    the_accounts_balance(&record, &analysis);
    trace_cmd_counts_the_same(&run);
    the_counters_agree(&analysis);
    the_idle_core_is_still(&analysis);
    the_probe_is_counted_apart(&analysis);
    the_stressors_worked(&record);
    what_is_kept_explains_the_large_samples(root);
    a_refused_barrier_is_no_operation(root);
}

/// A kernel that runs nohz_full CPUs refuses a global memory barrier as fast as it is asked: absent
/// in words, and never operations.
fn a_refused_barrier_is_no_operation(root: &Path) {
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let answer = read_json(&root.join("barrier.json"));
    let record = &answer["stressors"][0];
    assert_eq!(record["name"], "membarrier_global", "{}", read("barrier.log"));
    if matches!(read("nohz_full").trim(), "" | "(null)") {
        assert_ne!(record["state"], "absent", "{record}");
    } else {
        assert_eq!((&record["state"], &record["ops_ok"]), (&"absent".into(), &0.into()), "{record}");
        assert!(record["reason"].as_str().unwrap().contains("nohz_full"), "{record}");
        assert_eq!(read("barrier.code").trim(), "2", "nothing at all was disturbed");
    }
    assert_eq!(read("left-after-barrier"), "");
}

/// Snapshots: the accounts balance on this kernel, and what took the CPU is named. Emulated CPUs
/// stop for long by themselves, so that other samples may be larger than those of the measurement
/// that took it.
fn what_is_kept_explains_the_large_samples(root: &Path) {
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert_eq!(read("kept.code").trim(), "0", "{}", read("kept.log"));
    assert_eq!(read("left-after-kept"), "");
    let run = root.join("kept");
    let (record, analysis) = (read_json(&run.join("run.json")), read_json(&run.join("analysis.json")));
    assert_eq!(analysis["losses"]["reconciled"], true, "{}", analysis["losses"]);
    let snapshots = &record["trace"]["snapshots"];
    let number = |value: &Value| value.as_u64().unwrap();
    let kept = snapshots["kept"].as_array().unwrap();
    let samples_over: u64 = kept.iter().map(|one| number(&one["samples_over"])).sum();
    let others: u64 = ["given_up", "smaller", "unrecorded"].iter().map(|name| number(&snapshots[name])).sum();
    assert!((1..=10).contains(&kept.len()), "{snapshots}");
    assert_eq!(number(&snapshots["over"]), samples_over + others, "{snapshots}");
    let samples = analysis["snapshots"]["samples"].as_array().unwrap();
    let taken = |one: &&Value| {
        let rows = one["rows"].as_array().unwrap();
        // The program is the guest's first program, too, and goes by that name.
        let other = rows.iter().filter(|row| row["class"] == "switch" && row["label"] == "init");
        other.map(|row| number(&row["net_ns"])).sum::<u64>() > number(&one["sample"]["value_ns"]) / 2
    };
    assert!(samples.iter().any(|one| taken(&one)), "{samples:?}");
    trace_cmd_reads_all_of(&run);
}

fn nothing_is_left(root: &Path) {
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert_eq!(read("left-at-start"), "");
    assert_eq!(read("left-after-run"), "");
    assert!(read("held-when-killed").contains("internal"), "there was something to clean up");
    assert_eq!(read("left-after-kill"), "");
    assert_eq!(read("left-after-offline"), "");
    assert_eq!(read("offlined.code").trim(), "1");
    assert!(read("offlined.log").contains("CPU 3 was taken from it"), "{}", read("offlined.log"));
    let killed = read_json(&root.join("killed/run.json"));
    assert_eq!(killed["complete"], false);
    assert!(root.join("killed/PARTIAL").exists());
}

fn the_machine_is_as_before(run: &Path) {
    let state = |name: &str| read_json(&run.join(name))["state"].clone();
    assert_eq!(state("machine-before.json"), state("machine-after.json"));
}

fn the_accounts_balance(record: &Value, analysis: &Value) {
    assert_eq!(analysis["losses"]["reconciled"], true, "{}", analysis["losses"]);
    assert_eq!(record["losses"]["trace_events"], 0);
    for probe in record["probes"].as_array().unwrap().iter().filter(|probe| probe["probe"] == "wakeup") {
        let number = |name: &str| probe[name].as_u64().unwrap();
        assert_eq!(number("released"), number("samples") + number("missed") + number("ring_lost"));
    }
}

/// trace-cmd reads both buffers of the run's trace and counts every event as stillcore does.
fn trace_cmd_counts_the_same(run: &Path) {
    assert!(trace_cmd_reads_all_of(run) > 1000);
}

/// How many events there are, by both.
fn trace_cmd_reads_all_of(run: &Path) -> u64 {
    let file = run.join("trace.dat");
    let ours = stillcore(&["trace", "counts", "--buffer", "all", "--json", file.to_str().unwrap()])
        .output()
        .unwrap();
    let ours: Value = serde_json::from_slice(&ours.stdout).unwrap();
    let ours: BTreeMap<String, u64> = serde_json::from_value(ours["events"].clone()).unwrap();
    let theirs = match Command::new("trace-cmd").args(["report", "-t", "-i"]).arg(&file).output() {
        Ok(output) => output,
        Err(error) => panic!("trace-cmd: {error} (package trace-cmd)"),
    };
    assert!(theirs.status.success(), "{}", text(&theirs.stderr));
    let mut counted = BTreeMap::<String, u64>::new();
    for line in text(&theirs.stdout).lines().filter(|line| line.contains("] ")) {
        // "comm-pid [cpu] seconds: event: fields"
        let after = line.split_once("] ").map_or("", |(_, rest)| rest);
        if let Some((_, rest)) = after.split_once(": ") {
            let name = rest.trim_start().split(':').next().unwrap_or_default();
            *counted.entry(name.to_owned()).or_default() += 1;
        }
    }
    assert_eq!(ours, counted);
    ours.values().sum()
}

fn windows(analysis: &Value) -> &Vec<Value> {
    analysis["events"].as_array().unwrap()
}

/// `/proc/interrupts` and `/proc/softirqs` count what the trace counts. They are read a moment
/// before and after it; on a crowded host that moment holds more than the check allows for, in a
/// window or two.
fn the_counters_agree(analysis: &Value) {
    let checks: Vec<_> =
        windows(analysis).iter().flat_map(|window| window["cross_checks"].as_array().unwrap()).collect();
    assert!(!checks.is_empty());
    let number = |check: &Value, name: &str| check[name].as_u64().unwrap();
    let more = |check: &&&Value| number(check, "traced") > number(check, "kernel");
    assert_eq!(checks.iter().find(more), None, "traced, and not counted by the kernel");
    let agree = checks.iter().filter(|check| check["agrees"] == true).count();
    assert!(agree * 20 >= checks.len() * 19, "{agree} of {}: {checks:?}", checks.len());
}

fn class<'a>(window: &'a Value, name: &str) -> &'a Value {
    window["classes"].as_array().unwrap().iter().find(|class| class["class"] == name).unwrap()
}

/// In the noise window of the idle control no tick and no IPI reaches core 2, or the analysis names
/// what came.
fn the_idle_core_is_still(analysis: &Value) {
    let idle = windows(analysis)
        .iter()
        .find(|window| window["phase"] == "idle-before" && window["probe"] == "noise");
    for name in ["timer.tick", "ipi.resched", "ipi.call", "ipi.irqwork"] {
        let class = class(idle.unwrap(), name);
        assert_eq!(class["observable"], true, "{name}");
        println!("{name}: {}", class["count"]);
        assert!(class["count"] == 0 || !class["labels"].as_array().unwrap().is_empty(), "unnamed: {class}");
    }
}

/// Every wake-up of the probe is its own timer and its own switches, and none of that counts as
/// interference.
fn the_probe_is_counted_apart(analysis: &Value) {
    for window in windows(analysis).iter().filter(|window| window["probe"] == "wakeup") {
        let own = class(window, "self")["count"].as_u64().unwrap();
        let samples = analysis["distributions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|d| d["probe"] == "wakeup" && d["phase"] == window["phase"])
            .map(|d| d["n"].as_u64().unwrap())
            .unwrap();
        assert!(own >= samples, "{own} own events for {samples} samples in {}", window["phase"]);
    }
}

fn the_stressors_worked(record: &Value) {
    let stressors = record["stressors"].as_array().unwrap();
    assert_eq!(stressors.len(), 6);
    for stressor in stressors {
        // Emulated on a crowded machine, one may be weak.
        assert!(stressor["state"] == "ok" || stressor["state"] == "weak", "{stressor}");
    }
}
