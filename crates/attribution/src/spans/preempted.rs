//! Runnable tasks that were taken off a CPU and have not come back.

/// The number of tasks kept, the latest.
const MOST: usize = 64;
/// Places: those of removed tasks are reused only when all are used up.
const PLACES: usize = 256;
/// Sorts of tasks by the low bits of their numbers.
const SORTS: usize = 1024;
/// No task.
const NOBODY: i32 = i32::MIN;

/// The tasks, in the order in which they were taken off.
#[derive(Debug)]
pub(super) struct Preempted {
    places: Box<[i32; PLACES]>,
    /// From the first to one past the last.
    used: std::ops::Range<usize>,
    count: usize,
    /// The count of each sort, and the place of its latest task.
    sorts: Box<[(u8, u8); SORTS]>,
}

impl Default for Preempted {
    fn default() -> Self {
        let (places, sorts) = (Box::new([NOBODY; PLACES]), Box::new([(0, 0); SORTS]));
        Self { places, used: 0..0, count: 0, sorts }
    }
}

#[inline(always)]
fn sort(task: i32) -> usize {
    task.cast_unsigned() as usize % SORTS
}

impl Preempted {
    /// Adds a task.
    #[inline(always)]
    pub(super) fn add(&mut self, task: i32) {
        if self.count == MOST || self.used.end == PLACES {
            self.make_room();
        }
        let at = self.used.end;
        self.places[at] = task;
        self.used.end += 1;
        self.count += 1;
        let (count, last) = &mut self.sorts[sort(task)];
        (*count, *last) = (*count + 1, at as u8);
    }

    #[inline(never)]
    fn make_room(&mut self) {
        if self.count == MOST
            && let Some(first) = self.places[self.used.clone()].iter().position(|task| *task != NOBODY)
        {
            self.take(self.used.start + first);
            self.used.start += first + 1;
        }
        if self.used.end == PLACES {
            let tasks: Vec<i32> =
                self.places[self.used.clone()].iter().copied().filter(|task| *task != NOBODY).collect();
            self.used = 0..tasks.len();
            for (at, task) in tasks.into_iter().enumerate() {
                self.places[at] = task;
                self.sorts[sort(task)].1 = at as u8;
            }
        }
    }

    /// The place of a task.
    #[inline(always)]
    fn place(&self, task: i32) -> Option<usize> {
        let (count, last) = self.sorts[sort(task)];
        match count {
            0 => None,
            _ if self.places[usize::from(last)] == task => Some(usize::from(last)),
            _ => self.search(task),
        }
    }

    #[inline(never)]
    fn search(&self, task: i32) -> Option<usize> {
        let found = self.places[self.used.clone()].iter().position(|other| *other == task)?;
        Some(self.used.start + found)
    }

    /// Whether a task is one of them.
    #[inline(always)]
    pub(super) fn has(&self, task: i32) -> bool {
        self.place(task).is_some()
    }

    /// Removes a task; returns whether it was there.
    #[inline(always)]
    pub(super) fn remove(&mut self, task: i32) -> bool {
        let mut was_in = false;
        while let Some(at) = self.place(task) {
            self.take(at);
            was_in = true;
        }
        was_in
    }

    fn take(&mut self, at: usize) {
        self.sorts[sort(self.places[at])].0 -= 1;
        self.places[at] = NOBODY;
        self.count -= 1;
    }

    /// Removes all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Some numbers share their low bits.
        #[test]
        fn it_is_a_list_of_the_last_ones(steps in prop::collection::vec((0i32..4, 0i32..90), 0..1500)) {
            let (mut ours, mut list) = (Preempted::default(), Vec::new());
            for (kind, low) in steps {
                let task = low % 30 + SORTS as i32 * (low / 30);
                if kind == 0 {
                    prop_assert_eq!(ours.remove(task), list.contains(&task));
                    list.retain(|one| *one != task);
                } else if !list.contains(&task) {
                    ours.add(task);
                    list.push(task);
                    list.drain(..list.len().saturating_sub(MOST));
                }
                prop_assert_eq!(ours.has(low), list.contains(&low));
            }
            let left = list.into_iter().filter(|task| ours.remove(*task)).count();
            prop_assert_eq!((ours.count, left <= MOST), (0, true));
            ours.add(5);
            ours.clear();
            prop_assert!(!ours.has(5));
        }
    }
}
