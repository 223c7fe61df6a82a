//! What may touch one CPU: each interrupt, thread, queue, timer, group and shared piece of
//! hardware, a row each.
//!
//! After the second lesson of the RTSS 2024 paper on an interference-free operating system: a core
//! needs a clear indicator of all that can reach it. Three questions are kept apart, since Linux
//! answers them in different files: where was it configured to be, where is it in force, and did it
//! ever touch the CPU.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// What sort of thing may touch a CPU.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Kind { $($(#[$doc])* #[serde(rename = $name)] $variant),* }

        impl Kind {
            /// Every kind, in the order in which pages list them.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),*];

            /// The name used in files and on the command line, such as `block-queue`.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name),* }
            }
        }
    };
}

kinds! {
    /// A numbered interrupt.
    Irq = "irq",
    /// A row of the processor's own interrupts: timer, IPIs, NMIs.
    Vector = "vector",
    /// A softirq.
    Softirq = "softirq",
    /// A receive or transmit queue of a network device.
    NetQueue = "net-queue",
    /// A hardware queue of a block device.
    BlockQueue = "block-queue",
    /// A kernel thread.
    Kthread = "kthread",
    /// Unbound workqueues, and the pools of workers that belong to the CPU.
    Workqueue = "workqueue",
    /// An armed timer.
    Timer = "timer",
    /// A process of user space with its threads.
    Task = "task",
    /// What threads bound to the CPU share with threads elsewhere.
    Shared = "shared",
    /// A control group whose CPU set holds the CPU.
    Cgroup = "cgroup",
    /// What a control group gives its tasks of a CPU at most.
    Bandwidth = "bandwidth",
    /// CPUs among which the scheduler balances.
    SchedDomain = "sched-domain",
    /// A CPU of the same core.
    Sibling = "sibling",
    /// A cache.
    Cache = "cache",
    /// The memory node, and what is attached to it.
    Numa = "numa",
    /// A share of cache and memory bandwidth.
    Resctrl = "resctrl",
    /// The hardware timer that wakes the CPU.
    Clockevent = "clockevent",
    /// The clock, and what watches it.
    Clocksource = "clocksource",
    /// How much the core gets done beside cores of another kind.
    Capacity = "capacity",
    /// The CPUs whose frequency is set together.
    Cpufreq = "cpufreq",
    /// An idle state.
    Cpuidle = "cpuidle",
    /// A limit on the latency of leaving idle states.
    PmQos = "pm-qos",
    /// What the scheduler takes from real-time tasks for others.
    Throttle = "throttle",
    /// A detector of lockups.
    Watchdog = "watchdog",
    /// Tracing and profiling.
    Tracing = "tracing",
    /// A kprobe or uprobe, whoever set it: each CPU that runs the probed code runs the probe, too.
    Probe = "probe",
    /// A BPF program.
    Bpf = "bpf",
    /// The poll of machine-check banks.
    MachineCheck = "machine-check",
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let known = || Self::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        let found = Self::ALL.iter().copied().find(|kind| kind.name() == text);
        found.ok_or_else(|| {
            Error::invalid("kind of resource", format!("{text:?}"), format!("one of {}", known()))
        })
    }
}

/// One thing that may touch a CPU. `None` is "not known", never "no": the reason says why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// What sort of thing it is.
    pub kind: Kind,
    /// What it is called, unique within its kind as far as the kernel's own names are.
    pub name: String,
    /// Where, or how, it was configured to be, in the words of the file that says so.
    pub asked: Option<String>,
    /// Where, or how, it is in force.
    pub effective: Option<String>,
    /// The evidence that it did, or did not, touch the CPU.
    pub observed: Option<String>,
    /// The evidence as a number since boot where there is one: interrupts, runs, entries.
    pub count: Option<u64>,
    /// Driver, process or subsystem it belongs to.
    pub owner: Option<String>,
    /// Whether its settings let it touch the CPU, now or after a change that the kernel makes by
    /// itself.
    pub may_touch: Option<bool>,
    /// Whether it is placed on the CPU now.
    pub in_force: Option<bool>,
    /// Whether the evidence shows that it touched the CPU.
    pub touched: Option<bool>,
    /// Whether it can be kept away from the CPU on the running machine.
    pub movable: Option<bool>,
    /// Why it can or cannot be kept away, or why something is not known.
    pub reason: Option<String>,
    /// The mechanism of the catalogue that governs it.
    pub mechanism: Option<String>,
}

impl Resource {
    /// A row of which nothing but its name is known.
    pub fn new(kind: Kind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            asked: None,
            effective: None,
            observed: None,
            count: None,
            owner: None,
            may_touch: None,
            in_force: None,
            touched: None,
            movable: None,
            reason: None,
            mechanism: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        let names: std::collections::BTreeSet<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), Kind::ALL.len());
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse::<Kind>().unwrap(), *kind);
            assert_eq!(serde_json::to_string(kind).unwrap(), format!("{:?}", kind.name()));
        }
        let error = "irqs".parse::<Kind>().unwrap_err().to_string();
        assert!(error.contains("\"irqs\"; expected one of irq, vector"), "{error}");
    }

    #[test]
    fn what_is_not_known_is_null_in_json_and_not_left_out() {
        let row = serde_json::to_value(Resource::new(Kind::Timer, "timers")).unwrap();
        for key in ["asked", "effective", "observed", "owner", "may_touch", "touched", "movable", "mechanism"]
        {
            assert!(row.get(key).is_some_and(serde_json::Value::is_null), "{key}");
        }
    }
}
