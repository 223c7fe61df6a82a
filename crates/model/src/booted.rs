//! What the kernel was booted with, and what it made of the parts that isolate CPUs: raw facts,
//! nothing judged.

use crate::Cpus;

/// The boot of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booted {
    /// Parameters of the kernel command line, in its order; what follows `--` is not among them.
    pub parameters: Vec<Parameter>,
    /// Names of parameters that this kernel is built without, and ignores; as far as its build
    /// options or its files show it.
    pub ignored: Vec<String>,
    /// CPUs whose RCU callbacks are offloaded, or why that is not known.
    pub offloaded: Result<Cpus, String>,
    /// CPUs that new interrupts are sent to (`/proc/irq/default_smp_affinity`); `None` where it
    /// could not be read.
    pub irq_default: Option<Cpus>,
    /// The core's performance counters as the kernel names them, such as `cpu`; `None` where it has
    /// none.
    pub pmu: Option<String>,
}

/// One parameter of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameter {
    /// As spelled there.
    pub name: String,
    /// Behind the equals sign; empty where there is none.
    pub value: String,
    /// Words before a CPU list: the flags of `isolcpus=`.
    pub flags: Vec<String>,
    /// The CPUs that the value names on this machine; `None` where it is no list of them.
    pub cpus: Option<Cpus>,
}
