//! How far a change has got.

use serde::{Deserialize, Serialize};

/// How far a change has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// About to be made: it may or may not have happened.
    Intent,
    /// Made.
    Done,
    /// Undone.
    Undone,
}
