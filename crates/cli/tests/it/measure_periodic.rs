//! `stillcore measure periodic` on this machine: every release accounted for, every output right,
//! nothing left behind.

use crate::support::{
    Place, answer, answer_of, assert_refused, eventually, measure, measure_in_words, probe_of,
    releases_balance, signal, start, text, window_open,
};
use model::samples_file;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn periodic(place: &Place, arguments: &[&str]) -> Command {
    measure(place, "periodic", arguments)
}

/// Served, missed and lost add up to the requested releases; outputs are compared and correct; the
/// columns are complete and in order.
fn accounts_balance(run: &Path, answer: &Value) {
    for thread in answer["threads"].as_array().unwrap() {
        let record = &thread["record"];
        let samples = releases_balance(run, record);
        let outputs = |name: &str| record["jobs"][name].as_u64().unwrap();
        assert!(outputs("outputs_compared") >= samples.len() as u64, "{record}");
        assert_eq!(outputs("outputs_wrong"), 0, "{record}");
        let file = run.join(record["file"].as_str().unwrap());
        let columns = samples_file::read_columns(&file).unwrap();
        let column = |name: &str| &columns.iter().find(|one| one.name == name).unwrap().values;
        let (wake, start, end) = (column("wake_ns"), column("start_ns"), column("end_ns"));
        for (row, sample) in samples.iter().enumerate() {
            assert!(wake[row] <= start[row] && start[row] <= end[row]);
            assert_eq!(sample.t_ns + sample.value_ns, end[row]);
        }
        let counters = record["jobs"]["counters"].as_array().unwrap();
        assert_eq!(columns.len(), 5 + counters.len());
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
    let place = Place::alone();
    let answer = answer(&mut periodic(&place, &["-D", "1s", "--rate", "100", "--copies", "2"]), 0);
    assert_eq!(answer["schema"], "stillcore.measure-periodic/2");
    assert_eq!(answer["threads"].as_array().unwrap().len(), 2);
    accounts_balance(&place.path("run"), &answer);
    let victim = &answer["threads"][0];
    assert_eq!(victim["record"]["released"], 102, "with two of the warm-up");
    assert!(victim["jobs"]["n"].as_u64().unwrap() > 0);
    // Every machine counts at least these two.
    let names: Vec<_> =
        victim["jobs"]["counters"].as_array().unwrap().iter().map(|pair| pair[0].as_str().unwrap()).collect();
    assert!(names.contains(&"switches") && names.contains(&"faults"), "{names:?}");
    no_files_left(&place);
}

#[test]
fn jobs_longer_than_their_period_miss_releases_to_the_unit() {
    let place = Place::alone();
    let order = ["-D", "1s", "-i", "4ms", "--work", "busy", "--busy", "6ms", "--input", "memory"];
    let answer = answer(&mut periodic(&place, &order), 0);
    accounts_balance(&place.path("run"), &answer);
    let record = &answer["threads"][0]["record"];
    assert_eq!(record["released"], 252);
    // A job of one and a half periods swallows every other release.
    assert!(record["missed"].as_u64().unwrap() >= 100, "{record}");
    assert_eq!(record["jobs"]["busy_asked_ns"], 6_000_000);
    no_files_left(&place);
}

#[test]
fn under_deadline_the_response_counts_from_the_kernel_s_release() {
    let place = Place::alone();
    let order = ["-D", "1s", "-i", "20ms", "--policy", "deadline", "--victim", "free", "--runtime", "8ms"];
    let answer = answer(&mut periodic(&place, &order), 0);
    accounts_balance(&place.path("run"), &answer);
    let record = &answer["threads"][0]["record"];
    if record["policy_effective"]["name"] != "SCHED_DEADLINE" {
        // Refused, as in a container: the run reports it, and a timer makes its releases.
        assert!(answer["limits"].to_string().contains("SCHED_DEADLINE"), "{}", answer["limits"]);
        assert!(record["release_clock"].is_null());
        println!("skipped: SCHED_DEADLINE is refused here");
        return;
    }
    assert_eq!(record["release_clock"], "scheduler");
    if answer["limits"].to_string().contains("lower envelope") {
        assert!(record["clock_error_ns"].is_null());
        return;
    }
    let file = place.path("run").join(record["file"].as_str().unwrap());
    let (meta, samples) = samples_file::read(&file).unwrap();
    assert_eq!(meta.clock, "scheduler");
    let columns = samples_file::read_columns(&file).unwrap();
    let wakes = &columns.iter().find(|one| one.name == "wake_ns").unwrap().values;
    // No job runs before its release. Releases are one period apart, except where the kernel began
    // a new sequence.
    assert!(samples.iter().zip(wakes).all(|(sample, wake)| wake - sample.t_ns > -100_000));
    let grid = samples.windows(2).filter(|two| {
        let off = (two[1].t_ns - two[0].t_ns).rem_euclid(20_000_000);
        off.min(20_000_000 - off) < 1_000_000
    });
    assert!(grid.count() * 2 > samples.len(), "most releases are on the kernel's grid of periods");
}

#[test]
fn a_stopped_process_misses_what_passes_and_resumes() {
    let place = Place::alone();
    let child = start(&mut periodic(&place, &["-D", "6s", "-i", "5ms", "--input", "file"]));
    let probe = probe_of(child.id());
    window_open(&place);
    signal(probe, "STOP");
    std::thread::sleep(Duration::from_millis(500));
    signal(probe, "CONT");
    let answer = answer_of(&child.wait_with_output().unwrap(), 0);
    accounts_balance(&place.path("run"), &answer);
    assert_eq!(answer["threads"][0]["record"]["released"], 1202);
    let missed = answer["threads"][0]["record"]["missed"].as_u64().unwrap();
    assert!(missed >= 80, "{missed} releases of 500 ms");
    no_files_left(&place);
}

/// The measuring process of this place: its command line names the place's files.
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
    let place = Place::alone();
    let child = start(&mut periodic(&place, &["-D", "2s", "-i", "5ms", "--input", "pipe"]));
    eventually("a measuring process", || measuring_process(&place));
    // Spoils the expected outputs, except those already compared.
    let spoilt = fs::read_dir(place.state())
        .unwrap()
        .map(|entry| entry.unwrap().path().join("0/expected"))
        .find(|path| path.is_file())
        .unwrap();
    let bytes = vec![0xff; usize::try_from(fs::metadata(&spoilt).unwrap().len()).unwrap()];
    // In place: a file that is empty for a moment ends the process that compares.
    fs::OpenOptions::new().write(true).open(&spoilt).unwrap().write_all(&bytes).unwrap();
    let answer = answer_of(&child.wait_with_output().unwrap(), 2);
    let jobs = &answer["threads"][0]["record"]["jobs"];
    assert!(jobs["outputs_wrong"].as_u64().unwrap() > 0, "{jobs}");
    assert!(answer["limits"].to_string().contains("not the expected ones"), "{}", answer["limits"]);
    no_files_left(&place);
}

#[test]
fn what_a_killed_run_leaves_is_removed_by_the_next() {
    let place = Place::alone();
    let mut child = periodic(&place, &["-D", "20s", "--files", "own"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let probe = eventually("a measuring process", || measuring_process(&place));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("its end", || (!Path::new(&format!("/proc/{probe}")).exists()).then_some(()));
    let order = ["-D", "500ms", "--rate", "50", "--empty"];
    fs::remove_dir_all(place.path("run")).unwrap();
    answer(&mut periodic(&place, &order), 0);
    no_files_left(&place);
}

#[test]
fn same_files_and_own_files_are_two_runs_beside_each_other() {
    let place = Place::alone();
    let order = ["-D", "500ms", "--rate", "50", "--copies", "2", "--compare-files", "--work", "array"];
    let answer = answer(periodic(&place, &order).args(["--size", "16K", "--input", "file"]), 0);
    for (group, own) in [("same", false), ("own", true)] {
        accounts_balance(&place.path("run").join(group), &answer["groups"][group]);
        let record = &answer["groups"][group]["threads"][0]["record"];
        assert_eq!(record["jobs"]["own_files"], own);
        assert_eq!(record["jobs"]["work"], "array:16384");
    }
    no_files_left(&place);
}

#[test]
fn the_text_shows_the_cost_of_measuring_alone() {
    let place = Place::alone();
    let order = ["-D", "500ms", "--rate", "100", "--empty", "--counters", "switches"];
    let output = measure_in_words(&place, "periodic", &order).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    for row in
        ["empty every 10", "execution time", "off its CPU", "switches", "releases 52:", "wake-up drift"]
    {
        assert!(stdout.contains(row), "{row:?} is not in\n{stdout}");
    }
    let fits = |line: &str| {
        let free = line.starts_with("note: ") || line.starts_with("run directory ");
        free || line.chars().count() <= 100
    };
    assert!(stdout.lines().all(fits), "{stdout}");
}

#[test]
fn orders_that_cannot_be_carried_out_are_refused() {
    let place = Place::new();
    for (order, reason) in [
        (&["--rate", "0"][..], "rate"),
        (&["--size", "4K"][..], "--work array"),
        (&["--work", "busy"][..], "--busy"),
        (&["--wake", "scheduler"][..], "--policy deadline"),
        (&["--counters", "faults,faults"][..], "twice"),
        (&["--counters", "nonsense"][..], "no counter"),
        (&["--duration", "200ms"][..], "room for two jobs"),
    ] {
        assert_refused(&measure_in_words(&place, "periodic", order).output().unwrap(), &[reason]);
        assert!(!place.path("run").exists(), "{order:?}");
    }
}

/// Each job of 6 ms passes over two releases of 2 ms: of four that warm up two are served, and what
/// comes behind them counts.
#[test]
fn releases_that_pass_unserved_in_the_warm_up_are_of_it() {
    let place = Place::alone();
    let order = [
        "-D",
        "200ms",
        "-i",
        "2ms",
        "--work",
        "busy",
        "--busy",
        "6ms",
        "--input",
        "memory",
        "--warm-up",
        "4",
    ];
    let answer = answer(&mut periodic(&place, &order), 0);
    let record = &answer["threads"][0]["record"];
    assert_eq!(record["warm_up"], 4, "{record}");
    let samples = releases_balance(&place.path("run"), record);
    let warm = samples.iter().filter(|one| one.flags & model::sample::flag::WARM_UP != 0).count();
    assert!(warm <= 2, "{warm} of {} samples warm up", samples.len());
}
