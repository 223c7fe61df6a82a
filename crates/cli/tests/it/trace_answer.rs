//! `trace explain --json`: one schema for runs and for foreign traces, and its report on truncated
//! files.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn trace(order: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stillcore")).arg("trace").args(order).arg(file).output().unwrap()
}

fn answer(order: &[&str], file: &Path) -> Value {
    let output = trace(order, file);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no list {key} in {value}"))
}

#[test]
fn runs_and_files_answer_in_one_shape_whose_parts_add_up() {
    let run = fixture("runs/small");
    let file = fixture("traces/cyclictest/6.12.dat");
    let of_run = answer(&["explain", "--json", "--worst", "1000"], &run);
    let of_file = answer(&["explain", "--json", "--worst", "1000", "--comm", "cyclictest"], &file);
    for (one, thread) in [(&of_run, "stillcore"), (&of_file, "cyclictest")] {
        assert_eq!(one["schema"], "stillcore.trace-explain/2");
        let wakeups = list(one, "wakeups");
        assert!(wakeups.len() >= 60, "{}", wakeups.len());
        for wakeup in wakeups {
            let parts = list(wakeup, "parts").iter();
            let sum: u64 = parts.clone().map(|part| part["ns"].as_u64().unwrap()).sum();
            assert_eq!(Some(sum), wakeup["value_ns"].as_u64(), "{wakeup}");
            assert_eq!(wakeup["thread"]["comm"], thread);
            assert!(wakeup["thread"]["pid"].is_i64() && wakeup["thread"]["policy"].is_string(), "{wakeup}");
            for taken in parts.map(|part| &part["taken"]).filter(|taken| !taken.is_null()) {
                assert!(taken["kind"].is_string() && taken["confidence"].is_string(), "{taken}");
            }
        }
        assert!(list(one, "sources").iter().any(|source| source["confidence"] == "exact"));
        let questions = list(one, "questions");
        assert!(questions.iter().any(|one| one["answerable"] == true));
        assert!(questions.iter().any(|one| one["answerable"] == false && !list(one, "needs").is_empty()));
    }
}

#[test]
fn a_file_that_is_cut_off_says_so_before_anything_else() {
    let whole = std::fs::read(fixture("runs/small/trace.dat")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cut = dir.path().join("cut.dat");
    std::fs::write(&cut, &whole[..whole.len() - 6000]).unwrap();
    let explained = trace(&["explain", "--pid", "150"], &cut);
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    let at = |wanted: &str| text.find(wanted).unwrap_or_else(|| panic!("no {wanted:?} in {text}"));
    assert!(at("INCOMPLETE: the trace is damaged") < at("run latency"), "{text}");
    assert!(!list(&answer(&["explain", "--json", "--pid", "150"], &cut), "damage").is_empty());
    let counted = trace(&["counts"], &cut);
    let text = String::from_utf8_lossy(&counted.stdout).into_owned();
    assert!(text.contains("INCOMPLETE: the trace is damaged"), "{text}");
    assert!(!list(&answer(&["counts", "--json"], &cut), "damage").is_empty());
}

/// A sample is explained the same way, however late other samples were.
#[test]
fn one_sample_and_a_limit_are_not_requested_together() {
    let output = trace(&["explain", "--sample", "1", "--over", "1us"], &fixture("runs/small"));
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("--over") && text.contains("--sample"), "{text}");
}

/// Not only the latest twenty: `--sample` explains each sample of a window, and its parts add up to
/// it.
#[test]
fn every_late_wake_up_can_be_explained() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small");
    let explain = |order: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stillcore"));
        command.args(["trace", "explain", "--json"]).arg(&run).args(order);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let samples = |answer: &serde_json::Value| -> Vec<serde_json::Value> {
        let paths = answer["paths"].as_array().unwrap().iter();
        paths.flat_map(|path| path["worst"].as_array().unwrap().clone()).collect()
    };
    let all = samples(&explain(&["--worst", "1000"]));
    let counted: u64 =
        explain(&[])["paths"].as_array().unwrap().iter().map(|path| path["samples"].as_u64().unwrap()).sum();
    assert!(counted > 60);
    assert_eq!(all.len() as u64, counted);
    for sample in all.iter().step_by(97) {
        let selected = samples(&explain(&["--sample", &sample["t_ns"].to_string()]));
        assert_eq!(selected, std::slice::from_ref(sample));
        let parts: u64 =
            sample["parts"].as_array().unwrap().iter().map(|part| part["ns"].as_u64().unwrap()).sum();
        assert_eq!(Some(parts), sample["value_ns"].as_u64());
    }
}

/// What a reader wants first stands first; what the trace cannot show stands last, and in short.
#[test]
fn the_answer_stands_before_what_the_trace_shows() {
    let words = |order: &[&str], file: &Path| {
        let output = trace(order, file);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for (file, table) in
        [("traces/cyclictest/6.1.dat", "CPU 2, beside"), ("runs/small", "CPU 2, wakeup window")]
    {
        let file = fixture(file);
        let text = words(&["explain", "--worst", "1"], &file);
        let at = |wanted: &str| text.find(wanted).unwrap_or_else(|| panic!("no {wanted:?} in {text}"));
        let order = [
            "The wake-up due at ",
            ": where the latencies of ",
            table,
            "What limits this answer:",
            "(--sources: ",
        ];
        assert!(order.map(at).is_sorted(), "{text}");
        assert!(
            !text.contains("None of these events") && !text.contains("\nWhat this trace shows"),
            "{text}"
        );
        // The time that is listed is the one that `--sample` takes.
        let time = text[at("due at ") + 7..].split(' ').next().unwrap();
        let sample = words(&["explain", "--sample", time], &file);
        assert!(sample.starts_with(&format!("The wake-up due at {time} s was ")), "{sample}");
        let latest = |text: &str| {
            text.lines().skip_while(|line| !line.starts_with("The wake-up")).take(5).collect::<String>()
        };
        assert_eq!(latest(&sample), latest(&text));
        let whole = words(&["explain", "--sources"], &file);
        assert!(whole.contains(" shows of sources:\n  ipi.resched"), "{whole}");
    }
    // Behind the first release, whose time is the probe's beginning.
    let sample = words(&["explain", "--sample", "7.765985670"], &fixture("runs/small"));
    assert!(sample.contains("phase disturbed, 460.0 ms after the start of the measurement):"), "{sample}");
    let whole = words(&["explain", "--sources"], &fixture("traces/cyclictest/6.1.dat"));
    assert!(whole.contains("trace-cmd record -C mono"), "{whole}");
}

/// A task that resumes is no second event, and nothing happened 0 times.
#[test]
fn no_row_has_a_count_of_0() {
    let text = trace(&["explain"], &fixture("traces/functions-6.1/trace.dat"));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains(" in 1 piece after interruptions"), "{text}");
    assert!(!text.contains(" 0 x "), "{text}");
    assert!(text.contains("woken by: unknown"), "{text}");
}
