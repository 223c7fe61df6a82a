//! The shift function: how much the groups differ at each level of the distribution, not only at
//! one.
//!
//! Doksum, "Empirical probability plots and statistical inference for nonlinear models in the
//! two-sample case", Annals of Statistics 2 (1974); a group's quantile is the mean of its runs'.
//! Intervals are those of each level by itself.

use super::draws;
use super::figures::{Figure, in_run};
use super::measured::MeasuredWindow;
use model::sample::ProbeKind;
use serde::Serialize;

/// Levels in parts of 100,000.
const LEVELS: [u64; 11] =
    [1_000, 5_000, 10_000, 25_000, 50_000, 75_000, 90_000, 95_000, 99_000, 99_900, 99_990];

/// One level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shift {
    /// Probability of the quantile.
    pub p: f64,
    /// In the base, ns.
    pub base_ns: f64,
    /// Other less base, ns.
    pub difference_ns: f64,
    /// 95 % interval of that, ns; none where chance is not known.
    pub interval_ns: Option<[f64; 2]>,
}

/// The levels that every run has.
pub fn shift(base: &[&MeasuredWindow], other: &[&MeasuredWindow]) -> Vec<Shift> {
    let level = |(at, &parts): (usize, &u64)| {
        let of = |windows: &[&MeasuredWindow], stream: u64| {
            let runs = windows.iter().zip(stream * 1000..);
            let runs = runs.map(|(window, run)| in_run(Figure::Quantile(parts), window, run).ok());
            let resolution = resolution(windows);
            Some(draws::group(&runs.collect::<Option<Vec<_>>>()?, resolution, stream))
        };
        let stream = 1_000_000 + 2 * at as u64;
        let (base, other) = (of(base, stream)?, of(other, stream + 1)?);
        Some(Shift {
            p: parts as f64 / 100_000.0,
            base_ns: base.value,
            difference_ns: other.value - base.value,
            interval_ns: draws::interval(&draws::differences(&base, &other)),
        })
    };
    if base.iter().any(|window| window.probe == ProbeKind::Noise) {
        return Vec::new();
    }
    LEVELS.iter().enumerate().filter_map(level).collect()
}

/// Resolution of the time statistics of these runs, ns.
pub(super) fn resolution(windows: &[&MeasuredWindow]) -> f64 {
    let widest = windows.iter().map(|window| window.samples.resolution_ns()).max().unwrap_or(1);
    if widest > 1 { widest as f64 } else { 0.0 }
}
