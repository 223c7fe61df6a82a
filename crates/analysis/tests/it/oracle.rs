//! Our results beside those of scipy, arch, statsmodels and lmoments3 (`fixtures/statistics/`, with
//! the script that made them).
//!
//! Series are made anew here, by the generator that the script describes.

use serde_json::Value;
use stats::block_length;
use stats::bounds::share_interval;
use stats::tail::goodness::{anderson_darling, cramer_von_mises};
use stats::tail::law::{Extreme, Law, Pareto};
use stats::tail::{checks, lmoments};
use stats::wasserstein::distance_ns;

/// The script's generator.
struct Stream(u64);

impl Stream {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

fn ar1(rho: f64, n: usize, seed: u64) -> Vec<f64> {
    let (mut stream, mut state) = (Stream(seed), 0.0);
    (0..n)
        .map(|_| {
            state = rho * state + (1.0 - rho * rho).sqrt() * stream.normal();
            state
        })
        .collect()
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

fn oracle() -> Value {
    serde_json::from_str(include_str!("../../../../fixtures/statistics/oracle.json")).unwrap()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect()
}

#[track_caller]
fn near(ours: f64, theirs: f64, relative: f64) {
    assert!((ours - theirs).abs() <= relative * theirs.abs(), "{ours}, not {theirs}");
}

#[test]
fn intervals_of_shares_are_scipy_s() {
    for key in ["clopper_pearson", "clopper_pearson_fractions"] {
        for case in oracle()[key].as_array().unwrap() {
            let ours = share_interval(number(case, "k"), number(case, "n"));
            numbers(&case["interval"]).iter().zip(ours).for_each(|(theirs, ours)| near(ours, *theirs, 1e-6));
        }
    }
}

#[test]
fn block_lengths_are_arch_s() {
    for case in oracle()["block_length"].as_array().unwrap() {
        let series = ar1(number(case, "rho"), number(case, "n") as usize, number(case, "seed") as u64);
        // A block is a sample at the least; there it may be a part of one.
        near(block_length::circular(&series), number(case, "circular").max(1.0), 1e-9);
    }
}

#[test]
fn pareto_laws_are_those_of_scipy() {
    for case in oracle()["gpd"].as_array().unwrap() {
        let (scale, shape, mut stream) =
            (number(case, "scale"), number(case, "shape"), Stream(number(case, "seed") as u64));
        let one = |_| scale / shape * ((1.0 - stream.uniform()).powf(-shape) - 1.0);
        let made = sorted((0..number(case, "n") as usize).map(one).collect());
        let moments = lmoments::of_sorted(&made).unwrap();
        let theirs = numbers(&case["l_moments"]);
        [moments.mean, moments.scale, moments.skewness]
            .iter()
            .zip(&theirs)
            .for_each(|(a, b)| near(*a, *b, 1e-9));
        let fit = Pareto::fit(&made).unwrap();
        let theirs = numbers(&case["mle"]);
        near(fit.scale, theirs[0], 2e-3);
        assert!((fit.shape - theirs[1]).abs() < 2e-3, "{fit:?}, not {theirs:?}");
        // Never less likely than theirs.
        assert!(fit.log_likelihood(&made) >= number(case, "log_likelihood") - 1e-6);
        near(fit.level(1e-4), number(case, "level_1e-4"), 1e-2);
    }
}

#[test]
fn laws_of_extreme_values_are_those_of_scipy_and_lmoments3() {
    for case in oracle()["gev"].as_array().unwrap() {
        let (location, scale, shape) =
            (number(case, "location"), number(case, "scale"), number(case, "shape"));
        let mut stream = Stream(number(case, "seed") as u64);
        let one = |_| location + scale / shape * ((-stream.uniform().ln()).powf(-shape) - 1.0);
        let made = sorted((0..number(case, "n") as usize).map(one).collect());
        let start = lmoments::extreme(lmoments::of_sorted(&made).unwrap());
        let theirs = numbers(&case["l_moment_fit"]);
        near(start[0], theirs[0], 1e-4);
        near(start[1], theirs[1], 1e-3);
        assert!((start[2] - theirs[2]).abs() < 1e-3, "{start:?}, not {theirs:?}");
        let fit = Extreme::fit(&made).unwrap();
        let theirs = numbers(&case["mle"]);
        near(fit.location, theirs[0], 1e-3);
        near(fit.scale, theirs[1], 5e-3);
        assert!((fit.shape - theirs[2]).abs() < 5e-3, "{fit:?}, not {theirs:?}");
        assert!(fit.log_likelihood(&made) >= number(case, "log_likelihood") - 1e-6);
        near(fit.level(1e-3), number(case, "level_1e-3"), 1e-2);
    }
}

#[test]
fn distances_from_a_known_law_are_scipy_s() {
    let case = &oracle()["known_law"];
    let (law, mut stream) = (Pareto { scale: 1.0, shape: 0.2 }, Stream(number(case, "seed") as u64));
    let made = sorted((0..100).map(|_| 5.0 * ((1.0 - stream.uniform()).powf(-0.2) - 1.0)).collect());
    let shares: Vec<f64> = made.iter().map(|value| law.below(*value)).collect();
    near(anderson_darling(&shares), number(case, "anderson_darling"), 1e-9);
    near(cramer_von_mises(&shares), number(case, "cramer_von_mises"), 1e-9);
}

#[test]
fn checks_of_a_series_are_those_of_statsmodels_and_scipy() {
    let checks = &oracle()["checks"];
    let series = ar1(0.3, 400, 10);
    let ours = [
        ("kpss", checks::kpss(&series).unwrap()),
        ("ljung_box", checks::ljung_box(&series, 10).unwrap()),
        ("evenness", {
            let mut stream = Stream(11);
            checks::evenness(&sorted((0..150).map(|_| stream.uniform()).collect())).unwrap()
        }),
    ];
    for (name, (statistic, p)) in ours {
        near(statistic, number(&checks[name], "statistic"), 1e-9);
        // Theirs of evenness is exact for the number, ours the corrected asymptotic law.
        near(p, number(&checks[name], "p"), if name == "evenness" { 0.02 } else { 1e-6 });
    }
}

#[test]
fn the_wasserstein_distance_is_scipy_s() {
    let case = &oracle()["wasserstein"];
    let steps = |n: usize, seed: u64, shift: f64| -> Vec<(i64, u64)> {
        let mut values: Vec<i64> = ar1(0.0, n, seed).into_iter().map(|v| (1e6 * v + shift) as i64).collect();
        values.sort_unstable();
        values.into_iter().map(|value| (value, 1)).collect()
    };
    let (a, b) = (steps(300, 12, 0.0), steps(200, 13, 250_000.0));
    near(distance_ns(&[&a], &[&b], i64::MIN).unwrap(), number(case, "distance"), 1e-9);
}
