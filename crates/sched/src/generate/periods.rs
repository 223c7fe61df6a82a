//! Periods as quantile functions: a law is a map from (0, 1) that does not fall, applied to uniform
//! numbers.
//!
//! Uniform numbers are drawn in ascending order, as partial sums of exponential gaps (Devroye,
//! "Non-Uniform Random Variate Generation", 1986, ch. V.3); periods then come out shortest first,
//! which is rate-monotonic order. Nothing is sorted, and the law is that of independent periods
//! that are sorted.
//!
//! Log-uniform periods with a granularity: Emberson, Stafford and Davis, "Techniques for the
//! synthesis of multiprocessor tasksets", WATERS 2010.

use super::portable::{exp, floor};

/// How periods are drawn. Times in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Periods {
    /// Every multiple of the granularity above `low_ns`, up to `high_ns`, equally likely.
    Uniform {
        /// Shortest.
        low_ns: u64,
        /// Longest.
        high_ns: u64,
        /// Interval between two periods, at least 1.
        granularity_ns: u64,
    },
    /// The logarithm is uniform; rounded down to a multiple of the granularity.
    LogUniform {
        /// Shortest.
        low_ns: u64,
        /// Longest.
        high_ns: u64,
        /// What periods are multiples of, at least 1.
        granularity_ns: u64,
    },
    /// Any of these, equally likely; ascending. Harmonic periods are such a list.
    List(Vec<u64>),
}

impl Periods {
    /// `low`, `low * factor`, … up to `high`: each divides the next.
    pub fn harmonic(low_ns: u64, high_ns: u64, factor: u64) -> Self {
        let next = |period: &u64| period.checked_mul(factor.max(2)).filter(|period| *period <= high_ns);
        Self::List(std::iter::successors(Some(low_ns).filter(|low| *low <= high_ns), next).collect())
    }

    /// What is wrong, if anything: found, and expected.
    pub(super) fn wrong(&self) -> Option<(String, &'static str)> {
        let (low, high) = match self {
            Self::Uniform { granularity_ns: 0, .. } | Self::LogUniform { granularity_ns: 0, .. } => {
                return Some(("a granularity of 0".to_owned(), "at least 1 ns"));
            }
            Self::LogUniform { high_ns, granularity_ns, .. } if granularity_ns > high_ns => {
                return Some((format!("a granularity of {granularity_ns} ns"), "at most the longest period"));
            }
            Self::Uniform { low_ns, high_ns, .. } | Self::LogUniform { low_ns, high_ns, .. } => {
                (*low_ns, *high_ns)
            }
            Self::List(values) if values.is_sorted() => (*values.first()?, *values.last()?),
            Self::List(_) => return Some(("a list that is not ascending".to_owned(), "the shortest first")),
        };
        if low == 0 || high < low || high > super::MAX_PERIOD_NS {
            return Some((format!("{low} to {high} ns"), "1 ns to 2^50 ns, the shortest first"));
        }
        None
    }

    /// The law with everything worked out that does not depend on the draw.
    pub(super) fn law(&self) -> Law {
        match self {
            Self::Uniform { low_ns, high_ns, granularity_ns } => Law::Uniform {
                low: *low_ns as f64,
                step: *granularity_ns as f64,
                last: ((high_ns - low_ns) / granularity_ns) as f64,
            },
            Self::LogUniform { low_ns, high_ns, granularity_ns } => {
                let step = *granularity_ns as f64;
                let low = super::portable::ln(*low_ns as f64);
                Law::LogUniform {
                    low,
                    span: super::portable::ln((high_ns + granularity_ns) as f64) - low,
                    step,
                    // A multiple, so that the shortest is one too.
                    least: low_ns.div_ceil(*granularity_ns) as f64 * step,
                    most: (high_ns / granularity_ns) as f64 * step,
                }
            }
            Self::List(values) => Law::List(values.iter().map(|value| *value as f64).collect()),
        }
    }
}

/// A quantile function.
#[derive(Debug, Clone)]
pub(super) enum Law {
    Uniform { low: f64, step: f64, last: f64 },
    LogUniform { low: f64, span: f64, step: f64, least: f64, most: f64 },
    List(Vec<f64>),
}

impl Law {
    /// The quantiles of a row of numbers from 0 to 1, ns; whole.
    #[inline(always)]
    pub(super) fn quantiles<const L: usize>(&self, row: &mut [f64; L]) {
        match self {
            Self::Uniform { low, step, last } => {
                for v in row {
                    *v = low + step * least_of(floor(*v * (last + 1.0)), *last);
                }
            }
            Self::LogUniform { low, span, step, least, most } => {
                for v in row {
                    let period = floor(exp(low + *v * span) / step) * step;
                    *v = greatest_of(least_of(period, *most), *least);
                }
            }
            Self::List(values) => {
                let last = values.len().saturating_sub(1);
                for v in row {
                    let at = (*v * values.len() as f64) as usize;
                    *v = values.get(at.min(last)).copied().unwrap_or(1.0);
                }
            }
        }
    }
}

/// A comparison and a choice: `f64::min` asks about NaN, too.
#[inline(always)]
pub(super) fn least_of(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

#[inline(always)]
pub(super) fn greatest_of(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(periods: &Periods, v: f64) -> u64 {
        let mut row = [v];
        periods.law().quantiles(&mut row);
        row[0] as u64
    }

    #[test]
    fn ends_and_steps() {
        let uniform = Periods::Uniform { low_ns: 10, high_ns: 25, granularity_ns: 5 };
        assert_eq!([0.0, 0.24, 0.26, 0.9, 1.0].map(|v| at(&uniform, v)), [10, 10, 15, 25, 25]);
        let log = Periods::LogUniform { low_ns: 10, high_ns: 1000, granularity_ns: 10 };
        assert_eq!([0.0, 1.0].map(|v| at(&log, v)), [10, 1000]);
        // The geometric middle of 10 and 1010 is 100.5.
        assert_eq!(at(&log, 0.5), 100);
        assert_eq!(Periods::harmonic(5, 45, 2), Periods::List(vec![5, 10, 20, 40]));
        assert_eq!([0.0, 0.3, 0.6, 1.0].map(|v| at(&Periods::harmonic(5, 45, 2), v)), [5, 10, 20, 40]);
    }

    #[test]
    fn invalid_laws_are_refused() {
        for wrong in [
            Periods::Uniform { low_ns: 0, high_ns: 5, granularity_ns: 1 },
            Periods::Uniform { low_ns: 6, high_ns: 5, granularity_ns: 1 },
            Periods::Uniform { low_ns: 6, high_ns: 7, granularity_ns: 0 },
            Periods::LogUniform { low_ns: 6, high_ns: 7, granularity_ns: 8 },
            Periods::LogUniform { low_ns: 6, high_ns: u64::MAX, granularity_ns: 1 },
            Periods::List(vec![2, 1]),
        ] {
            assert!(wrong.wrong().is_some(), "{wrong:?}");
        }
        assert!(Periods::harmonic(1, 8, 2).wrong().is_none());
    }
}
