//! A value a CPU, by its number: what is looked up at every event is looked up here, and not in a
//! hash table.

use model::cpus::MAX_CPU;

/// The values. CPUs beyond [`MAX_CPU`], which only a damaged trace names, have none.
#[derive(Debug)]
pub(crate) struct ByCpu<T>(Vec<Option<T>>);

impl<T> Default for ByCpu<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByCpu<T> {
    /// The value of a CPU.
    #[inline(always)]
    pub(crate) fn get(&self, cpu: u32) -> Option<&T> {
        self.0.get(cpu as usize)?.as_ref()
    }

    /// The same, to be changed.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, cpu: u32) -> Option<&mut T> {
        self.0.get_mut(cpu as usize)?.as_mut()
    }

    /// Gives a CPU a value, and returns what it had before.
    #[inline(always)]
    pub(crate) fn insert(&mut self, cpu: u32, value: T) -> Option<T> {
        if cpu > MAX_CPU {
            return None;
        }
        let at = cpu as usize;
        if at >= self.0.len() {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at].replace(value)
    }

    /// Takes the value of a CPU.
    #[inline(always)]
    pub(crate) fn remove(&mut self, cpu: u32) -> Option<T> {
        self.0.get_mut(cpu as usize)?.take()
    }

    /// All, by CPU.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.0).filter_map(|(cpu, value)| Some((cpu, value.as_ref()?)))
    }

    /// Takes all values.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_has_what_it_was_given_and_one_that_cannot_be_has_nothing() {
        let mut values = ByCpu::default();
        assert_eq!([values.insert(2, 'a'), values.insert(2, 'b')], [None, Some('a')]);
        assert_eq!([values.get(0), values.get(2), values.get(3)], [None, Some(&'b'), None]);
        assert_eq!(values.insert(u32::MAX, 'c').or(values.get(u32::MAX).copied()), None);
        assert_eq!([values.remove(2), values.remove(2)], [Some('b'), None]);
    }
}
