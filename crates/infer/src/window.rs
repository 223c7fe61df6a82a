//! When a job was released, as far as that is known.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A release time lies in this interval, both ends included, ns. Windows of a sequence are ordered
/// by both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The earliest possible time.
    pub earliest_ns: i64,
    /// The latest possible time, not before `earliest_ns`.
    pub latest_ns: i64,
}

impl Window {
    /// A release whose time is known.
    pub const fn at(ns: i64) -> Self {
        Self { earliest_ns: ns, latest_ns: ns }
    }

    /// Whether this window may come directly before `next`.
    pub(crate) fn is_before(self, next: Self) -> bool {
        self.earliest_ns <= next.earliest_ns && self.latest_ns <= next.latest_ns
    }
}

/// A window that begins or ends before the one it should follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disorder;

impl fmt::Display for Disorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("releases are not in order of time")
    }
}

impl std::error::Error for Disorder {}
