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
    /// What to type for the opposite, where the state is `ok` either way: the field does not agree
    /// on which setting is right, or only the user knows, as of tasks pinned to an isolated CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<String>,
    /// What the remedy does not do, where it does less than the mechanism at its best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
    /// What the mechanism costs, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// Whether a mistake in what runs under it can take the machine away: such a remedy is proposed
    /// after harmless ones.
    #[serde(default, skip_serializing_if = "is_false")]
    pub risky: bool,
    /// Whether the mechanism is a choice: its state is reported, and fails nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
    /// Whether it is set as isolation wants and nothing on this machine can show that it is at
    /// work: the state is `unknown` then.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unproven: bool,
}

impl Finding {
    /// Whether the finding fails an audit: isolation wants it otherwise, and it is no mere choice.
    pub fn failed(&self) -> bool {
        let wrong =
            matches!(self.state, FindingState::Fixable | FindingState::Boot | FindingState::Immovable);
        wrong && !self.optional
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_stored_before_costs_were_kept_still_reads_and_writes_the_same() {
        let old = r#"{"id":"a","title":"A","cpus":"3","state":"ok","want":"1","have":"1","effective":null,"reason":"1","removes":["irq"]}"#;
        let finding: Finding = serde_json::from_str(old).unwrap();
        assert_eq!((&finding.cost, &finding.caveat, finding.risky), (&None, &None, false));
        assert!(!finding.unproven);
        assert_eq!(serde_json::to_string(&finding).unwrap(), old);
    }
}
