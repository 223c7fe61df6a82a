//! What an audit says of one mechanism on one machine.

use crate::{Cpus, EventClass};
use serde::{Deserialize, Serialize};

/// The state of one mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingState {
    /// The effective state is what isolation wants.
    Ok,
    /// It is not, and can be changed now.
    Fixable,
    /// It is not, and needs another boot (parameter or kernel build).
    Boot,
    /// It is not, and nothing at hand changes it.
    Immovable,
    /// This kernel or machine has no such thing.
    NotApplicable,
    /// It could not be read.
    Unknown,
}

impl FindingState {
    /// The name used in files and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Fixable => "fixable",
            Self::Boot => "boot",
            Self::Immovable => "immovable",
            Self::NotApplicable => "not-applicable",
            Self::Unknown => "unknown",
        }
    }
}

/// One line of an audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The mechanism's id in the catalogue.
    pub id: String,
    /// The mechanism's title, so that a stored finding reads without its catalogue.
    pub title: String,
    /// The CPUs it was judged for.
    pub cpus: Cpus,
    /// The verdict.
    pub state: FindingState,
    /// What isolation wants, in the mechanism's own spelling.
    pub want: String,
    /// What was configured, as read.
    pub have: Option<String>,
    /// What is in effect, where that can differ from what is configured.
    pub effective: Option<String>,
    /// Why the verdict is what it is, in one sentence.
    pub reason: String,
    /// The event classes the mechanism removes.
    pub removes: Vec<EventClass>,
    /// What to type or set, where the state is `fixable` or `boot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}
