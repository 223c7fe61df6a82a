//! `stillcore study run --hosts`: an experiment on several machines through Ansible. Here all of
//! them are this one, by Ansible's local connection; `cargo xtask lab hosts` has two that are
//! reached by ssh, one of which dies.
//!
//! Ansible comes from the directory that the driver of the tests has put it in
//! (`xtask/src/hosts.rs`).

use crate::support::shares::{ansible, declared, have_ansible, long, standing};
use crate::support::{Place, assert_refused, eventually, read_json, stillcore, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Two machines that are this one, each with a directory of its own; `more` is appended to the
/// variables of the second.
fn inventory(place: &Place, more: &str) -> PathBuf {
    let path = place.path("inventory.ini");
    let python = ansible().unwrap().join("python3");
    let host = |name: &str| {
        let dir = place.path(name);
        format!(
            "{name} ansible_connection=local ansible_python_interpreter={} stillcore_dir={} stillcore_poll_s=1",
            python.display(),
            dir.display()
        )
    };
    fs::write(&path, format!("{}\n{} {more}\n", host("left"), host("right"))).unwrap();
    path
}

fn study(place: &Place, out: &str, arguments: &[&str]) -> Command {
    let mut command = stillcore(&["study", "run"]);
    let path = format!("{}:{}", ansible().unwrap().display(), std::env::var("PATH").unwrap());
    command.arg(place.path("shares.toml")).arg("--state").arg(place.state()).env("PATH", path);
    // Ansible's own files are in this place, too.
    command.env("ANSIBLE_LOCAL_TEMP", place.path("local")).env("ANSIBLE_REMOTE_TEMP", place.path("remote"));
    command.env("ANSIBLE_ASYNC_DIR", place.path("async"));
    command.arg("--out").arg(place.path(out)).args(arguments);
    command
}

fn on_hosts(place: &Place, out: &str, arguments: &[&str]) -> Output {
    let inventory = place.path("inventory.ini").display().to_string();
    study(place, out, &[&["--hosts", &inventory], arguments].concat()).output().unwrap()
}

fn places(out: &Path) -> Vec<String> {
    let table = read_json(&out.join("study.json"));
    let groups = table["groups"].as_array().unwrap();
    let mut places: Vec<String> = groups
        .iter()
        .flat_map(|group| group["places"].as_array().unwrap())
        .map(|place| place.as_str().unwrap().to_owned())
        .collect();
    places.sort();
    places.dedup();
    places
}

/// The answer without the `places` of its groups.
fn without_places(out: &Path) -> Value {
    let mut answer = read_json(&out.join("study.json"));
    for group in answer["groups"].as_array_mut().unwrap() {
        group["places"] = Value::Null;
    }
    answer
}

#[test]
fn cells_on_machines_are_those_of_one_run_and_nothing_stays_there() {
    if !have_ansible() {
        return;
    }
    let place = Place::new();
    declared(&place);
    inventory(&place, "");
    let output = on_hosts(&place, "fleet", &["--keep"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(study(&place, "whole", &["--here"]).output().unwrap().status.success());
    assert_eq!(without_places(&place.path("fleet")), without_places(&place.path("whole")));
    let places = places(&place.path("fleet"));
    assert!(
        places.iter().any(|place| place.starts_with("left, "))
            && places.iter().any(|place| place.starts_with("right, ")),
        "{places:?}"
    );
    for host in ["left", "right"] {
        assert!(!place.path(host).exists(), "{host}");
        assert!(!place.path("fleet").join("hosts").join(host).join("results").exists(), "{host}");
    }
    // The run directories of executed cells were requested.
    assert!(fs::read_dir(place.path("fleet").join("runs")).unwrap().count() >= 4);
    let again = on_hosts(&place, "fleet", &["--resume"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("0 of 12 cells to run"), "{}", text(&again.stderr));
    assert_eq!(again.stdout.len(), output.stdout.len());
}

#[test]
fn a_machine_that_cannot_run_its_cells_loses_them_and_only_them() {
    if !have_ansible() {
        return;
    }
    let place = Place::new();
    declared(&place);
    // An invalid program.
    let broken = place.path("broken");
    fs::write(&broken, "#!/bin/sh\necho 'no such thing here' >&2\nexit 3\n").unwrap();
    inventory(&place, &format!("stillcore_binary={}", broken.display()));
    let output = on_hosts(&place, "fleet", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = read_json(&place.path("fleet").join("study.json"));
    let reasons = table["groups"].to_string();
    assert!(reasons.contains("host failed: Run the cells: no such thing here"), "{reasons}");
    let stored = || fs::read_dir(place.path("fleet").join("cells")).unwrap().count();
    assert_eq!((stored(), table["results"].as_u64()), (6, Some(12)));
    inventory(&place, "");
    let again = on_hosts(&place, "fleet", &["--resume"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("6 of 12 cells to run"), "{}", text(&again.stderr));
    assert_eq!(stored(), 12);
    let reasons = read_json(&place.path("fleet").join("study.json"))["groups"].to_string();
    assert!(!reasons.contains("host failed"), "{reasons}");
}

#[test]
fn what_cannot_work_is_one_sentence_and_nothing_is_made() {
    if !have_ansible() {
        return;
    }
    let place = Place::new();
    declared(&place);
    let refused = |name: &str, contents: &str, expected: &[&str]| {
        let path = place.path(name);
        fs::write(&path, contents).unwrap();
        let output = study(&place, "out", &["--hosts", path.to_str().unwrap()]).output().unwrap();
        assert_refused(&output, expected);
        assert!(!place.path("out").exists(), "{name}");
    };
    refused("empty.ini", "", &["no machines"]);
    refused("bad.yml", "all: [\n", &["expected an inventory of Ansible"]);
    refused("odd.ini", "a/b\n", &["a machine called \"a/b\""]);
    let absent = study(&place, "out", &["--hosts", "absent.ini"]).output().unwrap();
    assert_refused(&absent, &["absent.ini does not exist"]);
    inventory(&place, "");
    let list = place.path("inventory.ini").display().to_string();
    let bare = study(&place, "out", &["--hosts", &list]).env("PATH", "/nowhere").output().unwrap();
    assert_refused(&bare, &["no ansible-playbook on PATH", "pip install ansible-core"]);
    assert!(!place.path("out").exists());
}

#[test]
fn ctrl_c_ends_the_machines_and_undoes_what_they_changed() {
    if !have_ansible() {
        return;
    }
    let place = Place::new();
    let stands = standing(&place);
    long(&place, 2, &stands);
    inventory(&place, "");
    let list = place.path("inventory.ini").display().to_string();
    let mut command = study(&place, "fleet", &["--hosts", &list]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let measures = |host: &str| {
        let cells = fs::read_dir(place.path(host).join("out/runs")).ok()?.flatten();
        cells.into_iter().find(|cell| cell.path().join("run").exists())
    };
    eventually("two windows", || measures("left").and(measures("right")));
    crate::support::signal(child.id(), "INT");
    assert!(!child.wait().unwrap().success());
    assert!(!stands.exists());
    assert!(!place.path("left").exists() && !place.path("right").exists());
    eventually("nothing left", || place.leftovers().is_empty().then_some(()));
}

#[test]
fn the_kernel_that_a_machine_ran_stands_in_the_answer_where_the_file_names_kernels() {
    if !have_ansible() {
        return;
    }
    let place = Place::new();
    let file = declared(&place);
    let text_of_file = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text_of_file.replacen("[quantities]", "[machine]\nkernels = [\"2.6\"]\n\n[quantities]", 1),
    )
    .unwrap();
    inventory(&place, "");
    let output = on_hosts(&place, "fleet", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(study(&place, "whole", &["--here"]).output().unwrap().status.success());
    let kernels = |out: &str| {
        let groups = read_json(&place.path(out).join("study.json"))["groups"].take();
        let of = |group: &Value| group["levels"]["kernel"].as_str().unwrap().to_owned();
        groups.as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let kernel = kernels("whole");
    assert!(kernel.len() == 6 && kernel.iter().all(|one| *one == kernel[0] && *one != "2.6"), "{kernel:?}");
    assert_eq!(kernels("fleet"), kernel);
    // The same study here and there: ids differ by the kernel, which is known here beforehand.
    let part = read_json(&place.path("whole").join("plan.json"));
    assert_eq!(part["kernels"], serde_json::json!([kernel[0]]));
}
