//! The sample that ended a measurement: the first at or above a limit that the user set.

use crate::probe::ProbeKind;
use serde::{Deserialize, Serialize};

/// Which sample ended the measurement, and how much was measured until then.
///
/// The rest of the run is as of any other that has ended: every release up to the stop is
/// accounted for. Its maximum is the sample that ended it, though, and its length is no plan's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoppedAt {
    /// The limit, ns.
    pub over_ns: i64,
    /// The probe that took the sample.
    pub probe: ProbeKind,
    /// The phase.
    pub phase: String,
    /// Number of the thread in the window.
    pub thread: u32,
    /// The CPU of the thread, or the first of those it may run on.
    pub cpu: u32,
    /// Its number among the samples of the thread, from 1; warm-up samples have numbers, too.
    pub sample: u64,
    /// Its time, as in the samples file.
    pub t_ns: i64,
    /// Its value.
    pub value_ns: i64,
    /// From the start of the window to the end of the sample, ns.
    pub after_ns: i64,
    /// The planned length of the window, ns.
    pub planned_ns: i64,
}
