//! What isolation wants of the next boot, as the catalogue spells it, sorted by how words of one
//! name go together.

use super::line::plain_name;
use super::list;
use super::target::Kernel;
use model::Cpus;

/// A parameter that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The mechanism's id.
    pub mechanism: String,
    /// One word or several, as on the command line, for the requested CPUs and no others.
    pub parameter: String,
    /// The build option without which the kernel ignores it.
    pub option: Option<String>,
}

/// How a word goes together with those of its name that stand on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Together {
    /// A list of isolated CPUs: it grows by those that are wanted.
    Isolated,
    /// A list of the CPUs for everything else: it loses those that are isolated.
    Housekeeping,
    /// Every occurrence counts: the word is added.
    Added,
    /// The last occurrence counts: the word takes the place of all.
    Replaced,
}

/// Lists of housekeeping CPUs.
const HOUSEKEEPING: [&str; 4] =
    ["irqaffinity", "workqueue.unbound_cpus", "systemd.cpu_affinity", "kthread_cpus"];

/// Parameters whose handler sets one switch a word and leaves the others: Linux
/// `arch/x86/kernel/tsc.c` (`tsc_setup`), `arch/x86/kernel/cpu/mce/core.c` (`mcheck_enable`),
/// `drivers/cpufreq/intel_pstate.c` (`intel_pstate_setup`).
const ADDED: [&str; 3] = ["tsc", "mce", "intel_pstate"];

pub(crate) fn together(name: &str) -> Together {
    match plain_name(name).as_str() {
        "isolcpus" | "nohz_full" | "rcu_nocbs" => Together::Isolated,
        name if HOUSEKEEPING.contains(&name) => Together::Housekeeping,
        name if ADDED.contains(&name) => Together::Added,
        _ => Together::Replaced,
    }
}

/// What remains of a list of housekeeping CPUs: never more than it had.
pub(crate) fn narrowed(kernel: &Kernel, old: &str, isolated: &Cpus) -> Option<Cpus> {
    let left = list::cpus(kernel, old).ok()?.minus(isolated);
    (!left.is_empty()).then_some(left)
}
