//! A few tasks among many: most others are seen at once to be none of them.

/// Sorts of tasks by the low bits of their numbers, a bit each.
const WORDS: usize = 16;

/// The tasks, by the low bits of their numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SomeTasks([u64; WORDS]);

#[inline(always)]
fn place(tid: i32) -> (usize, u64) {
    let low = tid.cast_unsigned() as usize % (WORDS * 64);
    (low / 64, 1 << (low % 64))
}

impl SomeTasks {
    /// One more.
    pub(crate) fn add(&mut self, tid: i32) {
        let (word, bit) = place(tid);
        self.0[word] |= bit;
    }

    /// False where a task is none of them.
    #[inline(always)]
    pub(crate) fn may_have(&self, tid: i32) -> bool {
        let (word, bit) = place(tid);
        self.0[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_was_added_is_in_and_most_others_are_not() {
        let mut some = SomeTasks::default();
        [0, 63, 64, 1023, 70_000, -1, i32::MAX].into_iter().for_each(|tid| some.add(tid));
        assert!([0, 63, 64, 1023, 70_000, -1, i32::MAX].into_iter().all(|tid| some.may_have(tid)));
        assert!((2000..3000).filter(|tid| some.may_have(*tid)).count() < 7);
    }
}
