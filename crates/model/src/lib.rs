//! The vocabulary of stillcore: plain data that every room shares, and the run directory on disk.
//!
//! Nothing here touches a machine or decides anything. Times are integer nanoseconds on
//! CLOCK_MONOTONIC unless a name says otherwise; CPUs are the kernel's numbers.
#![forbid(unsafe_code)]

pub mod boot;
pub mod booted;
mod class;
pub mod clocks;
mod columns;
pub mod context;
pub mod cpu_states;
pub mod cpus;
mod error;
pub mod events;
mod finding;
pub mod fix;
pub mod foreign;
pub mod frequency;
pub mod functions;
pub mod groups;
pub mod growth;
pub mod idle;
pub mod integers;
pub mod kernel_locks;
pub mod kernel_options;
pub mod lab_cards;
pub mod load;
pub mod locking;
pub mod machine;
pub mod monitor;
pub mod monitor_history;
pub mod new_file;
pub mod off;
pub mod place;
pub mod plan;
pub mod probe;
pub mod quantity;
pub mod resource;
pub mod run;
pub mod sample;
pub mod samples_file;
pub mod samples_store;
pub mod samples_stream;
pub mod samples_tail;
pub mod snapshots;
pub mod store;
pub mod stressor;
pub mod syscalls;
pub mod usage;
pub mod user_frames;
pub mod watch;

pub use booted::Booted;
pub use class::EventClass;
pub use cpus::Cpus;
pub use error::{Error, UnknownName};
pub use finding::{Finding, FindingState};
pub use machine::Machine;
pub use resource::Resource;
pub use run::Run;
pub use sample::Sample;
