//! Who gets a lock next.

use super::Numbers;
use super::simulate::{At, Simulation};
use sched::Access;
use sched::locks::Protocol;

/// In which order waiting jobs are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Fifo,
    /// By locking priority; equal ones as they came.
    PriorityFifo,
    /// By locking priority; equal ones in any order.
    Priority,
    Any,
}

fn order(protocol: Protocol) -> Order {
    match protocol {
        Protocol::PriorityFifo | Protocol::PriorityFifoP => Order::PriorityFifo,
        Protocol::Priority | Protocol::PriorityP => Order::Priority,
        Protocol::Unordered | Protocol::UnorderedP | Protocol::Baseline => Order::Any,
        _ => Order::Fifo,
    }
}

fn is_phase_fair(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::PhaseFair | Protocol::PhaseFairOblivious | Protocol::OmlpRw)
}

/// Whether readers hold a resource together.
fn readers_share(protocol: Protocol) -> bool {
    is_phase_fair(protocol) || protocol == Protocol::TaskFair
}

impl Simulation<'_> {
    /// Who waits for a resource and may enter now does.
    pub(super) fn serve(&mut self, resource: u32, protocol: Protocol) {
        let share = readers_share(protocol);
        let reads = |access: Access| share && access == Access::Read;
        let (mut held, mut held_by_reader) = (false, false);
        // Task, since when, whether it reads.
        let mut waiting: Vec<(usize, u64, bool)> = Vec::new();
        for task in 0..self.states.len() {
            let state = &self.states[task];
            match state.at {
                At::Holding(one, access) if one == resource => {
                    held = true;
                    held_by_reader = reads(access);
                }
                At::Waiting { resource: one, access, since } if one == resource => {
                    waiting.push((task, since, reads(access)));
                }
                _ => {}
            }
        }
        if waiting.is_empty() || (held && !held_by_reader) {
            return;
        }
        let how = order(protocol);
        waiting.sort_by_key(|&(task, since, _)| {
            let rank = u64::from(self.system.tasks[task].lock_priority.unwrap_or(task as u32));
            // As long as a job waits, its place among those who came in the same instant stays.
            let drawn = self.draw(task, since);
            let turn = self.draw(task, self.now);
            match how {
                Order::Fifo => (0, since, drawn),
                Order::PriorityFifo => (rank, since, drawn),
                Order::Priority => (rank, turn, 0),
                Order::Any => (0, turn, 0),
            }
        });
        let first_reads = waiting[0].2;
        let entering: Vec<usize> = if is_phase_fair(protocol) {
            let writer = waiting.iter().find(|one| !one.2).map(|one| one.0);
            let readers = || waiting.iter().filter(|one| one.2).map(|one| one.0).collect::<Vec<_>>();
            let wrote = self.wrote.get(resource as usize).copied().unwrap_or(false);
            match (held, writer, readers().is_empty()) {
                (false, Some(writer), true) => vec![writer],
                (false, Some(writer), false) if !wrote => vec![writer],
                // Readers join readers as long as no writer waits.
                (true, Some(_), _) => Vec::new(),
                _ => readers(),
            }
        } else if first_reads {
            // Readers that stand together enter together, and join readers inside.
            waiting.iter().take_while(|one| one.2).map(|one| one.0).collect()
        } else if held {
            Vec::new()
        } else {
            vec![waiting[0].0]
        };
        for task in entering {
            if let At::Waiting { resource, access, .. } = self.states[task].at {
                self.states[task].at = At::Holding(resource, access);
                if let Some(wrote) = self.wrote.get_mut(resource as usize) {
                    *wrote = !reads(access);
                }
            }
        }
    }

    /// A number of a task at a moment, the same each time it is computed.
    fn draw(&self, task: usize, moment: u64) -> u64 {
        let seed = self.seed ^ (task as u64) << 40 ^ moment;
        Numbers(seed).between(0, u64::MAX - 1)
    }
}
