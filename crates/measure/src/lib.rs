//! Measuring: one file a probe, one skeleton for all.
//!
//! A probe is a process of its own, pinned to one CPU unless asked otherwise. Its loop stores 16-byte records into a shared ring (`ring`) and does nothing
//! else; `drain`, on a housekeeping CPU, turns them into samples on disk. `probe` is the skeleton on the measuring side (set up, pin,
//! lock, prefault, wait, window, report), `handle` the one on the other side.

#[cfg(test)]
mod allocations;
mod batch;
pub mod budgets;
pub mod class;
pub mod clocks;
mod contexts;
pub mod counters;
mod drain;
mod drain_deadline;
pub mod handle;
mod hold;
pub mod ipi;
pub mod job;
pub(crate) mod kernel_log;
pub mod latency_limit;
pub mod live;
mod look;
mod noise;
mod offset;
pub mod overheads;
mod own;
mod periodic;
pub mod probe;
mod probe_record;
pub mod ring;
mod smi;
pub mod spec;
mod taskset;
mod wakeup;
mod wakeup_deadline;
pub mod watch;
pub mod window;
