//! `stillcore measure taskset` on this machine: accounts and structure, no times.

use crate::support::{Place, assert_refused, measure, measure_in_words, read_json, releases_balance, text};
use model::samples_file;
use serde_json::Value;

#[test]
fn every_release_is_accounted_for_and_every_job_is_whole() {
    for burn in ["cputime", "slots"] {
        let place = Place::alone();
        let tasks = ["--tasks", "10:1:60,20:2:50,40:4:40", "--duration", "1s", "--burn", burn];
        let output = measure(&place, "taskset", &tasks).output().unwrap();
        // A busy machine may miss a deadline; that is exit 2.
        assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output.stderr));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer, read_json(&place.path("run/taskset.json")));
        let tasks = answer["tasks"].as_array().unwrap();
        let released: Vec<_> = tasks.iter().map(|task| task["released"].as_u64().unwrap()).collect();
        assert_eq!(released, [100, 50, 25]);
        let bounds: Vec<_> =
            tasks.iter().map(|task| task["calculated_response_ns"].as_u64().unwrap()).collect();
        assert_eq!(bounds, [1_000_000, 3_000_000, 7_000_000]);
        for (task, thread) in tasks.iter().zip(answer["threads"].as_array().unwrap()) {
            let number = |name: &str| task[name].as_u64().unwrap();
            assert_eq!(number("released"), number("served") + number("missed") + number("ring_lost"));
            let samples = releases_balance(&place.path("run"), &thread["record"]);
            let file = place.path("run").join(thread["record"]["file"].as_str().unwrap());
            let columns = samples_file::read_columns(&file).unwrap();
            let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
            assert_eq!(names, ["start_ns", "end_ns", "cpu_ns", "preemptions"]);
            assert_eq!(samples.len() as u64, number("served"));
            let cost = task["task"]["cost_ns"].as_i64().unwrap();
            for (row, sample) in samples.iter().enumerate() {
                let [start, end, cpu] = [0, 1, 2].map(|column: usize| columns[column].values[row]);
                assert!(sample.t_ns <= start && start < end && sample.value_ns == end - sample.t_ns);
                assert!(burn == "slots" || cpu >= cost, "{cpu} of {cost} ns");
                assert!(burn == "cputime" || end - start >= cost);
            }
        }
        assert_whole(&answer["schedule"]);
        assert_eq!(place.leftovers(), Vec::<String>::new());
    }
}

/// One hyperperiod after the first jobs. Spans lead from the release of every job to its end, and
/// one job runs at a time.
fn assert_whole(schedule: &Value) {
    let number = |row: &Value, key: &str| row[key].as_i64().unwrap();
    assert_eq!(number(schedule, "to_ns") - number(schedule, "from_ns"), 40_000_000, "{schedule}");
    assert_eq!((number(schedule, "hyperperiod_ns"), number(schedule, "left_out")), (40_000_000, 0));
    let (jobs, spans) = (schedule["jobs"].as_array().unwrap(), schedule["spans"].as_array().unwrap());
    assert!((1..=7).contains(&jobs.len()), "{jobs:?}");
    let mut rest = spans.as_slice();
    for job in jobs {
        let mut t_ns = number(job, "release_ns");
        while t_ns < number(job, "end_ns") {
            let (span, others) = rest.split_first().unwrap();
            assert_eq!((&span["task"], number(span, "from_ns")), (&job["task"], t_ns));
            (t_ns, rest) = (t_ns + number(span, "ns"), others);
        }
        assert_eq!(number(job, "response_ns"), number(job, "end_ns") - number(job, "release_ns"));
        assert!(number(job, "running_ns") <= number(job, "response_ns"));
    }
    assert_eq!(rest, [] as [Value; 0]);
    let running = spans.iter().filter(|span| span["state"] == "running");
    let mut running: Vec<_> = running.map(|span| (number(span, "from_ns"), number(span, "ns"))).collect();
    running.sort_unstable();
    assert!(running.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{running:?}");
}

#[test]
fn what_is_no_task_set_is_refused_before_anything_is_written() {
    for (arguments, expected) in [
        (&["--tasks", "10:11:50"][..], "at most its period"),
        (&["--tasks", "ten:3:50"][..], "milliseconds"),
        (&["--tasks", "10:3:50", "--cpus", "0-1"][..], "one CPU"),
        (&["--file", "/nonexistent.toml"][..], "/nonexistent.toml"),
        (&["--tasks", "1000:3:50", "--duration", "1s"][..], "two releases"),
        (&[][..], "--tasks"),
    ] {
        let place = Place::new();
        let mut command = measure_in_words(&place, "taskset", arguments);
        assert_refused(&command.output().unwrap(), &[expected]);
        assert!(!place.path("run").exists());
    }
}
