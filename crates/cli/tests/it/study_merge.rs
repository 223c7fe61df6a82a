//! `stillcore study merge`: merged parts equal the whole experiment, and parts that do not fit
//! together are refused before anything is written.

use crate::support::shares::{declared, long, standing};
use crate::support::{Place, assert_refused, eventually, read_json, signal, stillcore, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

fn run(place: &Place, out: &str, arguments: &[&str]) -> Output {
    let mut command = stillcore(&["study", "run"]);
    command.arg(place.path("shares.toml")).arg("--state").arg(place.state());
    command.arg("--out").arg(place.path(out)).args(arguments).output().unwrap()
}

fn merge(place: &Place, parts: &[&str], arguments: &[&str]) -> Output {
    let mut command = stillcore(&["study", "merge"]);
    command.args(parts.iter().map(|part| place.path(part)));
    command.arg("--out").arg(place.path("merged")).args(arguments).output().unwrap()
}

fn done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// Every stored cell without the time it took.
fn cells(out: &Path) -> Vec<Value> {
    let mut paths: Vec<_> =
        fs::read_dir(out.join("cells")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let untimed = |path: &std::path::PathBuf| {
        let mut cell = read_json(path);
        cell["result"]["wall_s"] = Value::Null;
        cell
    };
    paths.iter().map(untimed).collect()
}

fn three_parts(place: &Place) {
    declared(place);
    for part in 1..=3 {
        done(&run(place, &part.to_string(), &["--shard", &format!("{part}/3")]));
    }
}

#[test]
fn parts_put_together_are_the_whole_bit_for_bit() {
    let place = Place::new();
    three_parts(&place);
    done(&run(&place, "whole", &[]));
    let part = read_json(&place.path("1").join("study.json"));
    assert_eq!((&part["results"], &part["cells"]), (&4.into(), &12.into()));
    let merged = merge(&place, &["3", "1", "2"], &["--json"]);
    done(&merged);
    let answer: Value = serde_json::from_slice(&merged.stdout).unwrap();
    assert_eq!(answer["results"], 12);
    for file in ["study.json", "study.csv", "study.md", "plan.json"] {
        let text = |out: &str| fs::read_to_string(place.path(out).join(file)).unwrap();
        assert_eq!(text("merged"), text("whole"), "{file}");
    }
    assert_eq!(cells(&place.path("merged")), cells(&place.path("whole")));
    assert_eq!(fs::read(place.path("merged").join("table.parquet")).unwrap()[..4], *b"PAR1");
    // Merging again changes nothing, and the whole can be resumed like any other study.
    done(&merge(&place, &["1", "2", "3"], &[]));
    let again = run(&place, "merged", &["--resume"]);
    done(&again);
    assert!(text(&again.stderr).contains("0 of 12 cells to run"), "{}", text(&again.stderr));
}

#[test]
fn what_is_missing_is_one_sentence_or_reported_with_the_answer() {
    let place = Place::new();
    three_parts(&place);
    assert_refused(&merge(&place, &["1", "3"], &[]), &["4 of 12 cells are missing: part 2/3", "--partial"]);
    assert!(!place.path("merged").exists());
    let partial = merge(&place, &["1", "3"], &["--partial"]);
    done(&partial);
    assert!(text(&partial.stdout).contains("8 of 12 cells have a result"), "{}", text(&partial.stdout));
    // The missing part is merged later.
    done(&merge(&place, &["2"], &[]));
    assert_eq!(read_json(&place.path("merged").join("study.json"))["results"], 12);
}

#[test]
fn what_does_not_fit_is_one_sentence_and_nothing_is_written() {
    let place = Place::new();
    three_parts(&place);
    done(&run(&place, "other scale", &["--scale", "0.5", "--shard", "2/3"]));
    // A cell that was run: state `needs` gives way to any other result. A part may have none: what
    // is in it depends on the path of the file.
    let first = |out: &str| {
        let cells = fs::read_dir(place.path(out).join("cells")).unwrap();
        let mut paths = cells.map(|cell| cell.unwrap().path());
        paths.find(|path| read_json(path)["result"]["state"] != "needs")
    };
    let part = ["1", "2", "3"].into_iter().find(|part| first(part).is_some()).unwrap();
    done(&run(&place, "again", &["--shard", &format!("{part}/3")]));
    let edited = first("again").unwrap();
    let changed = fs::read_to_string(&edited).unwrap().replace("\"wall_s\"", "\"reason\": \"x\", \"wall_s\"");
    fs::remove_dir_all(place.path("again").join("cells")).unwrap();
    fs::create_dir(place.path("again").join("cells")).unwrap();
    fs::write(&edited, changed).unwrap();
    fs::create_dir(place.path("nothing")).unwrap();
    for (parts, expected) in [
        (vec!["1", "2", "3", "other scale"], vec!["scale 0.5", "expected scale 1"]),
        (vec!["1", "2", "3", "2"], vec!["expected each part once"]),
        (vec!["1", "2", "3", "again"], vec!["another result than", "expected one result a cell"]),
        (vec!["1", "2", "3", "nothing"], vec!["no plan.json", "stillcore study run"]),
        (vec!["1", "2", "3", "absent"], vec!["no plan.json"]),
    ] {
        assert_refused(&merge(&place, &parts, &[]), &expected);
        assert!(!place.path("merged").exists(), "{parts:?}");
    }
    // A cell of another seed, and an invalid cell.
    let stray = first(part).unwrap();
    let mut cell = read_json(&stray);
    cell["cell"]["seed"] = 7.into();
    for (contents, expected) in [
        (cell.to_string(), "a cell that the plan does not have"),
        ("{".to_owned(), "expected the result of a cell"),
    ] {
        fs::write(&stray, contents).unwrap();
        assert_refused(&merge(&place, &["1", "2", "3"], &[]), &[expected]);
        assert!(!place.path("merged").exists(), "{expected}");
    }
}

/// The study that the examples of docs/fleet.md query.
#[test]
fn a_stored_study_concludes_as_it_did() {
    let place = Place::new();
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/studies/monday");
    let output = stillcore(&["study", "merge"]).arg(&stored).arg("--out").arg(place.path("merged")).output();
    done(&output.unwrap());
    let without_version = |path: &Path| {
        let mut study = read_json(path);
        study["tool_version"] = Value::Null;
        study
    };
    assert_eq!(
        without_version(&place.path("merged").join("study.json")),
        without_version(&stored.join("study.json"))
    );
    let whole = fs::read_to_string(stored.join("../wakeup.toml")).unwrap();
    assert_eq!(read_json(&stored.join("plan.json"))["experiment"], whole);
}

#[test]
fn cells_by_name_are_run_alone_and_a_name_that_is_none_starts_nothing() {
    let place = Place::new();
    declared(&place);
    done(&run(&place, "whole", &[]));
    let names: Vec<String> = cells(&place.path("whole"))
        .iter()
        .map(|cell| cell["cell"]["id"].as_str().unwrap().to_owned())
        .collect();
    fs::write(place.path("names"), format!("{}\n\n{}\n", names[3], names[7])).unwrap();
    let list = place.path("names").display().to_string();
    done(&run(&place, "two", &["--cells", &list]));
    let two: Vec<Value> = cells(&place.path("two"));
    assert_eq!(two, [cells(&place.path("whole"))[3].clone(), cells(&place.path("whole"))[7].clone()]);
    fs::write(place.path("names"), format!("{}\nab12\n", names[3])).unwrap();
    assert_refused(
        &run(&place, "none", &["--cells", &list]),
        &["line 2", "\"ab12\"", "the id of a cell of this plan"],
    );
    assert!(!place.path("none").exists());
}

#[test]
fn one_call_at_a_time_works_on_a_directory_and_another_can_end_it() {
    let place = Place::new();
    let stands = standing(&place);
    long(&place, 1, &stands);
    let out = place.path("out");
    let mut child = stillcore(&["study", "run"]);
    child.arg(place.path("shares.toml")).arg("--state").arg(place.state()).arg("--out").arg(&out);
    let mut child =
        child.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let measuring =
        || fs::read_dir(out.join("runs")).ok()?.flatten().find(|cell| cell.path().join("run").exists());
    eventually("a window", measuring);
    let pid = child.id();
    assert_refused(
        &run(&place, "out", &[]),
        &["another call works on this study", &format!("process {pid}")],
    );
    assert!(stands.exists());
    let stopped = stillcore(&["study", "stop"]).arg(&out).output().unwrap();
    done(&stopped);
    assert!(text(&stopped.stdout).contains(&format!("process {pid} has ended")), "{}", text(&stopped.stdout));
    assert!(!child.wait().unwrap().success());
    assert!(!stands.exists());
    let idle = stillcore(&["study", "stop"]).arg(&out).output().unwrap();
    assert_eq!(text(&idle.stdout), "nothing ran there\n");
    assert_refused(
        &stillcore(&["study", "stop"]).arg(place.path("absent")).output().unwrap(),
        &["no plan.json", "stillcore study run"],
    );
    eventually("nothing left", || place.leftovers().is_empty().then_some(()));
}

/// A file of `deploy/`.
fn deployed(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

/// The shell, where `stillcore` is the program that is tested.
fn shell(place: &Place) -> std::process::Command {
    let program = Path::new(env!("CARGO_BIN_EXE_stillcore"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new("sh");
    command.env("PATH", path).current_dir(place.dir.path()).stdin(std::process::Stdio::null());
    command
}

#[test]
fn tasks_of_a_slurm_array_are_parts_of_a_whole() {
    let place = Place::new();
    declared(&place);
    for task in ["1", "2", "3"] {
        let mut command = shell(&place);
        command.arg(deployed("slurm/study.sbatch")).arg("shares.toml").arg("--state").arg(place.state());
        command.env("SLURM_ARRAY_TASK_ID", task).env("SLURM_ARRAY_TASK_COUNT", "3");
        done(&command.output().unwrap());
    }
    // As its header shows.
    let text = fs::read_to_string(deployed("slurm/study.sbatch")).unwrap();
    let merge = text.lines().find_map(|line| line.strip_prefix("#   stillcore study merge ")).unwrap();
    let parts = merge.split('#').next().unwrap().trim().replace("rtss24-table2", "shares");
    let output =
        shell(&place).arg("-c").arg(format!("stillcore study merge {parts} --json")).output().unwrap();
    done(&output);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["results"], &answer["cells"]), (&12.into(), &12.into()));
}

#[test]
fn a_slurm_task_that_is_stopped_undoes_what_its_cell_has_changed() {
    let place = Place::new();
    let stands = standing(&place);
    long(&place, 1, &stands);
    let mut command = shell(&place);
    command.arg(deployed("slurm/study.sbatch")).arg("shares.toml").arg("--state").arg(place.state());
    command.arg("--out").arg(place.path("out"));
    command.env("SLURM_ARRAY_TASK_ID", "1").env("SLURM_ARRAY_TASK_COUNT", "1");
    let mut task =
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let runs = place.path("out/runs");
    eventually("a window", || {
        fs::read_dir(&runs).ok()?.flatten().find(|cell| cell.path().join("run").exists())
    });
    assert!(stands.exists());
    // To the shell alone, as --signal=B: does.
    signal(task.id(), "TERM");
    assert!(!task.wait().unwrap().success());
    assert!(!stands.exists(), "the shell ends behind the study");
    eventually("nothing left", || place.leftovers().is_empty().then_some(()));
}

#[test]
fn pods_of_a_kubernetes_job_are_parts_of_a_whole() {
    for file in ["kubernetes/study.yaml", "kubernetes/study-isolate.yaml"] {
        let place = Place::new();
        declared(&place);
        let text = fs::read_to_string(deployed(file)).unwrap();
        let behind = |start: &str| text.lines().find_map(|line| line.trim().strip_prefix(start)).unwrap();
        let completions = behind("completions: ");
        assert_eq!(behind("- { name: PARTS, value: \""), format!("{completions}\" }}"));
        let here = place.dir.path().display().to_string();
        let call = behind("- exec ").replace("/study/study.toml", "shares.toml").replace("/results", &here);
        for index in 0..completions.parse::<u32>().unwrap() {
            let mut command = shell(&place);
            command.arg("-c").arg(format!("exec {call} --state {here}/state"));
            command.env("JOB_COMPLETION_INDEX", index.to_string()).env("PARTS", completions);
            done(&command.output().unwrap());
        }
        let output = shell(&place).arg("-c").arg("stillcore study merge part-* --json").output().unwrap();
        done(&output);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&answer["results"], &answer["cells"]), (&12.into(), &12.into()));
    }
}
