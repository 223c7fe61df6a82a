//! Graphs on the isolated CPUs of a real kernel, by the program that ships: every message is
//! accounted for, executors have the requested policies and CPUs, and the machine is as it was. No
//! times: emulated CPUs have none.

use crate::machine::Guest;
use crate::state::differences;
use crate::support::graph::{assert_balanced, count};
use crate::support::read_json;
use model::Run;
use serde_json::Value;
use std::fs;
use std::path::Path;

pub(crate) fn graphs(guest: &Guest) {
    let (root, kernel) = (&guest.root, guest.kernel());
    let cfs = ran(root, "cfs", 0);
    let by_name = |answer: &Value, name: &str| {
        let executors = answer["executors"].as_array().unwrap().clone();
        executors.into_iter().find(|one| one["name"] == name).unwrap()
    };
    for (name, priority) in [("timebase", 98), ("sch", 90), ("hk", 80), ("sensor", 70)] {
        let policy = &by_name(&cfs, name)["policy"];
        assert_eq!((&policy["name"], &policy["priority"]), (&"SCHED_RR".into(), &priority.into()), "{cfs}");
    }
    effective(&root.join("cfs"), "SCHED_RR");
    for chain in cfs["chains"].as_array().unwrap() {
        assert!(count(&chain["ends"][0]["latency"], "n") > 0, "{kernel}: {chain}");
    }

    let multi = ran(root, "multi", 0);
    assert_eq!(multi["executors"].as_array().unwrap().len(), 9);
    effective(&root.join("multi"), "SCHED_FIFO");

    let disturbed = ran(root, "disturbed", 0);
    let stressors = disturbed["stressors"].as_array().unwrap();
    assert!(!stressors.is_empty() && stressors.iter().any(|one| one["state"] == "ok"), "{disturbed}");
    for one in stressors {
        assert_eq!(one["cpus"].as_str().unwrap().find(['2', '3']), None, "{kernel}: {one}");
    }

    let traced = ran(root, "traced", 0);
    let run: Run = model::run::stored::read_run(&root.join("traced")).unwrap();
    assert!(root.join("traced").join("trace.dat").exists() && run.complete, "{kernel}: {traced}");

    let [before, after] = ["before.json", "after.json"].map(|name| read_json(&root.join(name)));
    assert_eq!(differences(&before, &after), Vec::<String>::new(), "{kernel}");

    let pid = fs::read_to_string(root.join("stopped.pid")).unwrap();
    assert!(!pid.trim().is_empty(), "{kernel}: no thread under FIFO 80 was seen on CPU 3");
    let stopped = ran(root, "stopped", 1);
    let account = &stopped["edges"][0]["account"];
    assert!(count(account, "sent") > count(account, "received"), "{kernel}: {account}");
    assert!(stopped["died"].to_string().contains("back"), "{kernel}: {stopped}");
    println!(
        "{kernel}: cFS {}, nine executors {}, disturbed {}, one stopped {}",
        cfs["account"], multi["account"], disturbed["account"], account
    );
}

/// The answer of a run that ended as it should, its account balanced.
fn ran(root: &Path, name: &str, code: i32) -> Value {
    let read = |what: &str| fs::read_to_string(root.join(format!("{name}.{what}"))).unwrap();
    assert_eq!(read("code").trim(), code.to_string(), "{name}: {}", read("log"));
    let answer = read_json(&root.join(format!("{name}.json")));
    assert_balanced(&root.join(name), &answer);
    assert!(count(&answer["account"], "sent") > 0 && count(&answer["account"], "received") > 0, "{name}");
    for executor in answer["executors"].as_array().unwrap() {
        let cpus = executor["cpus"].as_str().unwrap();
        assert!(["2", "3"].contains(&cpus), "{name}: {executor}");
    }
    answer
}

/// What the kernel granted, not what was requested.
fn effective(run: &Path, policy: &str) {
    let run: Run = model::run::stored::read_run(run).unwrap();
    assert!(!run.probes.is_empty());
    for probe in &run.probes {
        assert_eq!(probe.policy_effective, probe.policy_asked);
        assert_eq!(probe.policy_effective.name, policy);
    }
}
