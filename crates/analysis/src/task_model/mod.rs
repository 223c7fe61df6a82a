//! The task model of a running program: per thread what releases its jobs, what they cost, how they
//! suspend; what competes with them; and what can be guaranteed with it.
//!
//! [`choose`] finds what separates the jobs of a thread, [`build`] makes the model ([`shape`]) of
//! what was observed, [`system`] the tasks of `stillcore sched` of the model, [`verdict`] bounds
//! their response times and says how far the program is from its first late job, [`check`] holds
//! the bounds against every job of a trace, [`change`] asks what if, [`machine`] the same of
//! another kernel or isolation, [`optimise`] looks for the best placement, [`observe`] finds the
//! job nearest to its deadline and what happened around it, and how long each [`chain`] took.
//! [`locks`] are requests of tasks ([`lock_shape`]); which bound holds for which is ruled by
//! `lock_rules`, made part of the tasks by `lock_tasks`, and held against every wait by
//! [`lock_check`]. [`replay`] makes a load that does what the model says, [`compare`] holds the
//! model of one program against that of another, and [`load_tasks`] makes tasks of any load.

mod assumed;
pub mod build;
pub mod chain;
pub mod change;
pub mod check;
pub mod choose;
pub mod compare;
pub mod load_tasks;
pub mod lock_check;
mod lock_rules;
pub mod lock_shape;
mod lock_tasks;
#[cfg(test)]
mod lock_tests;
pub mod locks;
pub mod machine;
pub mod observe;
pub mod optimise;
pub mod replay;
pub mod shape;
pub mod system;
#[cfg(test)]
pub(crate) mod tests;
pub mod verdict;
