//! Who lives on the CPUs that are to be isolated and may be there on purpose: real-time tasks,
//! tasks whose affinity somebody has narrowed to these CPUs, interrupts that may be nowhere else.

use super::purpose::Purpose;
use machine::{KernelThread, Policy, Root, UserThread, irqs, processes, user_threads};
use model::Cpus;
use model::plan::{Fate, Resident, ResidentKind, Step};

/// What a plan knows when it is asked who stays.
pub(super) struct Planned<'a> {
    pub(super) isolated: &'a Cpus,
    pub(super) online: &'a Cpus,
    pub(super) steps: &'a [Step],
}

/// All of them, tasks first. The caller's own process is none.
pub(super) fn residents(root: &Root, planned: &Planned, purpose: &Purpose) -> Vec<Resident> {
    let all = processes(root);
    let myself = root.is_live().then(std::process::id);
    let meets = |cpus: &Cpus| !cpus.and(planned.isolated).is_empty();
    let threads = user_threads(root, &all.user);
    let threads = threads.iter().filter(|thread| meets(&thread.allowed) && Some(thread.pid) != myself);
    let mut found: Vec<_> = threads.filter_map(|thread| task(root, thread, planned, purpose)).collect();
    // Interrupt threads follow their interrupt.
    let kernel = all
        .kernel
        .iter()
        .filter(|thread| thread.movable && meets(&thread.allowed) && !thread.name.starts_with("irq/"));
    found.extend(kernel.filter_map(|thread| kernel_thread(thread, planned, purpose)));
    for irq in irqs(root).into_iter().filter(|irq| irq.movable != Some(false) && meets(&irq.allowed)) {
        let kept = purpose.keeps_interrupt(&irq);
        if kept || irq.allowed.is_subset(planned.isolated) {
            let file = format!("/proc/irq/{}/smp_affinity_list", irq.number);
            found.push(Resident {
                kind: ResidentKind::Interrupt,
                id: irq.number,
                process: None,
                name: irq.names.join("+"),
                policy: None,
                priority: None,
                fate: planned.fate(kept, &file),
                cpus: irq.allowed,
                deliberate: false,
            });
        }
    }
    found
}

impl Planned<'_> {
    fn fate(&self, kept: bool, target: &str) -> Fate {
        match self.steps.iter().any(|step| step.target == target) {
            _ if kept => Fate::Kept,
            true => Fate::Moves,
            false => Fate::Stays,
        }
    }
}

fn task(root: &Root, thread: &UserThread, planned: &Planned, purpose: &Purpose) -> Option<Resident> {
    let kept = purpose.has_thread(root, thread);
    let pinned = thread.allowed.is_subset(planned.isolated);
    let narrowed = !planned.online.is_subset(&thread.allowed);
    let real_time = thread.policy.is_real_time();
    let target = format!("{}/{}/{}", thread.tid, thread.start, thread.name);
    (kept || pinned || real_time).then(|| Resident {
        kind: ResidentKind::Task,
        id: thread.tid,
        process: Some(thread.pid),
        name: thread.name.clone(),
        policy: named(thread.policy),
        priority: Some(thread.priority).filter(|priority| *priority > 0),
        cpus: thread.allowed.clone(),
        fate: planned.fate(kept, &target),
        deliberate: pinned || (real_time && narrowed),
    })
}

fn kernel_thread(thread: &KernelThread, planned: &Planned, purpose: &Purpose) -> Option<Resident> {
    let kept = purpose.keeps_kernel_thread(thread);
    let target = format!("{}/{}/{}", thread.pid, thread.start, thread.name);
    (kept || thread.allowed.is_subset(planned.isolated)).then(|| Resident {
        kind: ResidentKind::KernelThread,
        id: thread.pid,
        process: None,
        name: thread.name.clone(),
        policy: named(thread.policy),
        priority: Some(thread.priority).filter(|priority| *priority > 0),
        cpus: thread.allowed.clone(),
        fate: planned.fate(kept, &target),
        deliberate: false,
    })
}

/// A capture of an older version has no policy, which reads as the ordinary one: that is not said.
fn named(policy: Policy) -> Option<String> {
    (policy != Policy::Other).then(|| policy.name().to_owned())
}
