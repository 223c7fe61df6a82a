//! A study over several boots of one machine: which boots its cells need, and what comes next after
//! each one, however the last one ended.
//!
//! | file | idea |
//! |---|---|
//! | `boot` | the boot that a cell needs |
//! | `chain` | the boots of a study in their order, and the next step |
//!
//! Nothing here touches a machine: who drives it says which boot this is, and how many results
//! there are.

mod boot;
mod chain;
#[cfg(test)]
mod tests;

pub use boot::BootOf;
pub use chain::{CHAIN_SCHEMA, Chain, Home, Now, Stage, Step};
