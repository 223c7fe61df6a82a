//! `audit`, `snapshot`, `explain` and `isolate plan` as a user meets them: on captured machines,
//! and without changing anything.

use crate::support::{Place, stillcore, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

fn machine(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines").join(name);
    path.to_str().unwrap().to_owned()
}

fn run(arguments: &[&str]) -> Output {
    stillcore(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

fn audit(name: &str, cpus: &str, more: &[&str]) -> Output {
    run(&[&["audit", "--root", &machine(name), "--cpus", cpus], more].concat())
}

/// Saves an audit's JSON and returns the path.
fn saved(place: &Place, name: &str, cpus: &str) -> PathBuf {
    let file = place.path(name);
    std::fs::write(&file, audit(name, cpus, &["--json"]).stdout).unwrap();
    file
}

#[test]
fn the_page_says_what_to_do_and_ends_with_the_next_command() {
    let output = audit("isolcpus-dropped-6.1", "2-3", &[]);
    let page = text(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{page}");
    for part in [
        "can be changed now",
        "needs another boot",
        "do: echo 3 > /sys/devices/virtual/workqueue/cpumask",
        "drops the whole parameter",
        "known interference of this kernel",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(page.lines().last(), Some("next: stillcore isolate plan --cpus 2,3"));
    assert!(text(&audit("isolated-6.1", "2-3", &["--all"]).stdout).contains("as isolation wants"));
}

/// What settings soften, and what concerns another way of isolation, is not told as what disturbs.
#[test]
fn known_interference_is_that_of_this_isolation() {
    let page = |name: &str| text(&audit(name, "2-3", &[]).stdout);
    let isolated = page("isolated-6.1");
    let part = |from: &str, to: &str| {
        let rest = isolated.split_once(from).unwrap_or_else(|| panic!("{from}: {isolated}")).1;
        rest.split_once(to).unwrap_or_else(|| panic!("{to}: {isolated}")).0.to_owned()
    };
    let open = part("\nknown interference of this kernel\n", "\n\n");
    assert!(open.contains("be5e015d107d: ") && !open.contains("cpuset-hk-series"), "{open}");
    assert!(!open.contains("real-time kernels") && !open.contains("4d13f4304fa4"), "{open}");
    assert_eq!(isolated.matches("may have such a fix earlier").count(), 1, "{isolated}");
    let softened = part("that a setting keeps off or makes rare\n", "\n\n");
    assert!(
        softened.contains("4d13f4304fa4: ") && softened.ends_with("(kswapd-affinity, kcompactd-affinity)")
    );
    let elsewhere = part("known interference of isolated cpuset partitions; ", "\n\n");
    assert!(elsewhere.contains("cpuset-hk-series"), "{elsewhere}");
    // Where nothing is isolated at boot, a partition is what would be made.
    let bare = page("isolcpus-dropped-6.1");
    let open = bare.split_once("\nknown interference of this kernel\n").unwrap().1;
    assert!(open.contains("cpuset-hk-series") && !bare.contains("isolated at boot\n"), "{bare}");
    // Nothing that can be changed now is left there: no plan is proposed.
    assert!(
        isolated.contains("\nnothing more that is wanted can be changed now (audit --all has the choices); ")
    );
}

#[test]
fn a_baseline_fails_only_for_what_got_worse() {
    let place = Place::new();
    let good = saved(&place, "isolated-6.1", "2-3");
    let same = audit("isolated-6.1", "2-3", &["--baseline", good.to_str().unwrap()]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stdout));
    assert!(text(&same.stdout).contains("nothing changed"));
    let worse = audit("isolcpus-dropped-6.1", "2-3", &["--baseline", good.to_str().unwrap(), "--json"]);
    assert_eq!(worse.status.code(), Some(2));
    let lines = json(&worse)["baseline"]["worse"].to_string();
    assert!(lines.contains("isolcpus: boot") && lines.contains("(was ok)"), "{lines}");
    let bad = saved(&place, "isolcpus-dropped-6.1", "2-3");
    let better = audit("isolated-6.1", "2-3", &["--baseline", bad.to_str().unwrap()]);
    assert_eq!(better.status.code(), Some(0), "{}", text(&better.stdout));
    let other = audit("isolated-6.1", "2", &["--baseline", good.to_str().unwrap()]);
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other.stderr).contains("an audit of CPUs 2,3"), "{}", text(&other.stderr));
}

/// What the SARIF 2.1.0 schema requires of a log, a run, a rule and a result.
#[test]
fn a_sarif_log_is_whole() {
    let log = json(&audit("rt-6.12", "2-3", &["--sarif"]));
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(run["tool"]["driver"]["name"], "stillcore");
    let ids: Vec<_> = rules.iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), rules.len());
    for result in results {
        assert!(ids.contains(&result["ruleId"].as_str().unwrap()), "{result}");
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let (kind, level) = (result["kind"].as_str().unwrap(), result["level"].as_str().unwrap());
        // "If kind has any value other than fail, level shall be none" (§3.27.10).
        assert_eq!(kind != "fail", level == "none", "{result}");
        assert!(["pass", "open", "informational", "notApplicable", "fail"].contains(&kind));
    }
}

#[test]
fn wrong_input_is_one_sentence_and_exit_1() {
    let place = Place::new();
    let nonsense = place.path("nonsense.json");
    std::fs::write(&nonsense, "{\n\"schema\": 1").unwrap();
    let archive = place.path("x.tar");
    std::fs::write(&archive, [7u8; 2048]).unwrap();
    let root = machine("isolated-6.1");
    for (arguments, part) in [
        (vec!["audit", "--root", &root, "--cpus", "9"], "no CPU 9"),
        (vec!["audit", "--root", &root, "--baseline", nonsense.to_str().unwrap()], "nonsense.json:2"),
        (vec!["audit", "--root", archive.to_str().unwrap()], "no whole tar archive"),
        (vec!["audit", "--root", "/none/such"], "/none/such"),
        (vec!["audit", "--json", "--sarif"], "cannot be used with"),
        (vec!["explain", "workqueue"], "settings workqueue"),
        (vec!["isolate", "plan", "--root", &root, "--cpus", "0"], "CPU 0 is among them"),
        (vec!["isolate", "deployment", "XYZ"], "invalid deployment"),
        (vec!["resources", "--root", &root, "--cpus", "77"], "77"),
    ] {
        let output = run(&arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
        let besides = |line: &&str| !line.is_empty() && !line.starts_with("hint: ");
        assert_eq!(stderr.lines().filter(besides).count(), 1, "{arguments:?}: {stderr}");
    }
}

/// The state of each finding that a capture of this machine shows as the machine itself does.
fn findings_of_a_capture(output: &Output) -> BTreeMap<String, Value> {
    // Tasks and their threads come and go between two audits; devices have no meaning in a capture.
    let moving = ["user-tasks", "kthread-affinity", "rcu-threads", "cpu_dma_latency", "systemd-cpu_affinity"];
    // Files that even root may not read here (lockdown) are missing from the capture.
    let locked = [
        "fair_server-timers",
        "rt_runtime_share",
        "sched_granularity",
        "sched_hrtick",
        "sched_rt_push_ipi",
        "sched_ttwu_queue",
    ];
    let is_left_out = |id: &str| id.ends_with("_server") || locked.contains(&id) || moving.contains(&id);
    let findings = json(output)["findings"].as_array().unwrap().clone();
    findings
        .into_iter()
        .map(|finding| (finding["id"].as_str().unwrap().to_owned(), finding["state"].clone()))
        .filter(|(id, _)| !is_left_out(id))
        .collect()
}

#[test]
fn a_snapshot_of_this_machine_audits_as_the_machine_does() {
    let place = Place::new();
    let mut out = place.path("here.tar");
    // What other tests change for a while (events enabled in an instance, say) may differ in the
    // capture alone, but not in three of them.
    let mut different = Vec::new();
    for capture in 0..3 {
        out = place.path(&format!("{capture}.tar"));
        let before = findings_of_a_capture(&run(&["audit", "--json"]));
        let taken = run(&["snapshot", "--out", out.to_str().unwrap()]);
        assert_eq!(taken.status.code(), Some(0), "{}", text(&taken.stderr));
        let captured = findings_of_a_capture(&run(&["audit", "--json", "--root", out.to_str().unwrap()]));
        let after = findings_of_a_capture(&run(&["audit", "--json"]));
        assert_eq!(captured.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
        assert!(after.len() > 100, "{after:?}");
        let states = |id: &String| [before[id].clone(), captured[id].clone(), after[id].clone()];
        let differs = |id: &&String| captured[*id] != before[*id] && captured[*id] != after[*id];
        different = after.keys().filter(differs).map(|id| (id.clone(), states(id))).collect();
        if different.is_empty() {
            break;
        }
    }
    assert!(different.is_empty(), "{different:?}");
    let again = run(&["snapshot", "--out", out.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("it exists"), "{}", text(&again.stderr));
}

#[test]
fn a_plan_of_a_captured_machine_is_made_anywhere() {
    let output = run(&["isolate", "plan", "--root", &machine("vm-6.18"), "--cpus", "3"]);
    let page = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(page.contains("/sys/devices/virtual/workqueue/cpumask  f -> 7"), "{page}");
    let plan = json(&run(&["isolate", "plan", "--root", &machine("vm-6.18"), "--cpus", "3", "--json"]));
    assert_eq!(plan["schema"], "stillcore.isolate-plan/1");
    assert!(plan["steps"].as_array().unwrap().len() > 5);
}

#[test]
fn nothing_stands_where_nothing_was_applied() {
    let place = Place::new();
    let state = place.state();
    let state = state.to_str().unwrap();
    let status = run(&["isolate", "status", "--state", state]);
    assert!(text(&status.stdout).contains("nothing is isolated"), "{}", text(&status.stdout));
    let undo = run(&["isolate", "undo", "--state", state]);
    assert_eq!(undo.status.code(), Some(0), "{}", text(&undo.stderr));
    assert!(text(&undo.stdout).contains("nothing to undo"));
    assert_eq!(run(&["isolate", "verify", "--state", state]).status.code(), Some(1));
    assert!(!place.state().exists(), "looking makes no directory");
}

#[test]
fn every_mechanism_class_and_fix_is_explained() {
    for (word, part) in [
        ("workqueue-cpumask", "hex mask without 0x"),
        ("ipi.call", "removed, most of it, by"),
        ("557a6bfc662c", "fair server"),
        ("557a6bfc66", "first in 6.12"),
        ("exact", "both ends name the same object"),
        ("cannot-tell", "verdicts of a comparison"),
        ("Missed release", "charged with its lateness"),
    ] {
        let output = run(&["explain", word]);
        assert!(text(&output.stdout).contains(part), "{word}: {}", text(&output.stdout));
    }
    let all = run(&["explain"]);
    for word in ["softirq: ", " user-tasks", "the kernel command line: "] {
        assert!(text(&all.stdout).contains(word), "{word}: {}", text(&all.stdout));
    }
}
