//! The values of LiME's reference for 60 short sequences, as
//! `benches/reference.py --fixture` wrote them (`rt-model-inference` 1.0.1, MIT).

use infer::delta_max::DeltaMax;
use infer::delta_min::{DeltaMin, Distances};
use infer::periodic::{Fit, Periodic, PeriodicModel};
use infer::{Disorder, Window};
use serde::Deserialize;

#[derive(Deserialize)]
struct Sequence {
    windows: Vec<[i64; 2]>,
    most: usize,
    batch: usize,
    expected: Expected,
}

/// `exact`: of releases whose times are known.
#[derive(Deserialize)]
struct Expected {
    min_hi: Vec<i64>,
    min_lo: Vec<i64>,
    max_hi: Vec<i64>,
    max_lo: Vec<i64>,
    certain: Option<[i64; 3]>,
    possible: Option<[i64; 3]>,
    #[serde(default)]
    min_exact: Option<Vec<i64>>,
    #[serde(default)]
    max_exact: Option<Vec<i64>>,
    #[serde(default)]
    exact: Option<[i64; 3]>,
}

fn of<T>(sequence: &Sequence, mut model: T, add: impl Fn(&mut T, Window) -> Result<(), Disorder>) -> T {
    for [earliest_ns, latest_ns] in sequence.windows.iter().copied() {
        add(&mut model, Window { earliest_ns, latest_ns }).expect("windows are in order");
    }
    model
}

#[test]
fn every_value_is_that_of_the_reference() {
    let lines: Vec<Sequence> = include_str!("data/reference.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 60);
    for (line, one) in (1..).zip(&lines) {
        let expected = &one.expected;
        let min = |distances| of(one, DeltaMin::new(distances, one.most), DeltaMin::add).curve().to_vec();
        let max = |distances| of(one, DeltaMax::new(distances, one.most), DeltaMax::add).curve();
        let fit = |fit| {
            let model = of(one, Periodic::in_batches(fit, one.batch), Periodic::add).model();
            model.map(|PeriodicModel { period_ns, offset_ns, jitter_ns }| [period_ns, offset_ns, jitter_ns])
        };
        assert_eq!(min(Distances::Shortest), expected.min_hi, "line {line}");
        assert_eq!(min(Distances::Longest), expected.min_lo, "line {line}");
        assert_eq!(max(Distances::Shortest), expected.max_hi, "line {line}");
        assert_eq!(max(Distances::Longest), expected.max_lo, "line {line}");
        assert_eq!(fit(Fit::Certain), expected.certain, "line {line}");
        assert_eq!(fit(Fit::Possible), expected.possible, "line {line}");
        if let (Some(min_exact), Some(max_exact)) = (&expected.min_exact, &expected.max_exact) {
            assert_eq!(&min(Distances::Shortest), min_exact, "line {line}");
            assert_eq!(&max(Distances::Longest), max_exact, "line {line}");
            assert_eq!(fit(Fit::Certain), expected.exact, "line {line}");
        }
    }
}
