//! Disturbances: workloads on the housekeeping CPUs that provoke interference, confined, bounded
//! and counted.
//!
//! Each stressor is one file of `stressors/` and one entry of [`catalogue()`]. A stressor runs as a
//! child process of stillcore: this same program with a hidden argument, served by
//! [`child::serve`]. [`Disturbance`] is the parent's side: it starts the children, looks every 100
//! ms where their threads have run, ends them and returns their records. [`confine`] plans and
//! removes the control groups.

mod account;
pub mod available;
pub mod catalogue;
pub mod cgroup;
pub mod changes;
pub mod child;
pub mod confine;
mod counters;
mod disk;
mod error;
pub mod foreseen;
mod ifreq;
mod job;
mod kernel_counts;
mod knob;
pub mod leaving;
mod ledger;
mod links;
mod loops;
mod mounts;
mod namespaces;
mod netlink;
mod nic_pair;
mod offspring;
mod order;
pub mod protocol;
mod rates;
mod rings;
mod scratch;
mod settle;
mod shared;
mod small_pages;
mod sockopt;
mod spec;
mod spinners;
mod stamps;
mod stressors;
pub mod suite;
mod supervise;
pub mod swap_file;
mod tally;
mod uffd;
mod watch;
mod wire;
mod witness;
mod workers;

pub use crate::protocol::StressArgs;
pub use crate::spec::StressorSpec;
pub use catalogue::catalogue;
pub use error::Error;
pub use order::{Options, Order};
pub use supervise::{Disturbance, Status};
