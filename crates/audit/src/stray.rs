//! Tasks that may run on isolated CPUs although they could be elsewhere: user threads of every
//! process, and kernel threads that the kernel lets be moved.

use super::narrow::Division;
use super::purpose::Purpose;
use machine::{KernelThread, Process, Root, UserThread, isolated_at_boot, processes, user_threads};
use model::Cpus;
use model::plan::{Step, StepKind};

/// The mechanism that strays belong to.
const USER: &str = "user-tasks";
const KERNEL: &str = "kthread-affinity";

/// Who may run on isolated CPUs.
pub struct Seen {
    /// One step for each that could be elsewhere.
    pub strays: Vec<Step>,
    /// User threads that somebody has pinned to CPUs isolated at boot: there on purpose, and not by
    /// `isolate run`. One step for each, should it leave all the same.
    pub pinned: Vec<Step>,
}

/// Looks once.
pub fn seen(root: &Root, isolated: &Cpus, housekeeping: &Cpus, purpose: &Purpose) -> Seen {
    let all = processes(root);
    let online = root.cpus("sys/devices/system/cpu/online").unwrap_or_else(|| isolated.or(housekeeping));
    let division = Division { isolated: isolated.clone(), housekeeping: housekeeping.clone(), online };
    let step = |mechanism: &str, target: String, allowed: &Cpus| {
        let narrowed = division.narrow(allowed);
        Step {
            mechanism: mechanism.to_owned(),
            kind: StepKind::Task,
            target,
            old: Some(allowed.to_string()),
            new: narrowed.cpus.to_string(),
            why: "it may run there".to_owned(),
            cost: String::new(),
            risky: false,
            note: narrowed.note(),
        }
    };
    // Interrupt threads follow their interrupt, kworkers the mask of their workqueue.
    let own_way = |name: &str| name.starts_with("irq/") || name.starts_with("kworker/");
    let meets = |thread: &&KernelThread| !thread.allowed.and(isolated).is_empty();
    let strays = |thread: &&KernelThread| {
        thread.movable && !own_way(&thread.name) && !purpose.keeps_kernel_thread(thread)
    };
    let kernel = all.kernel.iter().filter(meets).filter(strays);
    let kernel = kernel.map(|thread| {
        step(KERNEL, format!("{}/{}/{}", thread.pid, thread.start, thread.name), &thread.allowed)
    });
    let (pinned, astray) = user(root, &all.user, isolated, purpose);
    let moved = |threads: &[UserThread]| -> Vec<Step> {
        threads.iter().map(|thread| step(USER, target(thread), &thread.allowed)).collect()
    };
    Seen { strays: kernel.chain(moved(&astray)).collect(), pinned: moved(&pinned) }
}

/// User threads that may run there, but for those known to be there on purpose: those pinned to
/// CPUs that the scheduler moves nobody to, and the others.
fn user(
    root: &Root,
    processes: &[Process],
    isolated: &Cpus,
    purpose: &Purpose,
) -> (Vec<UserThread>, Vec<UserThread>) {
    let apart = isolated_at_boot(root).and(isolated);
    let meets = |thread: &UserThread| !thread.allowed.and(isolated).is_empty();
    user_threads(root, processes)
        .into_iter()
        .filter(|thread| meets(thread) && !purpose.has_thread(root, thread))
        .partition(|thread| thread.allowed.is_subset(&apart))
}

fn target(thread: &UserThread) -> String {
    format!("{}/{}/{}", thread.tid, thread.start, thread.name)
}
