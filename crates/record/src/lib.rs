//! Recording: the kernel's own events on the measured CPUs, and what the others aim at them, in
//! tracing instances that are stillcore's alone.
//!
//! Never the top-level buffer, never a function-filter file: a machine may be locked down, and
//! somebody else may be tracing. Everything is enabled and settled before the first window, because
//! enabling a tracepoint sends IPIs itself; windows only toggle `tracing_on`. See
//! `Documentation/trace/ftrace.rst`, "Instances".

pub mod accounts;
mod buffer;
pub mod changes;
pub mod cost;
mod fifo;
mod filter;
pub mod groups;
pub mod held;
pub mod instance;
mod kept;
pub mod kprobe;
pub mod live;
pub mod locking;
pub mod plant;
mod programs;
pub mod provoke;
mod reader;
pub mod recorder;
mod ring;
pub mod snapshots;
mod symbols;
pub mod tasks;
pub mod unwritten;
