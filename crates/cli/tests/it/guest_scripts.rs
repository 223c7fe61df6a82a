//! Assumptions of the guest scripts, tested here, where a slow machine can be simulated.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const EVIDENCE: &str = include_str!("../guests/planted/evidence.sh");

fn program(place: &Path, name: &str, text: &str) {
    let path = place.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Output of a script with the functions of evidence.sh, where `taskset` takes a second.
fn printed(script: &str) -> String {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("evidence.sh"), EVIDENCE).unwrap();
    program(place.path(), "taskset", "sleep 1; shift; exec \"$@\"");
    program(place.path(), "usleep", "sleep 0.02");
    // Its busy tasks end by themselves, should this be killed.
    let script = format!("ulimit -t 20; . ./evidence.sh; hogs=; {script}; end_hogs");
    let path = format!("{}:{}", place.path().display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    let ran = shell.args(["-c", &script]).current_dir(&place).env("PATH", path).output().unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

/// On a crowded host joining a control group took longer than the script slept: its tasks were
/// first allowed on all CPUs, then pinned by their own taskset, and looked immovable.
#[test]
fn a_busy_task_is_past_its_own_taskset_before_the_script_continues() {
    let running = printed("hog 0; tr '\\0' ' ' <\"/proc/${hogs# }/cmdline\"");
    assert!(running.contains("while :") && !running.contains("taskset"), "{running}");
}

/// The second of two SCHED_FIFO tasks waited to join its group until the first, which never sleeps,
/// was killed.
#[test]
fn busy_tasks_are_let_run_when_all_are_ready() {
    let busy = "ls hog.*.busy 2>/dev/null | grep -c .";
    let counts = printed(&format!("start_hog 0; start_hog 0; sleep 2; {busy}; go; {busy}"));
    assert_eq!(counts, "0\n2\n");
}
