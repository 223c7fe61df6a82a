//! Tasks that may run on isolated CPUs although they could be elsewhere: user threads of every process, and kernel threads that the
//! kernel lets be moved.

use super::placement::ISOLATED;
use super::probe::elsewhere_of;
use crate::machine::{Root, processes, user_threads};
use model::Cpus;
use model::plan::{Step, StepKind};

/// The mechanism that strays belong to.
const USER: &str = "user-tasks";
const KERNEL: &str = "kthread-affinity";

/// One step for each.
pub(super) fn strays(isolated: &Cpus, housekeeping: &Cpus) -> Vec<Step> {
    let root = Root::live();
    let all = processes(&root);
    let step = |mechanism: &str, tid: u32, start: u64, name: &str, allowed: &Cpus| Step {
        mechanism: mechanism.to_owned(),
        kind: StepKind::Task,
        target: format!("{tid}/{start}/{name}"),
        old: Some(allowed.to_string()),
        new: elsewhere_of(allowed, isolated, housekeeping).to_string(),
        why: "it may run there".to_owned(),
        cost: String::new(),
        risky: false,
    };
    let meets = |allowed: &Cpus| !allowed.and(isolated).is_empty();
    // Interrupt threads follow their interrupt, kworkers the mask of their workqueue.
    let own_way = |name: &str| name.starts_with("irq/") || name.starts_with("kworker/");
    let kernel = all
        .kernel
        .iter()
        .filter(|thread| thread.movable && meets(&thread.allowed) && !own_way(&thread.name))
        .map(|thread| step(KERNEL, thread.pid, thread.start, &thread.name, &thread.allowed));
    // Pinned to CPUs that the scheduler moves nobody to: there on purpose.
    let apart = root.cpus("sys/devices/system/cpu/isolated").unwrap_or_default().and(isolated);
    let threads = user_threads(&root, &all.user);
    let user = threads
        .iter()
        .filter(|thread| meets(&thread.allowed) && !thread.allowed.is_subset(&apart))
        .filter(|thread| !on_purpose(&root, thread.pid))
        .map(|thread| step(USER, thread.tid, thread.start, &thread.name, &thread.allowed));
    kernel.chain(user).collect()
}

/// Whether a process is in the group made for the isolated CPUs.
fn on_purpose(root: &Root, pid: u32) -> bool {
    let groups = root.maybe(&format!("proc/{pid}/cgroup")).unwrap_or_default();
    groups.lines().any(|line| line.split('/').any(|part| part == ISOLATED))
}
