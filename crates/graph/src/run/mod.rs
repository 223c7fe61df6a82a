//! Runs a graph: one OS process per process of the graph, one thread per executor thread, one link
//! per edge.
//!
//! `plan` turns a graph into the orders of each process. `process`, `executor` and `node` are the
//! executing side, which runs as `stillcore internal graph`. `carry_out` is the controlling side:
//! it makes the links, starts the processes, stores a row for each message received and closes the
//! accounts, even if a process was killed meanwhile.

mod by_signal;
pub mod carry_out;
mod children;
mod closing;
mod executor;
mod node;
mod order;
pub mod plan;
pub mod process;
mod records;
pub mod request;
mod tally;
mod usage;

pub use order::{ExecutorReport, ProcessReport, PublisherReport, TimerReport};
pub use plan::{Options, Plan};
pub use records::COLUMNS;
pub use usage::ProcessUse;
