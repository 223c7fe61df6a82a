//! The lab matrix on real kernels: two tiny cells, resumed, refused under other conditions.

use crate::support::{read_json, stillcore, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

fn lab_matrix(out: &Path, more: &[&str]) -> Output {
    let mut command = stillcore(&["lab", "matrix", "--kernels", "6.1", "--stressors", "perf_sys"]);
    command.args(["--json", "--out"]).arg(out).args(more).output().unwrap()
}

fn column<'a>(matrix: &'a Value, profile: &str) -> &'a Value {
    let mut columns = matrix["columns"].as_array().unwrap().iter();
    columns.find(|column| column["profile"] == profile).unwrap()
}

pub(crate) fn matrix_of_two_cells() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("matrix");
    let first = lab_matrix(&out, &["--profiles", "partition,boot", "--jobs", "2"]);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let matrix: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(matrix["schema"], "stillcore.lab-matrix/1");
    for profile in ["partition", "boot"] {
        let column = column(&matrix, profile);
        assert_eq!(column["absent"], Value::Null, "{column}");
        let mut rows = column["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["stressor"] == "perf_sys").unwrap();
        // Whatever the isolation: the kernel installs a counter of a CPU by an interrupt there.
        let call = row["classes"].as_array().unwrap().iter().find(|one| one["class"] == "ipi.call").unwrap();
        assert!(call["events"].as_u64() >= row["operations"].as_u64(), "{row}");
        assert!(row["operations"].as_u64() > Some(0), "{row}");
    }
    // Only one command line has parameters that isolate at boot.
    let cmdline = |profile: &str| {
        let cells = fs::read_dir(out.join("cells")).unwrap();
        let mut cells = cells.map(|cell| read_json(&cell.unwrap().path()));
        let cell = cells.find(|cell| cell["cell"]["factors"]["profile"] == profile).unwrap();
        cell["result"]["under"]["cmdline"].as_str().unwrap().to_owned()
    };
    assert!(cmdline("boot").contains("nohz_full=2") && !cmdline("partition").contains("nohz_full"));
    for name in ["matrix.html", "matrix.md", "kernels/6.1.json"] {
        assert!(out.join(name).exists(), "{name}");
    }

    let again = lab_matrix(&out, &["--profiles", "boot,partition"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert!(
        text(&again.stderr).starts_with("0 of ") && !text(&again.stderr).contains("try 1"),
        "what has a result is not run again: {}",
        text(&again.stderr)
    );
    let repeated: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(repeated["columns"], matrix["columns"]);

    let other = lab_matrix(&out, &["--profiles", "boot", "--duration", "1s"]);
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other.stderr).contains("duration was 2s there and is 1s now"), "{}", text(&other.stderr));
}
