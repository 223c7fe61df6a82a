//! The workload files of rt-app as loads: JSON with an object of tasks, each a sequence of events
//! (`doc/tutorial.txt` of scheduler-tools/rt-app, version 1.0 and later).
//!
//! `ordered` reads JSON in which the order of keys counts, `place` says where in it a value is,
//! `read` makes a load of it, `task` one of its tasks, `names` keeps what they name, `write` makes
//! a file of a load.

mod names;
mod ordered;
mod place;
mod read;
mod task;
#[cfg(test)]
mod tests;
mod write;

pub use read::read;
pub use write::write;

/// Nanoseconds of the unit of all times in these files.
const US: u64 = 1_000;
/// Bytes of a file.
pub const MOST_BYTES: u64 = 1 << 20;
/// What rt-app reads times into.
const MOST_NUMBER: i64 = i32::MAX as i64;
/// Priority of real-time threads that have none.
const PRIORITY: u32 = 10;
