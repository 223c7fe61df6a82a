//! The kernel command line of the next boot: what stands there, what isolation wants there, and
//! what was left out.

use serde::{Deserialize, Serialize};

/// A command line as proposed for one kernel. Nothing here says that it was written anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootLine {
    /// Release and architecture of the kernel that it is computed for; empty where none was.
    pub kernel: String,
    /// The parameters that change, in the order of the line.
    pub changes: Vec<BootWord>,
    /// Parameters that isolation wants and that are not proposed, with the reason.
    pub omitted: Vec<BootOmitted>,
    /// What could not be known of this kernel, a sentence each.
    pub notes: Vec<String>,
    /// Why no line is proposed at all; then `changes` is empty.
    pub refused: Option<String>,
    /// The line without words that stillcore itself has put there, as far as it is known.
    pub base: String,
    /// The whole line that follows from it.
    pub line: String,
    /// The longest line that the kernel takes, in bytes.
    pub longest: usize,
}

impl BootLine {
    /// The new words, ready to paste where none of the old ones stands.
    pub fn words(&self) -> String {
        let words: Vec<_> = self.changes.iter().flat_map(|change| &change.new).map(String::as_str).collect();
        words.join(" ")
    }

    /// Whether the next boot needs no other line than this one.
    pub fn is_settled(&self) -> bool {
        self.changes.is_empty() && self.refused.is_none()
    }
}

/// One parameter that changes. Words are as on the command line; a parameter may stand there more
/// than once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootWord {
    /// The parameter's name, with `_` for `-`.
    pub name: String,
    /// Its words now.
    pub old: Vec<String>,
    /// Its words without those that stillcore itself has put there.
    pub base: Vec<String>,
    /// The words that take the place of all of these; none where the parameter goes.
    pub new: Vec<String>,
    /// Why, one sentence.
    pub why: String,
}

impl BootWord {
    /// The change as one line: `isolcpus=2-5 -> isolcpus=managed_irq,domain,2-6`.
    pub fn spelled(&self) -> String {
        let (old, new) = (self.old.join(" "), self.new.join(" "));
        match (old.is_empty(), new.is_empty()) {
            (true, _) => format!("add {new}"),
            (_, true) => format!("remove {old}"),
            _ => format!("{old} -> {new}"),
        }
    }

    /// The same as an instruction.
    pub fn instruction(&self) -> String {
        let (old, new) = (self.old.join(" "), self.new.join(" "));
        let what = match (old.is_empty(), new.is_empty()) {
            (true, _) => format!("add {new} to the kernel command line"),
            (_, true) => format!("remove {old} from the kernel command line"),
            _ => format!("replace {old} with {new} on the kernel command line"),
        };
        format!("{what} and reboot")
    }
}

/// A parameter that is not proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootOmitted {
    /// The mechanism's id in the catalogue.
    pub mechanism: String,
    /// The parameter that its entry names.
    pub parameter: String,
    /// Why not, one sentence.
    pub reason: String,
}
