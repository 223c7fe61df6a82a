//! `stillcore report --format`: each format of a stored run, where it goes, and what is refused.

#[path = "../../benches/common/ten_minutes.rs"]
mod ten_minutes;

use crate::support::{Place, assert_refused, stillcore};
use std::path::{Path, PathBuf};
use std::process::Output;

fn run() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("fixtures/runs/small")
}

fn report(arguments: &[&str]) -> Output {
    stillcore(&[&["report", run().to_str().unwrap()], arguments].concat()).output().unwrap()
}

fn printed(format: &str) -> String {
    let output = report(&["--format", format]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_text_of_every_stored_run_stays_within_the_columns_that_a_pipe_asks_for() {
    let place = Place::new();
    let measured =
        ["clocks", "ipi", "overheads", "periodic", "taskset"].map(|verb| format!("measure/{verb}"));
    for (at, stored) in ["small".to_owned()].into_iter().chain(measured).enumerate() {
        let copy = place.path(&format!("run{at}"));
        let from = run().parent().unwrap().join(&stored);
        let copied = std::process::Command::new("cp").arg("-r").arg(&from).arg(&copy).status().unwrap();
        assert!(copied.success(), "{stored}");
        for columns in [60, 80, 120] {
            let mut command = stillcore(&["report", copy.to_str().unwrap()]);
            let output = command.env("COLUMNS", columns.to_string()).output().unwrap();
            assert!(
                matches!(output.status.code(), Some(0 | 2)),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            let text = String::from_utf8(output.stdout).unwrap();
            let beyond = text.lines().find(|line| line.chars().count() > columns);
            assert_eq!(beyond, None, "{stored} at {columns}");
            assert!(text.lines().count() > 10, "{stored}: {text}");
        }
    }
}

#[test]
fn texts_are_printed_and_a_file_holds_the_same() {
    let place = Place::new();
    for (format, part) in [
        ("openmetrics", "stillcore_wakeup_latency_seconds_bucket{"),
        ("csv", "wakeup,disturbed,2,0,,observed_max,ns,"),
        ("markdown", "| wakeup disturbed | 2 |"),
    ] {
        let text = printed(format);
        assert!(text.contains(part), "{format}: {text}");
        let file = place.path(format);
        let written = report(&["--format", format, "--out", file.to_str().unwrap()]);
        assert!(written.status.success() && written.stdout.is_empty(), "{format}");
        assert_eq!(std::fs::read_to_string(file).unwrap(), text, "{format}");
    }
}

#[test]
fn the_run_is_left_as_it_is_and_the_findings_are_not_judged() {
    let before: Vec<_> = entries(&run());
    printed("openmetrics");
    assert_eq!(entries(&run()), before);
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

#[test]
fn latex_makes_a_directory_whose_document_draws_what_is_in_it() {
    let place = Place::new();
    let dir = place.path("tex");
    assert!(report(&["--format", "latex", "--out", dir.to_str().unwrap()]).status.success());
    let figure = std::fs::read_to_string(dir.join("figure.tex")).unwrap();
    let drawn: Vec<&str> =
        figure.split("y=share] {").skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
    assert!(!drawn.is_empty() && drawn.iter().all(|name| dir.join(name).is_file()), "{drawn:?}");
    assert!(dir.join("table.tex").is_file());
}

#[test]
fn parquet_is_a_parquet_file() {
    let place = Place::new();
    let file = place.path("figures.parquet");
    assert!(report(&["--format", "parquet", "--out", file.to_str().unwrap()]).status.success());
    let bytes = std::fs::read(file).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn what_no_terminal_takes_wants_a_place() {
    assert_refused(&report(&["--format", "latex"]), &["--out"]);
    assert_refused(&report(&["--format", "parquet"]), &["--out"]);
    assert_refused(&report(&["--format", "xml"]), &["openmetrics"]);
    assert_refused(&report(&["--out", "x"]), &["--format"]);
    let both = report(&["--format", "csv", "--json"]);
    assert_eq!(both.status.code(), Some(1));
    assert!(both.stdout.is_empty() && crate::support::text(&both.stderr).contains("--json"));
}

#[test]
fn the_page_of_ten_minutes_of_four_cores_is_small_and_draws_what_changed() {
    let place = Place::new();
    let dir = place.path("run");
    ten_minutes::write(&run(), &dir, 10_000_000).unwrap();
    let output = stillcore(&["report", dir.to_str().unwrap()]).output().unwrap();
    assert_ne!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.len() < 500_000, "{} bytes", page.len());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("changes"), "{text}");
}
