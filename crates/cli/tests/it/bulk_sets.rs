//! Task sets in bulk: the short way gives the answers of the general one, and Parquet and Arrow
//! those of lines of JSON, to the byte; a table that is none of task sets is refused in a sentence.

use crate::support::pages::repository;
use crate::support::{Place, stillcore, text};
use std::fs;
use std::path::PathBuf;

fn table(name: &str) -> PathBuf {
    repository().join("fixtures/task-tables").join(name)
}

#[test]
fn answers_from_tables_are_those_from_lines() {
    for options in
        [&[][..], &["--json"], &["--test", "edf-qpa"], &["--test", "edf-rta", "--json"], &["--order", "dm"]]
    {
        let analyze = |file: &str, unit: &[&str]| {
            let call = stillcore(&["sched", "analyze"]).arg(table(file)).args(options).args(unit).output();
            let output = call.unwrap();
            assert_eq!(output.status.code(), Some(2), "{file}: {}", text(&output.stderr));
            text(&output.stdout)
        };
        let lines = analyze("sets.jsonl", &[]);
        for file in [
            "pyarrow.parquet",
            "narrow.parquet",
            "polars.parquet",
            "duckdb.parquet",
            "pyarrow.arrow",
            "narrow.arrow",
            "polars.arrow",
            "zstd.arrow",
        ] {
            assert_eq!(analyze(file, &["--unit", "us"]), lines, "{file} {options:?}");
        }
    }
}

#[test]
fn what_is_no_table_of_sets_is_refused_in_one_sentence() {
    let place = Place::new();
    let cut = place.path("cut.parquet");
    let whole = fs::read(table("pyarrow.parquet")).unwrap();
    fs::write(&cut, &whole[..whole.len() - 9]).unwrap();
    let cut_arrow = place.path("cut.arrow");
    let whole = fs::read(table("pyarrow.arrow")).unwrap();
    fs::write(&cut_arrow, &whole[..900]).unwrap();
    for (file, expected) in [
        (table("typo.parquet"), "typo.parquet: column \"deadine\"; expected some of set, cores, period"),
        (table("floats.parquet"), "has something else than integers in column period; expected a Parquet"),
        (table("decimals.parquet"), "has something else than integers in column period; expected a Parquet"),
        (table("lz4.arrow"), "is packed with LZ4, not with Zstandard"),
        (table("unsorted.parquet"), "column set: set 4 after set 10; expected rows in ascending order"),
        (cut, "cut.parquet: does not end as Parquet does"),
        (cut_arrow, "cut.arrow: "),
    ] {
        let output = stillcore(&["sched", "analyze"]).arg(file).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
        assert!(stderr.contains(expected), "{expected:?} is not in {stderr}");
    }
    let output = stillcore(&["sched", "analyze", "--unit", "us"]).arg(table("sets.jsonl")).output().unwrap();
    assert!(text(&output.stderr).contains("--unit: us with lines of JSON; expected \"unit\" in each line"));
}

#[test]
fn a_set_that_is_none_is_named_and_the_others_are_answered() {
    let call = ["sched", "analyze", "--unit", "us", "--keep-going", "--json"];
    let output = stillcore(&call).arg(table("bad.arrow")).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout).lines().count()), (Some(1), 3));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("bad.arrow, set 4, tasks[0].cost") && stderr.contains("integer from 1 to"),
        "{stderr}"
    );
}

/// A key that the short way leaves to the general one, and that changes no answer, in the first
/// task of every line.
#[test]
fn the_short_way_answers_as_the_general_one() {
    let place = Place::new();
    let generate =
        ["sched", "generate", "--n", "9", "--utilization", "0.93", "--count", "300", "--jitter", "100us"];
    let short = stillcore(&generate).output().unwrap().stdout;
    let general = text(&short).replace("\"tasks\":[{", "\"tasks\":[{\"suspension\":0,");
    assert_ne!(general.as_bytes(), short);
    fs::write(place.path("short.jsonl"), &short).unwrap();
    fs::write(place.path("general.jsonl"), &general).unwrap();
    for options in [&[][..], &["--json"], &["--test", "edf-qpa"], &["--test", "edf-qpa", "--json"]] {
        let analyze = |file: &str| {
            let call = ["sched", "analyze", "--threads", "2"];
            stillcore(&call).args(options).arg(place.path(file)).output().unwrap()
        };
        let (short, general) = (analyze("short.jsonl"), analyze("general.jsonl"));
        assert!(text(&short.stdout).contains("schedulable"), "{}", text(&short.stderr));
        assert_eq!(text(&short.stdout), text(&general.stdout), "{options:?}");
        assert_eq!(short.status.code(), general.status.code());
    }
}
