//! Preconditions for a law of extremes: the series must not change, and what is fitted must be
//! independent.
//!
//! Level-stationarity by KPSS (D. Kwiatkowski, P. Phillips, P. Schmidt and Y. Shin, Journal of
//! Econometrics 54 (1992)) and by the evenness of exceedances over time (Kolmogorov–Smirnov against
//! the uniform law); independence by Ljung–Box (Biometrika 65 (1978)) and by the number of runs
//! about the median (A. Wald and J. Wolfowitz, Annals of Mathematical Statistics 11 (1940)).

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal};

/// KPSS critical values for a level, by their probabilities (table 1 there).
const KPSS: [(f64, f64); 4] = [(0.10, 0.347), (0.05, 0.463), (0.025, 0.574), (0.01, 0.739)];

/// The KPSS statistic of a level, with Bartlett's window of ⌊12 (n/100)^¼⌋ lags, and its
/// probability between 0.01 and 0.1, where the table ends.
pub fn kpss(series: &[f64]) -> Option<(f64, f64)> {
    let n = series.len() as f64;
    if series.len() < 20 {
        return None;
    }
    let mean = series.iter().sum::<f64>() / n;
    let off: Vec<f64> = series.iter().map(|value| value - mean).collect();
    let lags = ((12.0 * (n / 100.0).powf(0.25)) as usize).min(series.len() - 1);
    let product = |lag: usize| off[lag..].iter().zip(&off).map(|(a, b)| a * b).sum::<f64>();
    let weighted = |lag: usize| 2.0 * (1.0 - lag as f64 / (lags as f64 + 1.0)) * product(lag);
    let variance = (product(0) + (1..=lags).map(weighted).sum::<f64>()) / n;
    let mut sum = 0.0;
    let squares: f64 = off
        .iter()
        .map(|value| {
            sum += value;
            sum * sum
        })
        .sum();
    let statistic = squares / (n * n * variance);
    if !statistic.is_finite() || variance <= 0.0 {
        return None;
    }
    let mut p = KPSS[0].0;
    for pair in KPSS.windows(2) {
        let ([(p0, low), (p1, high)], at) = ([pair[0], pair[1]], statistic);
        if at > low {
            p = p0 + (p1 - p0) * ((at - low) / (high - low)).min(1.0);
        }
    }
    Some((statistic, p))
}

/// Ljung–Box's Q over so many lags, and its probability, were the values independent.
pub fn ljung_box(values: &[f64], lags: usize) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    if values.len() < 3 * lags {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let off: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let product = |lag: usize| off[lag..].iter().zip(&off).map(|(a, b)| a * b).sum::<f64>();
    let variance = product(0);
    let q = n
        * (n + 2.0)
        * (1..=lags).map(|lag| (product(lag) / variance).powi(2) / (n - lag as f64)).sum::<f64>();
    let p = ChiSquared::new(lags as f64).ok()?.sf(q);
    q.is_finite().then_some((q, p))
}

/// Runs above and below the median: the normal score of their number, and its two-sided
/// probability, were the values independent.
pub fn runs(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    let median = crate::runs::median(&mut sorted)?;
    let sides: Vec<bool> =
        values.iter().filter(|value| value.total_cmp(&median).is_ne()).map(|value| *value > median).collect();
    let (a, n) = (sides.iter().filter(|side| **side).count() as f64, sides.len() as f64);
    let b = n - a;
    if a < 5.0 || b < 5.0 {
        return None;
    }
    let runs = 1.0 + sides.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
    let mean = 2.0 * a * b / n + 1.0;
    let variance = (mean - 1.0) * (mean - 2.0) / (n - 1.0);
    let score = (runs - mean) / variance.sqrt();
    let p = 2.0 * Normal::standard().sf(score.abs());
    score.is_finite().then_some((score, p))
}

/// The distance of places in `[0, 1)`, ascending, from even ones, and its probability (the
/// asymptotic law with Stephens' correction).
pub fn evenness(places: &[f64]) -> Option<(f64, f64)> {
    let n = places.len() as f64;
    if places.len() < 20 {
        return None;
    }
    let apart = |(at, place): (usize, &f64)| ((at as f64 + 1.0) / n - place).max(place - at as f64 / n);
    let distance = places.iter().enumerate().map(apart).fold(0.0, f64::max);
    let scaled = (n.sqrt() + 0.12 + 0.11 / n.sqrt()) * distance;
    let term = |k: i32| {
        f64::from(if k % 2 == 1 { 1 } else { -1 }) * (-2.0 * f64::from(k * k) * scaled * scaled).exp()
    };
    let p: f64 = 2.0 * (1..=100).map(term).sum::<f64>();
    Some((distance, p.clamp(0.0, 1.0)))
}
