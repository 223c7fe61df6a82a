//! One window's samples over time: the section `time` of `analysis.json`.

use attribution::attribute::Confidence;
use attribution::attribute::section::SourceText;
use model::EventClass;
use model::sample::ProbeKind;
use serde::{Deserialize, Serialize};
use stats::serialize_as_array;
use stats::time::periods::Multiple;
use stats::time::trend::Trend;

/// The samples of one window on one CPU over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeSection {
    /// Phase of the window.
    pub phase: String,
    /// Probe of the window.
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// Number of its thread in the window.
    pub thread: u32,
    /// From the first moment that was watched to the last, CLOCK_MONOTONIC ns.
    pub span_ns: [i64; 2],
    /// Statistics of parts of equal length; none where samples are too few for that.
    pub windows: Option<Windows>,
    /// Where these change for good, by time.
    pub changes: Vec<Change>,
    /// How their medians drift.
    pub drift: Option<Trend>,
    /// What was searched for periods.
    pub looked: Looked,
    /// The periods found: those of spikes first, each followed by none or more of which it is a
    /// fraction.
    pub periods: Vec<Periodicity>,
}

/// Statistics of parts of a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// Length of a part, ns.
    pub length_ns: i64,
    /// Each part with samples.
    pub rows: Vec<PartStatistics>,
}

/// Statistics of one part; in JSON `[t_ns, samples, median_ns, p99_ns, max_ns]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct PartStatistics {
    /// Its start.
    pub t_ns: i64,
    /// Its samples.
    pub samples: i64,
    /// Their median.
    pub median_ns: i64,
    /// Their 99th percentile.
    pub p99_ns: i64,
    /// Their observed maximum.
    pub max_ns: i64,
}

serialize_as_array!(PartStatistics { t_ns, samples, median_ns, p99_ns, max_ns });

/// A place where a statistic changes for good.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Which statistic: `median`, `p99`, `observed maximum`.
    pub figure: String,
    /// Start of the first part behind the change, CLOCK_MONOTONIC ns.
    pub t_ns: i64,
    /// Median of the statistic from the change before to this one, ns.
    pub before_ns: i64,
    /// From this one to the next, ns.
    pub after_ns: i64,
    /// Probability of so much among permutations.
    pub p_value: f64,
    /// Parts that were permuted together.
    pub block: usize,
}

/// What was searched for periods, and between which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Looked {
    /// Samples from here on stand out, ns.
    pub from_ns: i64,
    /// How often some did, neighbours once.
    pub spikes: u64,
    /// The shortest and the longest period of spikes that would be claimed, ns; none where nothing
    /// can be.
    pub between_ns: Option<[f64; 2]>,
    /// Interval between equally spaced samples, ns: what is shorter than two of them appears longer
    /// than it is.
    pub step_ns: Option<u64>,
    /// Whether the values were searched as a whole, too.
    pub waves: bool,
    /// Periods found that are artefacts of the watch and have no source, ns.
    pub own_ns: Vec<f64>,
}

/// What a period was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoundIn {
    /// Samples that stand out.
    Spikes,
    /// The larger ones of another period's spikes.
    LargerSpikes,
    /// All values, in which nothing need stand out.
    Values,
}

/// A period with which samples recur.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Periodicity {
    /// What it was found in.
    pub found_in: FoundIn,
    /// The period, ns.
    pub period_ns: f64,
    /// Half of its 95 % interval, ns.
    pub half_width_ns: f64,
    /// The first time that it was due in the window, CLOCK_MONOTONIC ns.
    pub first_ns: i64,
    /// Standard deviation of the spikes about it, ns.
    pub jitter_ns: f64,
    /// Its spikes.
    pub spikes: u64,
    /// Turns from the first of them to the last.
    pub turns: u64,
    /// Of these, turns with one.
    pub seen: u64,
    /// Median of its spikes, ns; of values by how much the mean of a phase differs.
    pub height_ns: i64,
    /// The largest of them, ns.
    pub observed_max_ns: i64,
    /// Agreement of their phases: 1 where all are the same.
    pub agreement: f64,
    /// Bound of the probability of as much without a period, for all frequencies tried.
    pub p_value: f64,
    /// Share of orders of blocks, drawn anew, that agree as well.
    pub shuffled_p: Option<f64>,
    /// The period it is a multiple of, where its spikes are among those of that.
    pub multiple_of: Option<Multiple>,
    /// Periods below two distances of samples that would look the same, ns: the slowest four.
    pub aliases_ns: Vec<f64>,
    /// Samples folded, the phase from the window's start.
    pub profile_ns: Vec<PhaseStatistics>,
    /// What has this period and phase by the trace, most likely first; the first is its source if
    /// `named`.
    pub suspects: Vec<Suspect>,
    /// Whether the first suspect is named as the source.
    pub named: bool,
}

/// Statistics of the samples of one phase; in JSON `[phase_ns, median_ns, max_ns]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct PhaseStatistics {
    /// The phase.
    pub phase_ns: i64,
    /// Median of its samples.
    pub median_ns: i64,
    /// Their observed maximum.
    pub max_ns: i64,
}

serialize_as_array!(PhaseStatistics { phase_ns, median_ns, max_ns });

/// What may be behind a period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// Class of its events.
    pub class: EventClass,
    /// What ran.
    pub label: String,
    /// Who caused it, most often where there were several; absent where that is not known.
    pub source: Option<SourceText>,
    /// How the source is known.
    pub confidence: Option<Confidence>,
    /// Its events in the window.
    pub events: u64,
    /// The period of its own that its events have by themselves.
    pub own_period_ns: Option<OwnPeriod>,
    /// How well its events, or as many of its longest as there are turns, agree at the period of
    /// the samples.
    pub agreement: f64,
    /// Whether that is so for its longest events only.
    pub longest_only: bool,
    /// Spikes that could be asked: all, or of a source of too many events those of the stretch of
    /// which they are kept.
    pub asked: u64,
    /// Of these, spikes during which one of its events ran.
    pub touched: u64,
    /// The same for the same stretches half a period later, where no spike is due.
    pub touched_between: u64,
    /// Time of its events in the spikes, ns.
    pub overlap_ns: u64,
    /// Whether its own period is that of the samples, within both intervals.
    pub same_period: bool,
    /// Whether its own period is too short for the samples, so that they see it slower.
    pub alias: bool,
}

/// The period of a source; in JSON `[period_ns, half_width_ns]`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct OwnPeriod {
    /// The period.
    pub period_ns: f64,
    /// Half of its 95 % interval.
    pub half_width_ns: f64,
}

serialize_as_array!(OwnPeriod { period_ns, half_width_ns });
