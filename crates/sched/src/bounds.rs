//! What a task may have in place of a period and a cost: curves of releases and of costs; and the
//! supply of its core.
//!
//! An arrival curve is given as the shortest interval in which n jobs are released, for n = 2, 3,
//! …; a cost curve as the most execution of n jobs in a row, for n = 1, 2, …. Both bound what they
//! do not list: k jobs and then l more, of which the first is the last of the k, take at least
//! both intervals, and k + l jobs cost at most what k and l do (K. Richter, "Compositional
//! scheduling analysis using standard event models", thesis, Braunschweig 2005; Quinton, Hanke and
//! Ernst, "Formal analysis of sporadic overload in real-time systems", DATE 2012). By the same
//! rules the numbers given bound each other.

use crate::supply::Supply;

/// Most entries of a curve: what follows from them takes time that grows with their square.
pub const MAX_ENTRIES: usize = 1_000;

/// What [`crate::SystemTask`] has beyond a sporadic task on a whole core.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The shortest intervals in which 2, 3, … jobs are released, ns, ascending, the last at least
    /// 1; empty for a sporadic task. The period is then the first of them, or 1.
    pub intervals_ns: Vec<u64>,
    /// The most execution of 1, 2, … jobs in a row, ns, ascending, the first at least 1; empty where
    /// every job may take the cost. The cost is then the first of them.
    pub costs_ns: Vec<u64>,
    /// What the core supplies, the same for every task of it; none for a whole core.
    pub supply: Option<Supply>,
}

impl Bounds {
    /// Whether there is nothing beyond a sporadic task on a whole core.
    pub fn is_empty(&self) -> bool {
        self.intervals_ns.is_empty() && self.costs_ns.is_empty() && self.supply.is_none()
    }
}

/// Most jobs of a task in a row that are looked at.
const MOST_JOBS: usize = 1 << 17;

/// When jobs of one task are released at the earliest.
#[derive(Debug, Clone)]
pub(crate) enum Releases {
    /// A period apart.
    Sporadic(u64),
    /// `from_first[n]`: the shortest interval from a job to the n-th after it; and how many of them
    /// were given.
    Curve { from_first: Vec<u64>, given: usize },
}

impl Releases {
    pub(crate) fn of(period_ns: u64, intervals_ns: &[u64]) -> Self {
        if intervals_ns.is_empty() {
            return Self::Sporadic(period_ns);
        }
        let mut from_first = vec![0];
        for (at, given) in intervals_ns.iter().enumerate() {
            let implied = longest_sum(&from_first, at + 1, at);
            from_first.push(implied.max(*given));
        }
        Self::Curve { from_first, given: intervals_ns.len() }
    }

    /// The shortest interval from the release of a job to that of the `after`-th job after it; none
    /// where that is too far away to look.
    pub(crate) fn until(&mut self, after: u64) -> Option<u64> {
        match self {
            Self::Sporadic(period_ns) => after.checked_mul(*period_ns),
            Self::Curve { from_first, given } => {
                let after = usize::try_from(after).ok().filter(|after| *after < MOST_JOBS)?;
                while from_first.len() <= after {
                    from_first.push(longest_sum(from_first, from_first.len(), *given));
                }
                from_first.get(after).copied()
            }
        }
    }

    /// The most releases in an interval of this length, open at one end; none where there are too
    /// many to look at.
    pub(crate) fn within(&mut self, length_ns: u64) -> Option<u64> {
        if let Self::Sporadic(period_ns) = self {
            return Some(length_ns.div_ceil(*period_ns));
        }
        let last = |known: &Self| match known {
            Self::Curve { from_first, .. } => (from_first.len() as u64, from_first.last().copied()),
            Self::Sporadic(_) => (0, None),
        };
        loop {
            let (next, far) = last(self);
            if far.is_some_and(|far| far >= length_ns) {
                break;
            }
            self.until(next)?;
        }
        match self {
            Self::Curve { from_first, .. } => Some(from_first.partition_point(|&far| far < length_ns) as u64),
            Self::Sporadic(_) => None,
        }
    }

    /// Releases per ns in the long run, at most.
    pub(crate) fn rate(&self) -> f64 {
        match self {
            Self::Sporadic(period_ns) => 1.0 / *period_ns as f64,
            Self::Curve { from_first, given } => {
                let rates = from_first.iter().enumerate().skip(1).take(*given);
                rates.map(|(jobs, far)| jobs as f64 / *far as f64).fold(f64::INFINITY, f64::min)
            }
        }
    }
}

/// The longest sum of the way to a job at most `given` after the first, and from there to job `at`.
fn longest_sum(from_first: &[u64], at: usize, given: usize) -> u64 {
    let sums = (1..=given.min(at.saturating_sub(1)))
        .map(|middle| from_first[middle].saturating_add(from_first[at - middle]));
    sums.max().unwrap_or(0)
}

/// The most execution of jobs of one task in a row.
#[derive(Debug, Clone)]
pub(crate) enum Costs {
    /// Of each, the same.
    Each(u64),
    /// `of_jobs[n]`: of n jobs; and how many of them were given.
    Curve { of_jobs: Vec<u64>, given: usize },
}

impl Costs {
    pub(crate) fn of(cost_ns: u64, costs_ns: &[u64]) -> Self {
        if costs_ns.is_empty() {
            return Self::Each(cost_ns);
        }
        let mut of_jobs = vec![0];
        for (at, given) in costs_ns.iter().enumerate() {
            let implied = least_sum(&of_jobs, at + 1, at);
            of_jobs.push(implied.min(*given));
        }
        Self::Curve { of_jobs, given: costs_ns.len() }
    }

    /// Of so many jobs; none where they are too many to look at. Saturates.
    pub(crate) fn of_jobs(&mut self, jobs: u64) -> Option<u64> {
        match self {
            Self::Each(cost_ns) => Some(jobs.saturating_mul(*cost_ns)),
            Self::Curve { of_jobs, given } => {
                let jobs = usize::try_from(jobs).ok().filter(|jobs| *jobs < MOST_JOBS)?;
                while of_jobs.len() <= jobs {
                    of_jobs.push(least_sum(of_jobs, of_jobs.len(), *given));
                }
                of_jobs.get(jobs).copied()
            }
        }
    }

    /// The least by which one of so many jobs in a row adds to the cost of those before it; none
    /// where they are too many to look at.
    pub(crate) fn least(&mut self, jobs: u64) -> Option<u64> {
        self.of_jobs(jobs)?;
        match self {
            Self::Each(cost_ns) => Some(*cost_ns),
            Self::Curve { of_jobs, .. } => {
                let pairs = of_jobs.iter().zip(of_jobs.iter().skip(1)).take(jobs as usize);
                pairs.map(|(less, more)| more - less).min()
            }
        }
    }

    /// Execution per job in the long run, at most, ns.
    pub(crate) fn mean(&self) -> f64 {
        match self {
            Self::Each(cost_ns) => *cost_ns as f64,
            Self::Curve { of_jobs, given } => {
                let means = of_jobs.iter().enumerate().skip(1).take(*given);
                means.map(|(jobs, cost)| *cost as f64 / jobs as f64).fold(f64::INFINITY, f64::min)
            }
        }
    }
}

fn least_sum(of_jobs: &[u64], at: usize, given: usize) -> u64 {
    let sums = (1..=given.min(at.saturating_sub(1)))
        .map(|middle| of_jobs[middle].saturating_add(of_jobs[at - middle]));
    sums.min().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_curve_goes_on_as_its_parts_allow() {
        // Two at once, then the third 10 later at the earliest.
        let mut releases = Releases::of(1, &[0, 10]);
        let far: Vec<_> = (0..7).map(|after| releases.until(after)).collect();
        assert_eq!(far, [0, 0, 10, 10, 20, 20, 30].map(Some));
        assert_eq!([0, 1, 10, 11, 21].map(|length| releases.within(length)), [0, 2, 2, 4, 6].map(Some));
        assert!((releases.rate() - 0.2).abs() < 1e-12);
        // Three jobs 4 apart each cannot take less than 8.
        assert_eq!(Releases::of(1, &[4, 5]).until(2), Some(8));
        let mut costs = Costs::of(5, &[5, 6]);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|jobs| costs.of_jobs(jobs)), [0, 5, 6, 11, 12, 17].map(Some));
        assert_eq!(Costs::of(5, &[5, 90]).of_jobs(2), Some(10));
        assert!((costs.mean() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_too_far_away_is_said() {
        assert_eq!(Releases::of(1, &[0, 1]).within(u64::MAX), None);
        assert_eq!(Costs::of(5, &[5, 6]).of_jobs(1 << 40), None);
        assert_eq!(Releases::of(3, &[]).within(7), Some(3));
    }

    proptest! {
        /// Jobs as early as each allows: the curve is that of its own densest sequence of releases.
        #[test]
        fn no_interval_is_longer_than_the_rules_allow(
            steps in prop::collection::vec(0u64..9, 1..6), last in 1u64..9, jobs in 2usize..30,
        ) {
            let mut intervals: Vec<u64> = steps.iter().scan(0, |sum, step| { *sum += step; Some(*sum) }).collect();
            intervals.push(intervals.last().copied().unwrap_or(0) + last);
            let mut releases = Releases::of(1, &intervals);
            // Each job as early as all constraints on those before it allow.
            let mut times: Vec<u64> = Vec::new();
            for at in 0..jobs {
                let earliest = intervals.iter().enumerate().filter_map(|(n, far)| Some(times[at.checked_sub(n + 1)?] + far));
                let time = earliest.max().unwrap_or(0).max(times.last().copied().unwrap_or(0));
                times.push(time);
            }
            for (after, time) in times.iter().enumerate() {
                prop_assert_eq!(releases.until(after as u64), Some(*time));
            }
            let within = |length: u64| times.iter().filter(|time| **time < length).count() as u64;
            let known = times.last().copied().unwrap_or(0);
            for length in 0..=known {
                prop_assert_eq!(releases.within(length), Some(within(length)));
            }
        }
    }
}
