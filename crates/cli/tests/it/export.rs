//! `isolate export` as a command: what it prints and writes, and what it refuses.

use crate::support::{assert_refused, stillcore, text};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/machines/isolated-6.1");

fn export(tool: &str, more: &[&str]) -> Output {
    let words = ["isolate", "export", tool, "--cpus", "2,3", "--root", FIXTURE];
    stillcore(&words).args(more).output().unwrap()
}

#[test]
fn what_is_printed_is_what_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let written = export("tuned", &["--name", "still", "--out", out.to_str().unwrap()]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let file = out.join("still/tuned.conf");
    assert!(text(&written.stdout).starts_with(&format!("written: {}\n", file.display())));
    let printed = export("tuned", &["--name", "still"]);
    assert_eq!(text(&printed.stdout), fs::read_to_string(&file).unwrap());
    let as_json: Value = serde_json::from_slice(&export("tuned", &["--json"]).stdout).unwrap();
    assert_eq!(
        (&as_json["schema"], &as_json["tool"]),
        (&"stillcore.isolate-export/1".into(), &"tuned".into())
    );
    assert_eq!(as_json["files"][0]["path"], "stillcore/tuned.conf");
}

/// Another user may have put links into a directory that is there, and others may write to a new
/// one where the umask lets them.
#[test]
fn files_are_written_to_a_directory_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (there, new) = (dir.path().join("there"), dir.path().join("new"));
    fs::create_dir(&there).unwrap();
    fs::create_dir(dir.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), there.join("stillcore")).unwrap();
    assert_refused(
        &export("tuned", &["--out", there.to_str().unwrap()]),
        &["--out", "there", "expected a new directory", "exists"],
    );
    assert_eq!(fs::read_dir(dir.path().join("elsewhere")).unwrap().count(), 0);
    let script = format!(
        "umask 0; exec {} isolate export tuned --cpus 2,3 --root {FIXTURE} --out {}",
        env!("CARGO_BIN_EXE_stillcore"),
        new.display()
    );
    assert!(Command::new("sh").args(["-c", &script]).output().unwrap().status.success());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o022;
    assert_eq!([mode(&new), mode(&new.join("stillcore"))], [0; 2]);
}

#[test]
fn wrong_orders_are_refused_in_one_sentence() {
    assert_refused(
        &export("tuned", &["--name", "Not A Label"]),
        &["--name", "Not A Label", "letters a to z"],
    );
    assert_refused(&export("tuned", &["--for-kernel", "new"]), &["--for-kernel", "release such as"]);
    let unknown = export("tunned", &[]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("tuned"), "{}", text(&unknown.stderr));
}

/// A profile that does some of the plan, in the order of what a reader wants to know.
#[test]
fn a_profile_of_tuned_is_held_against_the_plan() {
    let dir = tempfile::tempdir().unwrap();
    let profile = dir.path().join("mine");
    fs::create_dir(&profile).unwrap();
    let put = |text: &str| fs::write(profile.join("tuned.conf"), text).unwrap();
    let plan = |from: &str, more: &[&str]| {
        let words = ["isolate", "plan", "--root", FIXTURE, "--from", from];
        stillcore(&words).args(more).output().unwrap()
    };
    let from = format!("tuned:{}", profile.display());
    put("[sysctl]\nkernel.numa_balancing=7\nfs.file-max=9\nkernel.panic=${f:exec:id}\n[scheduler]\n\
         isolated_cores=2,3\n");
    let output = plan(&from, &[]);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(printed.contains("against the plan to isolate CPUs 2,3\n"), "{printed}");
    let places: Vec<_> = [
        "does otherwise\n  numa_balancing",
        ": 7 instead of 0",
        "does as planned\n",
        "tasks run on other CPUs than 2,3",
        "does besides\n  /proc/sys/fs/file-max = 9",
        "not known without running it\n  [sysctl] kernel.panic = ${f:exec:id}: ${f:exec:id} is not computed",
        "leaves what is so already\n",
    ]
    .iter()
    .map(|part| printed.find(part).unwrap_or_else(|| panic!("{part} in {printed}")))
    .collect();
    assert!(places.is_sorted(), "{places:?} in {printed}");
    let document: Value = serde_json::from_slice(&plan(&from, &["--json", "--cpus", "3"]).stdout).unwrap();
    assert_eq!(
        (&document["schema"], &document["isolated"]),
        (&"stillcore.isolate-from/1".into(), &"3".into())
    );
    assert_eq!(document["files"]["/proc/sys/kernel/numa_balancing"], "7");

    assert_refused(&plan("mine", &[]), &["--from", "mine", "tuned:PROFILE or tuned:DIR"]);
    assert_refused(&plan("tuned:no-such-profile", &[]), &["no-such-profile", "expected"]);
    put("[sysctl]\nvm.stat_interval\n");
    assert_refused(&plan(&from, &[]), &["tuned.conf: line 2", "NAME=VALUE"]);
    put("");
    assert_refused(&plan(&from, &["--cpus", "77"]), &["77"]);
}
