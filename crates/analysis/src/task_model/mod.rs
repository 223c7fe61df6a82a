//! The task model of a running program: per thread what releases its jobs, what they cost, how they
//! suspend; what competes with them; and what can be guaranteed with it.
//!
//! [`choose`] finds what separates the jobs of a thread, [`build`] makes the model ([`shape`]) of
//! what was observed, [`system`] the tasks of `stillcore sched` of the model, [`verdict`] bounds
//! their response times and says how far the program is from its first late job, [`check`] holds
//! the bounds against every job of a trace, [`change`] asks what if.

pub mod build;
pub mod change;
pub mod check;
pub mod choose;
pub mod shape;
pub mod system;
#[cfg(test)]
mod tests;
pub mod verdict;
