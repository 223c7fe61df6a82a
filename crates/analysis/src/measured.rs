//! One probe record with its samples and, once the trace has been read, its events.

use crate::distribution::Distribution;
use crate::missed::Charged;
use crate::overlap::Intervals;
use crate::tally::Tally;
use attribution::attribute::paths::{Keep, PathSums};
use model::run::{ProbeRecord, Window};
use model::sample::Sample;

/// One probe record with its samples and, once the trace has been read, its events.
pub(crate) struct Measured<'r> {
    pub(crate) record: &'r ProbeRecord,
    pub(crate) window: Option<&'r Window>,
    pub distribution: Distribution,
    /// Samples that count and reached the limit of snapshots, where there is one.
    pub over: u64,
    pub charged: Vec<Charged>,
    /// The gaps that statistics include, of a noise probe beside which counters were read.
    pub gaps: Vec<Sample>,
    /// Moves into the tally while there is one.
    pub(crate) intervals: Intervals,
    pub(crate) tally: Option<Tally>,
    /// Which of its samples to explain in detail.
    pub(crate) keep: Keep,
    /// Where its latencies went, for wake-ups with a trace.
    pub(crate) paths: Option<PathSums>,
}

impl Measured<'_> {
    pub(crate) fn intervals(&self) -> &Intervals {
        self.tally.as_ref().map_or(&self.intervals, |tally| &tally.intervals)
    }
}
