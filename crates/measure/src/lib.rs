//! Measuring: one file a probe, one skeleton for all.
//!
//! A probe is a process of its own, pinned to one CPU unless asked otherwise. Its loop stores
//! 16-byte records into a shared ring (`ring`) and does nothing else; on a housekeeping CPU its
//! drain turns them into samples. `kind` says what a probe is to both sides: its order, its loop,
//! its drain; `spec` has one row a probe. `probe` is the skeleton on the measuring side (set up,
//! pin, lock, prefault, wait, window, report), `handle` the one on the other side.

#[cfg(test)]
mod allocations;
mod batch;
pub mod budgets;
pub mod burn;
pub mod class;
pub mod clocks;
mod contexts;
pub mod counters;
pub mod handle;
mod hold;
pub mod ipi;
pub mod job;
pub(crate) mod kernel_log;
mod kind;
pub mod latency_limit;
pub mod live;
mod look;
mod noise;
mod numbering;
mod offset;
pub mod overheads;
mod own;
mod periodic;
pub mod probe;
mod probe_record;
mod releases;
pub mod ring;
mod smi;
pub mod spec;
mod taskset;
mod wakeup;
pub mod watch;
pub mod window;
