//! `stillcore study run --hosts` on two machines reached by ssh, one of which loses power in the
//! middle of a cell. Its cells are reported as lost, those of the other are kept; a resumed call
//! collects, undoes changes and runs the rest. Needs root for network namespaces, and sshd; Ansible
//! comes from where the driver has put it. `cargo xtask lab hosts`.

use crate::support::shares::{ansible, declared, experiment, have_ansible, standing, undoes};
use crate::support::{Place, print_row, read_json, stillcore, text};
use result::Row;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shares, each beside a window of two seconds, in which a machine can lose power. After each,
/// the isolation in force is undone.
fn slow(place: &Place) {
    declared(place);
    let undoes = undoes(&standing(place));
    let quick = experiment(&place.path("curves.toml"));
    let text = quick
        .replace("{ name = \"isolated\", isolated = true }, ", "")
        .replace("\"plain\"", &format!("{{ name = \"plain\", {undoes} }}"))
        .replace("[\"isolate\", \"apply\", \"--cpus\", \"4095\", \"--json\"]", "[\"explain\", \"nothing\"]")
        .replace("repetitions = 2", "repetitions = 4")
        .replace("[[step]]\n", "[[step]]\nname = \"shares\"\n")
        .replace(
            "[[value]]\nname = \"share\"",
            &format!(
                "[[step]]\nname = \"window\"\nrun = [\"measure\", \"wakeup\", \"--duration\", \"2s\", \"--quiet\", \"--out\", \"{{out}}\", \"--state\", \"{}\"]\n\n[[value]]\nstep = \"shares\"\nname = \"share\"",
                place.state().display()
            ),
        )
        .replace("[[value]]\nname = \"nothing\"", "[[value]]\nstep = \"shares\"\nname = \"nothing\"");
    fs::write(place.path("shares.toml"), text).unwrap();
}

/// The answer without `places`.
fn without_places(path: &Path) -> Value {
    let mut answer = read_json(path);
    for group in answer["groups"].as_array_mut().unwrap() {
        group["places"] = Value::Null;
    }
    answer
}

fn lines(path: &Path) -> BTreeSet<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_machine_that_loses_its_power_loses_its_cells_until_it_is_back() {
    if !have_ansible() {
        return;
    }
    if !crate::support::is_root() {
        println!("skipped: network namespaces take root");
        return;
    }
    let place = Place::new();
    slow(&place);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts_ssh.sh");
    let at = |name: &str| -> PathBuf { place.path(name) };
    let path = format!("{}:/usr/sbin:{}", ansible().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh"]);
    command
        .arg(script)
        .arg(place.dir.path())
        .arg(env!("CARGO_BIN_EXE_stillcore"))
        .arg(ansible().unwrap().join("python3"));
    let output = command.env("PATH", path).output().unwrap();
    let said = |name: &str| fs::read_to_string(at(name)).unwrap_or_default();
    assert!(output.status.success(), "{}{}{}", text(&output.stderr), said("first.err"), said("second.err"));
    assert!(
        stillcore(&["study", "run"])
            .arg(at("shares.toml"))
            .arg("--here")
            .arg("--out")
            .arg(at("whole"))
            .output()
            .unwrap()
            .status
            .success()
    );

    // While it was down, its cells were failures with a reason and without results.
    let first = read_json(&at("first.json"));
    assert_eq!((&first["results"], &first["cells"]), (&16.into(), &16.into()));
    let reasons = first["groups"].to_string();
    assert!(reasons.contains("host unreachable: "), "{reasons}");
    let kept = lines(&at("first.cells"));
    assert_eq!(kept.len(), 8, "{kept:?}");
    let own: usize = said("stored-by-2").trim().parse().unwrap();
    print_row(&Row::new("cells that machine 1 kept", kept.len() as f64, ""));
    let what = "cells of machine 2 behind it when its power failed";
    print_row(&Row::new(what, own as f64, "").n(8));
    println!(
        "machine 1 kept {} cells; machine 2 had {own} of 8 behind it when its power failed; {}",
        kept.len(),
        first_reason(&reasons)
    );

    // Without it, the other machine ran its cells.
    assert_eq!(without_places(&at("without/study.json")), without_places(&at("whole/study.json")));
    assert!(said("without.err").contains("8 of 16 cells to run"), "{}", said("without.err"));
    let places = read_json(&at("without/study.json"))["groups"].to_string();
    assert!(places.contains("host1, ") && !places.contains("host2"), "{places}");
    print_row(&Row::new("cells of machine 2 run by machine 1 without it", 8.0, ""));
    println!("resumed without it: its 8 cells are run by machine 1");

    // With it, its results were collected, its changes undone, and only the rest was run.
    assert_eq!(without_places(&at("fleet/study.json")), without_places(&at("whole/study.json")));
    let second = said("second.err");
    assert!(second.contains(&format!("{} cells on 2 machines", 8 - own)), "{second}");
    print_row(&Row::new("cells run anew once it was back", (8 - own) as f64, "").n(8));
    println!("resumed with it: {} cells run anew", 8 - own);
    for host in ["host1", "host2"] {
        assert!(!at(host).exists(), "{host} has kept something");
    }
    assert!(!at("stands/isolation.jsonl").exists(), "what stood was not given back");
    let whole = |out: &str| lines_of(&at(out).join("cells"));
    assert_eq!(whole("fleet"), whole("whole"));
    println!("the table is that of one machine");
}

fn lines_of(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

fn first_reason(groups: &str) -> String {
    groups.split("host unreachable: ").nth(1).unwrap_or_default().chars().take_while(|c| *c != '"').collect()
}
