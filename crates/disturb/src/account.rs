//! What a stressor did, as it counts it itself.

use crate::tally::Tally;
use model::stressor::Witness;
use sys::clock::SECOND_NS;

/// What a stressor's loop has to say; the verdict is made of it by [`run`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Account {
    pub(crate) tally: Tally,
    pub(crate) t0_ns: i64,
    pub(crate) t1_ns: i64,
    pub(crate) witness: Witness,
    /// The least number of operations that makes a disturbance.
    pub(crate) floor: u64,
    /// What the stressor itself found wrong.
    pub(crate) wrong: Option<String>,
}

/// The floor of a paced stressor: a thousandth of the requested rate, at least one. Below that it
/// was not there in any way its name promises; a crowded emulated machine was seen at a hundredth.
/// The number of operations shows how strong the disturbance was.
pub(crate) fn floor(rate: Option<f64>, t0_ns: i64, t1_ns: i64) -> u64 {
    let elapsed_s = (t1_ns - t0_ns).max(0) as f64 / SECOND_NS as f64;
    rate.map_or(1, |rate| ((rate * elapsed_s / 1000.0) as u64).max(1))
}
