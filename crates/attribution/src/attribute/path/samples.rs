//! The samples of one thread, by release: those to come, and those that have begun and are not
//! taken apart yet.

use super::marks::Marks;
use std::collections::VecDeque;

/// How long after a sample a span that touched it may still last, ns.
const PATIENCE_NS: i64 = 20_000_000;

/// The samples.
#[derive(Debug)]
pub(super) struct Samples {
    /// Release and latency.
    coming: VecDeque<(i64, i64)>,
    open: VecDeque<Marks>,
    /// The latest end of those that have begun.
    last_ran_ns: i64,
    /// The same without the last one, where its end is not known.
    ran_before_ns: i64,
    is_coming: bool,
    /// How many of `open` had run by then, from the first on.
    over: usize,
    over_ns: i64,
    /// Until then no sample begins, and none is to be taken apart, ns.
    due_ns: i64,
}

impl Samples {
    /// Early samples have no path to explain.
    pub(super) fn new(samples: impl Iterator<Item = (i64, i64)>) -> Self {
        Self {
            coming: samples.filter(|(_, value_ns)| *value_ns >= 0).collect(),
            open: VecDeque::new(),
            last_ran_ns: i64::MIN,
            ran_before_ns: i64::MIN,
            is_coming: false,
            over: 0,
            over_ns: i64::MIN,
            due_ns: i64::MIN,
        }
    }

    /// A sample begins whose end is not known yet.
    pub(super) fn released(&mut self, release_ns: i64) {
        self.ran_before_ns = self.last_ran_ns;
        self.begin(release_ns, i64::MAX);
        self.is_coming = true;
    }

    /// When that sample's thread ran; `None` where it did not.
    pub(super) fn ran(&mut self, ran_ns: Option<i64>) {
        if !std::mem::take(&mut self.is_coming) {
            return;
        }
        self.last_ran_ns = self.ran_before_ns;
        match (ran_ns, self.open.back_mut()) {
            (Some(ran_ns), Some(marks)) => {
                marks.ran_ns = ran_ns;
                self.last_ran_ns = self.last_ran_ns.max(ran_ns);
            }
            _ => drop(self.open.pop_back()),
        }
        self.find_due();
    }

    fn begin(&mut self, release_ns: i64, ran_ns: i64) {
        self.open.push_back(Marks::new(release_ns, ran_ns));
        self.last_ran_ns = self.last_ran_ns.max(ran_ns);
    }

    /// Whether a sample begins by now, or is to be taken apart.
    #[inline(always)]
    pub(super) fn are_due(&self, ts_ns: i64) -> bool {
        ts_ns >= self.due_ns
    }

    /// Begins the samples released by now.
    pub(super) fn begin_until(&mut self, ts_ns: i64) {
        while let Some(&(release_ns, value_ns)) = self.coming.front()
            && release_ns <= ts_ns
        {
            self.coming.pop_front();
            self.begin(release_ns, release_ns.saturating_add(value_ns));
        }
    }

    /// The next sample that ended long ago.
    pub(super) fn pop_ended(&mut self, ts_ns: i64) -> Option<Marks> {
        let ended = self.open.front().is_some_and(|first| first.ran_ns.saturating_add(PATIENCE_NS) < ts_ns);
        if ended {
            return self.pop();
        }
        self.find_due();
        None
    }

    /// The first open sample.
    pub(super) fn pop(&mut self) -> Option<Marks> {
        self.over = self.over.saturating_sub(1);
        self.open.pop_front()
    }

    fn find_due(&mut self) {
        let closes = self.open.front().map(|first| first.ran_ns.saturating_add(PATIENCE_NS + 1));
        let begins = self.coming.front().map(|next| next.0);
        self.due_ns = closes.unwrap_or(i64::MAX).min(begins.unwrap_or(i64::MAX));
    }

    /// The first release of a sample not taken apart yet, ns: no sample needs what ended before.
    #[inline(always)]
    pub(super) fn next_release(&self) -> Option<i64> {
        self.open.front().map(|marks| marks.release_ns).or(self.coming.front().map(|next| next.0))
    }

    /// The sample being served: the first that has not run yet.
    pub(super) fn in_service(&mut self, ts_ns: i64) -> Option<&mut Marks> {
        // Those that have run wait in front until they are taken apart.
        if ts_ns < std::mem::replace(&mut self.over_ns, ts_ns) {
            self.over = 0;
        }
        while self.open.get(self.over).is_some_and(|marks| marks.ran_ns < ts_ns) {
            self.over += 1;
        }
        let waiting = self.open.range_mut(self.over.min(self.open.len())..);
        waiting.into_iter().find(|marks| marks.release_ns <= ts_ns && ts_ns <= marks.ran_ns)
    }

    /// False where something ran between two of them.
    #[inline(always)]
    pub(super) fn may_touch(&self, [t0_ns, t1_ns]: [i64; 2]) -> bool {
        t0_ns < self.last_ran_ns || self.coming.front().is_some_and(|next| t1_ns > next.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Even if samples overlap or time goes back: the first one released and not ended.
        #[test]
        fn the_first_that_has_not_run_is_served(
            samples in prop::collection::vec((0i64..40, 0i64..40), 1..12),
            times in prop::collection::vec(0i64..100, 1..30),
        ) {
            let mut sorted = samples;
            sorted.sort_unstable();
            let mut ours = Samples::new(sorted.iter().copied());
            ours.begin_until(i64::MAX);
            for at in times {
                let first = sorted.iter().find(|(release, value)| *release <= at && at <= release + value);
                let served = ours.in_service(at).map(|marks| (marks.release_ns, marks.ran_ns - marks.release_ns));
                prop_assert_eq!(served, first.copied());
            }
        }
    }

    #[test]
    fn one_without_an_end_is_known_by_it_later_or_was_none() {
        let mut samples = Samples::new([(10, 5)].into_iter());
        samples.begin_until(10);
        samples.released(20);
        assert_eq!(samples.in_service(30).unwrap().release_ns, 20);
        assert!(samples.may_touch([1_000, 1_001]));
        samples.ran(Some(25));
        assert!(samples.in_service(30).is_none() && !samples.may_touch([25, 30]));
        samples.released(40);
        samples.ran(None);
        assert!(samples.in_service(40).is_none() && samples.pop_ended(15 + PATIENCE_NS).is_none());
        let ended = [0; 3].map(|_| samples.pop_ended(i64::MAX).map(|marks| marks.release_ns));
        assert_eq!(ended, [Some(10), Some(20), None]);
    }
}
