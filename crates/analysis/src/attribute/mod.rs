//! Attribution: joins each interference event with its source, exactly where the kernel's events
//! allow that.
//!
//! [`cause`] is what is known of one event, [`links`] finds it while the trace streams by,
//! [`context`] finds who acts on a CPU, [`table`] sums causes for a run, [`path`] takes each
//! wake-up apart, [`blocking`] is what delays it while nothing else runs, [`coverage`] reports what
//! this kernel cannot show. [`watch`] follows any other program, [`wakeups`] takes its wake-ups
//! apart.

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
