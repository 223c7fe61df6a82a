//! What each job of a thread executes and how it sleeps, after those that were observed.

use super::releases::signed;
use model::load::{Jobs, Share};

/// One job: it executes, then sleeps and executes again as often as it has sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Job {
    /// Executed in all, ns.
    pub(super) cost_ns: i64,
    /// Asleep in all, ns.
    pub(super) asleep_ns: u64,
    /// In so many sleeps.
    pub(super) sleeps: u64,
}

/// Gives one job after the other. As many jobs in a row as the curve has execute what makes up the
/// curve, so that all of it is there; the others what remains of the total, each the same.
#[derive(Debug)]
pub(super) struct EachJob {
    curve_ns: Vec<u64>,
    rest_ns: u64,
    round: u64,
    jobs: Jobs,
    next: u64,
    slept: u64,
}

impl EachJob {
    pub(super) fn new(jobs: &Jobs) -> Self {
        let curve = jobs.most_ns.iter().enumerate();
        let before = |at: usize| at.checked_sub(1).map_or(0, |at| jobs.most_ns[at]);
        let curve_ns: Vec<u64> = curve.map(|(at, ns)| ns.saturating_sub(before(at))).collect();
        let round = jobs.n.max(curve_ns.len() as u64).max(1);
        let others = round - curve_ns.len() as u64;
        let rest_ns = jobs.total_ns.saturating_sub(jobs.most_ns.last().copied().unwrap_or(0));
        let rest_ns = rest_ns.checked_div(others).unwrap_or(0);
        Self { curve_ns, rest_ns, round, jobs: jobs.clone(), next: 0, slept: 0 }
    }

    pub(super) fn next(&mut self) -> Job {
        // The first job of a trace is often cut off: the curve begins with the second.
        let place = (self.next + self.round - 1) % self.round;
        let of_curve = usize::try_from(place).ok().and_then(|place| self.curve_ns.get(place));
        let cost_ns = signed(*of_curve.unwrap_or(&self.rest_ns));
        let sleeps = self.jobs.sleeps;
        let suspends = Share { n: sleeps.jobs, of: self.jobs.n.max(1) }.in_job(self.next) > 0;
        self.next += 1;
        if !suspends {
            return Job { cost_ns, asleep_ns: 0, sleeps: 0 };
        }
        let place = self.slept % sleeps.jobs.max(1);
        self.slept += 1;
        // One has the longest and the most, the others what remains.
        if place == sleeps.jobs / 2 {
            return Job { cost_ns, asleep_ns: sleeps.longest_ns, sleeps: sleeps.most.max(1) };
        }
        let others = sleeps.jobs - 1;
        let asleep_ns = sleeps.total_ns.saturating_sub(sleeps.longest_ns) / others;
        let n = (sleeps.n.saturating_sub(sleeps.most) + others / 2) / others;
        Job { cost_ns, asleep_ns: asleep_ns.min(sleeps.longest_ns), sleeps: n.clamp(1, sleeps.most.max(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::load::Sleeps;
    use proptest::prelude::*;

    #[test]
    fn jobs_sleep_as_often_and_as_long_as_those_observed() {
        let sleeps = Sleeps { jobs: 5, n: 9, total_ns: 500, longest_ns: 180, most: 5 };
        let jobs = Jobs { most_ns: vec![7, 9], total_ns: 49, n: 10, sleeps };
        let mut each = EachJob::new(&jobs);
        let found: Vec<Job> = (0..10).map(|_| each.next()).collect();
        assert_eq!(found.iter().map(|job| job.cost_ns).collect::<Vec<_>>(), [5, 7, 2, 5, 5, 5, 5, 5, 5, 5]);
        assert_eq!(found.iter().filter(|job| job.sleeps > 0).count(), 5);
        assert_eq!(found.iter().map(|job| job.asleep_ns).sum::<u64>(), 500);
        assert_eq!(found.iter().map(|job| job.sleeps).sum::<u64>(), 9);
        assert_eq!(found.iter().map(|job| (job.asleep_ns, job.sleeps)).max(), Some((180, 5)));
    }

    #[test]
    fn jobs_of_which_nothing_is_known_do_nothing() {
        let mut each = EachJob::new(&Jobs::default());
        assert_eq!(each.next(), Job { cost_ns: 0, asleep_ns: 0, sleeps: 0 });
    }

    proptest! {
        #[test]
        fn so_many_jobs_in_a_row_execute_what_the_curve_says(
            costs in prop::collection::vec(1u64..1_000, 1..60),
            most in 1usize..10,
        ) {
            let largest = |n: usize| costs.windows(n).map(|some| some.iter().sum::<u64>()).max().unwrap();
            let most_ns: Vec<u64> = (1..=most.min(costs.len())).map(largest).collect();
            let n = costs.len() as u64;
            let total_ns = costs.iter().sum();
            let jobs = Jobs { most_ns: most_ns.clone(), total_ns, n, sleeps: Sleeps::default() };
            let mut each = EachJob::new(&jobs);
            let found: Vec<i64> = (0..costs.len()).map(|_| each.next().cost_ns).collect();
            // All but what does not divide.
            prop_assert!(total_ns - found.iter().sum::<i64>() as u64 <= n);
            let mut next = EachJob::new(&jobs);
            next.next();
            for (at, most) in most_ns.iter().enumerate() {
                let sum: i64 = found.iter().skip(1).take(at + 1).sum();
                prop_assert!(at + 1 >= costs.len() || sum as u64 == *most);
            }
        }
    }
}
