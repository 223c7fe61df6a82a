//! End-to-end communication graphs: what a topology file declares, the transports of its edges, the
//! executors that serve them, and the results of a run.
//!
//! `topology` reads a graph (the iRobot JSON files, or our own TOML) into plain data. `transport`
//! moves messages from a publisher to one subscriber, and `latency` measures how long that takes.
//! `run` turns a graph into processes and threads. `results` holds the formulas and the result
//! files. `load` plays threads that only execute, sleep and release one another.

#![forbid(unsafe_code)]

mod error;
pub mod latency;
pub mod load;
pub mod results;
#[cfg(feature = "ros2")]
pub mod ros2;
pub mod run;
pub mod topology;
pub mod transport;

pub use error::Error;
