//! What jobs of one kind have in common.

use super::follow::Released;
use super::separate::Job;
use super::shape::Suspending;
use crate::attribute::watch::waker::By;
use infer::bucket::Buckets;
use infer::cost::Costs;
use infer::delta_min::{DeltaMin, Distances};
use infer::periodic::{Fit, Periodic};
use infer::regular::Regular;
use infer::{Disorder, Window};
use rustc_hash::FxHashMap;

/// Releases, and jobs in a row, that curves reach to.
pub(super) const LONGEST_CURVE: usize = 64;
/// Wakers that are counted one by one.
const MOST_WAKERS: usize = 16;

/// Sums over the jobs of one kind. Memory: constant.
#[derive(Debug)]
pub(super) struct JobSums {
    pub(super) n: u64,
    /// Jobs whose release is uncertain.
    pub(super) uncertain: u64,
    pub(super) regular: Regular,
    /// Of the intended releases alone, where a timer had one.
    pub(super) intended: Regular,
    pub(super) lime: Periodic,
    pub(super) shortest: DeltaMin,
    pub(super) costs: Costs,
    pub(super) demand: Buckets,
    pub(super) suspended_ns: u64,
    pub(super) suspensions: u64,
    pub(super) suspending: Suspending,
    pub(super) response_ns: u64,
    /// From the intended release to the wake-up, at most, ns; `None` where no timer was behind it.
    pub(super) late_ns: Option<u64>,
    /// Of the first and of the last release, ns.
    pub(super) extent_ns: Option<[i64; 2]>,
    /// Releases by each waker.
    pub(super) wakers: FxHashMap<By, u64>,
}

impl Default for JobSums {
    fn default() -> Self {
        Self {
            n: 0,
            uncertain: 0,
            regular: Regular::default(),
            intended: Regular::default(),
            lime: Periodic::new(Fit::Certain),
            shortest: DeltaMin::new(Distances::Shortest, LONGEST_CURVE),
            costs: Costs::new(LONGEST_CURVE),
            demand: Buckets::default(),
            suspended_ns: 0,
            suspensions: 0,
            suspending: Suspending::default(),
            response_ns: 0,
            late_ns: None,
            extent_ns: None,
            wakers: FxHashMap::default(),
        }
    }
}

impl JobSums {
    pub(super) fn add(&mut self, job: &Job) -> Result<(), Disorder> {
        let Released { window, is_uncertain, by } = job.release;
        self.regular.add(window)?;
        self.shortest.add(window)?;
        self.lime.add(window)?;
        self.costs.add(job.executed_ns);
        self.demand.add(window.latest_ns, job.executed_ns);
        self.n += 1;
        self.uncertain += u64::from(is_uncertain);
        self.suspended_ns = self.suspended_ns.max(job.suspended_ns);
        self.suspensions = self.suspensions.max(job.suspensions);
        if job.suspensions > 0 {
            self.suspending.jobs += 1;
            self.suspending.suspensions += job.suspensions;
            self.suspending.total_ns = self.suspending.total_ns.saturating_add(job.suspended_ns);
        }
        self.response_ns = self.response_ns.max(job.response_ns());
        if matches!(by, By::Timer { .. }) && !is_uncertain {
            let late_ns = window.latest_ns.abs_diff(window.earliest_ns);
            self.late_ns = Some(self.late_ns.unwrap_or(0).max(late_ns));
            // The windows are in order, so their beginnings are.
            self.intended.add(Window::at(window.earliest_ns))?;
        }
        let [first_ns, _] = self.extent_ns.unwrap_or([window.earliest_ns; 2]);
        self.extent_ns = Some([first_ns, window.latest_ns]);
        let by =
            if self.wakers.len() < MOST_WAKERS || self.wakers.contains_key(&by) { by } else { By::Unknown };
        *self.wakers.entry(by).or_default() += 1;
        Ok(())
    }
}
