//! `stillcore measure … --trace` on this machine: a hog is named, the stored part of a long
//! measurement is bounded and adds up, and nothing stays behind however it ends.

use crate::support::{
    Place, answer, answer_of, eventually, measure, measure_in_words, read_json, records_events, signal,
    start, stillcore, text, traces_of, window_open,
};
use model::Cpus;
use model::sample::Policy;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use sys::clock::{now_ns, sleep_until};
use sys::sched;

const NOTHING: Vec<String> = Vec::new();
/// A name that no other program of this machine has, as the kernel knows tasks by.
const HOG: &str = "hog-of-the-test";

fn last_cpu() -> u32 {
    sched::affinity().unwrap().iter().last().unwrap()
}

/// Takes a CPU for these times, 200 ms apart, above every measuring thread of these tests. False
/// without the right to that.
fn hogs(cpu: u32, times: &'static [i64]) -> std::thread::JoinHandle<bool> {
    let hog = move || {
        sched::pin(&Cpus::one(cpu)).unwrap();
        if sys::policy::set_policy(&Policy::fifo(90)).is_err() {
            return false;
        }
        for ns in times {
            let end = now_ns() + ns;
            while now_ns() < end {}
            sleep_until(now_ns() + 200_000_000);
        }
        true
    };
    std::thread::Builder::new().name(HOG.to_owned()).spawn(hog).unwrap()
}

fn rows(section: &Value) -> impl Iterator<Item = &Value> {
    section["rows"].as_array().unwrap().iter()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Events in the file plus events not kept equal those that the kernel delivered, on every CPU of
/// both buffers.
fn accounts_balance(run: &Path) {
    let analysis = read_json(&run.join("analysis.json"));
    assert_eq!(analysis["losses"]["reconciled"], true, "{}", analysis["losses"]);
    let accounts = analysis["losses"]["trace"].as_array().unwrap();
    assert!(accounts.iter().all(|account| account["balanced"] == true), "{accounts:?}");
}

#[test]
fn a_hog_is_named_and_every_late_nanosecond_has_its_place() {
    if !records_events() {
        return;
    }
    let (place, cpu) = (Place::new(), last_cpu());
    let order = ["--duration", "4s", "--priority", "50", "--trace", "--cpus", &cpu.to_string()];
    let child = start(&mut measure(&place, "wakeup", &order));
    window_open(&place);
    assert!(hogs(cpu, &[40_000_000; 5]).join().unwrap());
    let answer = answer_of(&child.wait_with_output().unwrap(), 0);
    assert_eq!(answer["trace"]["file"], "trace.dat");
    let run = place.path("run");
    accounts_balance(&run);
    let analysis = read_json(&run.join("analysis.json"));
    let of_hog =
        rows(&analysis["attribution"][0]).filter(|row| row["label"] == HOG && row["class"] == "switch");
    let hogged: u64 = of_hog.map(|row| number(&row["net_ns"])).sum();
    // 200 ms less what interrupts take out of it, and a window that closes early.
    assert!(hogged > 100_000_000, "{hogged} ns of {}", analysis["attribution"][0]);
    let paths = &analysis["paths"][0];
    for sample in paths["worst"].as_array().unwrap() {
        let parts: u64 = sample["parts"].as_array().unwrap().iter().map(|part| number(&part["ns"])).sum();
        assert_eq!(parts, number(&sample["value_ns"]), "{sample}");
    }
    // A bound is said, or why there is none; and never below a sample.
    let bound = &paths["bound"];
    let largest = number(&analysis["distributions"][0]["observed_max_ns"]);
    let holds = bound["ns"].as_u64().map_or(bound["withheld"].is_string(), |ns| ns >= largest);
    assert!(holds, "{largest}: {bound}");
    assert!(!analysis["events"].as_array().unwrap().is_empty());
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("id=\"sources\"") && page.contains("id=\"paths\"") && page.contains(HOG));
    for cost in ["trace_event_ns", "trace_stack_ns"] {
        assert!(answer["observer"][cost].is_number(), "{cost} is told");
    }
    assert_eq!(place.leftovers(), NOTHING);
}

#[test]
fn each_task_of_a_set_is_answeredof_the_others() {
    if !records_events() {
        return;
    }
    let place = Place::new();
    let order = ["--tasks", "10:1:30,20:4:20,40:8:10", "--duration", "2s", "--trace"];
    let output = measure(&place, "taskset", &order).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output.stderr));
    let run = place.path("run");
    accounts_balance(&run);
    let analysis = read_json(&run.join("analysis.json"));
    let sections = analysis["attribution"].as_array().unwrap();
    assert_eq!(sections.iter().map(|one| number(&one["thread"])).collect::<Vec<_>>(), [0, 1, 2]);
    let by_tasks = |section: &Value| -> u64 {
        // A task that resumes after another one of the set preempted it is attributed to that one:
        // `self`.
        let by_task = |row: &&Value| row["class"] == "switch" || row["class"] == "self";
        let tasks = rows(section).filter(by_task).filter(|row| row["label"] == "stillcore");
        tasks.map(|row| number(&row["net_ns"])).sum()
    };
    // The first has the CPU for a tenth of the time, the others together for two fifths: what each
    // sees of the others differs.
    let (first, last) = (by_tasks(&sections[0]), by_tasks(&sections[2]));
    assert!(last > 0 && first > 2 * last / 3, "the first sees {first} ns of others, the last {last}");
    assert!(first != last, "each has a view of its own");
}

#[test]
fn around_the_largest_samples_alone_is_kept_and_every_one_is_accounted_for() {
    if !records_events() {
        return;
    }
    // Hogs of other tests would be among the largest.
    let (place, cpu) = (Place::alone(), last_cpu());
    let order = [
        "--duration",
        "4s",
        "--priority",
        "50",
        "--trace-over",
        "15ms",
        "--keep",
        "2",
        "--cpus",
        &cpu.to_string(),
    ];
    let child = start(&mut measure(&place, "wakeup", &order));
    window_open(&place);
    assert!(hogs(cpu, &[20_000_000, 120_000_000, 40_000_000, 90_000_000, 30_000_000]).join().unwrap());
    let answer = answer_of(&child.wait_with_output().unwrap(), 0);
    let run = place.path("run");
    accounts_balance(&run);
    let snapshots = &answer["trace"]["snapshots"];
    let kept = snapshots["kept"].as_array().unwrap();
    assert_eq!(kept.len(), 2, "{snapshots}");
    let samples_over: u64 = kept.iter().map(|one| number(&one["samples_over"])).sum();
    let others = ["given_up", "smaller", "unrecorded"].map(|name| number(&snapshots[name]));
    assert_eq!(number(&snapshots["over"]), samples_over + others.iter().sum::<u64>(), "{snapshots}");
    assert!(others[0] + others[1] >= 1, "five hogs, two kept: {snapshots}");
    // A starved machine makes one late sample of several hogs.
    assert!(number(&snapshots["taken"]) >= 2, "{snapshots}");
    let window = read_json(&run.join("run.json"))["windows"][0].clone();
    let length = number(&window["t1_ns"]) - number(&window["t0_ns"]);
    let (recorded, paused) = (number(&snapshots["recorded_ns"]), number(&snapshots["paused_ns"]));
    assert!(
        paused > 0 && recorded + paused <= length + 100_000_000 && recorded + paused >= length - 100_000_000
    );

    let analysis = read_json(&run.join("analysis.json"));
    let section = &analysis["snapshots"];
    assert_eq!(section["over"], snapshots["over"], "the samples files hold as many");
    let samples = section["samples"].as_array().unwrap();
    let explained =
        samples.iter().find(|one| one["rows"][0]["label"] == HOG).expect("a sample that the hog made late");
    let value = number(&explained["sample"]["value_ns"]);
    assert!(value >= 15_000_000 && explained["sample"]["whole"] == true, "{explained}");
    assert!(number(&explained["rows"][0]["net_ns"]) > value / 2, "{explained}");
    let all: u64 = rows(explained).map(|row| number(&row["net_ns"])).sum();
    assert!(all <= number(&explained["known_ns"]) && number(&explained["known_ns"]) <= value, "{explained}");
    let parts =
        explained["path"]["parts"].as_array().unwrap().iter().map(|part| number(&part["ns"])).sum::<u64>();
    assert_eq!(parts, value, "{explained}");
    assert_eq!(analysis["events"], serde_json::json!([]), "no rates of what was kept for being late");
    every_reader_takes_it(&place);
    assert_eq!(place.leftovers(), NOTHING);
}

/// trace-cmd, where installed, counts the same events; the export has the recorded intervals
/// without gaps.
fn every_reader_takes_it(place: &Place) {
    let (run, rows) = (place.path("run"), place.path("rows.parquet"));
    let mut export = stillcore(&["trace", "export", "--json"]);
    let exported = answer(export.arg(&run).arg("--parquet").arg(&rows), 0);
    assert_eq!((&exported["windows"], &exported["holes"]), (&2.into(), &0.into()), "{exported}");
    assert!(number(&exported["events"]) > 0);
    let file = run.join("trace.dat");
    let counts = answer(stillcore(&["trace", "counts", "--json"]).arg("--buffer").arg("all").arg(&file), 0);
    let Ok(theirs) = std::process::Command::new("trace-cmd").args(["report", "-i"]).arg(&file).output()
    else {
        println!("skipped: nothing counts beside us: trace-cmd is missing (package trace-cmd)");
        return;
    };
    let lines =
        text(&theirs.stdout).lines().filter(|line| line.contains("] ") && line.contains(": ")).count();
    assert_eq!(lines as u64, number(&counts["total"]));
}

#[test]
fn a_limit_that_everything_reaches_keeps_the_disk_and_the_accounts_bounded() {
    if !records_events() {
        return;
    }
    let place = Place::new();
    let order = ["--duration", "2s", "--trace-over", "1us", "--keep", "3"];
    let answer = answer(&mut measure(&place, "wakeup", &order), 0);
    let snapshots = &answer["trace"]["snapshots"];
    let kept = snapshots["kept"].as_array().unwrap();
    assert!((1..=3).contains(&kept.len()), "{snapshots}");
    assert!(kept.iter().all(|one| one["samples"].as_array().unwrap().len() <= 20));
    let samples_over: u64 = kept.iter().map(|one| number(&one["samples_over"])).sum();
    let others: u64 = ["given_up", "smaller", "unrecorded"].iter().map(|name| number(&snapshots[name])).sum();
    assert_eq!(number(&snapshots["over"]), samples_over + others, "{snapshots}");
    accounts_balance(&place.path("run"));
}

#[test]
fn a_busy_loop_has_its_large_gaps_explained() {
    if !records_events() {
        return;
    }
    // A busy loop of another test would hold the CPU.
    let (place, cpu) = (Place::alone(), last_cpu());
    let order = ["--duration", "4s", "--trace-over", "15ms", "--cpus", &cpu.to_string()];
    let child = start(&mut measure(&place, "spin", &order));
    window_open(&place);
    assert!(hogs(cpu, &[40_000_000; 5]).join().unwrap());
    let answer = answer_of(&child.wait_with_output().unwrap(), 0);
    let samples = answer["snapshots"]["samples"].as_array().unwrap();
    let first: Vec<_> = samples.iter().map(|one| &one["rows"][0]["label"]).collect();
    assert!(first.iter().any(|label| *label == HOG), "{first:?}");
    accounts_balance(&place.path("run"));
}

/// Both instances of a run.
fn instances(pid: u32) -> usize {
    traces_of(pid).len()
}

#[test]
fn killed_interrupted_or_without_room_it_leaves_no_instance() {
    if !records_events() {
        return;
    }
    for trace in [&["--trace"][..], &["--trace-over", "1us"]] {
        let place = Place::new();
        let order: Vec<_> = ["--duration", "60s"].iter().chain(trace).copied().collect();
        let mut child = start(&mut measure(&place, "wakeup", &order));
        let pid = child.id();
        window_open(&place);
        assert!(instances(pid) > 0, "there is something to clean up");
        signal(pid, "KILL");
        child.wait().unwrap();
        eventually("the machine is as it was", || {
            (place.leftovers().is_empty() && instances(pid) == 0).then_some(())
        });
        assert!(place.path("run/PARTIAL").exists());

        let place = Place::new();
        let child = start(&mut measure(&place, "wakeup", &order));
        let pid = child.id();
        window_open(&place);
        std::thread::sleep(Duration::from_millis(500));
        signal(pid, "INT");
        let answer = answer_of(&child.wait_with_output().unwrap(), 1);
        assert_eq!((&answer["complete"], &answer["interrupted"]), (&Value::Bool(false), &"SIGINT".into()));
        assert!(place.path("run/trace.dat").exists(), "what was recorded is kept");
        accounts_balance(&place.path("run"));
        assert!(!place.path("run/trace-pages").exists() && instances(pid) == 0);
        assert_eq!(place.leftovers(), NOTHING);

        no_room(trace);
    }
}

/// The disk fills up during the run: one sentence, and nothing is left, not even raw pages.
fn no_room(trace: &[&str]) {
    let place = Place::new();
    let mut run = measure_in_words(&place, "wakeup", &["--duration", "20s", "--period", "100us"]);
    run.args(trace);
    let words: Vec<_> =
        std::iter::once(run.get_program()).chain(run.get_args()).map(|word| word.to_str().unwrap()).collect();
    let script = format!(
        "mkdir $0/run && mount -t tmpfs -o size=700k none $0/run && {} ; code=$?; ls $0/run >&2; exit $code",
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script]).arg(place.dir.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left") && said.contains("partial run"), "{said}");
    assert!(!said.contains("trace-pages\n") && !said.contains("panicked"), "{said}");
    assert_eq!(place.leftovers(), NOTHING);
}

#[test]
fn what_cannot_be_recorded_is_refused_in_one_sentence() {
    let place = Place::new();
    for (order, expected) in [
        (&["--trace=off", "--trace-over", "1ms"][..], "--trace-over"),
        (&["--trace-over", "0s"], "--trace-over"),
        (&["--trace-over", "1ms", "--keep-before", "2m"], "--keep-before"),
        (&["--keep-before", "1ms"], "--trace-over"),
        (&["--trace-over", "1ms", "--keep", "0"], "--keep"),
        (&["--stacks"], "--trace or --trace-over beside it"),
        (&["--trace=off", "--kprobes"], "--trace or --trace-over beside it"),
    ] {
        let output = measure_in_words(&place, "wakeup", order).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{order:?}: {said}");
        assert!(said.contains(expected), "{order:?}: {said}");
    }
}

/// As in a container: the kernel's events would have other thread ids than those that the program
/// knows.
#[test]
fn nothing_is_recorded_in_a_pid_namespace_of_its_own() {
    if !records_events() {
        return;
    }
    let place = Place::new();
    let ordered = measure_in_words(&place, "wakeup", &["--duration", "1s", "--trace"]);
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).arg(ordered.get_program());
    let output = command.args(ordered.get_args()).stdin(Stdio::null()).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("PID namespace of its own") && said.contains("hostPID"), "{said}");
    eventually("nothing left", || place.leftovers().is_empty().then_some(()));
}

#[test]
fn a_sender_is_named_with_its_place_in_the_program() {
    let cpus = sched::affinity().unwrap();
    if !records_events() || cpus.iter().count() < 2 {
        println!("skipped: it takes two CPUs and recording");
        return;
    }
    let (place, cpu) = (Place::new(), last_cpu());
    let order = ["--duration", "2s", "--trace", "--user-stacks", "--cpus", &cpu.to_string()];
    let child = start(&mut measure(&place, "wakeup", &order));
    let sleeper = std::thread::Builder::new().name(HOG.to_owned()).spawn(move || {
        sched::pin(&Cpus::one(cpu)).unwrap();
        (0..200).for_each(|_| std::thread::park_timeout(Duration::from_millis(100)));
    });
    let sleeper = sleeper.unwrap();
    window_open(&place);
    let others = cpus.iter().filter(|one| *one != cpu).collect();
    let waker = std::thread::spawn(move || {
        sched::pin(&others).unwrap();
        for _ in 0..200 {
            std::thread::sleep(Duration::from_millis(5));
            sleeper.thread().unpark();
        }
        sleeper.join().unwrap();
    });
    let answered = answer_of(&child.wait_with_output().unwrap(), 0);
    waker.join().unwrap();
    assert!(answered["observer"]["trace_user_stack_ns"].is_number(), "{}", answered["observer"]);
    let run = place.path("run");
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_string_lossy();
    // Whether the system call is in the program itself or in the C library depends on the target.
    let own = |function: &Value| {
        let function = function.as_str().unwrap();
        function.contains(&*program) || function.contains("libc.so")
    };
    let analysis = read_json(&run.join("analysis.json"));
    let mut woken = rows(&analysis["attribution"][0]).filter(|row| row["label"] == HOG);
    let users = |row: &Value| row["source"]["users"].as_array().cloned().unwrap_or_default();
    let found = woken.find(|row| users(row).first().is_some_and(own));
    let found = users(found.unwrap_or_else(|| panic!("{}", analysis["attribution"][0])));
    let frames = read_json(&run.join("user-frames.json"));
    assert_eq!(frames["schema"], "stillcore.user-frames/1");
    // The whole way, the program first.
    let folded = place.path("folded.txt");
    let export = stillcore(&["trace", "export"]).arg(&run).arg("--folded").arg(&folded).output().unwrap();
    assert!(export.status.success(), "{}", text(&export.stderr));
    let ways = std::fs::read_to_string(folded).unwrap();
    let first = format!(";{};system call ", found[0].as_str().unwrap());
    assert!(ways.contains(&first), "{first}: {ways}");
    assert_eq!(place.leftovers(), NOTHING);
}
