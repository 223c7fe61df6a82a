//! What a stressor did, as it counts it itself.

use crate::tally::Tally;
use model::stressor::Witness;
use sys::clock::SECOND_NS;

/// What a stressor's loop reports; [`run`] makes the verdict of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Account {
    pub(crate) tally: Tally,
    pub(crate) t0_ns: i64,
    pub(crate) t1_ns: i64,
    pub(crate) witness: Witness,
    /// Operations that were due by the rate asked for; none where there was no limit.
    pub(crate) asked: Option<u64>,
    /// What the stressor itself found wrong.
    pub(crate) wrong: Option<String>,
}

impl Account {
    /// The least number of operations that makes a disturbance: a thousandth of those asked for, at
    /// least one. Below that it was not there in any way its name promises. Between that and a half
    /// it is weak; a crowded emulated machine was seen at a hundredth.
    pub(crate) fn floor(&self) -> u64 {
        self.asked.map_or(1, |asked| (asked / 1000).max(1))
    }
}

/// The operations that are due at this rate in this time.
pub(crate) fn asked(rate: Option<f64>, t0_ns: i64, t1_ns: i64) -> Option<u64> {
    let elapsed_s = (t1_ns - t0_ns).max(0) as f64 / SECOND_NS as f64;
    rate.map(|rate| (rate * elapsed_s) as u64)
}
