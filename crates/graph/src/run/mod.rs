//! Running a graph: one process a process of the graph, one thread a thread of its executors, one link an edge.
//!
//! `plan` makes of a graph what each process is ordered to do; `process`, `executor` and `node` are the ordered side, which runs as
//! `stillcore internal graph`; `carry_out` is the ordering one: it makes the links, starts the processes, stores a row for each message
//! received and closes the accounts, whoever was killed meanwhile.

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
mod tally;
mod usage;

pub use order::{ExecutorReport, ProcessReport, TimerReport};
pub use plan::{Options, Plan};
pub use records::COLUMNS;
pub use usage::ProcessUse;
