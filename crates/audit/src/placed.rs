//! Processes that were put on the isolated CPUs on purpose, by `stillcore isolate run`: a later
//! apply leaves them there, and verifying does not take them for strays. Where a partition owns the
//! CPUs the group says so; under cpusets of version 1 and affinities alone nothing on the machine
//! does, so `isolate::placed` writes it down.
//!
//! What a process starts belongs to it: its children, and what its children leave behind in its
//! process group or session, which keep their leader's number when the leader is gone
//! (credentials(7): the number is not used again as long as the group or session exists).

use machine::{Root, lineage};

/// How far up a line of parents is followed.
const GENERATIONS: usize = 64;

/// A process: its number, which the kernel reuses, and its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// Process id.
    pub pid: i32,
    /// Clock ticks since boot.
    pub start: u64,
}

/// The processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placed {
    processes: Vec<Started>,
}

impl Placed {
    /// Whether a process is one of them, or was started by one.
    pub fn has(&self, root: &Root, pid: u32) -> bool {
        if self.processes.is_empty() {
            return false;
        }
        let mut next = Some(pid);
        for _ in 0..GENERATIONS {
            let Some(line) = next.and_then(|pid| lineage(root, pid)) else { return false };
            let own = |owner: &Started| (owner.pid, owner.start) == (line.pid, line.start);
            if self
                .processes
                .iter()
                .any(|owner| own(owner) || left_behind(root, owner, line.group, line.session))
            {
                return true;
            }
            next = u32::try_from(line.parent).ok().filter(|parent| *parent > 0);
        }
        false
    }

    /// These processes.
    pub fn of(processes: Vec<Started>) -> Self {
        Self { processes }
    }
}

/// Whether the group or session is the owner's, who leads it or is gone.
fn left_behind(root: &Root, owner: &Started, group: i32, session: i32) -> bool {
    let named = owner.pid == group || owner.pid == session;
    let leads = || match u32::try_from(owner.pid).ok().and_then(|pid| lineage(root, pid)) {
        Some(line) => line.start == owner.start,
        None => true,
    };
    named && leads()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;

    /// A process by number, parent, group, session and start.
    fn stat(of: [u32; 5]) -> (String, String) {
        let [pid, parent, group, session, start] = of;
        let zeros = "0 ".repeat(15);
        (format!("proc/{pid}/stat"), format!("{pid} (x) S {parent} {group} {session} {zeros}{start} 0 0"))
    }

    fn machine(processes: &[[u32; 5]]) -> (tempfile::TempDir, Root) {
        let files: Vec<_> = processes.iter().map(|of| stat(*of)).collect();
        tree(&files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect::<Vec<_>>())
    }

    #[test]
    fn what_a_placed_process_starts_is_placed() {
        let placed = Placed::of(vec![Started { pid: 10, start: 500 }]);
        let init = [1, 0, 1, 1, 1];
        let (_dir, root) = machine(&[
            init,
            [10, 1, 10, 5, 500],
            [11, 10, 11, 5, 510],
            [12, 11, 12, 12, 520],
            [13, 1, 10, 5, 530],
            [14, 1, 14, 5, 540],
        ]);
        let has = |pid| placed.has(&root, pid);
        assert!(has(10) && has(11) && has(12), "itself, a child, a child's child in a session of its own");
        assert!(has(13), "its group");
        assert!(!has(14) && !has(1) && !has(99));
        let (_dir, root) = machine(&[init, [13, 1, 10, 5, 530]]);
        assert!(placed.has(&root, 13), "its leader is gone");
        let (_dir, root) = machine(&[init, [10, 1, 10, 5, 900], [13, 10, 10, 5, 930]]);
        assert!(!placed.has(&root, 10) && !placed.has(&root, 13), "the number was used again");
    }
}
