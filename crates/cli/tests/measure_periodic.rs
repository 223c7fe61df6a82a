//! `stillcore measure periodic` on this machine: every release accounted for, every output right, nothing left behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use linux::sys::clock::{now_ns, sleep_until};
use model::samples_file;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Place, assert_refused, stillcore, text};

fn measure(place: &Place, arguments: &[&str]) -> Command {
    let mut command = stillcore(&["measure", "periodic", "--quiet"]);
    command.arg("--state").arg(place.state()).arg("--out").arg(place.path("run")).args(arguments);
    command
}

fn answer(command: &mut Command) -> Value {
    let output = command.arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Served, missed and lost are what was asked for; outputs are compared and right; the columns are there and in order.
fn accounts_balance(run: &Path, answer: &Value) {
    for thread in answer["threads"].as_array().unwrap() {
        let record = &thread["record"];
        let number = |name: &str| record[name].as_u64().unwrap();
        assert_eq!(
            number("released"),
            number("samples") + number("missed") + number("ring_lost"),
            "{record}"
        );
        let outputs = |name: &str| record["jobs"][name].as_u64().unwrap();
        assert!(outputs("outputs_compared") >= number("samples"), "{record}");
        assert_eq!(outputs("outputs_wrong"), 0, "{record}");
        let file = run.join(record["file"].as_str().unwrap());
        let (_, samples) = samples_file::read(&file).unwrap();
        assert_eq!(samples.len() as u64, number("samples"));
        let columns = samples_file::read_columns(&file).unwrap();
        let column = |name: &str| &columns.iter().find(|(found, _)| found == name).unwrap().1;
        let (wake, start, end) = (column("wake_ns"), column("start_ns"), column("end_ns"));
        for (row, sample) in samples.iter().enumerate() {
            assert!(wake[row] <= start[row] && start[row] <= end[row]);
            assert_eq!(sample.t_ns + sample.value_ns, end[row]);
        }
        let counters = record["jobs"]["counters"].as_array().unwrap();
        assert_eq!(columns.len(), 5 + counters.len());
    }
}

/// Waits until there is something; how long that takes is no matter of the test.
fn eventually<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let give_up = now_ns() + 60_000_000_000;
    loop {
        assert!(now_ns() < give_up, "never: {what}");
        if let Some(found) = there() {
            return found;
        }
        sleep_until(now_ns() + 10_000_000);
    }
}

/// No directory of files is left under the state directory.
fn no_files_left(place: &Place) {
    let left: Vec<_> = fs::read_dir(place.state())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("jobs-"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn jobs_at_pipes_are_served_compared_and_cleared_away() {
    let place = Place::new();
    let answer = answer(&mut measure(&place, &["-D", "1s", "--rate", "100", "--copies", "2"]));
    assert_eq!(answer["schema"], "stillcore.measure-periodic/1");
    assert_eq!(answer["threads"].as_array().unwrap().len(), 2);
    accounts_balance(&place.path("run"), &answer);
    let victim = &answer["threads"][0];
    assert_eq!(victim["record"]["released"], 100);
    assert!(victim["jobs"]["n"].as_u64().unwrap() > 0);
    // Whatever this machine counts, these two it does.
    let names: Vec<_> =
        victim["jobs"]["counters"].as_array().unwrap().iter().map(|pair| pair[0].as_str().unwrap()).collect();
    assert!(names.contains(&"switches") && names.contains(&"faults"), "{names:?}");
    no_files_left(&place);
}

#[test]
fn jobs_longer_than_their_period_miss_releases_to_the_unit() {
    let place = Place::new();
    let order = ["-D", "1s", "-i", "4ms", "--work", "busy", "--busy", "6ms", "--input", "memory"];
    let answer = answer(&mut measure(&place, &order));
    accounts_balance(&place.path("run"), &answer);
    let record = &answer["threads"][0]["record"];
    assert_eq!(record["released"], 250);
    // A job of one and a half periods swallows every other release.
    assert!(record["missed"].as_u64().unwrap() >= 100, "{record}");
    assert_eq!(record["jobs"]["busy_asked_ns"], 6_000_000);
    no_files_left(&place);
}

#[test]
fn a_stopped_process_misses_what_passes_and_goes_on() {
    let place = Place::new();
    let mut command = measure(&place, &["-D", "2s", "-i", "5ms", "--input", "file", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = now_ns();
    let probe = loop {
        assert!(now_ns() - start < 30_000_000_000, "no measuring process came");
        if let Some(pid) = measuring_process(&place) {
            break pid;
        }
        sleep_until(now_ns() + 10_000_000);
    };
    // Its window may not be open yet: stopped for half a second it is late in any case, or slower to become ready.
    sleep_until(now_ns() + 700_000_000);
    let signal = |name: &str| Command::new("kill").args([name, &probe.to_string()]).status().unwrap();
    signal("-STOP");
    sleep_until(now_ns() + 500_000_000);
    signal("-CONT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    accounts_balance(&place.path("run"), &answer);
    assert_eq!(answer["threads"][0]["record"]["released"], 400);
    no_files_left(&place);
}

/// The process that measures for this place: its order names the place's files.
fn measuring_process(place: &Place) -> Option<u32> {
    let here = place.dir.path().to_string_lossy().into_owned();
    fs::read_dir("/proc").unwrap().filter_map(Result::ok).find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let ours =
            words.get(2).is_some_and(|word| word == "probe") && words.iter().any(|word| word.contains(&here));
        ours.then_some(pid)
    })
}

#[test]
fn a_wrong_output_is_counted_and_fails_the_call() {
    let place = Place::new();
    let order = ["-D", "2s", "-i", "5ms", "--input", "pipe", "--json"];
    let child = measure(&place, &order).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let probe = eventually("a measuring process", || measuring_process(&place));
    // Somebody spoils the expected outputs, all but those that are compared already.
    let spoilt = fs::read_dir(place.state())
        .unwrap()
        .map(|entry| entry.unwrap().path().join("0/expected"))
        .find(|path| path.is_file())
        .unwrap();
    let bytes = vec![0xff; usize::try_from(fs::metadata(&spoilt).unwrap().len()).unwrap()];
    fs::write(&spoilt, bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{probe}: {}", text(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let jobs = &answer["threads"][0]["record"]["jobs"];
    assert!(jobs["outputs_wrong"].as_u64().unwrap() > 0, "{jobs}");
    assert!(answer["limits"].to_string().contains("not the expected ones"), "{}", answer["limits"]);
    no_files_left(&place);
}

#[test]
fn what_a_killed_run_leaves_is_removed_by_the_next() {
    let place = Place::new();
    let mut child = measure(&place, &["-D", "20s", "--files", "own"]).stderr(Stdio::null()).spawn().unwrap();
    let probe = eventually("a measuring process", || measuring_process(&place));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("its end", || (!Path::new(&format!("/proc/{probe}")).exists()).then_some(()));
    let order = ["-D", "500ms", "--rate", "50", "--empty"];
    fs::remove_dir_all(place.path("run")).unwrap();
    answer(&mut measure(&place, &order));
    no_files_left(&place);
}

#[test]
fn same_files_and_own_files_are_two_runs_beside_each_other() {
    let place = Place::new();
    let order = ["-D", "500ms", "--rate", "50", "--copies", "2", "--compare-files", "--work", "array"];
    let answer = answer(measure(&place, &order).args(["--size", "16K", "--input", "file"]));
    for (group, own) in [("same", false), ("own", true)] {
        accounts_balance(&place.path("run").join(group), &answer["groups"][group]);
        let record = &answer["groups"][group]["threads"][0]["record"];
        assert_eq!(record["jobs"]["own_files"], own);
        assert_eq!(record["jobs"]["work"], "array:16384");
    }
    no_files_left(&place);
}

#[test]
fn the_text_tells_the_cost_of_measuring_alone() {
    let place = Place::new();
    let output = measure(&place, &["-D", "500ms", "--rate", "100", "--empty", "--counters", "switches"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    for row in
        ["empty every 10", "execution time", "off its CPU", "switches", "releases 50:", "wake-up drift"]
    {
        assert!(told.contains(row), "{row:?} is not in\n{told}");
    }
    let fits = |line: &str| {
        let free = line.starts_with("note: ") || line.starts_with("run directory ");
        free || line.chars().count() <= 100
    };
    assert!(told.lines().all(fits), "{told}");
}

#[test]
fn orders_that_cannot_be_carried_out_are_refused() {
    let place = Place::new();
    for (order, told) in [
        (&["--rate", "0"][..], "rate"),
        (&["--size", "4K"][..], "--work array"),
        (&["--work", "busy"][..], "--busy"),
        (&["--wake", "scheduler"][..], "--policy deadline"),
        (&["--counters", "faults,faults"][..], "twice"),
        (&["--counters", "nonsense"][..], "no counter"),
        (&["--duration", "200ms"][..], "warm-up"),
    ] {
        assert_refused(&measure(&place, order).output().unwrap(), &[told]);
        assert!(!place.path("run").exists(), "{order:?}");
    }
}
