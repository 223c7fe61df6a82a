//! What may touch one CPU: every interrupt, thread, queue, timer, group and shared piece of hardware, a row each.
//!
//! After the second lesson of the RTSS 2024 paper on an interference-free operating system, a clear indicator of a core. Each kind is
//! a file, and each a function of the machine's files alone. Reading disturbs nobody: nothing is written, and files whose reading
//! sends an IPI to the CPU (its current frequency, resctrl's monitors, raw trace pages) are left alone.

mod bandwidth;
mod block;
mod bpf;
mod cache;
mod capacity;
mod cgroup;
mod clockevent;
mod clocksource;
mod cpufreq;
mod cpuidle;
mod groups;
mod id;
mod interrupts;
mod irq_here;
mod kthread;
mod machinecheck;
mod net;
mod numa;
mod pm_qos;
mod probe;
mod refusal;
mod resctrl;
mod scene;
mod sched_domain;
mod shared;
mod sibling;
mod softirq;
mod stat;
mod table;
mod task;
mod throttle;
mod timer;
mod tracing;
mod vector;
mod watchdog;
mod workqueue;

use super::{Root, Selection};
use model::resource::{Kind, Resource};
use model::{Cpus, Error};
use scene::Scene;

/// The rows of these kinds for one CPU, which must be online; in the order of the kinds, and within a kind in that of the kernel.
///
/// What this kernel lacks has no row; what this user may not read has one, with all answers unknown and the reason.
pub fn resources(root: &Root, cpu: u32, kinds: &[Kind]) -> Result<Vec<Resource>, Error> {
    check_cpu(root, cpu)?;
    let scene = Scene::new(root, cpu);
    Ok(Kind::ALL.iter().filter(|kind| kinds.contains(kind)).flat_map(|kind| of_kind(&scene, *kind)).collect())
}

fn of_kind(scene: &Scene, kind: Kind) -> Vec<Resource> {
    match kind {
        Kind::Irq => interrupts::rows(scene),
        Kind::Vector => vector::rows(scene),
        Kind::Softirq => softirq::rows(scene),
        Kind::NetQueue => net::rows(scene),
        Kind::BlockQueue => block::rows(scene),
        Kind::Kthread => kthread::rows(scene),
        Kind::Workqueue => workqueue::rows(scene),
        Kind::Timer => timer::rows(scene),
        Kind::Task => task::rows(scene),
        Kind::Shared => shared::rows(scene),
        Kind::Cgroup => cgroup::rows(scene),
        Kind::Bandwidth => bandwidth::rows(scene),
        Kind::SchedDomain => sched_domain::rows(scene),
        Kind::Sibling => sibling::rows(scene),
        Kind::Cache => cache::rows(scene),
        Kind::Numa => numa::rows(scene),
        Kind::Resctrl => resctrl::rows(scene),
        Kind::Clockevent => clockevent::rows(scene),
        Kind::Clocksource => clocksource::rows(scene),
        Kind::Capacity => capacity::rows(scene),
        Kind::Cpufreq => cpufreq::rows(scene),
        Kind::Cpuidle => cpuidle::rows(scene),
        Kind::PmQos => pm_qos::rows(scene),
        Kind::Throttle => throttle::rows(scene),
        Kind::Watchdog => watchdog::rows(scene),
        Kind::Tracing => tracing::rows(scene),
        Kind::Probe => probe::rows(scene),
        Kind::Bpf => bpf::rows(scene),
        Kind::MachineCheck => machinecheck::rows(scene),
    }
}

/// Whether the machine has the CPU, and has it online.
fn check_cpu(root: &Root, cpu: u32) -> Result<(), Error> {
    const CPUS: &str = "sys/devices/system/cpu";
    let file = format!("{CPUS}/online");
    let text = root.text(&file)?;
    let online = text.as_deref().map(Cpus::parse_list).transpose()?.filter(|cpus| !cpus.is_empty());
    let online = online.ok_or_else(|| {
        let found = text.map_or("no such file".to_owned(), |text| format!("{text:?}"));
        Error::invalid(root.at(&file).display(), found, "the list of online CPUs")
    })?;
    let present = root.cpus(&format!("{CPUS}/present")).unwrap_or_else(|| online.clone());
    let bad = |what: String| Err(Error::invalid("--cpu", what, format!("a CPU among {online}")));
    if online.contains(cpu) {
        Ok(())
    } else if present.contains(cpu) {
        bad(format!("CPU {cpu} is offline"))
    } else {
        bad(format!("this machine has no CPU {cpu}"))
    }
}

/// What these readers read beyond the machine's own, for a capture. Counters and names, no contents.
pub fn selection() -> Selection {
    const CPU: &str = "sys/devices/system/cpu/cpu*";
    const FILES: &[&str] = &[
        "proc/interrupts",
        "proc/schedstat",
        "proc/softirqs",
        "proc/sys/kernel/nmi_watchdog",
        "proc/sys/kernel/perf_event_paranoid",
        "proc/sys/kernel/soft_watchdog",
        "proc/sys/kernel/watchdog",
        "proc/sys/kernel/watchdog_cpumask",
        "proc/sys/kernel/watchdog_thresh",
        "proc/timer_list",
        // A virtio disk's interrupts, and those of a network device, belong to the PCI device above it.
        "sys/block/*/device/../msi_irqs/*",
        "sys/block/*/device/device/msi_irqs/*",
        "sys/block/*/device/uevent",
        "sys/block/*/mq/*/cpu_list",
        "sys/block/*/size",
        "sys/bus/pci/devices/*/msi_irqs/*",
        "sys/bus/pci/devices/*/uevent",
        "sys/class/net/*/device/../msi_irqs/*",
        "sys/class/net/*/device/msi_irqs/*",
        "sys/class/net/*/device/numa_node",
        "sys/class/net/*/device/uevent",
        "sys/class/net/*/queues/*/rps_cpus",
        "sys/class/net/*/queues/*/xps_cpus",
        "sys/devices/system/clockevents/*/current_device",
        "sys/devices/system/machinecheck/machinecheck*/check_interval",
        "sys/devices/system/machinecheck/machinecheck*/ignore_ce",
        "sys/devices/system/node/node*/cpulist",
        "sys/devices/system/node/node*/meminfo",
        "sys/devices/system/node/online",
        "sys/devices/cpu_atom/cpus",
        "sys/devices/cpu_core/cpus",
        "sys/devices/virtual/workqueue/*/cpumask",
        "sys/devices/virtual/workqueue/cpumask",
        "sys/devices/virtual/workqueue/cpumask_isolated",
        "sys/devices/virtual/workqueue/cpumask_requested",
        "sys/fs/cgroup/cpuset/cpuset.cpus",
        "sys/fs/cgroup/cpuset/*/cpuset.cpus",
        "sys/fs/cgroup/cpuset/*/cpuset.effective_cpus",
        "sys/fs/cgroup/cpuset/*/cpuset.sched_load_balance",
        "sys/fs/resctrl/cpus_list",
        "sys/fs/resctrl/mode",
        "sys/fs/resctrl/schemata",
        "sys/fs/resctrl/*/cpus_list",
        "sys/fs/resctrl/*/mode",
        "sys/fs/resctrl/*/schemata",
        "{cgroup2}/cpuset.cpus.effective",
        "{cgroup2}/*/cpuset.cpus.effective",
        "{cgroup2}/*/*/cpuset.cpus.effective",
        "{debugfs}/irq/domains/VECTOR",
        "{debugfs}/kprobes/list",
        "{debugfs}/sched/ext_server/cpu*/period",
        "{debugfs}/sched/ext_server/cpu*/runtime",
        "{debugfs}/sched/fair_server/cpu*/period",
        "{tracefs}/current_tracer",
        "{tracefs}/kprobe_profile",
        "{tracefs}/uprobe_profile",
        "{tracefs}/set_event",
        "{tracefs}/tracing_cpumask",
        "{tracefs}/tracing_on",
        "{tracefs}/instances/*/current_tracer",
        "{tracefs}/instances/*/set_event",
        "{tracefs}/instances/*/tracing_cpumask",
        "{tracefs}/instances/*/tracing_on",
    ];
    const OF_CPU: &[&str] = &[
        "cache/index*/id",
        "cache/index*/size",
        "cpu_capacity",
        "cpufreq/affected_cpus",
        "cpufreq/scaling_max_freq",
        "cpufreq/scaling_min_freq",
        "cpuidle/state*/disable",
        "cpuidle/state*/latency",
        "cpuidle/state*/name",
        "cpuidle/state*/usage",
        "power/pm_qos_resume_latency_us",
    ];
    let own = OF_CPU.iter().map(|file| format!("{CPU}/{file}"));
    Selection {
        files: FILES.iter().map(|file| (*file).to_owned()).chain(own).collect(),
        // A queue may have no file that can be read.
        names: vec!["sys/class/net/*/queues/*".to_owned()],
        ..Selection::default()
    }
}

#[cfg(test)]
mod tests;
