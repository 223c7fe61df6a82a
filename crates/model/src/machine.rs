//! The machine as it was read: raw facts, nothing judged.

use crate::Cpus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schema of `machine-before.json` and `machine-after.json`.
pub const SCHEMA: &str = "stillcore.machine/1";

/// One snapshot of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SCHEMA`].
    pub schema: String,
    /// What the machine is.
    pub machine: Machine,
    /// How it is set: what "identical before and after" compares.
    pub state: MachineState,
}

/// What the machine is. `None` and empty mean that this machine did not report it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The running kernel.
    pub kernel: Kernel,
    /// `/proc/cmdline`.
    pub cmdline: String,
    /// CPU model as the kernel names it.
    pub cpu_model: Option<String>,
    /// Memory in KiB.
    pub memory_kib: Option<u64>,
    /// Hypervisor, where the machine is a guest.
    pub hypervisor: Option<String>,
    /// The CPUs and how they share cores.
    pub topology: Topology,
    /// Clock sources.
    pub clocksource: Clocksource,
    /// What real-time work may do here.
    pub limits: Limits,
    /// Whether the kernel's tracing can be used.
    pub tracing: Tracing,
}

/// The running kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub arch: String,
    /// PREEMPT_RT: from /sys/kernel/realtime, `uname -v` or the build options.
    pub realtime: bool,
    /// Preemption model in force, such as `full`, `voluntary`, `none`, `rt`.
    pub preempt: Option<String>,
    /// Where the build options came from, such as `/proc/config.gz`.
    pub config_source: Option<String>,
    /// Build options that are set, name (with `CONFIG_`) → `y`, `m` or value; empty where they
    /// could not be read.
    pub config: BTreeMap<String, String>,
    /// `kernel/tainted`.
    pub tainted: Option<u64>,
}

/// The CPUs of the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// CPUs that are online.
    pub online: Cpus,
    /// CPUs that could be online.
    pub present: Cpus,
    /// `isolcpus=domain` or an isolated cpuset partition, as the kernel reports it.
    pub isolated: Cpus,
    /// `nohz_full=`, as the kernel reports it.
    pub nohz_full: Cpus,
    /// Whether SMT is active.
    pub smt_active: Option<bool>,
    /// One entry a present CPU.
    pub cpus: Vec<CpuTopology>,
    /// CPUs that another user has claimed: they are no housekeeping CPUs, and are isolated only
    /// on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned: Vec<Owned>,
}

/// CPUs that belong to somebody.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Owned {
    /// The CPUs.
    pub cpus: Cpus,
    /// Whose they are, and where that is written: a noun phrase.
    pub owner: String,
}

impl Topology {
    /// All CPUs that belong to somebody else.
    pub fn others(&self) -> Cpus {
        self.owned.iter().fold(Cpus::default(), |all, owned| all.or(&owned.cpus))
    }
}

/// One CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuTopology {
    /// Its number.
    pub cpu: u32,
    /// The CPUs that share its core, itself included.
    pub siblings: Cpus,
    /// Core number within its package.
    pub core: Option<i64>,
    /// Package (socket).
    pub package: Option<i64>,
    /// NUMA node.
    pub node: Option<u32>,
    /// CPUs that share its last-level cache.
    pub llc: Cpus,
    /// Highest frequency in kHz.
    pub max_khz: Option<u64>,
    /// cpufreq governor.
    pub governor: Option<String>,
}

/// Clock sources of the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Clocksource {
    /// The one in use.
    pub current: Option<String>,
    /// Those available.
    pub available: Vec<String>,
}

/// What real-time work may do on this machine, for the user who asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Effective user id.
    pub euid: u32,
    /// RLIMIT_RTPRIO, soft.
    pub rtprio: Option<u64>,
    /// RLIMIT_MEMLOCK, soft, in bytes; `None` is unlimited.
    pub memlock_bytes: Option<u64>,
    /// Whether SCHED_FIFO was granted on request.
    pub fifo_allowed: Option<bool>,
    /// `sched_rt_runtime_us`; −1 is no throttling.
    pub rt_runtime_us: Option<i64>,
    /// `sched_rt_period_us`.
    pub rt_period_us: Option<i64>,
    /// The fair server's runtime in ns per CPU, on kernels that have one and show it.
    pub fair_server_runtime_ns: BTreeMap<u32, u64>,
}

/// Whether the kernel's tracing can be used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tracing {
    /// Whether the kernel has tracefs at all.
    pub tracefs: bool,
    /// Where it was mounted when stillcore started.
    pub mounted_at: Option<String>,
    /// Kernel lockdown mode in force.
    pub lockdown: Option<String>,
    /// Tracers the kernel offers.
    pub tracers: Vec<String>,
}

/// How the machine is set: every catalogue reader's value, affinities, mounts and tracing
/// instances; no counters. Two snapshots of an untouched machine are equal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineState {
    /// Catalogue mechanism id → value as read.
    pub mechanisms: BTreeMap<String, String>,
    /// IRQ number → affinity list.
    pub irq_affinity: BTreeMap<u32, String>,
    /// Affinity of kernel threads, `name/n` → list, threads of one name numbered from 0.
    pub kthread_affinity: BTreeMap<String, String>,
    /// Affinities of user threads that were narrowed: name, its digits as `#` → lists, `; ` between
    /// them. Threads that may run where the first process may, or everywhere, are left out; the
    /// first process itself is `1`.
    #[serde(default)]
    pub thread_affinity: BTreeMap<String, String>,
    /// Mount points with their types, `target type`.
    pub mounts: Vec<String>,
    /// Tracing instances that exist.
    pub instances: Vec<String>,
    /// Control groups that bear stillcore's name.
    pub cgroups: Vec<String>,
}
