//! Whether a probe still has its CPUs.
//!
//! The kernel takes one that goes offline out of the affinity of its threads and moves them away
//! (`select_fallback_rq()`); with it goes the meaning of everything measured since. The drain looks
//! at the affinity each time it has emptied the ring, so that what it stores before was measured in
//! the right place for sure.

use model::Cpus;
use model::sample::{Sample, flag};
use sys::sched;

/// What is known of one probe.
#[derive(Debug)]
pub(super) struct Hold {
    /// CLOCK_MONOTONIC ns at which the affinity was last seen to be as asked.
    sure_ns: i64,
    /// The same, once it was seen to be another.
    pub(super) taken_ns: Option<i64>,
}

impl Hold {
    /// From the start of the window.
    pub(super) fn new(start_ns: i64) -> Self {
        Self { sure_ns: start_ns, taken_ns: None }
    }

    /// Looks at the affinity of the thread, at `now_ns`; false once it is another.
    pub(super) fn look(&mut self, tid: i32, wanted: &Cpus, now_ns: i64) -> bool {
        if self.taken_ns.is_none() {
            match sched::affinity_of(tid) {
                Ok(cpus) if cpus == *wanted => self.sure_ns = now_ns,
                Ok(_) => self.lost(),
                // It has ended, and says itself what it saw last.
                Err(_) => {}
            }
        }
        self.taken_ns.is_none()
    }

    /// The probe has lost its place since the last look.
    pub(super) fn lost(&mut self) {
        self.taken_ns.get_or_insert(self.sure_ns);
    }

    /// The sample, flagged where it ended after the last moment that is sure.
    pub(super) fn flagged(&self, sample: Sample) -> Sample {
        let after =
            self.taken_ns.is_some_and(|sure_ns| sample.t_ns.saturating_add(sample.value_ns) > sure_ns);
        Sample { flags: sample.flags | if after { flag::CPU_TAKEN } else { 0 }, ..sample }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_after_the_last_sure_moment_are_flagged() {
        let tid = sched::tid();
        let (own, other) = (sched::affinity().unwrap(), Cpus::one(model::cpus::MAX_CPU));
        let mut hold = Hold::new(1_000);
        let sample = |t_ns| Sample { t_ns, value_ns: 10, ..Sample::default() };
        assert!(hold.look(tid, &own, 5_000));
        assert_eq!(hold.flagged(sample(9_000)).flags, 0);
        assert!(!hold.look(tid, &other, 7_000));
        assert!(!hold.look(tid, &own, 9_000), "what was taken stays taken");
        assert_eq!(hold.taken_ns, Some(5_000));
        assert_eq!([4_990, 4_991].map(|t_ns| hold.flagged(sample(t_ns)).flags), [0, flag::CPU_TAKEN]);
    }
}
