//! Series over time: where a statistic changes for good ([`change`]), whether it drifts
//! ([`trend`]), and what recurs with a period. Periods are searched in the values that stand out
//! ([`spikes`], [`search`], [`fold`], [`periods`]) and in all of them ([`waves`]), and may not be
//! chance ([`shuffle`]).

pub mod change;
pub mod fold;
#[cfg(test)]
mod oracle;
pub mod periods;
pub mod phases;
mod ranks;
pub mod search;
mod shuffle;
pub mod spikes;
mod transform;
pub mod trend;
pub mod waves;
