//! End-to-end communication graphs: what a topology file declares, the transports its edges run over, the executors that serve them.
//!
//! `topology` reads a graph (the iRobot JSON files, or our own TOML) into plain data; `transport` moves messages from a publisher to
//! one subscriber, and `latency` measures how long that takes.

#![forbid(unsafe_code)]

pub mod latency;
pub mod results;
#[cfg(feature = "ros2")]
pub mod ros2;
pub mod topology;
pub mod transport;
