//! Thin, safe faces of the system calls that no library offers in the form needed here.
//!
//! Scheduling calls are made raw: musl's wrappers return ENOSYS for them.

pub mod clock;
mod cobalt;
pub mod counter;
pub mod datagram;
pub mod doorbell;
mod error;
pub mod given_back;
pub mod held;
pub mod journald;
pub mod letters;
pub mod litmus;
pub mod memory;
pub mod modules;
pub mod mqueue;
pub mod notify;
pub mod perf;
pub mod pipes;
pub mod policy;
pub mod process;
pub mod relax;
pub mod sched;
pub mod schedclock;
pub mod signals;
pub mod slots;
pub mod spawn;
pub mod swap;
pub mod timersignal;
pub mod tracefs;
pub mod uevents;
pub mod writers;

pub use error::Error;
