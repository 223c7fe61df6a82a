//! Disturbances: workloads on the housekeeping CPUs that provoke interference, confined, bounded and counted.
//!
//! Each stressor is one file and one entry of [`catalogue()`]. A stressor runs as a child process of stillcore: this same program
//! with a hidden argument, served by [`child::serve`]. [`Disturbance`] is the parent's side: it starts the children, looks every
//! 100 ms where their threads have run, ends them and returns their records. [`confine`] plans and removes the control groups.

mod calc_pi;
pub mod catalogue;
pub mod child;
pub mod confine;
mod error;
mod fault;
mod job;
mod settle;
mod sock;
mod supervise;
mod tally;
mod timer;
mod u_fork;
mod u_thread;
mod watch;
mod witness;

pub use catalogue::{StressorSpec, catalogue};
pub use child::StressArgs;
pub use error::Error;
pub use supervise::{Disturbance, Options};
