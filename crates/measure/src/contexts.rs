//! What was around samples that reach a threshold: kept for the first few and for the largest, and
//! counted for all.
//!
//! The measurement continues: the draining side assembles the contexts from samples and polls that
//! it has anyway.

use super::look::Looks;
use model::context::{self, Context, Kept};
use model::{Cpus, Sample};
use std::collections::VecDeque;

/// Samples kept on either side.
const BESIDE: usize = 8;
/// The first so many are kept.
const FIRST: usize = 10;
/// Behind these, so many of the largest.
const WORST: usize = 10;

/// The contexts of one probe.
#[derive(Debug)]
pub(super) struct Watcher {
    threshold_ns: i64,
    over: u64,
    recent: VecDeque<Sample>,
    kept: Vec<Context>,
    /// Whether there has been no look since one was kept.
    waits: bool,
}

impl Watcher {
    pub(super) fn new(threshold_ns: i64) -> Self {
        Self {
            threshold_ns,
            over: 0,
            recent: VecDeque::with_capacity(BESIDE),
            kept: Vec::new(),
            waits: false,
        }
    }

    /// Takes a sample in its turn.
    pub(super) fn add(&mut self, sample: Sample) {
        for context in self.kept.iter_mut().filter(|context| context.after.len() < BESIDE) {
            context.after.push(sample);
        }
        if sample.counts() && sample.value_ns >= self.threshold_ns {
            self.over += 1;
            if let Some(kept) = self.room(sample.value_ns) {
                let before = self.recent.iter().copied().collect();
                self.kept.push(Context { kept, sample, before, after: Vec::new(), counted: None });
                self.waits = true;
            }
        }
        if self.recent.len() == BESIDE {
            self.recent.pop_front();
        }
        self.recent.push_back(sample);
    }

    /// Makes room for a sample of this value, if it is to be kept.
    fn room(&mut self, value_ns: i64) -> Option<Kept> {
        if self.kept.len() < FIRST {
            return Some(Kept::First);
        }
        if self.kept.len() < FIRST + WORST {
            return Some(Kept::Worst);
        }
        let large = self.kept.iter().enumerate().filter(|(_, context)| context.kept == Kept::Worst);
        let (at, least) = large.min_by_key(|(_, context)| context.sample.value_ns)?;
        (least.sample.value_ns < value_ns).then(|| self.kept.remove(at)).map(|_| Kept::Worst)
    }

    /// Whether a look is wanted: a sample that is kept has none behind it yet.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// Gives those that wait what grew around them, where both looks are there.
    pub(super) fn looked(&mut self, looks: &Looks, cpus: &Cpus, thread: u32) {
        self.waits = false;
        for context in self.kept.iter_mut().filter(|context| context.counted.is_none()) {
            let Sample { t_ns, value_ns, .. } = context.sample;
            // An early wake-up ends before its release.
            let span = [t_ns, t_ns.saturating_add(value_ns)];
            let around = looks.around(span[0].min(span[1]), span[0].max(span[1]));
            context.counted = around.map(|(before, after)| before.counted(after, cpus, thread));
        }
    }

    /// What is to be stored.
    pub(super) fn finish(mut self) -> context::Contexts {
        self.kept.sort_by_key(|context| context.sample.seq);
        context::Contexts {
            schema: context::SCHEMA.to_owned(),
            threshold_ns: self.threshold_ns,
            over: self.over,
            not_kept: self.over - self.kept.len() as u64,
            contexts: self.kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::sample::flag;
    use proptest::prelude::*;

    fn watched(values: &[i64], threshold_ns: i64) -> context::Contexts {
        let mut watcher = Watcher::new(threshold_ns);
        for (seq, &value_ns) in (0..).zip(values) {
            watcher.add(Sample { t_ns: seq as i64 * 1000, value_ns, seq, ..Sample::default() });
        }
        watcher.finish()
    }

    #[test]
    fn samples_beside_it_are_kept_in_order() {
        let mut values = vec![1; 30];
        values[20] = 9;
        let document = watched(&values, 5);
        assert_eq!((document.over, document.not_kept, document.contexts.len()), (1, 0, 1));
        let seqs = |samples: &[Sample]| samples.iter().map(|sample| sample.seq).collect::<Vec<_>>();
        assert_eq!(seqs(&document.contexts[0].before), (12..20).collect::<Vec<_>>());
        assert_eq!(seqs(&document.contexts[0].after), (21..29).collect::<Vec<_>>());
    }

    #[test]
    fn samples_that_statistics_exclude_trigger_nothing() {
        let mut watcher = Watcher::new(5);
        watcher.add(Sample { value_ns: 9, flags: flag::WARM_UP, ..Sample::default() });
        assert!(!watcher.waits());
        watcher.add(Sample { value_ns: 9, ..Sample::default() });
        assert!(watcher.waits());
        assert_eq!(watcher.finish().over, 1);
    }

    proptest! {
        #[test]
        fn the_first_and_the_largest_are_kept_and_the_rest_counted(values in proptest::collection::vec(0i64..100, 0..200)) {
            let document = watched(&values, 50);
            let over: Vec<i64> = values.iter().copied().filter(|value| *value >= 50).collect();
            prop_assert_eq!(document.over as usize, over.len());
            prop_assert_eq!(document.contexts.len() + document.not_kept as usize, over.len());
            prop_assert_eq!(document.contexts.len(), over.len().min(FIRST + WORST));
            let of = |kept| {
                let mut values: Vec<i64> = document.contexts.iter()
                    .filter(|context| context.kept == kept)
                    .map(|context| context.sample.value_ns)
                    .collect();
                values.sort_unstable();
                values
            };
            let (first, rest) = over.split_at(over.len().min(FIRST));
            let sorted = |values: &[i64]| { let mut values = values.to_vec(); values.sort_unstable(); values };
            prop_assert_eq!(of(Kept::First), sorted(first));
            let rest = sorted(rest);
            prop_assert_eq!(of(Kept::Worst), rest[rest.len().saturating_sub(WORST)..].to_vec());
        }
    }
}
