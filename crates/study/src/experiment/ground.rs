//! A machine as it stands, which cells are to be measured on.

use model::{Booted, Cpus, Machine};

/// A machine that is to run cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Ground {
    /// What it is.
    pub machine: Machine,
    /// How it booted.
    pub booted: Booted,
    /// CPUs to measure.
    pub cpus: Cpus,
    /// The others.
    pub housekeeping: Cpus,
}
