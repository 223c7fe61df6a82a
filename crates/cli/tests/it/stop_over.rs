//! `--stop-over`: the first sample over the limit ends the measurement of all threads; the run says
//! which sample, its accounts balance up to the stop, and a trace shows what was in the way.

use crate::support::{
    Place, answer_of, assert_refused, measure, measure_in_words, read_json, records_events, releases_balance,
    start, stillcore, text, window_open,
};
use model::Cpus;
use model::sample::Policy;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use sys::clock::{now_ns, sleep_until};
use sys::sched;

/// A name that no other program of this machine has, as the kernel knows tasks by.
const HOG: &str = "stop-over-hog";

fn last_cpu() -> u32 {
    sched::affinity().unwrap().iter().last().unwrap()
}

/// Takes the last CPU for a time, above every measuring thread of these tests. False without the
/// right to that.
fn hog(ns: i64) -> bool {
    let hog = move || {
        sched::pin(&Cpus::one(last_cpu())).unwrap();
        if sys::policy::set_policy(&Policy::fifo(90)).is_err() {
            return false;
        }
        sleep_until(now_ns() + 300_000_000);
        let end = now_ns() + ns;
        while now_ns() < end {}
        true
    };
    std::thread::Builder::new().name(HOG.to_owned()).spawn(hog).unwrap().join().unwrap()
}

/// What a measurement of the last CPU answers that a hog of 60 ms has ended; none without the right
/// to one.
fn stopped(place: &Place, verb: &str, order: &[&str]) -> Option<Value> {
    let cpu = last_cpu().to_string();
    let order: Vec<_> = order.iter().copied().chain(["--stop-over", "40ms", "--cpus", &cpu]).collect();
    let child = start(&mut measure(place, verb, &order));
    window_open(place);
    if !hog(60_000_000) {
        println!("skipped: a hog takes the right to real-time policies");
        drop(child.wait_with_output());
        return None;
    }
    let answer = answer_of(&child.wait_with_output().unwrap(), 2);
    assert_eq!((&answer["complete"], &answer["incomplete_reason"]), (&Value::Bool(true), &Value::Null));
    let at = &answer["stopped_at"];
    assert_eq!((&at["over_ns"], &at["cpu"]), (&40_000_000.into(), &last_cpu().into()), "{at}");
    assert!(number(&at["value_ns"]) >= 40_000_000, "{at}");
    assert!(number(&at["after_ns"]) < number(&at["planned_ns"]), "{at}");
    assert!(!place.path("run/PARTIAL").exists(), "it ended as the user wanted");
    assert_eq!(read_json(&place.path("run/run.json"))["stopped_at"], *at);
    assert_eq!(place.leftovers(), Vec::<String>::new());
    Some(answer)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// The sample that the answer names: its place in the file of its thread.
fn named(run: &Path, answer: &Value) -> (usize, Vec<model::Sample>) {
    let at = &answer["stopped_at"];
    let thread = &answer["threads"][number(&at["thread"]) as usize];
    let samples = releases_balance(run, &thread["record"]);
    let place = number(&at["sample"]) as usize - 1;
    let sample = &samples[place];
    assert_eq!((Some(sample.t_ns), Some(sample.value_ns)), (at["t_ns"].as_i64(), at["value_ns"].as_i64()));
    assert!(samples[..place].iter().filter(|one| one.counts()).all(|one| one.value_ns < 40_000_000));
    (place, samples)
}

#[test]
fn the_first_late_wake_up_is_the_last_sample() {
    let place = Place::alone();
    let order = ["--duration", "20s", "-i", "1ms", "-p", "50", "--threads", "2"];
    let Some(answer) = stopped(&place, "wakeup", &order) else { return };
    let (number, samples) = named(&place.path("run"), &answer);
    assert_eq!(number + 1, samples.len(), "the thread itself stops at once");
    for thread in answer["threads"].as_array().unwrap() {
        releases_balance(&place.path("run"), &thread["record"]);
        assert_eq!(thread["record"]["policy_effective"]["priority"], 50);
    }
    let limits = answer["limits"].to_string();
    assert!(limits.contains("stopped at the first sample of 40.00 ms or more"), "{limits}");
}

#[test]
fn a_measurement_that_reaches_no_limit_takes_its_time() {
    let place = Place::new();
    let order = ["--duration", "500ms", "--stop-over", "30s"];
    let answer = answer_of(&measure(&place, "wakeup", &order).output().unwrap(), 0);
    assert_eq!((&answer["stopped_at"], &answer["complete"]), (&Value::Null, &Value::Bool(true)));
    let place = Place::new();
    let said = text(&measure_in_words(&place, "wakeup", &order).output().unwrap().stdout);
    let line = said.lines().find(|line| line.starts_with("the limit of 30.00 s was not reached in "));
    assert!(line.is_some_and(|line| line.contains(" samples; the largest: ")), "{said}");
    // The limit that the next run is advised to take is one that this one has reached.
    let advised = said.split_whitespace().skip_while(|word| *word != "--stop-over").nth(1);
    assert!(advised.is_some_and(|limit| limit != "30s"), "{said}");
    // Every limit has an answer, also one that each report counts.
    let mut report = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    report.arg("report").arg(place.path("run")).args(["--deadline", "200us"]);
    let said = text(&report.output().unwrap().stdout);
    assert!(said.contains("at or above 200.0 us: "), "{said}");
}

#[test]
fn a_busy_loop_stops_in_the_middle_of_a_stretch() {
    let place = Place::alone();
    let order = ["--duration", "6s", "--priority", "50", "--stretch", "3s", "--pause", "500ms"];
    let Some(answer) = stopped(&place, "spin", &order) else { return };
    let at = &answer["stopped_at"];
    let record = &answer["threads"][0]["record"];
    let (_, samples) =
        model::samples_file::read(&place.path("run").join(record["file"].as_str().unwrap())).unwrap();
    let last = samples.iter().max_by_key(|sample| sample.t_ns + sample.value_ns).unwrap();
    assert_eq!(at["t_ns"].as_i64(), Some(last.t_ns), "the gap ends the stretch that it lies in");
    assert_eq!(record["samples"].as_u64(), Some(samples.len() as u64));
}

#[test]
fn jobs_and_sets_stop_as_well() {
    for (verb, order) in [
        ("periodic", &["--duration", "20s", "--rate", "100", "--priority", "50"][..]),
        ("taskset", &["--duration", "20s", "--tasks", "10:1:50,20:1:40"]),
    ] {
        let place = Place::alone();
        let Some(answer) = stopped(&place, verb, order) else { return };
        named(&place.path("run"), &answer);
    }
}

#[test]
fn the_trace_before_the_stop_is_kept_and_explained() {
    if !records_events() {
        return;
    }
    let place = Place::alone();
    let order = ["--duration", "20s", "--priority", "50", "--trace"];
    let Some(answer) = stopped(&place, "wakeup", &order) else { return };
    let snapshots = &answer["trace"]["snapshots"];
    let kept = snapshots["kept"].as_array().unwrap();
    assert_eq!((kept.len(), number(&snapshots["taken"])), (1, 1), "{snapshots}");
    assert_eq!(kept[0]["samples"][0]["t_ns"], answer["stopped_at"]["t_ns"]);
    let counts = ["given_up", "smaller", "unrecorded"].map(|name| number(&snapshots[name]));
    let samples = number(&kept[0]["samples_over"]) + counts.iter().sum::<u64>();
    assert_eq!(number(&snapshots["over"]), samples, "{snapshots}");
    let window = read_json(&place.path("run/run.json"))["windows"][0].clone();
    let length = number(&window["t1_ns"]) - number(&window["t0_ns"]);
    let accounted = number(&snapshots["recorded_ns"]) + number(&snapshots["paused_ns"]);
    assert!(accounted.abs_diff(length) < 100_000_000, "{accounted} of {length} ns");
    let analysis = read_json(&place.path("run/analysis.json"));
    assert_eq!(analysis["losses"]["reconciled"], true, "{}", analysis["losses"]);
    // The cause is in the box, not only in the table of who ran.
    let cause = answer["verdicts"][0]["cause"].as_str().unwrap();
    assert!(cause.contains(HOG), "{}", answer["verdicts"]);
}

#[test]
fn the_report_says_first_why_it_ended() {
    let place = Place::new();
    // Every sample reaches it.
    let output = measure_in_words(&place, "wakeup", &["--duration", "20s", "--stop-over", "1ns"]).output();
    let output = output.unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let line = said
        .lines()
        .find(|line| line.starts_with("stopped at the first sample of 1 ns or more, warm-up aside: sample "));
    assert!(
        line.is_some() && said.contains(" of thread 0, CPU ") && !said.contains("note: stopped"),
        "{said}"
    );
    let page = std::fs::read_to_string(place.path("run/report.html")).unwrap();
    assert!(page.contains("stopped at the first sample of 1 ns or more"));
    // Its length is its largest sample's doing.
    let mut compare = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    let run = place.path("run");
    assert_refused(
        &compare.arg("compare").args([&run, &run]).output().unwrap(),
        &["stopped by its first sample"],
    );
}

#[test]
fn an_assessment_stops_and_says_that_phases_are_missing() {
    let place = Place::new();
    let order = ["--duration", "4s", "--stop-over", "1ns", "--trace", "off", "--json"];
    let answer = answer_of(&place.assess(&order).output().unwrap(), 2);
    assert_eq!(answer["run"]["complete"], false, "{}", answer["run"]);
    let run = read_json(&place.path("run/run.json"));
    assert_eq!(
        (&run["stopped_at"]["over_ns"], &run["stopped_at"]["phase"]),
        (&1.into(), &"idle-before".into())
    );
    assert_eq!(run["phases"].as_array().unwrap().len(), 1);
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn a_graph_stops_at_the_first_late_message() {
    let place = Place::new();
    let mut command = stillcore(&["graph", "run", "--json", "--quiet", "-D", "20s", "--stop-over", "1ns"]);
    command.arg("--state").arg(place.state()).arg("--out").arg(place.path("run")).arg("cfs-hk");
    let answer = answer_of(&command.output().unwrap(), 2);
    let run = read_json(&place.path("run/run.json"));
    assert_eq!((&run["complete"], &run["stopped_at"]), (&Value::Bool(true), &answer["stopped_at"]));
    let at = &run["stopped_at"];
    assert!(number(&at["after_ns"]) < 10_000_000_000, "{at}");
    let record = run["probes"].as_array().unwrap().iter().find(|one| one["thread"] == at["thread"]).unwrap();
    let file = place.path("run").join(record["file"].as_str().unwrap());
    let (_, samples) = model::samples_file::read(&file).unwrap();
    let sample = samples[number(&at["sample"]) as usize - 1];
    assert_eq!((Some(sample.t_ns), Some(sample.value_ns)), (at["t_ns"].as_i64(), at["value_ns"].as_i64()));
}

#[test]
fn limits_that_mean_nothing_are_refused() {
    let place = Place::new();
    for (order, expected) in [
        (&["--stop-over", "0s"][..], "at least 1ns"),
        (&["--stop-over", "1ms", "--trace-over", "2ms"], "--trace-over"),
        (&["--stop-over", "1ms", "--keep-before", "1s"], "--keep-before"),
    ] {
        let output = measure_in_words(&place, "wakeup", order).output().unwrap();
        assert_refused(&output, &[expected]);
    }
}
