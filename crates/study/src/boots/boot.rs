//! The boot that a cell needs, for a machine whose CPUs are known.

use crate::experiment::{Needs, boot_line};
use serde::{Deserialize, Serialize};

/// The list of CPUs that the scheduler leaves alone, kernel-parameters.txt.
const ISOLCPUS: &str = "isolcpus";

/// A boot of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootOf {
    /// The lab's name of the kernel; none where any kernel and any line will do.
    pub kernel: Option<String>,
    /// Words of its line, in the place of others of their names.
    pub with: Vec<String>,
    /// Parameters that are not on its line, by name.
    pub without: Vec<String>,
}

impl BootOf {
    /// Of a cell with these needs, where these CPUs are measured and those are the others. Where a
    /// cell wants isolated CPUs and names no way, they are isolated as in the lab.
    pub fn of(needs: &Needs, cpus: &str, housekeeping: &str) -> Self {
        let mut boot = Self { kernel: needs.kernel.clone(), ..Self::default() };
        for word in needs.boot.iter().flatten() {
            let word = boot_line(word, cpus, housekeeping);
            match word.strip_suffix('=') {
                Some(name) => boot.without.push(name.to_owned()),
                None => boot.with.push(word),
            }
        }
        let named = |boot: &Self| boot.with.iter().any(|word| word.starts_with(&format!("{ISOLCPUS}=")));
        match needs.isolated {
            Some(true) if !named(&boot) => {
                boot.with.extend([format!("{ISOLCPUS}={cpus}"), format!("nohz_full={cpus}")]);
            }
            Some(false) if !named(&boot) => boot.without.push(ISOLCPUS.to_owned()),
            _ => {}
        }
        boot.with.sort();
        boot.with.dedup();
        boot.without.sort();
        boot.without.dedup();
        boot
    }

    /// In words: `6.1-rt with isolcpus=2,3 nohz_full=2,3, without rcu_nocbs`.
    pub fn words(&self) -> String {
        let Some(kernel) = &self.kernel else { return "any boot".to_owned() };
        let with =
            if self.with.is_empty() { String::new() } else { format!(" with {}", self.with.join(" ")) };
        let comma = if self.with.is_empty() || self.without.is_empty() { "" } else { "," };
        let without = if self.without.is_empty() {
            String::new()
        } else {
            format!("{comma} without {}", self.without.join(" "))
        };
        format!("{kernel}{with}{without}")
    }
}
