//! Kernel events → who did it. No run, no machine, no root.
//!
//! [`decode`] alone knows a trace file's bytes; the rest works on [`view::KernelEvent`]. [`spans`]
//! says who ran when, [`attribute`] who caused what and takes wake-ups apart, [`any_trace`] does so
//! with a trace recorded by anybody, [`jobs`] finds the jobs of its threads, [`live`] reads a
//! recording while it goes on, [`timerlat`] reads what the kernel's own tracers report.
#![forbid(unsafe_code)]

pub mod any_trace;
pub mod attribute;
mod beside;
mod by_cpu;
mod by_task;
mod comms;
pub mod count_ns;
pub mod damage;
pub mod decode;
mod error;
pub mod holes;
pub mod instants;
pub mod jobs;
pub mod labels;
pub mod live;
mod names;
pub mod passed_over;
pub mod prio;
mod records;
mod some_tasks;
pub mod spans;
mod stacks;
#[cfg(test)]
mod testing;
pub mod timerlat;
pub mod view;

pub use error::Error;
