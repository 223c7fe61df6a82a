//! Why overheads cannot be charged.

use crate::task::MAX_NS;
use thiserror::Error;

/// Why overheads are none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} is {value}, expected {expected} to {MAX_NS} ns")]
pub struct OverheadsError {
    /// Which field.
    pub field: &'static str,
    /// Its value, ns.
    pub value: u64,
    /// The least that it may be, ns.
    pub expected: u64,
}
