//! What may touch one CPU: every interrupt, thread, queue, timer, group and shared piece of
//! hardware, a row each.
//!
//! After the second lesson of the RTSS 2024 paper on an interference-free operating system, a clear
//! indicator of a core. Each kind is a file, and each a function of the machine's files alone.
//! Reading disturbs nobody: nothing is written, and files whose reading sends an IPI to the CPU
//! (its current frequency, resctrl's monitors, raw trace pages) are left alone.

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
mod table;
mod task;
mod throttle;
mod timer;
mod tracing;
mod vector;
mod watchdog;
mod workqueue;

use super::{Root, topology};
use model::Error;
use model::resource::{Kind, Resource};
use scene::Scene;

/// The rows of these kinds for one CPU, which must be online; in the order of the kinds, and within
/// a kind in that of the kernel.
///
/// What this kernel lacks has no row; what this user may not read has one, with all answers unknown
/// and the reason.
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
    let online = topology::online(root)?;
    let bad =
        |what: String| Err(Error::invalid(format!("--cpus {cpu}"), what, format!("CPUs among {online}")));
    if online.contains(cpu) {
        Ok(())
    } else if topology::present(root).is_some_and(|cpus| cpus.contains(cpu)) {
        bad(format!("CPU {cpu} is offline"))
    } else {
        bad(format!("this machine has no CPU {cpu}"))
    }
}

#[cfg(test)]
mod tests;
