//! Reads a machine, live or captured, into `model::Machine`: facts only, nothing judged, nothing changed.
//!
//! Every reader takes a [`Root`], so the same code reads `/` and a captured tree. What a kernel lacks, or what this user may
//! not read, is `None`: absent is not failed.

#![forbid(unsafe_code)]

mod archive;
mod boot_log;
pub mod btf;
mod capture;
mod cmdline;
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
mod mounts;
mod owners;
mod partitions;
mod policy;
pub mod resources;
mod root;
mod schedstat;
mod state;
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
pub use cpus::shared;
pub use cpus::{check_cpus, check_online, check_reachable, cores, cpus_default, housekeeping};
pub use cpusets_v1::{CpusetsV1, cpusets_v1};
pub use frequency::frequency_changes;
pub use host::{bracketed, flag};
pub use idle_states::folder as idle_state_folder;
pub use idle_states::idle_states;
pub use irq::{Irq, irqs};
pub use kernel_code::{CallQuestion, CodeQuestions};
pub use kernel_code::{KernelCode, kernel_code};
pub use kmsg::kernel_log;
pub use mounts::{Mount, mounts};
pub use mounts::{debugfs, mounted_at};
pub use owners::KUBELET;
pub use partitions::{OURS, Partition, partition_mount, partition_of, partitions};
pub use policy::Policy;
pub use root::Root;
pub use root::wildcard;
pub use schedstat::{Domain, SCHEDSTAT, domains};
pub use state::state;
pub use threads::{KernelThread, Lineage, Process, Processes, UserThread, lineage, processes, user_threads};
pub use threads::{kernel_thread, leader, user_thread};

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
