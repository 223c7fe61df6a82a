//! Tasks that were taken off a CPU though they would have run on, and have not come back.

use std::collections::VecDeque;

/// So many are remembered, of more the last.
const MOST: usize = 64;
/// Sorts of tasks by the low bits of their numbers.
const SORTS: usize = 256;

/// The tasks.
#[derive(Debug)]
pub(super) struct Preempted {
    tasks: VecDeque<i32>,
    /// How many there are of each sort: mostly none of the one that is looked for.
    sorts: [u8; SORTS],
}

impl Default for Preempted {
    fn default() -> Self {
        Self { tasks: VecDeque::with_capacity(MOST), sorts: [0; SORTS] }
    }
}

fn sort(task: i32) -> usize {
    task.cast_unsigned() as usize % SORTS
}

impl Preempted {
    /// One more.
    pub(super) fn add(&mut self, task: i32) {
        if self.tasks.len() == MOST
            && let Some(first) = self.tasks.pop_front()
        {
            self.sorts[sort(first)] -= 1;
        }
        self.tasks.push_back(task);
        self.sorts[sort(task)] += 1;
    }

    /// Whether a task is one of them.
    #[inline]
    pub(super) fn has(&self, task: i32) -> bool {
        self.sorts[sort(task)] > 0 && self.tasks.contains(&task)
    }

    /// Takes a task out; whether it was in.
    #[inline]
    pub(super) fn remove(&mut self, task: i32) -> bool {
        if !self.has(task) {
            return false;
        }
        let before = self.tasks.len();
        self.tasks.retain(|one| *one != task);
        self.sorts[sort(task)] -= (before - self.tasks.len()) as u8;
        true
    }

    /// Takes all out.
    pub(super) fn clear(&mut self) {
        self.tasks.clear();
        self.sorts.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_list_of_the_last_ones(steps in prop::collection::vec((0i32..3, 0i32..90), 0..400)) {
            let (mut ours, mut list) = (Preempted::default(), Vec::new());
            for (kind, low) in steps {
                let task = low % 30 + SORTS as i32 * (low / 30);
                if kind == 0 {
                    prop_assert_eq!(ours.remove(task), list.contains(&task));
                    list.retain(|one| *one != task);
                } else {
                    ours.add(task);
                    list.push(task);
                    list.drain(..list.len().saturating_sub(MOST));
                }
                prop_assert_eq!(ours.has(low), list.contains(&low));
            }
            ours.clear();
            prop_assert!((0..30).all(|task| !ours.has(task)));
        }
    }
}
