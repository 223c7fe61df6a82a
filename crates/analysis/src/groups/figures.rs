//! The statistics in which runs are compared, and the value of each in one run.
//!
//! Times are in ns, shares in parts of one, rates per second and CPU. A statistic that a run cannot
//! estimate has a reason instead of a value: a quantile needs ten samples above it, a bin's count
//! ends with the bins.

use super::measured::{MeasuredWindow, Samples};
use model::sample::ProbeKind;
use serde::{Serialize, Serializer};
use stats::nearest_rank;
use stats::resample::{generator, ratio_draws};

/// Bootstrap resamples of one run's blocks of time: they give the spread of a statistic within that
/// run.
const WITHIN: usize = 300;
/// Samples that have to lie above a quantile.
const ABOVE: u64 = 10;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The smallest value.
    Min,
    /// The nearest-rank quantile of so many parts in 100,000.
    Quantile(u64),
    /// The largest observed value.
    Max,
    /// Samples of at least so many ns: of releases their share, of gaps their number per second and
    /// CPU.
    Exceed(i64),
    /// The share of its time that a busy loop lost.
    Stolen,
    /// The wall time of a command, once per turn ([`super::turns`]).
    Time,
}

impl Figure {
    /// Reads a name: `min`, `p99.9`, `max`, `exceed:100us`, `stolen`, `time`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = "min, p50, p99.9 and the like, max, exceed:100us, stolen or time";
        let unknown = || format!("{text:?} is no figure; expected {expected}");
        match text {
            "min" => Ok(Self::Min),
            "max" => Ok(Self::Max),
            "stolen" => Ok(Self::Stolen),
            "time" => Ok(Self::Time),
            _ => {
                if let Some(limit) = text.strip_prefix("exceed:") {
                    return super::units::time_ns(limit).map(Self::Exceed).ok_or_else(unknown);
                }
                let percent: f64 =
                    text.strip_prefix('p').and_then(|digits| digits.parse().ok()).ok_or_else(unknown)?;
                let parts = (percent * 1000.0).round();
                if !(1.0..=99_999.0).contains(&parts) || (parts - percent * 1000.0).abs() > 1e-6 {
                    return Err(format!("{text:?} is not between p0.001 and p99.999 in steps of 0.001"));
                }
                Ok(Self::Quantile(parts as u64))
            }
        }
    }

    /// Its name, as it is read.
    pub fn name(self) -> String {
        match self {
            Self::Min => "min".to_owned(),
            Self::Max => "max".to_owned(),
            Self::Stolen => "stolen".to_owned(),
            Self::Time => "time".to_owned(),
            Self::Exceed(limit) => format!("exceed:{}", super::units::short_time(limit)),
            Self::Quantile(parts) => format!("p{}", parts as f64 / 1000.0),
        }
    }

    /// The unit of its values for windows of this probe: `ns`, `share`, `per s`.
    pub fn unit(self, probe: ProbeKind) -> &'static str {
        match self {
            Self::Min | Self::Max | Self::Quantile(_) | Self::Time => "ns",
            Self::Exceed(_) if probe == ProbeKind::Noise => "per s",
            Self::Exceed(_) | Self::Stolen => "share",
        }
    }

    /// Whether it is an extreme: it moves with the length of a run, and blocks of one run give no
    /// interval for it.
    pub fn is_extreme(self) -> bool {
        matches!(self, Self::Min | Self::Max)
    }

    /// The default statistics of a window. Quantiles of gaps would be those of the gaps that happen
    /// to be stored, so noise is compared in rates.
    pub fn usual(probe: ProbeKind, threshold_ns: Option<u64>, binned: bool) -> Vec<Self> {
        match probe {
            ProbeKind::Noise => {
                let from = threshold_ns.map_or(2_000, |ns| ns.min(i64::MAX as u64) as i64);
                let rates =
                    [Self::Exceed(from.max(1)), Self::Exceed(from.max(1).saturating_mul(10)), Self::Max];
                if binned { rates.to_vec() } else { [&[Self::Stolen], &rates[..]].concat() }
            }
            _ => vec![
                Self::Min,
                Self::Quantile(50_000),
                Self::Quantile(99_000),
                Self::Quantile(99_900),
                Self::Max,
            ],
        }
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

/// A statistic in one run.
#[derive(Debug, Clone)]
pub struct InRun {
    /// Its value.
    pub value: f64,
    /// The same with blocks of the run's time resampled; empty for histograms without times, and
    /// for extremes.
    pub draws: Vec<f64>,
}

/// Why a run has no value of a statistic, as a predicate: "run 2 has no samples".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoValue {
    #[error("has no samples")]
    NoSamples,
    #[error("does not report its smallest value")]
    NoMin,
    #[error("has samples beyond its last bin, and does not report the largest")]
    NoMax,
    #[error("holds the gaps above a threshold only, which have no quantiles of their own")]
    LongGapsOnly,
    #[error(
        "has {} samples, {above} of them above it: ten are needed, as {} samples have{}",
        crate::words::count(*n), crate::words::count(*needed), times(*n, *needed)
    )]
    TooFew { n: u64, above: usize, needed: u64 },
    #[error("has it beyond its last bin")]
    BeyondBins,
    #[error("stores only gaps longer than that")]
    BelowThreshold,
    #[error("has bins of {width_ns} ns, none of which begins there")]
    BetweenBins { width_ns: u64 },
    #[error("has bins that end below it")]
    BinsEndBelow,
    #[error("does not report how long it ran")]
    NoDuration,
    #[error("does not hold every gap with its length")]
    NoGaps,
    #[error("is a measurement: only commands that make none are compared by their wall time")]
    NoTime,
}

/// The statistic in one window, or why it has none. `stream` separates its random numbers from
/// those of others.
pub(crate) fn in_run(figure: Figure, window: &MeasuredWindow, stream: u64) -> Result<InRun, NoValue> {
    let n = window.samples.n();
    if n == 0 {
        return Err(NoValue::NoSamples);
    }
    let seconds = window.duration_ns.map(|ns| ns as f64 / 1e9).filter(|seconds| *seconds > 0.0);
    let gaps = window.probe == ProbeKind::Noise;
    let mut random = generator(0, stream);
    match (figure, &window.samples) {
        (Figure::Min, samples) => samples.min().map(exact).ok_or(NoValue::NoMin),
        (Figure::Max, samples) => samples.max().map(exact).ok_or(NoValue::NoMax),
        (Figure::Quantile(_), _) if gaps => Err(NoValue::LongGapsOnly),
        (Figure::Quantile(parts), samples) => {
            let Some(value) = samples.quantile(parts) else {
                let above = (n as usize).saturating_sub(nearest_rank(n as usize, parts));
                return Err(if (above as u64) < ABOVE {
                    NoValue::TooFew { n, above, needed: needed(parts) }
                } else {
                    NoValue::BeyondBins
                });
            };
            let draws = match samples {
                Samples::Blocked { samples, .. } => samples.quantile_draws(parts, WITHIN, &mut random),
                Samples::Binned(_) => Vec::new(),
            };
            Ok(InRun { value: value as f64, draws })
        }
        (Figure::Exceed(from), _)
            if gaps && window.threshold_ns.is_some_and(|stored| from < stored as i64) =>
        {
            Err(NoValue::BelowThreshold)
        }
        (Figure::Exceed(from), Samples::Binned(bins)) if from % bins.width_ns.max(1) as i64 != 0 => {
            Err(NoValue::BetweenBins { width_ns: bins.width_ns })
        }
        (Figure::Exceed(from), samples) => {
            let count = samples.at_least(from).ok_or(NoValue::BinsEndBelow)?;
            let whole = match (gaps, seconds) {
                (false, _) => n as f64,
                (true, Some(seconds)) => seconds,
                (true, None) => return Err(NoValue::NoDuration),
            };
            let draws = match samples {
                Samples::Blocked { samples, .. } => {
                    let (part, mut all) = samples.at_least(from);
                    if gaps {
                        all.fill(whole / part.len() as f64);
                    }
                    ratio_draws(&part, &all, WITHIN, &mut random)
                }
                Samples::Binned(_) => Vec::new(),
            };
            Ok(InRun { value: count as f64 / whole, draws })
        }
        (Figure::Stolen, Samples::Blocked { stolen: [part, whole], .. }) if gaps => {
            let of: f64 = whole.iter().sum();
            if of <= 0.0 {
                return Err(NoValue::NoDuration);
            }
            Ok(InRun {
                value: part.iter().sum::<f64>() / of,
                draws: ratio_draws(part, whole, WITHIN, &mut random),
            })
        }
        (Figure::Stolen, _) => Err(NoValue::NoGaps),
        (Figure::Time, _) => Err(NoValue::NoTime),
    }
}

/// The least number of samples of which ten lie above the quantile of `parts` in 100,000.
fn needed(parts: u64) -> u64 {
    (ABOVE * 100_000).div_ceil(100_000_u64.saturating_sub(parts).max(1))
}

/// How many times as many samples that is, where it is much more.
fn times(n: u64, needed: u64) -> String {
    let factor = needed as f64 / n.max(1) as f64;
    match factor {
        ..=1.5 => String::new(),
        ..9.95 => format!(" ({factor:.1} times as many)"),
        _ => format!(" ({factor:.0} times as many)"),
    }
}

fn exact(value: i64) -> InRun {
    InRun { value: value as f64, draws: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_says_how_many_samples_a_quantile_needs() {
        assert_eq!([50_000, 99_000, 99_900, 99_999].map(needed), [20, 1_000, 10_000, 1_000_000]);
        for parts in [50_000, 90_000, 99_000, 99_900, 99_990, 33_333] {
            let above = |n: u64| n as usize - nearest_rank(n as usize, parts);
            assert_eq!((above(needed(parts)), above(needed(parts) - 1)), (10, 9), "{parts}");
        }
        let said = |n, above| NoValue::TooFew { n, above, needed: needed(99_900) }.to_string();
        assert_eq!(
            said(9_931, 9),
            "has 9,931 samples, 9 of them above it: ten are needed, as 10,000 samples have"
        );
        assert!(said(3_000, 3).ends_with("as 10,000 samples have (3.3 times as many)"), "{}", said(3_000, 3));
        assert!(said(767, 0).ends_with("(13 times as many)"), "{}", said(767, 0));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            "min",
            "max",
            "stolen",
            "time",
            "p50",
            "p99.9",
            "p99.999",
            "exceed:100us",
            "exceed:1500ns",
            "exceed:2ms",
        ] {
            assert_eq!(Figure::parse(name).map(Figure::name), Ok(name.to_owned()));
        }
        for wrong in
            ["", "p", "p100", "p0", "p99.9999", "pp", "exceed:", "exceed:100", "mean", "p-1", "pNaN", "pinf"]
        {
            assert!(Figure::parse(wrong).is_err(), "{wrong}");
        }
    }
}
