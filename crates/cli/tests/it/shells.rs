//! Completions as shells take them, and a manual page for every verb.

use crate::support::text;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn stillcore(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stillcore")).args(words).output().unwrap()
}

fn script(shell: &str) -> String {
    let output = stillcore(&["completions", shell]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        println!("skipped: {program} is missing (package {program})");
    }
    there
}

/// What a shell prints for a text on its standard input.
fn fed(program: &str, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn bash_completes_verbs_and_their_options() {
    if !has("bash") {
        return;
    }
    let script = script("bash");
    let output = fed("bash", &["-n"], &script);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let complete = |words: &str, last: &str, before: &str| {
        let ask = format!(
            "{script}\nCOMP_WORDS=({words})\nCOMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
             _stillcore stillcore '{last}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        );
        let output = fed("bash", &["--norc"], &ask);
        text(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete("stillcore me", "me", "stillcore"), ["measure"]);
    assert_eq!(complete("stillcore measure wa", "wa", "measure"), ["wakeup"]);
    let options = complete("stillcore audit --cp", "--cp", "audit");
    assert_eq!(options, ["--cpus"]);
}

#[test]
fn zsh_and_fish_load_their_scripts() {
    for (shell, flag) in [("zsh", "-n"), ("fish", "--no-execute")] {
        let script = script(shell);
        assert!(script.contains("measure") && script.contains("timer") | script.contains("cpus"));
        if has(shell) {
            let output = fed(shell, &[flag], &script);
            assert!(output.status.success(), "{shell}: {}", text(&output.stderr));
        }
    }
}

/// The verbs below `path`, as its help lists them, with the path itself.
fn verbs(path: &[String], all: &mut BTreeSet<String>) {
    all.insert(path.join("-"));
    let words: Vec<&str> = path.iter().skip(1).map(String::as_str).chain(["--help"]).collect();
    let help = text(&stillcore(&words).stdout);
    // The program's own page has its verbs in groups, above the options.
    let list = match help.split_once("\nCommands:\n") {
        Some((_, rest)) => rest.split("\n\n").next(),
        None if path.len() == 1 => help.split("Options:\n").next(),
        None => None,
    };
    let rows = list.unwrap_or_default().lines();
    for row in rows.filter(|row| row.starts_with("  ") && !row.starts_with("   ")) {
        let verb = row.split_whitespace().next().unwrap();
        if verb != "help" {
            verbs(&[path, &[verb.to_owned()]].concat(), all);
        }
    }
}

#[test]
fn every_verb_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = stillcore(&["man", "--out", out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut expected = BTreeSet::new();
    verbs(&["stillcore".to_owned()], &mut expected);
    assert!(expected.contains("stillcore-measure-wakeup"), "{expected:?}");
    let files = fs::read_dir(folder.path()).unwrap();
    let written: BTreeSet<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(written, expected.iter().map(|verb| format!("{verb}.1")).collect());
    let page = fs::read_to_string(folder.path().join("stillcore-measure-wakeup.1")).unwrap();
    for part in [".TH stillcore-measure-wakeup 1", ".SH NAME", "\\-\\-cpus", "stillcore\\-measure (1)"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(text(&stillcore(&["man", "measure", "wakeup"]).stdout), page);
    let wrong = stillcore(&["man", "measure", "wakup"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stderr).contains("no verb wakup under measure"), "{}", text(&wrong.stderr));
}

#[test]
fn a_machine_has_defaults_and_the_command_line_counts_first() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "cpus = \"0\"\nstate = \"/no/such/place\"\n").unwrap();
    let config = file.to_str().unwrap();
    let audited = |more: &[&str]| {
        let words = [&["--config", config, "audit", "--json"], more].concat();
        let output = stillcore(&words);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
        answer["cpus"].as_str().unwrap().to_owned()
    };
    assert_eq!(audited(&[]), "0");
    let here = std::thread::available_parallelism().unwrap().get();
    if here > 1 {
        assert_eq!(audited(&["--cpus", "1"]), "1");
    }
    let status = stillcore(&["--config", config, "isolate", "status"]);
    assert!(text(&status.stdout).contains("nothing is isolated"), "{}", text(&status.stdout));
    fs::write(&file, "cpus = \"0\"\nspeed = \"high\"\n").unwrap();
    let refused = stillcore(&["--config", config, "audit"]);
    assert_eq!(refused.status.code(), Some(1));
    let error = text(&refused.stderr);
    assert!(error.contains("config.toml: line 2") && error.contains("speed"), "{error}");
    // Help is printed all the same.
    assert!(stillcore(&["--config", config, "--help"]).status.success());
}
