//! Who is on the isolated CPUs on purpose: programs that `stillcore isolate run` has put there,
//! what the user keeps, and whoever is in the group made for these CPUs.

use super::keep::Keep;
use super::placed::Placed;
use machine::{Irq, KernelThread, Root, UserThread, kernel_thread, memberships, thread, user_thread};

/// Those whom isolation leaves alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purpose {
    /// Processes that were put there.
    pub placed: Placed,
    /// What is kept.
    pub keep: Vec<Keep>,
}

impl Purpose {
    /// Whether a thread of user space is there on purpose. One that has ended since it was seen is
    /// there no more: whose it was can no longer be found out.
    pub(super) fn has_thread(&self, root: &Root, thread: &UserThread) -> bool {
        in_our_group(root, thread.pid)
            || self.placed.has(root, thread.pid)
            || self.keeps_thread(root, thread)
            || has_ended(root, thread)
    }

    /// Whether a thread of user space is kept.
    pub(super) fn keeps_thread(&self, root: &Root, thread: &UserThread) -> bool {
        self.keep.iter().any(|keep| keep.has_thread(root, thread))
    }

    /// Whether a kernel thread is kept.
    pub(super) fn keeps_kernel_thread(&self, thread: &KernelThread) -> bool {
        self.keep.iter().any(|keep| keep.has_kernel_thread(thread))
    }

    /// Whether an interrupt is kept.
    pub fn keeps_interrupt(&self, irq: &Irq) -> bool {
        self.keep.iter().any(|keep| keep.has_interrupt(irq))
    }

    /// Whether the task of a step's target, `TID/STARTTIME/NAME`, has come to be there on purpose
    /// since the step was planned.
    pub fn has_task(&self, root: &Root, target: &str) -> bool {
        if self.placed == Placed::default() && self.keep.is_empty() {
            return false;
        }
        let Some(tid) = target.split('/').next().and_then(|tid| tid.parse().ok()) else { return false };
        if let Some(thread) = kernel_thread(root, tid) {
            return self.keeps_kernel_thread(&thread);
        }
        thread(root, tid).is_some_and(|thread| self.has_thread(root, &thread))
    }
}

fn has_ended(root: &Root, thread: &UserThread) -> bool {
    user_thread(root, thread.pid, thread.tid).is_none_or(|now| now.start != thread.start)
}

/// Whether a process is in the group made for the isolated CPUs.
fn in_our_group(root: &Root, pid: u32) -> bool {
    let groups = memberships(root, pid).unwrap_or_default();
    groups.iter().any(|group| group.is_within(machine::OURS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;

    /// On PREEMPT_RT many kernel threads are under SCHED_FIFO: a user who keeps a policy means
    /// programs.
    #[test]
    fn a_policy_keeps_no_kernel_thread() {
        let stat = |pid: u32, flags: u64| {
            format!("{pid} (x) S 2 0 0 0 -1 {flags} {}5 {}50 1 0", "0 ".repeat(12), "0 ".repeat(17))
        };
        let (_dir, root) = tree(&[
            ("proc/13/stat", &stat(13, 0x0020_8040)),
            ("proc/13/status", "Cpus_allowed_list:\t0-3"),
            ("proc/70/stat", &stat(70, 64)),
            ("proc/70/status", "Cpus_allowed_list:\t3"),
            ("proc/70/task/70/stat", &stat(70, 64)),
            ("proc/70/task/70/status", "Cpus_allowed_list:\t3"),
        ]);
        let purpose = |keep: &str| Purpose { keep: vec![keep.parse().unwrap()], ..Purpose::default() };
        let has = |keep, target| purpose(keep).has_task(&root, target);
        assert!(!has("policy:fifo", "13/5/x") && has("policy:fifo", "70/5/x"));
        assert!(has("x", "13/5/x") && has("x", "70/5/x") && !has("y", "13/5/x"));
        assert!(!Purpose::default().has_task(&root, "70/5/x"));
    }

    /// What a kept process starts may end between two looks, and its parents can no longer be
    /// followed.
    #[test]
    fn a_thread_that_has_ended_is_no_stray() {
        let stat = format!("80 (x) S 2 0 0 0 -1 64 {}5 0", "0 ".repeat(12));
        let files =
            [("proc/80/task/80/stat", stat.as_str()), ("proc/80/task/80/status", "Cpus_allowed_list:\t3")];
        let (_dir, root) = tree(&files);
        let thread = user_thread(&root, 80, 80).unwrap();
        let has = |thread: &UserThread| Purpose::default().has_thread(&root, thread);
        assert!(!has(&thread));
        assert!(has(&UserThread { tid: 81, pid: 81, ..thread.clone() }), "it is gone");
        assert!(has(&UserThread { start: 4, ..thread }), "its number was used again");
    }
}
