//! What a lab guest's first program (pid 1) does to its machine. Each step is a function.
//!
//! - `first`: the right to do what follows;
//! - `mounts`: the kernel's own file systems;
//! - `start`: modules, host name, loopback;
//! - `command`: runs the command, reaps orphans, ends everything;
//! - `channel`: finds the way out for the results;
//! - `power`: the end;
//! - `init`: all of these in their order, for a process that finds itself to be pid 1;
//! - `bound`: the host's side: an emulator that dies with us.
//!
//! Nothing is undone, because the machine is thrown away. Steps that fail are reported, not fatal:
//! a guest without a loopback interface is still worth its results.

mod bound;
mod channel;
mod command;
mod first;
pub mod init;
mod mounts;
mod power;
mod start;

pub use bound::exec_bound;
pub use channel::open_result_channel;
pub use command::{Ended, Orders, run_command};
pub use first::FirstProgram;
pub use mounts::mount_all;
pub use power::power_off;
pub use start::{kernel_release, load_module, loopback_up, set_hostname, uptime};

/// A step that failed, in words: what, and what the system said.
pub(crate) fn problem(what: impl std::fmt::Display, error: impl std::fmt::Display) -> String {
    format!("{what}: {error}")
}
