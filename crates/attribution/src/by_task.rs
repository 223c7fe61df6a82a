//! A value a task, by its number, in a hash table with a small table before it: events come from
//! few tasks at a time, and each is looked up several times at every event.

use rustc_hash::FxHashMap;

/// Tasks that are found without the hash table, by the low bits of their numbers.
const RECENT: usize = 1 << 10;

/// The values.
#[derive(Debug)]
pub(crate) struct ByTask<T> {
    /// Where the value of the last task with these low bits may be.
    recent: Box<[u32; RECENT]>,
    places: FxHashMap<i32, u32>,
    values: Vec<(i32, T)>,
}

impl<T> Default for ByTask<T> {
    fn default() -> Self {
        Self { recent: Box::new([u32::MAX; RECENT]), places: FxHashMap::default(), values: Vec::new() }
    }
}

fn slot(task: i32) -> usize {
    task.cast_unsigned() as usize & (RECENT - 1)
}

impl<T> ByTask<T> {
    #[inline(always)]
    fn place(&self, task: i32) -> Option<usize> {
        let recent = self.recent[slot(task)] as usize;
        match self.values.get(recent) {
            Some((other, _)) if *other == task => Some(recent),
            _ => self.far(task),
        }
    }

    #[inline(never)]
    fn far(&self, task: i32) -> Option<usize> {
        self.places.get(&task).map(|place| *place as usize)
    }

    /// The value of a task.
    #[inline(always)]
    pub(crate) fn get(&self, task: i32) -> Option<&T> {
        let place = self.place(task)?;
        self.values.get(place).map(|(_, value)| value)
    }

    /// The same, to be changed.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, task: i32) -> Option<&mut T> {
        let place = self.place(task)?;
        self.values.get_mut(place).map(|(_, value)| value)
    }

    /// Does something with the value of a task, made where there is none.
    #[inline(always)]
    pub(crate) fn with<R>(&mut self, task: i32, mut does: impl FnMut(&mut T) -> R) -> R
    where
        T: Default,
    {
        let recent = self.recent[slot(task)] as usize;
        match self.values.get_mut(recent) {
            Some((other, value)) if *other == task => does(value),
            _ => {
                let place = self.remember(task);
                does(&mut self.values[place].1)
            }
        }
    }

    /// The value of a task, made where there is none.
    #[inline(always)]
    pub(crate) fn entry(&mut self, task: i32) -> &mut T
    where
        T: Default,
    {
        let recent = self.recent[slot(task)] as usize;
        let place = match self.values.get(recent) {
            Some((other, _)) if *other == task => recent,
            _ => self.remember(task),
        };
        &mut self.values[place].1
    }

    /// Gives a task a value.
    #[inline(always)]
    pub(crate) fn insert(&mut self, task: i32, value: T) {
        let recent = self.recent[slot(task)] as usize;
        match self.values.get_mut(recent) {
            Some((other, known)) if *other == task => *known = value,
            _ => self.insert_far(task, value),
        }
    }

    #[inline(never)]
    fn insert_far(&mut self, task: i32, value: T) {
        match self.far(task) {
            Some(place) => {
                self.values[place].1 = value;
                self.recent[slot(task)] = place as u32;
            }
            None => {
                self.add(task, value);
            }
        }
    }

    /// The place of a task that is not among the recent ones, or new.
    #[inline(never)]
    fn remember(&mut self, task: i32) -> usize
    where
        T: Default,
    {
        let place = self.far(task).unwrap_or_else(|| self.add(task, T::default()));
        self.recent[slot(task)] = place as u32;
        place
    }

    #[cold]
    fn add(&mut self, task: i32, value: T) -> usize {
        let place = self.values.len();
        self.values.push((task, value));
        self.places.insert(task, place as u32);
        self.recent[slot(task)] = place as u32;
        place
    }

    /// How many tasks have one.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Takes all values.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.places.clear();
    }

    /// Keeps some.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&T) -> bool) {
        self.values.retain(|(_, value)| keeps(value));
        self.places.clear();
        self.places.extend((0..).zip(&self.values).map(|(place, (task, _))| (*task, place)));
    }

    /// All, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().map(|(_, value)| value)
    }

    /// All, in the order in which the tasks came.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, &T)> {
        self.values.iter().map(|(task, value)| (*task, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Numbers that share their low bits among them, which the small table cannot hold at once.
        #[test]
        fn every_task_has_its_own_value_whoever_came_between(
            steps in prop::collection::vec((0i32..4, -2i32..3, 0u32..5), 1..200),
        ) {
            let (mut ours, mut theirs) = (ByTask::<u32>::default(), BTreeMap::<i32, u32>::new());
            for (high, low, value) in steps {
                let task = high * RECENT as i32 + low;
                match (value, low) {
                    (0, 2) => {
                        ours.retain(|value| *value > 2);
                        theirs.retain(|_, value| *value > 2);
                    }
                    (0, -2) => {
                        ours.clear();
                        theirs.clear();
                    }
                    (0, _) => {
                        *ours.entry(task) += 1;
                        *theirs.entry(task).or_default() += 1;
                    }
                    (value, _) => {
                        ours.insert(task, value);
                        theirs.insert(task, value);
                    }
                }
                let all: BTreeMap<i32, u32> = ours.iter().map(|(task, value)| (task, *value)).collect();
                prop_assert_eq!(&all, &theirs);
                for task in theirs.keys() {
                    prop_assert_eq!(ours.get(*task), theirs.get(task));
                    prop_assert_eq!(ours.get_mut(*task).copied(), theirs.get(task).copied());
                }
                prop_assert_eq!((ours.len(), ours.get(9 * RECENT as i32)), (theirs.len(), None));
            }
        }
    }
}
