//! `stillcore trace watch` on this machine: a program of a shell is followed from its first
//! instruction to its exit code.

use crate::support::{Place, assert_refused, is_root, records_events, stillcore, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn watch(place: &Place, arguments: &[&str]) -> Command {
    let mut command = stillcore(&["trace", "watch"]);
    command.arg("--state").arg(place.state()).arg("--out").arg(place.path("run")).args(arguments);
    command
}

#[test]
fn a_program_that_is_none_is_refused() {
    let refused = |arguments: &[&str], expected: &[&str]| {
        let place = Place::new();
        assert_refused(&watch(&place, arguments).output().unwrap(), expected);
        assert!(!place.path("run").exists(), "a run directory was left");
    };
    refused(&[], &["--pid", "--comm"]);
    refused(&["--pid", "0"], &["--pid"]);
    refused(&["--pid", "1", "--comm", "x"], &["cannot be used with"]);
    if is_root() {
        refused(&["--pid", "2147483647"], &["2147483647", "none with this id"]);
        refused(&["--comm", "no such name"], &["no thread has this name"]);
    } else {
        refused(&["--", "true"], &["must be root"]);
    }
}

#[test]
fn stretches_that_cannot_be_recorded_are_refused_before_anything_is_written() {
    if !records_events() {
        return;
    }
    let place = Place::alone();
    let refused = |mut command: Command| {
        let output = command.output().unwrap();
        assert_refused(&output, &["--off-stretches"]);
        assert!(!place.path("run").exists(), "a run directory was left");
        assert_eq!(place.leftovers(), Vec::<String>::new());
    };
    refused(watch(&place, &["--off-stretches=no_such_function", "--", "sleep", "1000"]));
    let mut command = stillcore(&["measure", "wakeup", "--off-stretches=no_such_function"]);
    // Not even where a measurement may go on without events.
    command.args(["--trace=auto", "--duration", "1s", "--policy", "other"]);
    command.arg("--state").arg(place.state()).arg("--out").arg(place.path("run"));
    refused(command);
}

#[test]
fn a_run_without_a_program_is_refused() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small");
    let output = stillcore(&["trace", "watch", "--from"]).arg(&run).output().unwrap();
    assert_refused(&output, &["no program was watched"]);
}

#[test]
fn a_shell_its_children_and_its_exit_code_are_seen() {
    if !records_events() {
        return;
    }
    let place = Place::new();
    let script = "for i in 1 2 3; do sleep 0.01; done; exit 7";
    let output = watch(&place, &["--stacks", "--json", "--", "sh", "-c", script]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let section = &answer["watch"];
    assert_eq!(section["command"]["exit_code"], 7, "{answer}");
    // The sources of its interrupts are reported as for a measurement.
    assert!(!section["attribution"].as_array().unwrap().is_empty(), "{answer}");
    let seen = |class: &str| {
        let lines = answer["coverage"].as_array().unwrap();
        lines.iter().any(|line| line["class"] == class && line["seen"] == true)
    };
    assert!(seen("switch") && seen("ipi.resched"), "{answer}");
    // It may use every CPU, so the senders are among the tasks that ran there.
    let lines = answer["coverage"].as_array().unwrap();
    let switch = lines.iter().find(|line| line["class"] == "switch").unwrap();
    assert_eq!(switch["sources"], "exact", "{answer}");
    let threads = section["threads"].as_array().unwrap();
    // The shell and, whatever else it runs, three sleeps.
    assert!(threads.len() >= 4, "{answer}");
    for thread in threads {
        let times = &thread["times"];
        let ns = |name: &str| times[name].as_u64().unwrap();
        let sum: u64 = ["on_cpu_ns", "waiting_ns", "preempted_ns", "asleep_ns", "unknown_ns"]
            .iter()
            .map(|name| ns(name))
            .sum();
        assert_eq!(sum, ns("observed_ns"), "{thread}");
    }
    wake_ups_add_up(section);
    let text_of_run = std::fs::read_to_string(place.path("run/run.json")).unwrap();
    let run: Value = serde_json::from_str(&text_of_run).unwrap();
    assert_eq!(run["complete"], true);
    let recorded = run["trace"]["events"].as_array().unwrap();
    assert!(recorded.iter().any(|event| event == "ftrace:kernel_stack"), "{recorded:?}");
    assert!(!place.path("run/PARTIAL").exists());
    assert_eq!(place.leftovers(), Vec::<String>::new());
    for buffer in [&run["trace"], &run["trace"]["sender"], &run["trace"]["watched"]] {
        let instance = buffer["instance"].as_str();
        assert!(instance.is_none_or(|path| !Path::new(path).exists()), "{instance:?} is still there");
    }
    // Printed again from the run, the answer is the same.
    let again = stillcore(&["trace", "watch", "--json", "--from"]).arg(place.path("run")).output().unwrap();
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["watch"], answer["watch"]);
}

/// Of each thread every nanosecond from its releases to its runs is in one box, and no wake-up is
/// there twice.
fn wake_ups_add_up(section: &Value) {
    let paths = section["paths"].as_array().unwrap();
    assert!(!paths.is_empty(), "{section}");
    for path in paths {
        let ns = |boxes: &Value| -> u64 {
            boxes.as_array().unwrap().iter().map(|one| one["ns"].as_u64().unwrap()).sum()
        };
        let others = if path["others"].is_null() { 0 } else { ns(&path["others"]) };
        assert_eq!(ns(&path["boxes"]) + others, path["total_ns"].as_u64().unwrap(), "{path}");
        for sample in path["worst"].as_array().unwrap() {
            assert_eq!(ns(&sample["parts"]), sample["value_ns"].as_u64().unwrap(), "{sample}");
        }
        let thread = section["threads"].as_array().unwrap().iter().find(|one| one["tid"] == path["tid"]);
        let activations = thread.unwrap()["activations"].as_u64().unwrap();
        assert!(path["samples"].as_u64().unwrap() <= activations, "{path}");
    }
}

#[test]
fn a_command_that_cannot_be_executed_says_so() {
    if !records_events() {
        return;
    }
    let place = Place::new();
    let output = watch(&place, &["--json", "--", "/no/such/program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/no/such/program"), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty() && !place.path("run").exists(), "nothing is made for it");
}
