//! Reads a machine, live or captured, into `model::Machine`: facts only, nothing judged, nothing
//! changed.
//!
//! Every reader takes a [`Root`], so the same code reads `/` and a captured tree. What a kernel
//! lacks, or what this user may not read, is `None`: absent is not failed.

#![forbid(unsafe_code)]

mod archive;
mod boot_log;
pub mod btf;
mod capture;
mod capture_files;
mod cmdline;
mod cpu_table;
mod cpus;
mod cpusets_v1;
mod frequency;
mod host;
mod idle_states;
mod irq;
mod kconfig;
mod kernel;
mod kernel_code;
mod kmsg;
mod limits;
mod memberships;
mod mounts;
mod nodes;
mod owners;
mod partitions;
mod policy;
mod resctrl_groups;
pub mod resources;
mod root;
mod schedstat;
mod state;
mod swaps;
mod threads;
mod topology;
#[cfg(test)]
pub(crate) mod tree;
mod unpack;

pub use crate::unpack::remove_unpacked;
pub use archive::capture_into_archive;
pub use boot_log::rcu_offloaded;
pub use capture::{Selection, capture, planned};
pub use cmdline::{parameters, same_name};
pub use cpu_table::{CpuCounts, cpu_table};
pub use cpus::shared;
pub use cpus::{check_cpus, check_online, check_reachable, cores, cpus_default, housekeeping};
pub use cpusets_v1::{CpusetsV1, cpusets_v1};
pub use frequency::{cpufreq_file, frequency_changes};
pub use host::{bracketed, clocksource, flag};
pub use idle_states::{CpuidleState, cpuidle_states, idle_states};
pub use irq::{Irq, irqs};
pub use kernel_code::{CallQuestion, CodeQuestions};
pub use kernel_code::{KernelCode, kernel_code};
pub use kmsg::kernel_log;
pub use memberships::{Membership, group_of, memberships};
pub use mounts::{Mount, mounts};
pub use mounts::{debugfs, mounted_at, placed};
pub use nodes::{DeviceNode, device_nodes};
pub use owners::KUBELET;
pub use partitions::{OURS, Partition, partition_mount, partition_of, partitions};
pub use policy::Policy;
pub use resctrl_groups::{Resctrl, ResctrlGroup, resctrl};
pub use root::Root;
pub use root::wildcard;
pub use schedstat::{Domain, SCHEDSTAT, domains};
pub use state::state;
pub use swaps::{SwapArea, swaps};
pub use threads::{ALLOWED, kernel_thread, process, status, task_state, thread, user_thread};
pub use threads::{KernelThread, Lineage, Process, Processes, UserThread, lineage, processes, user_threads};
pub use topology::{SMT_CONTROL, isolated_at_boot};

use model::{Error, Machine};
use std::collections::BTreeMap;

/// The build options of a kernel that is installed under `root`, name (with `CONFIG_`) → value.
pub fn build_options(root: &Root, release: &str) -> Option<BTreeMap<String, String>> {
    Some(kconfig::of_release(root, release)?.1)
}

/// Reads the description of the machine. Fails only where the kernel does not list its online CPUs:
/// then the root is no machine.
pub fn read(root: &Root) -> Result<Machine, Error> {
    let cmdline = root.maybe("proc/cmdline").unwrap_or_default();
    Ok(Machine {
        kernel: kernel::read(root, &cmdline),
        cpu_model: host::cpu_model(root),
        memory_kib: host::memory_kib(root),
        hypervisor: host::hypervisor(root),
        topology: topology::read(root)?,
        clocksource: host::clocksource(root),
        limits: limits::read(root),
        tracing: host::tracing(root),
        cmdline,
    })
}
