//! Events and the time they took.

use serde::{Deserialize, Serialize};

/// Whether it is 0, for serde.
pub fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A count with a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountNs {
    /// How many.
    pub count: u64,
    /// How long together, ns.
    pub ns: u64,
}
