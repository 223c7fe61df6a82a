//! Whether a series that goes on in time lies above zero: the differences of two that were seen at
//! the same times.
//!
//! Neighbours resemble each other, so the series is cut into blocks as long as they do
//! ([`crate::block_length`]), but six at least, and Student's t taken of the means of the blocks.
//! Differences that are mostly small and seldom large make t smaller, not larger: such a series is
//! found above zero too seldom, never too often. One that resembles itself for longer than a sixth of
//! its length is found too often: of series around zero 15 in 100 at 5 %, with a memory of fourteen
//! hours in five days (the test below).

use crate::block_length::circular;
use crate::bounds::beta_regularised;

/// The fewest blocks that say anything.
const LEAST_BLOCKS: usize = 6;

/// Probability of a mean so far above zero were it zero; `None` for too few samples.
pub fn p_above_zero(series: &[f64]) -> Option<f64> {
    if series.len() < LEAST_BLOCKS {
        return None;
    }
    let overall = mean(series);
    // The last digits of a constant resemble their neighbours.
    let is_constant = series.iter().all(|value| (value - overall).abs() <= 1e-9 * overall.abs());
    let length = if is_constant { 1 } else { circular(series).ceil().max(1.0) as usize };
    let blocks = (series.len() / length).max(LEAST_BLOCKS);
    // Of lengths that differ by one at most, so that nothing is left over.
    let edge = |block: usize| block * series.len() / blocks;
    let means: Vec<f64> = (0..blocks).map(|block| mean(&series[edge(block)..edge(block + 1)])).collect();
    let (count, middle) = (blocks as f64, mean(&means));
    // Chance makes neighbours differ as often as resemble each other, and the means agree too well.
    let error = error_of(&means).max(error_of(series));
    Some(match (is_constant || error <= 0.0, middle > 0.0) {
        (false, _) => above(middle / error, count - 1.0),
        // Without a spread, what signs alone show.
        (true, true) => 0.5f64.powi(i32::try_from(blocks).unwrap_or(i32::MAX)),
        (true, false) => 1.0,
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard error of the mean of values that know nothing of each other.
fn error_of(values: &[f64]) -> f64 {
    let (count, middle) = (values.len() as f64, mean(values));
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    (squares / (count - 1.0) / count).sqrt()
}

/// P(T > t) of Student's distribution.
fn above(t: f64, freedom: f64) -> f64 {
    let half = 0.5 * beta_regularised(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    if t > 0.0 { half } else { 1.0 - half }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{normal, uniform};
    use crate::resample::generator;

    #[test]
    fn the_distribution_is_students() {
        // Of its tables.
        for (t, freedom, p) in
            [(1.812, 10.0, 0.05), (2.571, 5.0, 0.025), (2.426, 38.0, 0.01), (0.0, 3.0, 0.5)]
        {
            assert!((above(t, freedom) - p).abs() < 2e-4, "{t}: {}", above(t, freedom));
            assert!((above(-t, freedom) - 1.0 + p).abs() < 2e-4);
        }
    }

    #[test]
    fn too_few_say_nothing_and_a_few_not_much() {
        assert_eq!(p_above_zero(&[1.0; 5]), None);
        assert_eq!(p_above_zero(&[]), None);
        assert_eq!(p_above_zero(&[1.0; 6]), Some(1.0 / 64.0));
        assert_eq!(p_above_zero(&[0.0; 50]), Some(1.0));
        assert_eq!(p_above_zero(&[-1.0; 50]), Some(1.0));
    }

    /// How often a series around zero is taken for one above it, at 5 %.
    fn alarms(mut next: impl FnMut(&mut rand_chacha::ChaCha8Rng) -> f64) -> f64 {
        let mut random = generator(7, 0);
        let mut series = |random: &mut _| (0..120).map(|_| next(random)).collect::<Vec<f64>>();
        let found =
            (0..1_000).filter(|_| p_above_zero(&series(&mut random)).is_some_and(|p| p < 0.05)).count();
        found as f64 / 1_000.0
    }

    #[test]
    fn alarms_are_as_rare_as_they_say() {
        let plain = alarms(normal);
        assert!((0.03..0.07).contains(&plain), "{plain}");
        // Mostly nothing, seldom much.
        let seldom = alarms(|random| {
            let [one, other] = [uniform(random), uniform(random)];
            f64::from(u8::from(one < 0.03)) * other.recip().min(50.0) - 0.03 * (1.0 + 50f64.ln())
        });
        assert!(seldom < 0.06, "{seldom}");
        // An hour resembles the one before it.
        let mut was = 0.0;
        let alike = alarms(|random| {
            was = 0.7 * was + normal(random);
            was
        });
        assert!(alike < 0.1, "{alike}");
        // So long that there are only the fewest blocks.
        let mut was = 0.0;
        let long = alarms(|random| {
            was = 0.93 * was + normal(random);
            was
        });
        assert!(long < 0.2, "{long}");
    }

    #[test]
    fn what_lies_above_is_found() {
        let mut random = generator(8, 0);
        let series: Vec<f64> = (0..200).map(|_| 0.5 + normal(&mut random)).collect();
        assert!(p_above_zero(&series).unwrap() < 1e-4);
    }
}
