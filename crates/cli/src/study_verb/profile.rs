//! The ways of isolating that `lab matrix` compares: what a guest is booted with, and what is
//! applied once it runs.

use clap::ValueEnum;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Takes the lab's own isolation off the command line: a key without a value only removes.
const PLAIN_BOOT: &str = "isolcpus= nohz_full= rcu_nocbs= irqaffinity=";

/// An isolation profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Profile {
    /// No isolation.
    None,
    /// Isolation at run time without a partition: affinities, settings.
    Runtime,
    /// runtime, and an isolated cpuset partition; absent where unsupported.
    Partition,
    /// Kernel command line: isolcpus, nohz_full, rcu_nocbs, irqaffinity.
    Boot,
}

impl Profile {
    /// As typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Runtime => "runtime",
            Self::Partition => "partition",
            Self::Boot => "boot",
        }
    }

    /// `--placement` of `isolate apply`, where there is something to apply.
    fn placement(self) -> Option<&'static str> {
        match self {
            Self::Runtime => Some("affinity"),
            Self::Partition => Some("partition"),
            Self::None | Self::Boot => None,
        }
    }

    /// Its level in an experiment: each has boots of its own.
    pub(crate) fn level(self) -> Value {
        let mut level = json!({ "name": self.name(), "per_boot": true });
        if self != Self::Boot {
            level["boot"] = PLAIN_BOOT.into();
        }
        if let Some(placement) = self.placement() {
            let words = ["isolate", "apply", "--cpus", "{cpus}", "--placement", placement, "--strict"];
            level["before"] = json!([words]);
            level["after"] = json!([["isolate", "undo"]]);
        }
        level
    }

    /// What it is, in words.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::None => "nothing is isolated",
            Self::Runtime => "isolate apply --placement affinity on a plain boot",
            Self::Partition => "isolate apply --placement partition on a plain boot",
            Self::Boot => "booted with isolcpus=managed_irq,domain nohz_full rcu_nocbs irqaffinity",
        }
    }
}

/// The ways of isolating of these names, and what they are; one that is no profile is last.
pub(crate) fn titles<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(String, String)> {
    let names: BTreeSet<&str> = names.into_iter().collect();
    let (known, others): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| Profile::from_str(name, false).is_ok());
    let known = Profile::value_variants().iter().filter(|profile| known.contains(&profile.name()));
    let known = known.map(|profile| (profile.name(), profile.title()));
    let others = others.into_iter().map(|name| (name, "no factor says how CPUs are isolated"));
    known.chain(others).map(|(name, title)| (name.to_owned(), title.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::Arch;

    #[test]
    fn profiles_have_titles_and_so_has_what_is_none() {
        let names: Vec<String> =
            titles(["as booted", "boot", "none", "boot"]).into_iter().map(|one| one.0).collect();
        assert_eq!(names, ["none", "boot", "as booted"]);
    }

    /// What the lab puts on the command line is there under `boot` and under nothing else.
    #[test]
    fn only_the_profile_boot_isolates_at_boot() {
        for profile in Profile::value_variants() {
            let level = profile.level();
            let words = level["boot"].as_str().unwrap_or_default();
            let line = lab::qemu::kernel_command_line(Arch::X86_64, "3".parse().unwrap(), words);
            for key in ["isolcpus=", "nohz_full=", "rcu_nocbs=", "irqaffinity="] {
                assert_eq!(line.contains(key), *profile == Profile::Boot, "{line}");
            }
        }
    }
}
