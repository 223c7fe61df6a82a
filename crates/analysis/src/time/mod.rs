//! What happens over time: where statistics change for good, whether they drift, what recurs with a
//! period, and its source.
//!
//! [`windows`] cuts a window into parts, in whose statistics change-points and drift are looked
//! for. [`instants`] keeps when the events of each source happened while a trace streams by, and
//! [`join`] asks which source has a period that the samples have. [`section`] puts it together. The
//! statistics themselves are [`stats::time`]'s.

pub(crate) mod join;
pub(crate) mod section;
pub mod shape;
mod windows;

pub use shape::{
    Change, FoundIn, Looked, OwnPeriod, PartStatistics, Periodicity, PhaseStatistics, Suspect, TimeSection,
    Windows,
};
