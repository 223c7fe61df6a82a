//! `stillcore sched generate | study` and `--jitter-from`: the verbs fit together, and results
//! depend only on the declaration.

use crate::support::{Place, stillcore, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn sched(arguments: &[&str]) -> Output {
    stillcore(&["sched"]).args(arguments).output().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.code().is_some_and(|code| code != 1), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn study(file: &str, out: &Path, more: &[&str]) -> Value {
    let output = sched(&[&["study", file, "--json", "--out", out.to_str().unwrap()], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

const STUDY: &str = r#"
schema = "stillcore.sched-curves/1"
name = "small"
title = "A small study"
seed = 5
sets = 60
[generate]
tasks = 12
periods = "uniform:10ms:100ms:1ms"
[axis]
of = "utilization"
values = [0.7, 0.85, 0.95]
[[curve]]
name = "early"
test = "fp-rta"
[[curve]]
name = "late"
test = "fp-rta"
jitter = "3ms"
[[curve]]
name = "edf"
test = "edf-qpa"
"#;

#[test]
fn what_generate_prints_analyze_reads_and_a_study_counts() {
    let place = Place::new();
    let sets = place.path("sets.jsonl");
    let (file, declared) = (sets.to_str().unwrap(), place.path("study.toml"));
    fs::write(&declared, STUDY).unwrap();
    let json = study(declared.to_str().unwrap(), &place.path("out"), &[]);
    for (at, utilization) in ["0.7", "0.85", "0.95"].into_iter().enumerate() {
        for (curve, jitter, test) in [(0, "0us", "fp-rta"), (1, "3ms", "fp-rta"), (2, "0us", "edf-qpa")] {
            let asked = ["--n", "12", "--seed", "5", "--count", "60", "--periods", "uniform:10ms:100ms:1ms"];
            let drawn = sched(
                &[&["generate", "--utilization", utilization, "--jitter", jitter][..], &asked].concat(),
            );
            assert_eq!(lines(&drawn).len(), 60);
            fs::write(&sets, &drawn.stdout).unwrap();
            let answers = lines(&sched(&["analyze", file, "--test", test, "--json"]));
            let accepted = answers.iter().filter(|answer| answer["schedulable"] == true).count();
            assert_eq!(
                json["curves"][curve]["points"][at]["accepted"], accepted,
                "{utilization} {jitter} {test}"
            );
        }
    }
    // Set 7 generated alone equals set 7 of nine.
    let whole = sched(&["generate", "--count", "9"]).stdout;
    let alone = sched(&["generate", "--first", "7"]).stdout;
    assert_eq!(text(&whole).lines().nth(7), text(&alone).lines().next());
}

#[test]
fn a_study_depends_on_no_thread_and_resumes() {
    let place = Place::new();
    let declared = place.path("study.toml");
    fs::write(&declared, STUDY).unwrap();
    let file = declared.to_str().unwrap();
    let (one, other) = (place.path("one"), place.path("other"));
    let json = study(file, &one, &["--threads", "1", "--sets", "700"]);
    assert_eq!(json, study(file, &other, &["--threads", "3", "--sets", "700"]));
    for name in ["curves.json", "curves.csv", "curves.svg"] {
        assert_eq!(fs::read(one.join(name)).unwrap(), fs::read(other.join(name)).unwrap(), "{name}");
    }
    let cells: Vec<PathBuf> =
        fs::read_dir(one.join("cells")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(cells.len(), 3);
    fs::remove_file(&cells[0]).unwrap();
    fs::write(&cells[1], "{").unwrap();
    let kept = fs::metadata(&cells[2]).unwrap().modified().unwrap();
    assert_eq!(json, study(file, &one, &["--sets", "700"]));
    assert_eq!(fs::metadata(&cells[2]).unwrap().modified().unwrap(), kept);
    // Curves are monotone set by set: all points and all curves use the same sets.
    let pair = &json["pairs"][0]["points"];
    assert!(pair.as_array().unwrap().iter().all(|point| point["paired"]["second_only"] == 0));
    assert!(pair[1]["paired"]["first_only"].as_u64().unwrap() > 0);
    let csv = fs::read_to_string(one.join("curves.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 9);
    assert!(csv.lines().all(|line| line.split(',').count() == 11), "{csv}");
}

#[test]
fn table_seven_says_what_five_hundred_sets_cannot_support() {
    let place = Place::new();
    let file = repository().join("experiments/replication-table7.toml");
    let out = place.path("out");
    let output = sched(&["study", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let stdout = text(&output.stdout);
    assert!(stdout.contains("500 sets cannot support 6 of these 6 differences"), "{stdout}");
    assert!(stdout.contains("vanilla -> openeuler   0.8       +5.2"), "{stdout}");
    assert!(stdout.lines().all(|line| line.chars().count() <= 100), "{stdout}");
    // The published levels lie within the intervals of as many sets, or the intervals of both
    // overlap: 0.80 and 0.85, three kernels.
    let json: Value = serde_json::from_slice(&fs::read(out.join("curves.json")).unwrap()).unwrap();
    for curve in json["curves"].as_array().unwrap() {
        assert_eq!(curve["points"][2]["accepted"], 500, "all at 0.7");
        assert_eq!(curve["points"][5]["accepted"].as_u64().unwrap() / 5, 0, "none at 0.9");
    }
}

#[test]
fn every_experiment_is_a_study() {
    let place = Place::new();
    let mut seen = 0;
    for entry in fs::read_dir(repository().join("experiments")).unwrap() {
        let file = entry.unwrap().path();
        let Ok(contents) = fs::read_to_string(&file) else { continue };
        if contents.contains("stillcore.sched-curves/1") {
            let json = study(file.to_str().unwrap(), &place.path(&seen.to_string()), &["--sets", "3"]);
            assert_eq!(json["schema"], "stillcore.sched-study/1");
            seen += 1;
        }
    }
    assert!(seen >= 2);
}

#[test]
fn jitter_comes_from_a_run_with_its_conditions() {
    let place = Place::new();
    let run = repository().join("fixtures/runs/small");
    let (run, sets) = (run.to_str().unwrap(), place.path("sets.jsonl"));
    fs::write(&sets, r#"{"unit":"ms","tasks":[{"period":100,"cost":10}]}"#).unwrap();
    let file = sets.to_str().unwrap();
    let output = sched(&["analyze", file, "--json", "--jitter-from", run]);
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("observed maximum of") && stderr.contains("larger ones are possible"),
        "{stderr}"
    );
    // 21.97 ms observed there: 31.97 from the arrival, in whole ms upwards.
    assert_eq!(lines(&output)[0]["response_times"][0], 32);
    let declared = place.path("study.toml");
    fs::write(&declared, STUDY).unwrap();
    let out = place.path("out");
    let json = study(declared.to_str().unwrap(), &out, &["--jitter-from", run, "--jitter-at", "0.5"]);
    assert_eq!(json["curves"].as_array().unwrap().len(), 4);
    assert!(json["conditions"][0].as_str().unwrap().contains("quantile 0.5 of"), "{json}");
    let missing = sched(&["analyze", file, "--jitter-from", run, "--jitter-at", "0.99999"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("expected max or one of"), "{}", text(&missing.stderr));
}

#[test]
fn how_probable_a_late_job_is() {
    let place = Place::new();
    let run = repository().join("fixtures/runs/small");
    let (run, sets) = (run.to_str().unwrap(), place.path("sets.jsonl"));
    let contents = r#"{"unit":"ms","tasks":[{"period":10,"cost":3},{"period":20,"cost":5}]}
{"unit":"s","tasks":[]}
{"unit":"ms","tasks":[{"period":100,"cost":10}]}
"#;
    fs::write(&sets, contents).unwrap();
    let ask = |more: &[&str]| {
        let always = ["analyze", sets.to_str().unwrap(), "--jitter-from", run, "--probabilistic"];
        sched(&[&always[..], more].concat())
    };
    let refused = ask(&[]);
    assert_eq!(refused.status.code(), Some(1));
    let stderr = text(&refused.stderr);
    assert!(
        stderr.contains("line 1, the set: --latest: 10.00 ms (by default the shortest period)"),
        "{stderr}"
    );
    assert!(stderr.contains("expected at least 21.97 ms, which was observed"), "{stderr}");
    let answers = ask(&["--latest", "30ms", "--keep-going", "--json"]);
    assert_eq!(answers.status.code(), Some(1));
    let stderr = text(&answers.stderr);
    assert!(stderr.contains("line 2, unit\"") && stderr.contains("\"ns\\\", \\\"us\\\" or"), "{stderr}");
    let answers: Vec<Value> =
        text(&answers.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.iter().map(|answer| answer["line"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(3)]);
    // 226 wake-ups: a release is later than all of them with at most 3 in 226. A single task with
    // 90 ms to spare depends only on its own release.
    let alone = &answers[1]["tasks"][0];
    assert_eq!((&alone["budget_ns"], &alone["releases"]), (&90_000_000.into(), &1.into()));
    let bound = alone["late_at_most"].as_f64().unwrap();
    assert!((bound - 3.0 / 226.0).abs() < 1e-9, "{bound}");
    assert_eq!((&answers[1]["holds"], &answers[1]["wakeups_needed"]), (&false.into(), &3000.into()));
    let words = text(&ask(&["--latest", "30ms", "--keep-going"]).stdout);
    assert!(
        words.contains("226 wake-ups do not bear it") && words.contains("it takes 3,000 wake-ups"),
        "{words}"
    );
    assert!(words.lines().all(|line| line.chars().count() <= 130), "{words}");
    fs::write(&sets, contents.lines().last().unwrap()).unwrap();
    assert_eq!(ask(&["--late-at-most", "0.03"]).status.code(), Some(0));
    assert_eq!(ask(&["--late-at-most", "0.02"]).status.code(), Some(2));
    for (more, expected) in [
        (&["--test", "edf-qpa"][..], "--probabilistic: --test edf-qpa; expected fp-rta"),
        (&["--late-at-most", "1"], "expected a number between 0 and 1"),
        (&["--locks", "fifo-np"], "cannot be used with"),
    ] {
        let output = ask(more);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
}

#[test]
fn parts_of_a_study_come_together() {
    let place = Place::new();
    let declared = place.path("study.toml");
    fs::write(&declared, STUDY).unwrap();
    let file = declared.to_str().unwrap();
    let whole = study(file, &place.path("whole"), &[]);
    let parts: Vec<PathBuf> = (1..=2).map(|part| place.path(&format!("part{part}"))).collect();
    for (at, part) in parts.iter().enumerate() {
        let json = study(file, part, &["--shard", &format!("{}/2", at + 1)]);
        assert_eq!((&json["schema"], &json["of"]), (&"stillcore.sched-study-shard/1".into(), &3.into()));
        assert_eq!(json["cells"], 1 + at, "three points in two parts");
        assert!(!part.join("curves.json").exists());
    }
    let [one, two] = [0, 1].map(|at: usize| parts[at].to_str().unwrap());
    let merged = place.path("merged");
    assert_eq!(study(file, &merged, &["--merge", one, "--merge", two]), whole);
    // No set was drawn again: the cells equal those of the parts, byte for byte.
    for cell in fs::read_dir(merged.join("cells")).unwrap() {
        let name = cell.unwrap().file_name();
        let of_part = parts.iter().find_map(|part| fs::read(part.join("cells").join(&name)).ok());
        assert_eq!(Some(fs::read(merged.join("cells").join(&name)).unwrap()), of_part);
    }
    let refused = |more: &[&str]| {
        let output = sched(&[&["study", file, "--out", merged.to_str().unwrap()], more].concat());
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    let before = fs::read(merged.join("curves.json")).unwrap();
    assert!(refused(&["--seed", "6"]).contains("results of seed 5; expected another --out, or --seed 5"));
    assert!(refused(&["--sets", "59"]).contains("results of 60 sets; expected another --out, or no fewer"));
    assert!(refused(&["--merge", place.path("nowhere").to_str().unwrap()]).contains("no cells; expected"));
    assert!(refused(&["--shard", "3/2"]).contains("expected i/n"));
    assert_eq!(fs::read(merged.join("curves.json")).unwrap(), before);
}

#[test]
fn what_cannot_be_studied_is_refused_in_a_sentence() {
    let place = Place::new();
    let declared = place.path("study.toml");
    let out = place.path("out");
    let arguments = ["study", declared.to_str().unwrap(), "--out", out.to_str().unwrap()];
    for (from, to, expected) in [
        ("sched-curves/1", "sched-curves/9", "schema: \"stillcore.sched-curves/9\"; expected"),
        ("sets = 60", "sets = 0", "sets: 0; expected 1 to 10000000"),
        ("sets = 60", "stes = 60", "line 6: unknown field `stes`"),
        ("\"small\"", "\"../x\"", "name: \"../x\"; expected letters"),
        ("[0.7, 0.85, 0.95]", "[0.7, 0.7]", "axis.values: [0.7, 0.7]; expected 1 to 1000 values, ascending"),
        ("[0.7, 0.85, 0.95]", "[0.7, 12.5]", "generate.utilization: 12.5; expected above 0"),
        ("\"utilization\"", "\"cores\"", "axis.values: [0.7, 0.85, 0.95]; expected whole numbers"),
        (
            "uniform:10ms:100ms:1ms",
            "uniform:10ms",
            "generate.periods: \"uniform:10ms\"; expected uniform:LOW",
        ),
        ("\"edf-qpa\"", "\"edf\"", "curve \"edf\", test: \"edf\"; expected one of fp-rta"),
        ("\"3ms\"", "\"3\"", "curve \"late\", jitter: \"3\"; expected a time such as 72us"),
        ("\"late\"", "\"early\"", "two called \"early\"; expected a name for each"),
        (
            "\"3ms\"",
            "\"3ms\"\nown_locks = \"none\"",
            "curve \"late\", own_locks: \"none\"; expected all or readers",
        ),
        (
            "\"3ms\"",
            "\"3ms\"\noverheads = { tick_ns = 5 }",
            "curve \"late\", overheads.tick_period_ns: 0; expected 1 ns to",
        ),
        (
            "[[curve]]\nname = \"edf\"",
            "[[claim]]\nfirst = \"early\"\nsecond = \"lat\"\nsays = \"more\"\n[[curve]]\nname = \"edf\"",
            "claim: no curve is called \"lat\"; expected names of two curves",
        ),
        (
            "\"3ms\"",
            "\"3ms\"\npublished = [1]",
            "curve \"late\", published: 1 values; expected a value a point",
        ),
    ] {
        assert!(STUDY.contains(from));
        fs::write(&declared, STUDY.replacen(from, to, 1)).unwrap();
        let output = sched(&arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{to}: {stderr}");
        assert!(stderr.contains(expected) && stderr.lines().count() == 1, "{expected}: {stderr}");
        assert!(!out.exists(), "{to}");
    }
    fs::write(&declared, STUDY).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("mine.txt"), "").unwrap();
    let stderr = text(&sched(&arguments).stderr);
    assert!(stderr.contains("mine.txt in it; expected a new or empty directory"), "{stderr}");
    for (arguments, expected) in [
        (&["--utilization", "0"][..], "--utilization: 0; expected above 0"),
        (&["--utilization", "39"], "a sum"),
        (&["--periods", "normal:1ms:2ms"], "expected uniform:LOW"),
        (&["--readers", "0.5"], "--resources"),
        (&["--resources", "1", "--section", "9us:1us"], "--section: 9000 to 1000 ns; expected"),
    ] {
        let output = sched(&[&["generate"], arguments].concat());
        if expected == "a sum" {
            // RandFixedSum has an answer for every possible sum.
            assert_eq!(lines(&output).len(), 1);
        } else {
            assert_eq!(output.status.code(), Some(1));
            assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
        }
    }
}
