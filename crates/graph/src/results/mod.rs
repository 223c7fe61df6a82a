//! Results of a graph's run: iRobot's by iRobot's formulas, honest ones beside them, and the files
//! that tools for ros2-performance read.

pub mod accounts;
pub mod events;
pub mod honest;
pub mod latency;
pub mod resources;
mod table;
pub mod target;
pub mod tracker;

pub use table::Generation;
