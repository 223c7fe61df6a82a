//! How things stand at the end of a second: what the engine or the kernel's counters say, and what
//! belongs to the machine and to this program. Plain data.

use attribution::live::view::LiveView;
use std::collections::BTreeMap;

/// One second.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Shot {
    /// What runs, by whom, and the worst.
    pub(crate) view: LiveView,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, ns.
    pub(crate) wall_ns: i64,
    /// Own CPU time in the second, percent of one CPU.
    pub(crate) own_percent: f64,
    /// Events lost so far: by the kernel, and pages dropped here; `None` where none are recorded.
    pub(crate) lost: Option<u64>,
    /// Whether the second was longer than one.
    pub(crate) late: bool,
    /// Steal time of each CPU since the start, ms; absent where the kernel does not count it.
    pub(crate) steal_ms: BTreeMap<u32, u64>,
    /// What has drifted; `None` where nothing is isolated by stillcore.
    pub(crate) drifted: Option<Vec<String>>,
}

/// What does not change.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Facts {
    /// Name of the machine.
    pub(crate) host: String,
    /// `uname -r`.
    pub(crate) kernel: String,
    /// The CPUs.
    pub(crate) cpus: String,
    /// Why there are no sources, where only counters are read.
    pub(crate) counters_only: Option<String>,
    /// Only ASCII characters.
    pub(crate) ascii: bool,
    /// Without colours.
    pub(crate) plain: bool,
}
