//! The probability that a release is later than a given time: a bound for every lateness.

use thiserror::Error;

/// A bound of P(L > x) for every x: a staircase that does not rise.
#[derive(Debug, Clone, PartialEq)]
pub struct Exceedance {
    /// From each latency on, up to the next one, ns; the first is 0.
    steps: Vec<(u64, f64)>,
}

/// Why a staircase is none.
#[derive(Debug, Clone, PartialEq, Error)]
#[error(
    "step {step}: P(L > {latency_ns} ns) <= {probability}, expected latencies from 0 ascending and probabilities that do not rise"
)]
pub struct ExceedanceError {
    /// Which step.
    pub step: usize,
    /// Its latency.
    pub latency_ns: u64,
    /// Its probability.
    pub probability: f64,
}

impl Exceedance {
    /// Checks `steps`: `(x, bound of P(L > x))`, the bound holding up to the next x.
    pub fn new(steps: Vec<(u64, f64)>) -> Result<Self, ExceedanceError> {
        let starts = steps.first().is_some_and(|first| first.0 == 0);
        let wrong = |step: &usize| {
            let (latency_ns, probability) = steps[*step];
            let before = step.checked_sub(1).map(|before| steps[before]);
            !(0.0..=1.0).contains(&probability)
                || before.is_some_and(|before| before.0 >= latency_ns || before.1 < probability)
        };
        let step = if starts { (0..steps.len()).find(wrong) } else { Some(0) };
        match step {
            None => Ok(Self { steps }),
            Some(step) => {
                let (latency_ns, probability) = steps.get(step).copied().unwrap_or((0, f64::NAN));
                Err(ExceedanceError { step, latency_ns, probability })
            }
        }
    }

    /// The bound of P(L > x).
    pub fn at(&self, latency_ns: u64) -> f64 {
        let behind = self.steps.partition_point(|step| step.0 <= latency_ns);
        behind.checked_sub(1).map_or(1.0, |at| self.steps[at].1)
    }

    /// The least x that is exceeded with at most this probability; none where no x is known to be.
    pub fn least_for(&self, probability: f64) -> Option<u64> {
        let at = self.steps.partition_point(|step| step.1 > probability);
        self.steps.get(at).map(|step| step.0)
    }

    /// The least probability that it resolves: that of being later than every observation.
    pub fn least(&self) -> f64 {
        self.steps.last().map_or(1.0, |step| step.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staircase_is_read_both_ways() {
        let stairs = Exceedance::new(vec![(0, 0.5), (10, 0.1), (20, 0.01)]).unwrap();
        assert_eq!([0, 9, 10, 25].map(|x| (stairs.at(x) * 100.0) as u32), [50, 50, 10, 1]);
        assert_eq!(
            [0.6, 0.5, 0.2, 0.1, 0.01, 0.005].map(|p| stairs.least_for(p)),
            [Some(0), Some(0), Some(10), Some(10), Some(20), None]
        );
    }

    #[test]
    fn what_rises_is_none() {
        for (steps, wrong) in [
            (vec![], 0),
            (vec![(1, 0.5)], 0),
            (vec![(0, 0.5), (10, 0.6)], 1),
            (vec![(0, 0.5), (0, 0.4)], 1),
            (vec![(0, 1.5)], 0),
            (vec![(0, 0.5), (5, f64::NAN)], 1),
        ] {
            assert_eq!(Exceedance::new(steps).unwrap_err().step, wrong);
        }
    }
}
