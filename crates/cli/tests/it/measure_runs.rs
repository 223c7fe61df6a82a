//! `measure --runs N`: runs of their own in one directory, which `compare` takes as a group.

use crate::support::{
    Place, answer, assert_refused, eventually, measure, measure_in_words, read_json, signal, start,
    stillcore, text,
};

#[test]
fn several_runs_lie_in_one_directory_and_are_compared_as_a_group() {
    let place = Place::new();
    let several = answer(&mut measure(&place, "wakeup", &["-D", "300ms", "--runs", "3"]), 0);
    assert_eq!(several["schema"], "stillcore.measure-runs/1");
    let runs = several["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &several["interrupted"]), (3, &serde_json::Value::Null));
    for (run, number) in runs.iter().zip(1..) {
        let dir = place.path(&format!("run/{number}"));
        assert_eq!(run["run"], dir.to_str().unwrap());
        let record = read_json(&dir.join("run.json"));
        assert_eq!(record["complete"], true);
        // Each as if it had been made alone: --duration counts behind the warm-up of 20.
        assert_eq!(record["probes"][0]["released"], 320, "{record}");
        assert!(!record["command"].to_string().contains("--runs"), "{}", record["command"]);
        assert!(dir.join("report.html").exists());
        let counted = run["n"].as_u64().unwrap() + run["missed"].as_u64().unwrap();
        assert!((290..=320).contains(&counted), "{run}");
        assert!(run["figures"]["p50"].is_f64() && run["figures"]["p99.9"].is_null(), "{run}");
    }
    let dir = place.path("run");
    let dir = dir.to_str().unwrap();
    let out = place.path("other");
    let state = place.state();
    let other =
        ["measure", "wakeup", "-D", "300ms", "--runs", "2", "--state", state.to_str().unwrap(), "--out"];
    let said = stillcore(&other).arg(&out).output().unwrap();
    let (said, noise) = (text(&said.stdout), text(&said.stderr));
    assert!(noise.contains("measure wakeup: 2 runs"), "{noise}");
    assert_eq!(said.matches("\nrun ").count(), 1, "one table, not two screens: {said}");
    assert!(said.contains(&format!("stillcore compare {} OTHER", out.display())), "{said}");
    let compared = stillcore(&["compare", dir, out.to_str().unwrap(), "--json"]).output().unwrap();
    let compared: serde_json::Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert_eq!(compared["base"].as_array().unwrap().len(), 3, "{compared}");
    assert_eq!(compared["other"].as_array().unwrap().len(), 2);
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

/// Each noise probe would choose a threshold of its own, and runs of several thresholds are not
/// compared.
#[test]
fn runs_of_noise_and_of_jobs_can_be_compared_as_well() {
    let place = Place::new();
    let noise = answer(&mut measure(&place, "spin", &["-D", "800ms", "--runs", "2"]), 0);
    let figures = noise["runs"][0]["figures"].as_object().unwrap();
    assert!(figures.contains_key("stolen") && figures.contains_key("max"), "{noise}");
    let dir = place.path("run");
    let [a, b] = ["1", "2"].map(|run| dir.join(run).display().to_string());
    let compared = stillcore(&["compare", &a, &b]).output().unwrap();
    assert_eq!(compared.status.code(), Some(0), "{}", text(&compared.stderr));
    let jobs = Place::new();
    let jobs = answer(&mut measure(&jobs, "periodic", &["-D", "500ms", "--rate", "20", "--runs", "2"]), 0);
    assert_eq!(jobs["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn ctrl_c_keeps_the_runs_that_are_complete() {
    let place = Place::new();
    // Long enough that the signal cuts the second run off.
    let child = start(&mut measure_in_words(&place, "wakeup", &["-D", "2s", "--runs", "9"]));
    let samples = place.path("run/2/samples");
    let files = || std::fs::read_dir(&samples).ok()?.next().map(|_| ());
    eventually("a second run that measures", files);
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{}", text(&output.stderr));
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut_off = place.path("run/incomplete/2");
    let expected = format!(
        "interrupted by SIGINT: 1 of 9 runs are complete; the run that it cut off is in {}",
        cut_off.display()
    );
    assert!(flat.contains(&expected), "{said}");
    assert!(read_json(&place.path("run/1/run.json"))["complete"] == true && !place.path("run/2").exists());
    assert_eq!(read_json(&cut_off.join("run.json"))["incomplete_reason"], "interrupted by SIGTERM");
    // What was cut off is in nobody's way.
    let dir = place.path("run");
    let one = dir.join("1");
    let compared = stillcore(&["compare", dir.to_str().unwrap(), one.to_str().unwrap()]).output().unwrap();
    assert_refused(&compared, &["given twice"]);
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn a_late_sample_in_one_run_is_an_exit_status_of_all() {
    let place = Place::new();
    let order = ["-D", "100ms", "--over", "1ns", "--runs", "2"];
    let output = measure_in_words(&place, "wakeup", &order).output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{said}{}", text(&output.stderr));
    assert!(said.contains("exit status 2 of ") && said.contains("stillcore report "), "{said}");
}

#[test]
fn what_does_not_go_with_several_runs_is_refused_with_the_reason() {
    let place = Place::new();
    let refused = |verb: &str, order: &[&str], expected: &[&str]| {
        let order = [order, &["--runs", "2"]].concat();
        assert_refused(&measure_in_words(&place, verb, &order).output().unwrap(), expected);
        assert!(!place.path("run").exists(), "nothing is written");
    };
    refused("wakeup", &["--live"], &["--live", "shows one measurement"]);
    refused("wakeup", &["--stop-over", "1ms"], &["--stop-over", "equally long", "--over"]);
    refused("wakeup", &["--cyclictest-compat"], &["cannot be used with", "--runs"]);
    refused("spin", &["--buckets", "3"], &["--buckets", "histogram of one run"]);
    refused("periodic", &["--compare-files"], &["--compare-files", "two runs of its own"]);
    refused("wakeup", &["--cpus", "4000"], &["run 1 of 2 failed", "4000"]);
    refused("wakeup", &["-D", "1ms"], &["--duration", "room for two releases"]);
    std::fs::create_dir(place.path("run")).unwrap();
    std::fs::write(place.path("run/mine"), "").unwrap();
    let output = measure_in_words(&place, "wakeup", &["--runs", "2"]).output().unwrap();
    assert_refused(&output, &["the directory is not empty"]);
}

#[test]
fn what_is_wrong_with_the_runs_is_said_once() {
    let place = Place::new();
    // Jobs of 6 ms each 2 ms: two thirds of the releases are missed.
    let order =
        ["-D", "400ms", "-i", "2ms", "--work", "busy", "--busy", "6ms", "--input", "memory", "--runs", "2"];
    let output = measure_in_words(&place, "periodic", &order).output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    let note = "note: runs 1, 2: most releases were missed: the period is too short";
    assert!(said.contains(note) && said.matches("most releases were missed").count() == 1, "{said}");
}
