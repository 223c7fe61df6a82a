//! What happens over time: where statistics change for good, whether they drift, what recurs with a
//! period, and its source.
//!
//! [`windows`] cuts a window into parts, in whose statistics [`change`] looks for change-points and
//! [`trend`] for drift. Periods are searched in the samples that stand out ([`spikes`], [`search`],
//! [`fold`], [`periods`]) and in all of them ([`waves`]), and may not be chance ([`shuffle`]).
//! [`instants`] keeps when the events of each source happened while a trace streams by, and
//! [`join`] asks which source has the period. [`section`] puts it together.

pub mod change;
pub(crate) mod fold;
pub mod instants;
pub(crate) mod join;
#[cfg(test)]
mod oracle;
mod periods;
pub(crate) mod phases;
mod ranks;
mod search;
pub(crate) mod section;
pub mod shape;
mod shuffle;
mod spikes;
#[cfg(test)]
pub(crate) mod testing;
mod transform;
pub mod trend;
mod waves;
mod windows;

pub use shape::{Change, FoundIn, Looked, Periodicity, Suspect, TimeSection, Windows};
