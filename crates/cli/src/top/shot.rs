//! How things stand at the end of a second: what the engine or the kernel's counters say, and what
//! belongs to the machine and to this program. Plain data.

use crate::color;
use crate::run::place::Place;
use attribution::live::view::LiveView;
use machine::Root;
use std::collections::BTreeMap;

/// What the source says of a second.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Seen {
    /// What runs, by whom, and the worst.
    pub(crate) view: LiveView,
    /// Events lost so far: by the kernel, and pages dropped here; `None` where none are recorded.
    pub(crate) lost: Option<u64>,
    /// A second line: how far a measurement is, or why there are no sources.
    pub(crate) note: Option<String>,
}

/// One second.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Shot {
    /// What the source says.
    pub(crate) seen: Seen,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, ns.
    pub(crate) wall_ns: i64,
    /// Own CPU time in the second, percent of one CPU.
    pub(crate) own_percent: f64,
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
    /// The call.
    pub(crate) title: &'static str,
    /// Name of the machine.
    pub(crate) host: String,
    /// `uname -r`.
    pub(crate) kernel: String,
    /// The CPUs.
    pub(crate) cpus: String,
    /// Only ASCII characters.
    pub(crate) ascii: bool,
    /// Without colours.
    pub(crate) plain: bool,
    /// Whether somebody can press keys: on a terminal.
    pub(crate) keys: bool,
}

impl Facts {
    /// Of this machine.
    pub(crate) fn of(title: &'static str, place: &Place, ascii: bool) -> Self {
        let host = Root::live().maybe("proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            title,
            host: host.trim().to_owned(),
            kernel: place.machine.kernel.release.clone(),
            cpus: place.measured.to_string(),
            ascii: ascii || !speaks_utf8(),
            plain: !color::on_stdout(),
            keys: true,
        }
    }
}

/// Whether the locale's encoding is UTF-8: of the variables that say so, the first that is set
/// counts (POSIX, Locale; section 8.2).
fn speaks_utf8() -> bool {
    let mut said = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let said = said.find(|value| !value.is_empty()).unwrap_or_default().to_lowercase();
    said.contains("utf-8") || said.contains("utf8")
}
