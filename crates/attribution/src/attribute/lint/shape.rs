//! The section `watch.lint` of `analysis.json`.

use super::rules::Rule;
use serde::{Deserialize, Serialize};

/// What was found of one kind in one thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// Thread id.
    pub tid: i32,
    /// Name.
    pub comm: String,
    /// Effective priority as the scheduler's events give it, where known.
    pub prio: Option<i16>,
    /// What exactly: the call, with its file; the address; the signal. Empty where the rule says
    /// it all.
    pub detail: String,
    /// How often.
    pub n: u64,
    /// CLOCK_MONOTONIC, ns: the first time; `None` of what holds all the time.
    pub first_ns: Option<i64>,
    /// Where in the program, one of the times: functions, innermost first, as far as frame pointers
    /// lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callers: Option<String>,
    /// Of page faults: more of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<Faults>,
    /// Whether a suppression names it.
    #[serde(default)]
    pub suppressed: bool,
}

/// What is known of page faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// In how many the thread was seen to sleep: its page was read from storage, which is a major
    /// fault, or something else in the kernel was waited for that is not recorded as a lock.
    pub slept: u64,
    /// The longest such sleep, to the time that it had a CPU again, or to its next event where the
    /// trace lacks that switch, ns.
    pub longest_ns: i64,
    /// Memory that its process had locked (mlock(2)), KiB, where known.
    pub locked_kib: Option<u64>,
}

/// A rule that could not be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotApplied {
    /// The rule.
    pub rule: Rule,
    /// Why.
    pub why: String,
}

/// A line of a file of suppressions that names no finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unused {
    /// Its number.
    pub line: u64,
    /// The rule.
    pub rule: Rule,
    /// The thread.
    pub thread: String,
}

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LintSection {
    /// By rule and thread.
    pub findings: Vec<Finding>,
    /// Rules that could not be applied: of them nothing is known.
    pub not_applied: Vec<NotApplied>,
    /// Real-time threads that were looked at.
    pub threads: u64,
    /// Suppressions that suppress nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<Unused>,
}

impl LintSection {
    /// Findings that no suppression names.
    pub fn open(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.suppressed)
    }
}
