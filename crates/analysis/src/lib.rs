//! Pure functions from a run directory to conclusions. No machine, no root, no network.
//!
//! The way in is [`analyse`]. One idea a file: [`distribution`] (what the samples say), [`tally`]
//! and [`events`] (counts by class), [`overlap`], [`losses`], [`compare`]. Who caused what is the
//! crate `attribution`'s.
#![forbid(unsafe_code)]

pub mod analyse;
pub mod buckets;
pub mod clocks;
pub mod compare;
pub mod distribution;
pub mod drift;
pub mod events;
pub mod exposure;
pub mod functions;
pub mod graph;
pub mod groups;
pub mod import;
pub mod ipi;
pub mod latencies;
mod layers;
pub mod lengths;
pub mod losses;
mod measured;
mod missed;
pub mod noise_causes;
pub mod overheads;
pub mod overlap;
pub mod periodic;
pub mod rt_app;
pub mod samples;
pub mod schedule;
mod sections;
pub mod shape;
pub mod snapshots;
pub mod summary;
pub mod tail;
mod tally;
mod task_groups;
pub mod task_model;
pub mod taskset;
#[cfg(test)]
mod testing;
pub mod time;
mod trace_pass;
mod words;

pub use analyse::{Asked, analyse, analyse_asked, analyse_keeping};
pub use attribution::Error;
pub use shape::Analysis;
