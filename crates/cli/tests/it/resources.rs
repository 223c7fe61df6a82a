//! `stillcore resources` as it is typed: on this machine with whatever rights there are, on
//! captured machines, on bad input.

use crate::support::{assert_refused, is_root, stillcore};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn machine(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines").join(name)
}

fn json(arguments: &[&str]) -> Value {
    let output = stillcore(&["resources", "--json"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(arguments: &[&str]) -> String {
    let output = stillcore(&["resources"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn first_online() -> String {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    online.trim().split([',', '-']).next().unwrap().to_owned()
}

#[test]
fn this_machine_is_one_json_object() {
    let answer = json(&["--cpus", &first_online()]);
    assert_eq!(answer["schema"], "stillcore.resources/1");
    assert_eq!(answer["cpu"].to_string(), first_online());
    let rows = answer["rows"].as_array().unwrap();
    for key in [
        "kind",
        "name",
        "asked",
        "effective",
        "observed",
        "owner",
        "may_touch",
        "movable",
        "reason",
        "mechanism",
    ] {
        assert!(rows.iter().all(|row| row.get(key).is_some()), "{key} is left out of a row");
    }
    let counted: u64 =
        answer["summary"].as_object().unwrap().values().map(|tally| tally["rows"].as_u64().unwrap()).sum();
    assert_eq!(counted, rows.len() as u64);
}

#[test]
fn the_page_is_a_hundred_columns_wide() {
    let page = text(&["--cpus", &first_online()]);
    let wide: Vec<_> = page.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    assert!(page.starts_with(&format!("CPU {}: ", first_online())), "{page}");
}

#[test]
fn a_captured_machine_is_asked_in_place_of_this_one() {
    let root = machine("isolated-6.1");
    let page = text(&["--cpus", "2", "--root", root.to_str().unwrap()]);
    assert!(page.contains("27 nvme0q3"), "{page}");
    assert!(page.contains("softirqs: not known: there is no /proc/softirqs"), "{page}");
    let answer = json(&["--cpus", "2", "--root", root.to_str().unwrap(), "--kind", "irq,kthread"]);
    let kinds: BTreeSet<_> = answer["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, BTreeSet::from(["irq".to_owned(), "kthread".to_owned()]));
}

#[test]
fn kinds_of_which_there_is_nothing_are_named() {
    let root = machine("isolated-6.1");
    let page = text(&["--cpus", "2", "--root", root.to_str().unwrap(), "--kind", "sibling,machine-check"]);
    assert!(page.contains("nothing of these kinds: sibling, machine-check"), "{page}");
}

#[test]
fn bad_input_has_one_sentence() {
    let refused = |arguments: &[&str], expected: &[&str]| {
        assert_refused(&stillcore(&["resources"]).args(arguments).output().unwrap(), expected);
    };
    let unplugged = machine("unplugged-6.1");
    refused(&["--cpus", "3", "--root", unplugged.to_str().unwrap()], &["CPU 3 is offline", "CPUs among 0-2"]);
    refused(&["--cpus", "4095"], &["no CPU 4095"]);
    refused(&["--cpus", "-1"], &["-1"]);
    refused(&["--cpus", "two"], &["two"]);
    refused(&[], &["--cpus"]);
    refused(&["--cpus", "0", "--kind", "irqs"], &["irqs", "one of irq, vector"]);
    refused(&["--cpus", "0", "--root", "/nonexistent/tree"], &["/nonexistent/tree"]);
}

/// A user cannot read others' descriptors: a program that they hold is not reported as harmless.
#[test]
fn programs_of_bpf_that_a_user_may_not_see_are_not_acquitted() {
    let rows = |output: std::process::Output| -> Vec<Value> {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = answer["rows"].as_array().unwrap().iter();
        rows.filter(|row| row["kind"] == "bpf" && row["name"] == "programs of others").cloned().collect()
    };
    let cpu = first_online();
    if !is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    // Number of processes with unreadable descriptors; in a container even root may not read some.
    let closed = |rows: &[Value]| -> u64 {
        let Some(row) = rows.first() else { return 0 };
        assert_eq!(row["may_touch"], Value::Null, "{row}");
        let reason = row["reason"].as_str().unwrap();
        let number = reason.strip_prefix("what ").and_then(|rest| rest.split(' ').next());
        assert!(reason.contains("may not be read here"), "{reason}");
        number.unwrap().parse().unwrap()
    };
    let of_root = rows(stillcore(&["resources", "--json", "--cpus", &cpu]).output().unwrap());
    // The build directory may be closed to others; a copy is not.
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let binary = place.path().join("stillcore");
    fs::copy(env!("CARGO_BIN_EXE_stillcore"), &binary).unwrap();
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--inh-caps=-all"];
    let mut command = std::process::Command::new("setpriv");
    command.args(user).arg(&binary).args(["resources", "--json", "--cpus", &cpu]).current_dir("/");
    let of_user = rows(command.output().unwrap());
    assert_eq!(of_user.len(), 1, "{of_user:?}");
    assert!(closed(&of_user) > closed(&of_root), "{of_user:?} {of_root:?}");
}
