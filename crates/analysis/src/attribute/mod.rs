//! Who did it: each interference event joined with its source, exactly where the kernel's events allow that.
//!
//! [`cause`] is what is known of one event, [`links`] finds it while the trace streams by, [`context`] says who acts on a CPU, [`table`]
//! sums it for a run, [`path`] takes each wake-up apart, [`blocking`] is what it waits for beside
//! what runs, [`coverage`] says what this kernel cannot show. [`watch`] follows a program that is none
//! of ours, [`wakeups`] takes its wake-ups apart.

pub mod blocking;
pub mod cause;
pub(crate) mod context;
pub mod coverage;
pub mod events;
pub(crate) mod links;
pub mod path;
pub mod paths;
mod spread;
pub mod table;
pub(crate) mod wakeups;
pub mod watch;
pub mod windows;

pub use cause::{Cause, Causes, Confidence, Source, Who};
