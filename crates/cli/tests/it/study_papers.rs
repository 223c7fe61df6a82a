//! The statements of the papers, and the experiments of a paper planned together.

use crate::support::{Place, assert_refused, stillcore, text};
use serde_json::{Value, json};
use std::fs;
use std::process::Output;

fn done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

fn statements(args: &[&str]) -> Value {
    let output = stillcore(&["study", "statements", "--json"]).args(args).output().unwrap();
    done(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn of<'a>(answer: &'a Value, id: &str) -> &'a Value {
    answer["statements"].as_array().unwrap().iter().find(|one| one["id"] == id).unwrap()
}

#[test]
fn a_statement_has_what_decides_it_without_a_run_or_what_is_missing() {
    let answer = statements(&[]);
    assert_eq!(answer["statements"].as_array().unwrap().len(), 371);
    // "(6 events, whereas in Vanilla Linux they reach very high values (198)": its own counts.
    let shown = of(&answer, "replication.009");
    assert_eq!(
        (&shown["decided"], &shown["verdicts"][0]["word"]),
        (&true.into(), &"shown by its own counts".into())
    );
    // 153 us in table II, and samples of 400 us by the same command.
    let contradicted = of(&answer, "replication.030");
    let contradict = |one: &&Value| {
        one["verdicts"]
            .as_array()
            .unwrap()
            .iter()
            .any(|verdict| verdict["word"] == "contradicts its own numbers")
    };
    assert!(contradict(&contradicted), "{contradicted:#}");
    let all = answer["statements"].as_array().unwrap();
    assert!(all.iter().filter(contradict).count() >= 24, "{}", all.iter().filter(contradict).count());
    assert!(all.iter().all(|one| one["decided"] == true || one["why_open"].is_string()));
}

#[test]
fn answers_of_studies_are_put_to_their_statements_and_kernels_are_kept_apart() {
    let place = Place::new();
    let study = |name: &str, schema: &str| {
        let claim = |condition: &str, judgement: &str| json!({ "statement": "rtss24.014", "condition": condition, "judgement": judgement, "why": "planted" });
        let claims = [claim("6.1", "agrees"), claim("5.10", "cannot-be-told")];
        let dir = place.path("studies").join(name);
        fs::create_dir_all(&dir).unwrap();
        let answer = json!({ "schema": schema, "name": "rtss24-fig1", "claims": claims });
        fs::write(dir.join("study.json"), answer.to_string()).unwrap();
    };
    study("rtss24-fig1", "stillcore.study-run/2");
    let dir = place.path("studies");
    let answer = statements(&[dir.to_str().unwrap(), "--paper", "rtss24"]);
    let verdicts = of(&answer, "rtss24.014")["verdicts"].as_array().unwrap();
    let words: Vec<_> = verdicts
        .iter()
        .filter(|verdict| verdict["by"] != "own-numbers")
        .map(|verdict| (verdict["condition"].as_str().unwrap(), verdict["word"].as_str().unwrap()))
        .collect();
    assert_eq!(words, [("5.10", "inconclusive"), ("6.1", "agrees")]);
    study("old", "stillcore.study-run/1");
    let output = stillcore(&["study", "statements"]).arg(&dir).output().unwrap();
    assert_refused(&output, &["stillcore.study-run/1", "stillcore.study-run/2"]);
    let output = stillcore(&["study", "statements", "--paper", "rtss"]).output().unwrap();
    assert_refused(&output, &["--paper: no paper is called \"rtss\"; expected rtss24, "]);
}

#[test]
fn a_replication_is_planned_by_what_decides_most_for_its_time() {
    let place = Place::new();
    let plan = |within: &str| {
        let mut call = stillcore(&[
            "study",
            "replicate",
            "ospert13",
            "--lab",
            "6.1,6.1-rt",
            "--plan",
            "--within",
            within,
        ]);
        let output = call.arg("--out").arg(place.path("out")).output().unwrap();
        done(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    let [short, long] = ["5m", "100h"].map(plan);
    assert!(short.contains("no time left") && short.contains("at scale 0.0001"), "{short}");
    assert!(!long.contains("no time left") && long.contains("at scale 1,"), "{long}");
    assert!(!place.path("out").exists(), "a plan makes nothing");
    let output = stillcore(&["study", "replicate", "ospert"]).output().unwrap();
    assert_refused(&output, &["PAPER: no paper is called \"ospert\"; expected rtss24, ", ", or all"]);
    let output = stillcore(&["study", "replicate", "ospert13", "--lab", "9.9", "--plan"]).output().unwrap();
    assert!(text(&output.stdout).contains("ospert13-ipi cannot be run so: no kernel \"9.9\""), "{output:?}");
    fs::create_dir(place.path("out")).unwrap();
    fs::write(place.path("out").join("x"), "").unwrap();
    let output =
        stillcore(&["study", "replicate", "ospert13", "--plan", "--out"]).arg(place.path("out")).output();
    assert_refused(&output.unwrap(), &["the directory is not empty"]);
}

#[test]
fn a_misspelt_call_is_found_by_the_plan() {
    let place = Place::new();
    let text = "schema = \"stillcore.experiment/1\"\nname = \"bad\"\ntitle = \"t\"\nsource = \"s\"\nseed = 1\nrepetitions = 1\n\
                [[step]]\nrun = [\"measure\", \"wakeup\", \"--cpuss\", \"1\"]\n[[value]]\nname = \"x\"\ntitle = \"x\"\nat = \"x\"\n";
    fs::write(place.path("bad.toml"), text).unwrap();
    let output =
        stillcore(&["study", "run", "--here", "--plan"]).arg(place.path("bad.toml")).output().unwrap();
    assert_refused(&output, &["\"measure wakeup --cpuss 1 --json\": ", "--cpuss"]);
}

/// What would reboot a machine is refused, or asked, before anything is changed.
#[test]
fn boots_are_planned_and_nothing_is_rebooted_unasked() {
    let place = Place::new();
    let out = place.path("out");
    let call = |further: &[&str]| {
        let mut call =
            stillcore(&["study", "replicate", "access20", "--boots", "--only", "access20-cstate", "--out"]);
        call.arg(&out).args(further).output().unwrap()
    };
    // Even the machine's own kernel has a line in the list of boots, with or without an entry for
    // it.
    let planned = call(&["--plan"]);
    done(&planned);
    let page = text(&planned.stdout);
    assert!(page.contains("with intel_idle.max_cstate=0") && page.contains("measured CPUs"), "{page}");
    // Unless the boot loader has entries that this test knows nothing of, nothing can be booted.
    let entries = !page.contains("no entry of the boot loader starts");
    assert!(entries || page.ends_with("\n0 boots\n"), "{page}");
    let kernels = call(&["--plan", "--kernels", "0.1"]);
    assert_refused(&kernels, &["--kernels: 0.1"]);
    let stopped = call(&["--stop"]);
    assert_ne!(stopped.status.code(), Some(0), "{}", text(&stopped.stdout));
    // Nobody to ask, no program that root may start, or no kernel to boot: each is a reason.
    let unasked = call(&[]);
    assert_eq!(unasked.status.code(), Some(1), "{}", text(&unasked.stderr));
    assert!(!out.exists());
    assert_refused(
        &stillcore(&["study", "replicate", "access20", "--only", "rtss24-fig1", "--plan"]).output().unwrap(),
        &["--only: rtss24-fig1"],
    );
    let output = stillcore(&["study", "replicate", "access20", "--yes"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}
