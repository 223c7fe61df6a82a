//! The ways of isolating that a matrix compares: what the guest is booted with, and what is applied once it runs.

use clap::ValueEnum;

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

    /// Words for the kernel command line.
    pub(crate) fn append(self) -> &'static str {
        if self == Self::Boot { "" } else { PLAIN_BOOT }
    }

    /// `--placement` of `isolate apply`, where there is something to apply.
    pub(crate) fn placement(self) -> Option<&'static str> {
        match self {
            Self::Runtime => Some("affinity"),
            Self::Partition => Some("partition"),
            Self::None | Self::Boot => None,
        }
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
