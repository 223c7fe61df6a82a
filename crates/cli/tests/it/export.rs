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
