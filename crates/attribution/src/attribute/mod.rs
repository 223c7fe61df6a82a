//! Attribution: joins each interference event with its source, exactly where the kernel's events
//! allow that.
//!
//! [`cause`] is what is known of one event, [`links`] finds it while the trace streams by,
//! [`context`] finds who acts on a CPU, [`table`] sums causes for a run, [`path`] takes each
//! wake-up apart, [`blocking`] is what delays it while nothing else runs, [`bound`] is how late one
//! could have come, [`off`] counts stretches with interrupts or preemption off, [`coverage`] reports
//! what this kernel cannot show. [`watch`] follows any other program, [`wakeups`] takes its wake-ups
//! apart. What is stored of all this: [`section`], [`path_section`], [`thread_paths`].

pub mod blocking;
pub mod bound;
pub mod cause;
pub(crate) mod context;
pub mod coverage;
pub mod delay;
pub mod events;
pub(crate) mod figures;
pub(crate) mod links;
pub mod lint;
pub mod locks;
pub mod off;
pub mod path;
pub mod path_section;
pub mod paths;
pub mod section;
pub(crate) mod spread;
pub mod step;
pub mod table;
pub mod thread_paths;
pub(crate) mod wakeups;
pub mod watch;
pub mod windows;

pub use cause::{Cause, Causes, Confidence, Source, Who};
