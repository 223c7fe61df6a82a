//! Kernel threads that may run on the measured CPUs.
//!
//! Some cannot be moved (`PF_NO_SETAFFINITY`): those of one CPU belong there and sleep unless their
//! CPU gives them work; rescuers of workqueues may run anywhere, but only under memory pressure.
//! Interrupt threads follow their interrupt, and unbound kworkers the mask of their workqueue: both
//! have mechanisms of their own.

use super::super::catalogue::Mechanism;
use super::remedy::{Off, propose};
use super::unread::Unread;
use super::{Outcome, Scene, named, some_of};
use machine::{KernelThread, wildcard};
use model::plan::StepKind;

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism, pattern: &str) -> Outcome {
    let threads = &scene.processes().kernel;
    if threads.is_empty() {
        return Outcome::unknown(Unread::NoThreads);
    }
    let ours: Vec<_> = threads
        .iter()
        .filter(|thread| wildcard(pattern, &thread.name) && !elsewhere(pattern, thread))
        .collect();
    if ours.is_empty() {
        return Outcome::absent(mechanism);
    }
    let here: Vec<_> =
        ours.iter().copied().filter(|thread| !thread.allowed.and(scene.cpus).is_empty()).collect();
    let (movable, fixed): (Vec<_>, Vec<_>) = here.into_iter().partition(|thread| thread.movable);
    let (own, stuck): (Vec<_>, Vec<_>) = fixed.into_iter().partition(|thread| thread.allowed.len() == 1);
    outcome(scene, mechanism, &movable, &own, &stuck).having(allowed(&ours, &movable))
}

/// Threads that a mechanism of their own is about, unless the pattern names them.
fn elsewhere(pattern: &str, thread: &KernelThread) -> bool {
    ["irq/", "kworker/u"].iter().any(|own| thread.name.starts_with(own) && !pattern.starts_with(own))
}

fn outcome(
    scene: &Scene,
    mechanism: &Mechanism,
    movable: &[&KernelThread],
    own: &[&KernelThread],
    stuck: &[&KernelThread],
) -> Outcome {
    let cpus = named(scene.cpus);
    let belong = (!own.is_empty()).then(|| {
        format!("{} belong to their CPU, which gives them work of its own, and cannot be moved", names(own))
    });
    if !movable.is_empty() {
        let reason = format!("{} may run on {cpus}: {}", names(movable), mechanism.harm);
        let off = |thread: &&KernelThread| Off {
            kind: StepKind::Task,
            target: format!("{}/{}/{}", thread.pid, thread.start, thread.name),
            old: thread.allowed.to_string(),
        };
        let fixed = (!stuck.is_empty())
            .then(|| format!("{} may run on {cpus}, and the kernel lets nobody move them", names(stuck)));
        let stays: Vec<_> = fixed.into_iter().chain(belong).collect();
        return propose(scene, mechanism, &movable.iter().map(off).collect::<Vec<_>>(), reason)
            .leaving(Some(stays.join("; ")).filter(|text| !text.is_empty()));
    }
    if !stuck.is_empty() {
        let reason = format!(
            "only {} may run on {cpus}, whom the kernel lets nobody move: rescuers of workqueues, which run when memory is short",
            names(stuck)
        );
        return Outcome::ok(reason).leaving(belong);
    }
    Outcome::ok(match own.len() {
        0 => format!("none may run on {cpus}"),
        count => {
            format!("only the {count} threads that belong to {cpus} may run there, and they cannot be moved")
        }
    })
    .leaving(belong)
}

/// The masks of the offenders, or of all if there are none.
fn allowed(ours: &[&KernelThread], movable: &[&KernelThread]) -> String {
    let shown = if movable.is_empty() { ours } else { movable };
    some_of(&shown.iter().map(|thread| format!("{} {}", thread.name, thread.allowed)).collect::<Vec<_>>())
}

fn names(threads: &[&KernelThread]) -> String {
    some_of(&threads.iter().map(|thread| thread.name.clone()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    fn with_thread(name: &str, flags: u64, allowed: &str) -> (String, String, String) {
        let stat = format!("7 ({name}) S 2 0 0 0 -1 {flags} 0");
        let status = format!("Cpus_allowed_list:\t{allowed}");
        judged("kthread-affinity", &with_cpus(&[("proc/7/stat", &stat), ("proc/7/status", &status)]))
    }

    #[test]
    fn threads_are_judged_by_whether_they_can_leave() {
        const MOVABLE: u64 = 0x0020_8040;
        const FIXED: u64 = MOVABLE | 0x0400_0000;
        let (state, _, remedy) = with_thread("ksmd", MOVABLE, "0-3");
        assert_eq!((state.as_str(), remedy.as_str()), ("fixable", "taskset -pc 0,1 7"));
        assert_eq!(with_thread("ksmd", MOVABLE, "0-1").0, "ok");
        assert_eq!(with_thread("cpuhp/2", FIXED, "2").0, "ok");
        assert_eq!(with_thread("kworker/R-rcu_gp", FIXED, "0-3").0, "ok", "a rescuer");
        assert_eq!(with_thread("irq/4-ttyS0", MOVABLE, "2").0, "not-applicable", "it follows its interrupt");
        assert_eq!(judged("kthread-affinity", &with_cpus(&[])).0, "unknown");
    }
}
