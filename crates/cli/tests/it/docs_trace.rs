//! The examples of `docs/trace.md` are what the program prints: each command runs on the fixtures
//! and must print the lines below it in order, consecutively except where `...` stands.

use std::path::Path;
use std::process::Command;

#[test]
fn the_examples_are_what_is_printed() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let page = std::fs::read_to_string(repository.join("docs/trace.md")).unwrap();
    let place = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(repository.join("fixtures"), place.path().join("fixtures")).unwrap();
    let examples = examples(&page);
    assert!(examples.len() >= 5, "{examples:?}");
    for (command, expected) in examples {
        let words: Vec<_> = command.split_whitespace().collect();
        assert_eq!(words[0], "stillcore", "{command}");
        let mut run = Command::new(env!("CARGO_BIN_EXE_stillcore"));
        let output = run.args(&words[1..]).current_dir(place.path()).output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8(printed).unwrap();
        if let Err(line) = holds(&printed, &expected) {
            panic!("docs/trace.md: {command}\nprints no {line:?} there:\n{printed}");
        }
    }
}

/// Each command with the lines below it, up to the next paragraph that is not an example.
fn examples(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        match line.strip_prefix("    ") {
            Some(text) if text.starts_with("$ ") => {
                found.push((&text[2..], Vec::new()));
                open = true;
            }
            Some(text) if open => found.last_mut().unwrap().1.push(text),
            _ => open = false,
        }
    }
    found
}

/// The first line that is not at its place.
fn holds<'a>(printed: &str, expected: &[&'a str]) -> Result<(), &'a str> {
    let mut rest = printed.lines();
    let mut skip = false;
    for wanted in expected {
        if *wanted == "..." {
            skip = true;
            continue;
        }
        let found = if skip { rest.any(|line| line == *wanted) } else { rest.next() == Some(wanted) };
        if !found {
            return Err(wanted);
        }
        skip = false;
    }
    Ok(())
}

/// Not only the latest twenty: `--sample` explains each sample of a window, and its parts add up to
/// it.
#[test]
fn every_late_wake_up_can_be_explained() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small");
    let explain = |order: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stillcore"));
        command.args(["trace", "explain", "--json"]).arg(&run).args(order);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let samples = |answer: &serde_json::Value| -> Vec<serde_json::Value> {
        let paths = answer["paths"].as_array().unwrap().iter();
        paths.flat_map(|path| path["worst"].as_array().unwrap().clone()).collect()
    };
    let all = samples(&explain(&["--worst", "1000"]));
    let counted: u64 =
        explain(&[])["paths"].as_array().unwrap().iter().map(|path| path["samples"].as_u64().unwrap()).sum();
    assert!(counted > 60);
    assert_eq!(all.len() as u64, counted);
    for sample in all.iter().step_by(97) {
        let selected = samples(&explain(&["--sample", &sample["t_ns"].to_string()]));
        assert_eq!(selected, std::slice::from_ref(sample));
        let parts: u64 =
            sample["parts"].as_array().unwrap().iter().map(|part| part["ns"].as_u64().unwrap()).sum();
        assert_eq!(Some(parts), sample["value_ns"].as_u64());
    }
}
