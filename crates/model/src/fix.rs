//! What is known of one kernel fix on one machine.

use crate::EventClass;
use serde::{Deserialize, Serialize};

/// Whether the kernel has the interference that a fix is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FixState {
    /// It has it.
    Unfixed,
    /// It does not.
    Fixed,
    /// It could not be determined.
    Unknown,
    /// The fix concerns another architecture, another kind of kernel, or no interference.
    NotApplicable,
}

impl FixState {
    /// The name used in files and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unfixed => "unfixed",
            Self::Fixed => "fixed",
            Self::Unknown => "unknown",
            Self::NotApplicable => "not-applicable",
        }
    }
}

/// What a fix concerns, where it is not every kernel or every isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Only {
    /// Kernels with PREEMPT_RT.
    PreemptRt,
    /// CPUs in an isolated cpuset partition, not those isolated at boot.
    Partition,
}

impl Only {
    /// What it concerns, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::PreemptRt => "kernels with PREEMPT_RT",
            Self::Partition => "isolated cpuset partitions",
        }
    }
}

/// One fix, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixFinding {
    /// The commit, or a name.
    pub commit: String,
    /// Its subject.
    pub title: String,
    /// Whether the kernel has the interference.
    pub state: FixState,
    /// What that rests on: what was seen, or the version alone.
    pub basis: String,
    /// Whether it was seen on the machine and not only concluded from the version.
    pub seen: bool,
    /// What an isolated CPU suffers: a clause; empty where the fix removes nothing by itself.
    pub interference: String,
    /// The events it shows as.
    pub classes: Vec<EventClass>,
    /// Mechanisms that soften or avoid it.
    pub mechanisms: Vec<String>,
    /// Those of them that keep it off or make it rare where all are set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub softened_by: Vec<String>,
    /// What it concerns, where it is not every kernel or every isolation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Only>,
}
