//! How long the blocks of a bootstrap should be for a series: the choice of Politis and White.
//!
//! D. N. Politis and H. White, "Automatic block-length selection for the dependent bootstrap",
//! Econometric Reviews 23 (2004), with the correction of A. Patton, D. N. Politis and H. White,
//! Econometric Reviews 28 (2009): b = (2 G² / D)^⅓ n^⅓ with G = Σ λ(k/M) |k| R(k) and, for the
//! circular bootstrap, D = 4/3 g(0)²; λ is a flat-top window, M twice the lag behind which the
//! correlogram is negligible. It is the length that makes the variance of a mean most exact.

/// The length for the circular block bootstrap of the mean, in samples; 1 for a series that does
/// not vary or is too short.
pub fn circular(series: &[f64]) -> f64 {
    let n = series.len();
    if n < 10 {
        return 1.0;
    }
    let size = n as f64;
    let mean = series.iter().sum::<f64>() / size;
    let off: Vec<f64> = series.iter().map(|value| value - mean).collect();
    let squares: f64 = off.iter().map(|value| value * value).sum();
    if squares <= 0.0 {
        return 1.0;
    }
    let in_a_row = 5.max(size.log10() as usize);
    let most = (size.sqrt().ceil() as usize + in_a_row).min(n - 2);
    let negligible = 2.0 * (size.log10() / size).sqrt();
    let product = |lag: usize| off[lag..].iter().zip(&off).map(|(a, b)| a * b).sum::<f64>();
    let mut products = Vec::with_capacity(most + 1);
    let mut calm = 0;
    let mut behind = None;
    for lag in 0..=most {
        let this = product(lag);
        // The lag that starts a row of negligible ones; its own ends are left out of the scale, as
        // there.
        let ends = |part: &[f64]| part.iter().map(|value| value * value).sum::<f64>();
        let scale = (ends(&off[lag + 1..]) * ends(&off[..n - lag - 1])).sqrt();
        products.push(this / size);
        if behind.is_none() && lag >= in_a_row && calm >= in_a_row {
            behind = Some(lag - in_a_row);
        }
        calm = if this.abs() < negligible * scale { calm + 1 } else { 0 };
        if behind.is_some_and(|lag: usize| products.len() > 2 * lag.max(1)) {
            break;
        }
    }
    let window = behind.map_or(most, |lag| 2 * lag.max(1)).min(most);
    let (mut g, mut spectrum) = (0.0, products[0]);
    for (lag, product) in products.iter().enumerate().take(window + 1).skip(1) {
        let place = lag as f64 / window as f64;
        let flat_top = if place <= 0.5 { 1.0 } else { 2.0 * (1.0 - place) };
        g += 2.0 * flat_top * lag as f64 * product;
        spectrum += 2.0 * flat_top * product;
    }
    let longest = (3.0 * size.sqrt()).min(size / 3.0).ceil();
    let length = (2.0 * g * g / (4.0 / 3.0 * spectrum * spectrum)).cbrt() * size.cbrt();
    if length.is_finite() { length.clamp(1.0, longest) } else { longest }
}
