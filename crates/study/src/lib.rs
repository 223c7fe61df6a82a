//! A declared matrix of measurements or computations, run cell by cell: interleaved, seeded,
//! resumable, shardable.
//!
//! One idea a file:
//!
//! | file | idea |
//! |---|---|
//! | `spec` | factors and their values |
//! | `cell` | one cell: its identity and its seed, both hashes of what it is |
//! | `order` | which cell when, and in which shard |
//! | `store` | checkpoints on disk, written whole or not at all |
//! | `run` | the loop: skip what is done, run the rest |
//! | `merge` | several stores into one |
//! | `boots` | a study over several boots of one machine: what comes next after each |
//! | `experiment` | a published table or figure as such a matrix of this program's verbs |
//!
//! What a cell *does* is the caller's: [`run`] takes it as a function. The only thing touched here
//! is the directory of checkpoints.
#![forbid(unsafe_code)]

pub mod boots;
mod cell;
pub mod experiment;
mod merge;
mod order;
pub mod papers;
mod run;
mod spec;
mod store;

pub use cell::{Cell, digest};
pub use merge::{Conflict, MergeReport, merge};
pub use order::{Shard, ShardError};
pub use run::{Progress, RunError, run};
pub use spec::{MAX_CELLS, Study, StudyError};
pub use store::{CELL_SCHEMA, Checkpoint, Entry, Found, Store, StoreError};
