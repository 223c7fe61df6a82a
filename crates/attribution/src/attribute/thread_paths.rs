//! Threads that are no probe's: their wake-ups, and what interrupted them, as stored.

use crate::attribute::path_section::PathSection;
use crate::attribute::section::AttributedRow;
use serde::{Deserialize, Serialize};

/// The wake-ups of a thread on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadPaths {
    /// Its number.
    pub tid: i32,
    /// Its last name.
    pub comm: String,
    /// Where their latencies went. The window has no phase.
    #[serde(flatten)]
    pub path: PathSection,
}

/// What ran on one CPU beside a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuSources {
    /// The CPU.
    pub cpu: u32,
    /// The thread whose own activity is class `self`; `None` if all threads are reported alike.
    pub tid: Option<i32>,
    /// Its name.
    pub comm: Option<String>,
    /// Events of exactly known source.
    pub exact: u64,
    /// Events whose source is known by order.
    pub by_order: u64,
    /// Events of unknown source.
    pub unknown: u64,
    /// Class by label by source, most time first.
    pub rows: Vec<AttributedRow>,
}
