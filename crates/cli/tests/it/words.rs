//! The words of the command line: former names, colours, suggestions that depend on the place, and
//! files that an error does not quote.

use crate::support::{Place, assert_refused, stillcore, text};
use std::fs;

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/machines/vm-6.18");

#[test]
fn a_former_name_is_answered_with_one_note() {
    let call = |option: &str| {
        let output =
            stillcore(&["resources", option, "3", "--kind", "irq", "--root", SNAPSHOT]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        (text(&output.stdout), text(&output.stderr))
    };
    let (now, silence) = call("--cpus");
    let (before, note) = call("--cpu");
    assert_eq!((now, silence.as_str()), (before, ""));
    assert_eq!(note, "note: resources --cpu is called --cpus\n");
}

#[test]
fn runs_of_this_directory_are_suggested() {
    let place = Place::new();
    for name in ["first", "second"] {
        fs::create_dir(place.path(name)).unwrap();
        fs::write(place.path(name).join("run.json"), "{}").unwrap();
    }
    fs::create_dir_all(place.path("group/1")).unwrap();
    fs::write(place.path("group/1/run.json"), "{}").unwrap();
    let output = stillcore(&["report", "third"]).current_dir(place.path("")).output().unwrap();
    assert_refused(
        &output,
        &[
            "no run directory 'third': it does not exist",
            "hint: runs here: ",
            "first",
            "second",
            "group (several)",
        ],
    );
}

#[test]
fn a_file_that_is_no_archive_is_not_quoted() {
    let place = Place::new();
    fs::write(place.path("passwd"), "root:x:0:0:secret words:/root:/bin/sh\n".repeat(40)).unwrap();
    let passwd = place.path("passwd");
    let file = passwd.to_str().unwrap();
    for call in [
        &["audit", "--cpus", "1", "--root", file][..],
        &["study", "run", file],
        &["graph", "run", file],
        &["sched", "analyze", file],
        &["report", file],
        &["summary", file],
        &["measure", "taskset", "--file", file],
    ] {
        let output = stillcore(call).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{call:?}");
        assert!(
            !text(&output.stderr).contains("secret") && !text(&output.stderr).contains("root:"),
            "{output:?}"
        );
    }
}

#[test]
fn colours_are_a_choice() {
    let call = |words: &[&str], no_color: &str| {
        let output = stillcore(words).env("NO_COLOR", no_color).output().unwrap();
        text(&output.stderr)
    };
    assert!(
        call(&["--color", "always", "report", "nosuch"], "")
            .starts_with("\u{1b}[1;31merror:\u{1b}[0m no run")
    );
    assert!(call(&["report", "nosuch", "--color=always"], "1").contains("\u{1b}["), "the option wins");
    for words in [&["report", "nosuch"][..], &["--color", "never", "report", "nosuch"]] {
        assert!(call(words, "").starts_with("error: no run"), "a pipe has none");
    }
    assert!(call(&["report", "nosuch", "--color", "red"], "").contains("auto, always, never"));
}
