//! The methods of this room against those of others (`fixtures/time/`): scipy, pymannkendall,
//! astropy.

use super::change::best_split;
use super::fold::agreement;
use super::search::{Spectra, Watch, search};
use super::trend::{hamed_rao, kendall_variance, trend};
use super::waves::waves;
use crate::resample::generator;
use serde_json::Value;
use std::path::Path;

const SECOND: i64 = 1_000_000_000;

fn oracle() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/time/oracle.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap()
}

fn near(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * b.abs().max(1e-12)
}

#[test]
fn slopes_intervals_and_variances_are_those_of_scipy_and_pymannkendall() {
    let oracle = oracle();
    for case in oracle["trends"].as_array().unwrap() {
        let values = numbers(&case["values"]);
        let points: Vec<(i64, f64)> =
            values.iter().enumerate().map(|(k, value)| (k as i64 * SECOND, *value)).collect();
        let trend = trend(&points).unwrap();
        // Values of ns a second: 3.6 µs an hour each.
        assert!(near(trend.us_per_hour / 3.6, number(case, "slope"), 1e-6), "{trend:?} {}", case["name"]);
        assert!(near(kendall_variance(&points), number(case, "variance"), 1e-9), "{}", case["name"]);
        let factor = hamed_rao(&points, trend.us_per_hour / 3.6 / SECOND as f64);
        let others = number(case, "hamed_rao_variance") / number(case, "variance");
        assert!(near(factor, others, 1e-3), "{factor} {others} {}", case["name"]);
        if trend.variance_factor > 1.0 {
            assert!(trend.variance_factor >= others && trend.p_value > number(case, "p"), "{trend:?}");
            continue;
        }
        assert!(near(trend.interval_us_per_hour[0] / 3.6, number(case, "low"), 1e-6), "{trend:?}");
        assert!(near(trend.interval_us_per_hour[1] / 3.6, number(case, "high"), 1e-6), "{trend:?}");
        assert!(near(trend.tau, number(case, "tau"), 1e-9), "{trend:?}");
        assert!(near(trend.p_value, number(case, "p"), 1e-5), "{trend:?}");
    }
}

#[test]
fn the_best_split_is_that_of_all_pairs_written_out() {
    let case = &oracle()["split"];
    let (at, statistic) = best_split(&numbers(&case["values"])).unwrap();
    assert_eq!(at as u64, case["at"].as_u64().unwrap());
    assert!(near(statistic, number(case, "statistic"), 1e-9));
}

#[test]
fn the_frequency_of_times_is_that_of_brute_force_and_of_lomb_and_scargle() {
    let case = &oracle()["times"];
    let times = numbers(&case["times"]);
    let watch = Watch { span: number(case, "span"), resolution: 1e-6, highest: 5.0 };
    let found = search(&times, &watch, 1.0, &mut Spectra::default()).unwrap();
    assert!((found.frequency - number(case, "frequency")).abs() < 2e-5, "{found:?}");
    assert!(near(found.agreement, number(case, "agreement"), 1e-3), "{found:?}");
    assert!((found.frequency - number(case, "lomb_scargle")).abs() < 1e-3, "{found:?}");
    assert!(near(agreement(&times, number(case, "frequency")), number(case, "agreement"), 1e-9));
}

#[test]
fn the_wave_is_that_of_the_best_sinusoid_on_the_line_of_scipys_spectrum() {
    let case = &oracle()["wave"];
    let found = waves(&numbers(&case["values"]), &mut generator(1, 0));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!((found[0].steps - number(case, "steps")).abs() <= found[0].half_width, "{found:?}");
    assert!((1.0 / found[0].steps - number(case, "welch")).abs() < 1.0 / 512.0, "{found:?}");
}
