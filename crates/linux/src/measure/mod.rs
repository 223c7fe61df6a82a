//! Measuring: one file a probe, one skeleton for all.
//!
//! A probe is a process of its own, pinned to one CPU unless asked otherwise. Its loop stores 16-byte records into a shared ring (`ring`) and does nothing
//! else; `drain`, on a housekeeping CPU, turns them into samples on disk. `probe` is the skeleton on the measuring side (set up, pin,
//! lock, prefault, wait, window, report), `handle` the one on the other side.

pub mod counters;
pub mod drain;
pub mod handle;
pub mod live;
pub mod noise;
pub mod probe;
pub mod ring;
pub mod spec;
pub mod wakeup;
