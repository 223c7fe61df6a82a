//! The values of a distribution as all sections read them: missed releases charged where the probe
//! has releases.
//!
//! A late task that serves one release of several would otherwise show one late sample where many
//! were late (coordinated omission); `analysis` charges each swallowed release with the lateness it
//! had.

use analysis::distribution::Distribution;
use stats::sampled::Quantile;

/// The quantiles with missed releases charged; the plain ones where there is nothing to charge
/// (noise).
pub fn quantiles(window: &Distribution) -> &[Quantile] {
    if window.corrected_quantiles.is_empty() { &window.quantiles } else { &window.corrected_quantiles }
}

/// One of them, ns; `None` where too few samples lie above it.
pub fn quantile(window: &Distribution, p: f64) -> Option<i64> {
    quantiles(window).iter().find(|quantile| (quantile.p - p).abs() < 1e-9)?.value_ns
}

/// The observed maximum, missed releases charged, ns.
pub fn maximum(window: &Distribution) -> Option<i64> {
    window.corrected_max_ns.max(window.observed_max_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_charged_quantile_that_is_not_known_is_not_replaced_by_a_plain_one() {
        let mut window = fixture::document().analysis.distributions.remove(0);
        assert!(quantile(&window, 0.99).is_some());
        for quantile in window.corrected_quantiles.iter_mut().filter(|quantile| quantile.p > 0.98) {
            quantile.value_ns = None;
        }
        assert_eq!(quantile(&window, 0.99), None);
        window.corrected_quantiles.clear();
        assert!(quantile(&window, 0.99).is_some());
    }

    #[test]
    fn the_maximum_is_never_below_the_stored_one() {
        let mut window = fixture::document().analysis.distributions.remove(0);
        window.observed_max_ns = Some(40);
        window.corrected_max_ns = Some(70);
        assert_eq!(maximum(&window), Some(70));
        window.corrected_max_ns = None;
        assert_eq!(maximum(&window), Some(40));
    }
}
