//! A run whose record says what no run can: any number of `run.json` replaced by any other is an
//! error or an analysis, never a panic.

use crate::common::mutate::Rng;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Fewer executions of a run say little; on a slow machine the test continues until then.
const FEWEST: u64 = 4;
const LONG: Duration = Duration::from_secs(1);

/// What numbers are replaced by.
fn odd(rng: &mut Rng) -> Value {
    let fixed = [
        0,
        1,
        -1,
        2,
        1_000_000_007,
        i64::from(u32::MAX),
        i64::from(i32::MIN),
        i64::MAX,
        i64::MIN,
        i64::MAX / 2,
    ];
    match rng.below(12) {
        at @ 0..=9 => json!(fixed[at]),
        10 => json!(u64::MAX),
        _ => json!(rng.next() >> rng.below(64)),
    }
}

/// Every number of a document.
fn numbers<'v>(value: &'v mut Value, all: &mut Vec<&'v mut Value>) {
    match value {
        Value::Number(_) => all.push(value),
        Value::Array(items) => items.iter_mut().for_each(|item| numbers(item, all)),
        Value::Object(fields) => fields.values_mut().for_each(|field| numbers(field, all)),
        _ => {}
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn fixtures() -> Vec<PathBuf> {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs");
    let measured = fs::read_dir(runs.join("measure")).unwrap().map(|entry| entry.unwrap().path());
    measured.chain([runs.join("small")]).collect()
}

#[test]
fn any_number_of_a_run_may_be_wrong() {
    for (number, from) in fixtures().into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        copy(&from, dir.path());
        assert!(analysis::analyse(dir.path()).is_ok(), "{}", from.display());
        let whole: Value = serde_json::from_slice(&fs::read(from.join("run.json")).unwrap()).unwrap();
        let (started, mut analysed) = (Instant::now(), 0);
        for execution in 0.. {
            if execution >= FEWEST && started.elapsed() > LONG {
                break;
            }
            let mut rng = Rng::new(number as u64, execution);
            let mut damaged = whole.clone();
            let mut all = Vec::new();
            numbers(&mut damaged, &mut all);
            for _ in 0..=rng.below(3) {
                let at = rng.below(all.len());
                *all[at] = odd(&mut rng);
            }
            fs::write(dir.path().join("run.json"), serde_json::to_vec(&damaged).unwrap()).unwrap();
            println!("{} execution {execution}", from.display());
            analysed += u32::from(analysis::analyse(dir.path()).is_ok());
        }
        assert!(analysed > 0, "{}", from.display());
    }
}
