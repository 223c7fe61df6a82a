//! Pure functions from a run directory to conclusions. No machine, no root, no network.
//!
//! The way in is [`analyse`]. One idea a file: [`distribution`] (what the samples say), [`spans`] (kernel events → who ran
//! when), [`tally`] and [`events`] (counts by class), [`overlap`], [`losses`], [`compare`]. [`decode`] alone knows the trace
//! file's bytes; the rest works on [`view::KernelEvent`].
#![forbid(unsafe_code)]

pub mod analyse;
pub mod any_trace;
pub mod attribute;
mod beside;
pub mod buckets;
mod by_cpu;
mod by_task;
pub mod clocks;
mod comms;
pub mod compare;
pub mod count_ns;
pub mod decode;
pub mod distribution;
pub mod drift;
mod error;
pub mod events;
pub mod exposure;
pub mod functions;
pub mod graph;
pub mod groups;
mod hash;
mod holes;
pub mod import;
pub mod ipi;
pub mod labels;
pub mod latencies;
mod layers;
pub mod lengths;
pub mod losses;
mod measured;
mod missed;
mod names;
pub mod noise_causes;
pub mod overheads;
pub mod overlap;
pub mod periodic;
pub mod prio;
mod records;
pub mod samples;
pub mod schedule;
mod sections;
pub mod shape;
pub mod snapshots;
mod some_tasks;
pub mod spans;
mod stacks;
pub mod summary;
pub mod tail;
mod tally;
mod task_groups;
pub mod taskset;
#[cfg(test)]
mod testing;
pub mod time;
pub mod timerlat;
mod trace_pass;
pub mod view;
mod words;

pub use analyse::{Asked, analyse, analyse_asked, analyse_keeping};
pub use error::Error;
pub use shape::Analysis;
