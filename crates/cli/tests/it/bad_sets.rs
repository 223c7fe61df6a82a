//! Bad task sets and bad studies: the line and the field in one sentence, exit 1, and the lines
//! around it answered with `--keep-going`.

use crate::support::{Place, assert_refused, stillcore, text};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Output;

const GOOD: &str = r#"{"unit":"us","cores":2,"tasks":[{"period":10000,"cost":2000,"core":1}]}"#;

/// A valid task, then one with an additional field.
fn with(field: &str) -> Vec<u8> {
    format!(r#"{{"unit":"us","cores":2,"tasks":[{{"period":9,"cost":1}},{{"period":10,"cost":2,{field}}}]}}"#)
        .into_bytes()
}

/// Invalid lines and their messages.
fn bad_lines() -> Vec<(Vec<u8>, &'static str)> {
    let plain = |text: &str| text.as_bytes().to_vec();
    vec![
        (with(r#""jitter":-1"#), "tasks[1].jitter: -1; expected an integer from 0 to"),
        (with(r#""deadline":0"#), "tasks[1].deadline: 0; expected an integer from 1 to"),
        (with(r#""blocking":1.5"#), "tasks[1].blocking: 1.5"),
        (with(r#""blocking":"7""#), "tasks[1].blocking: \"7\""),
        (with(r#""jitter":18446744073709551616"#), "tasks[1].jitter: 1.8446744073709552e+19"),
        (
            with(r#""jitter":9007199254740991"#),
            "tasks[1].jitter: 9007199254740991; expected an integer from 0 to 9007199254740",
        ),
        (with(r#""core":2"#), "tasks[1].core: 2; expected an integer from 0 to 1"),
        (with(r#""deadline":NaN"#), "the line: expected value at byte 88"),
        (with(r#""deadline":Infinity"#), "the line: expected value at byte 88"),
        (with(r#""period":11"#), "tasks[1]: key \"period\" twice"),
        (with(r#""jiter":1"#), "tasks[1]: unknown key \"jiter\"; expected some of period"),
        (with(r#""priority":0"#), "tasks[0].priority: nothing; expected a priority for every task"),
        (with(r#""requests":[{"resource":0,"length":-5}]"#), "tasks[1].requests[0].length: -5"),
        (with(r#""requests":[{"length":5}]"#), "tasks[1].requests[0].resource: nothing"),
        (plain(r#"{"tasks":[{"period":10}]}"#), "tasks[0].cost: nothing; expected a time"),
        (plain(r#"{"tasks":[{"period":10,"cost":"#), "the line: EOF while parsing a value at byte 30"),
        (plain(r#"{"unit":"min","tasks":[]}"#), "unit: \"min\"; expected \"ns\", \"us\" or \"ms\""),
        (plain(r#"{"cores":0,"tasks":[]}"#), "cores: 0; expected an integer from 1 to 4096"),
        (plain(r#"{"tasks":7}"#), "tasks: a number; expected a list"),
        (plain("[]"), "the line: a list; expected an object"),
        (plain("period 10"), "the line: expected value at byte 1"),
        (b"{\"unit\":\"\xff\xfe\",\"tasks\":[]}".to_vec(), "the line: invalid unicode code point at byte"),
        (b"\0\0\0\0".to_vec(), "the line: expected value at byte 1"),
    ]
}

/// One sentence, exit 1, whatever was answered before.
fn one_sentence(output: &Output, expected: &str) {
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
    assert!(stderr.contains(expected), "{expected:?} is not in {stderr}");
}

fn file(place: &Place, lines: &[&[u8]]) -> PathBuf {
    let path = place.path("sets.jsonl");
    fs::write(&path, lines.join(&b'\n')).unwrap();
    path
}

#[test]
fn the_line_and_the_field_are_named_and_the_others_are_answered() {
    let place = Place::new();
    for (bad, sentence) in bad_lines() {
        let path = file(&place, &[GOOD.as_bytes(), &bad, GOOD.as_bytes()]);
        for verb in [&["sched", "analyze"][..], &["sched", "budget"]] {
            let expected = format!("line 2, {sentence}");
            let output = stillcore(verb).arg(&path).output().unwrap();
            one_sentence(&output, &expected);
            assert!(text(&output.stdout).starts_with("line 1: "), "the line before is answered");

            let output = stillcore(verb).arg(&path).args(["--json", "--keep-going"]).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{verb:?} {sentence}");
            let said: Value = serde_json::from_slice(&output.stderr).unwrap();
            let (place, what) = sentence.split_once(": ").unwrap();
            assert!(
                said["error"]["where"].as_str().unwrap().ends_with(&format!("line 2, {place}")),
                "{said}"
            );
            assert!(
                what.starts_with(said["error"]["what"].as_str().unwrap()) || what.contains("at byte"),
                "{said}"
            );
            let lines: Vec<Value> =
                text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(
                lines.iter().map(|line| &line["line"]).collect::<Vec<_>>(),
                [1, 3],
                "{verb:?} {sentence}"
            );
            assert!(lines.iter().all(|line| line["schedulable"] == true));
        }
    }
}

/// The file ends in the middle of its last line, and some lines are blank.
#[test]
fn a_file_cut_short() {
    let place = Place::new();
    let path = file(&place, &[b"", GOOD.as_bytes(), b" \t\r", &GOOD.as_bytes()[..40]]);
    let output = stillcore(&["sched", "analyze"]).arg(&path).output().unwrap();
    one_sentence(&output, "line 4, the line: EOF while parsing");
    assert!(text(&output.stdout).starts_with("line 2: schedulable"));
}

/// A cost above the deadline is valid input: no test can find it schedulable.
#[test]
fn a_cost_above_the_deadline_is_late() {
    let place = Place::new();
    let late = r#"{"cores":2,"tasks":[{"period":10,"deadline":4,"cost":5},{"period":90,"cost":1,"core":1}]}"#;
    let path = file(&place, &[late.as_bytes()]);
    for test in sched::Test::ALL.map(sched::Test::name) {
        if matches!(test, "gedf-da" | "sched-deadline" | "sched-deadline-partitioned") {
            // Bounded tardiness requires D = T, and admission has its own bounds.
            continue;
        }
        let output = stillcore(&["sched", "analyze", "--json", "--test", test]).arg(&path).output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &answer["schedulable"]), (Some(2), &Value::Bool(false)), "{test}");
    }
    for locks in ["fifo-np", "phase-fair", "msrp-classic"] {
        let output = stillcore(&["sched", "analyze", "--locks", locks]).arg(&path).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{locks}");
    }
}

/// Sets that a test does not cover are reported, and the others are answered.
#[test]
fn what_a_test_does_not_know() {
    let place = Place::new();
    let sections = r#"{"tasks":[{"period":10,"cost":3,"non_preemptive":2}]}"#;
    let path = file(&place, &[sections.as_bytes(), GOOD.as_bytes()]);
    let mut command = stillcore(&["sched", "analyze", "--keep-going"]);
    let output = command.arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr)
            .contains("line 1, the set: fp-rta knows nothing of sections that cannot be preempted")
    );
    assert!(text(&output.stdout).starts_with("line 2: schedulable"));
    let output = stillcore(&["sched", "budget"]).arg(&path).output().unwrap();
    assert_refused(&output, &["line 1, the set: sections that cannot be preempted"]);
}

/// The first line is answered before the sender writes the second one.
#[test]
fn who_asks_line_by_line_is_answered_line_by_line() {
    use std::io::{BufRead, BufReader, Write};
    let mut command = stillcore(&["sched", "analyze", "-", "--json"]);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for number in 1..4 {
        writeln!(to, "{GOOD}").unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["line"], number);
    }
    drop(to);
    assert!(child.wait().unwrap().success());
}

/// The number of threads changes nothing.
#[test]
fn answers_in_order_from_any_number_of_threads() {
    let place = Place::new();
    let sets = stillcore(&["sched", "generate", "--count", "700", "--n", "9"]).output().unwrap().stdout;
    let path = place.path("many.jsonl");
    fs::write(&path, sets).unwrap();
    let of = |threads: &str| {
        let mut command = stillcore(&["sched", "analyze", "--json", "--threads", threads]);
        command.arg(&path).output().unwrap()
    };
    let (one, three) = (of("1"), of("3"));
    assert_eq!(text(&one.stdout).lines().count(), 700);
    assert_eq!((one.stdout, one.status), (three.stdout, three.status));
}

#[test]
fn sets_that_cannot_be_drawn() {
    for (arguments, sentence) in [
        (&["--n", "0"][..], "--n: 0; expected 1 to"),
        (&["--utilization", "NaN"], "--utilization: NaN; expected above 0"),
        (&["--utilization", "-1"], "--utilization: -1; expected above 0"),
        (&["--utilization", "41"], "--utilization: 41; expected above 0, at most the number of tasks"),
        (&["--periods", "uniform:0:10ms"], "periods: \"0\", expected a number with a unit"),
        (&["--periods", "uniform:10ms:1ms"], "--periods: 10000000 to 1000000 ns"),
        (&["--deadlines", "-1:1"], "--deadlines: -1 to 1; expected shares of the period"),
        (&["--jitter", "-3us"], "--jitter -3us: time"),
        (&["--cores", "0"], "--cores: 0; expected 1 to 4096"),
        (&["--count", "0"], "--count 0: 0 is not in 1.."),
        (&["--count", "9", "--first", "18446744073709551615"], "--first: 18446744073709551615"),
        (&["--resources", "1", "--access", "NaN"], "--access: NaN; expected 0 to 1"),
        (&["--resources", "1", "--section", "9us:1us"], "--section: 9000 to 1000 ns"),
    ] {
        let output = stillcore(&["sched", "generate"]).args(arguments).output().unwrap();
        assert_refused(&output, &[sentence]);
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

const STUDY: &str = r#"schema = "stillcore.sched-curves/1"
name = "mine"
title = "a study"
seed = 1
sets = 5
[generate]
tasks = 4
periods = "uniform:10ms:100ms"
[axis]
of = "utilization"
values = [0.7, 0.8]
[[curve]]
name = "a"
test = "fp-rta"
"#;

#[test]
fn studies_that_are_none() {
    let place = Place::new();
    for (line, instead, sentence) in [
        ("sets = 5", "sets = 0", "sets: 0; expected 1 to"),
        ("sets = 5", "sets = -1", "line 5: invalid value: integer `-1`"),
        ("0.7, 0.8", "0.8, nan", "axis.values: [0.8, NaN]; expected"),
        ("0.7, 0.8", "0.8, 0.7", "axis.values: [0.8, 0.7]; expected 1 to 1000 values, ascending"),
        ("0.7, 0.8", "0.8, 77", "generate.utilization: 77; expected above 0"),
        ("tasks = 4", "tasks = 0", "generate.tasks: 0; expected 1 to"),
        ("tasks = 4", "tsks = 4", "line 7: unknown field `tsks`"),
        ("uniform:10ms:100ms", "uniform:0:1", "generate.periods: \"0\"; expected a number with a unit"),
        ("fp-rta", "fp", "curve \"a\", test: \"fp\"; expected one of fp-rta"),
        ("name = \"mine\"", "name = \"../x\"", "name: \"../x\"; expected letters"),
        ("[axis]", "[axis", "line 9: unclosed table"),
    ] {
        let path = place.path("study.toml");
        fs::write(&path, STUDY.replace(line, instead)).unwrap();
        let out = place.path("results");
        let output = stillcore(&["sched", "study"]).arg(&path).arg("--out").arg(&out).output().unwrap();
        assert_refused(&output, &["study.toml", sentence]);
        assert!(!out.exists(), "results were left of {instead}");
    }
}
