//! Response times under earliest deadline first on one core, with release jitter, arrival curves,
//! cost curves and the supply of the core.
//!
//! A job that arrives `a` after the beginning of a busy window ends at the least t with
//!
//! > t = the time in which the core supplies B + the own jobs that arrive up to a + of every other
//! > task k the jobs released before t that are due up to a + D
//!
//! and R = max (t - a) over all a at which one of these counts grows, up to the longest busy window
//! (Spuri, "Analysis of deadline scheduled real-time systems", INRIA report 2772, 1996; with arrival
//! curves: Bozhko and Brandenburg, ECRTS 2020, whose proof a machine has checked). A job released in
//! the window arrives J before it at the earliest, so that its jobs due by then lie in an interval of
//! a + D - D_k + J_k. Blocking is the largest of the set, as in `edf_qpa`: both say yes to the same
//! sets.

use crate::flow::{Flow, MARGIN, Rounds, Unanswered, supply_of, time_for};
use crate::supply::Supply;
use crate::system::SystemTask;
use crate::task::Task;
use crate::verdict::Verdict;
use crate::window::Work;

/// Response times of the tasks of one core.
pub(crate) fn response_times_edf(tasks: &[&SystemTask], work: &mut Work) -> Verdict {
    let plain: Vec<Task> = tasks.iter().map(|one| one.task).collect();
    let mut verdict = Verdict::unanswered(&plain);
    let mut core = Core {
        supply: supply_of(tasks),
        blocking_ns: plain.iter().map(|task| task.blocking_ns).max().unwrap_or(0),
        flows: tasks.iter().map(|one| Flow::of(one)).collect(),
    };
    let load: f64 = core.flows.iter().map(Flow::load).sum();
    if load > core.supply.map_or(1.0, Supply::share) * (1.0 + MARGIN) {
        return verdict;
    }
    let mut longest = None;
    for index in 0..plain.len() {
        let Some(limits) = work.rounds_of(plain.len()) else {
            verdict.undecided.push(index);
            continue;
        };
        let mut rounds = Rounds { used: 0, cap: limits.rounds_per_task };
        let outcome = match longest {
            Some(longest) => Ok(longest),
            None => core.longest_window(&mut rounds),
        };
        let outcome = outcome.and_then(|window| {
            longest = Some(window);
            core.response(index, window, &mut rounds)
        });
        work.spend(rounds.used, plain.len());
        verdict.rounds += rounds.used;
        match outcome {
            Ok(response_ns) => verdict.response_times[index] = Some(response_ns),
            Err(Unanswered::Late) => {}
            Err(Unanswered::Undecided) => verdict.undecided.push(index),
        }
    }
    verdict.schedulable = verdict.undecided.is_empty() && verdict.meets_deadlines();
    verdict
}

struct Core {
    supply: Option<Supply>,
    blocking_ns: u64,
    flows: Vec<Flow>,
}

impl Core {
    /// The longest window in which the core always has work, ns.
    fn longest_window(&mut self, rounds: &mut Rounds) -> Result<u64, Unanswered> {
        let mut window = 1;
        loop {
            rounds.take()?;
            let mut demand = self.blocking_ns;
            for one in &mut self.flows {
                demand = demand.saturating_add(one.demand(window).ok_or(Unanswered::Undecided)?);
            }
            let next = time_for(self.supply, demand);
            if next <= window {
                return Ok(window);
            }
            if next == u64::MAX {
                return Err(Unanswered::Undecided);
            }
            window = next;
        }
    }

    fn response(&mut self, own: usize, longest: u64, rounds: &mut Rounds) -> Result<u64, Unanswered> {
        let task = self.flows[own].task;
        let (mut worst, mut end) = (0, 1);
        // `None` before the first arrival, which is J before the window.
        let mut arrival = -i128::from(task.jitter_ns);
        loop {
            end = self.end(own, arrival, end, rounds)?;
            worst = worst.max(u64::try_from(i128::from(end) - arrival).unwrap_or(0));
            match self.next_step(own, arrival, rounds)? {
                Some(next) if next < i128::from(longest) => arrival = next,
                _ => return Ok(worst),
            }
        }
    }

    /// The end of a job that arrives so long after the beginning of the window, if it is in time.
    /// An earlier one ends no later, and not before `start`.
    fn end(&mut self, own: usize, arrival: i128, start: u64, rounds: &mut Rounds) -> Result<u64, Unanswered> {
        let due = arrival + i128::from(self.flows[own].task.deadline_ns);
        let mut end = start;
        loop {
            if i128::from(end) > due {
                return Err(Unanswered::Late);
            }
            rounds.take()?;
            let mut demand = self.blocking_ns;
            for (index, one) in self.flows.iter_mut().enumerate() {
                let Task { deadline_ns, jitter_ns, .. } = one.task;
                let by_due = due - i128::from(deadline_ns) + i128::from(jitter_ns) + 1;
                let by_due = u64::try_from(by_due.max(0)).map_err(|_| Unanswered::Undecided)?;
                let released = if index == own { by_due } else { by_due.min(end.saturating_add(jitter_ns)) };
                let jobs = one.releases.within(released).ok_or(Unanswered::Undecided)?;
                demand = demand.saturating_add(one.costs.of_jobs(jobs).ok_or(Unanswered::Undecided)?);
            }
            let next = time_for(self.supply, demand);
            if next <= end {
                return Ok(end);
            }
            end = next;
        }
    }

    /// The first arrival after this one at which one more job is due in time.
    fn next_step(
        &mut self,
        own: usize,
        arrival: i128,
        rounds: &mut Rounds,
    ) -> Result<Option<i128>, Unanswered> {
        rounds.take()?;
        let due = arrival + i128::from(self.flows[own].task.deadline_ns);
        let mut next: Option<i128> = None;
        for one in &mut self.flows {
            let Task { deadline_ns, jitter_ns, .. } = one.task;
            // Where the first job of this task arrives with these deadlines and jitters.
            let first = i128::from(deadline_ns) - i128::from(jitter_ns);
            let length = u64::try_from((due - first + 1).max(0)).map_err(|_| Unanswered::Undecided)?;
            let jobs = one.releases.within(length).ok_or(Unanswered::Undecided)?;
            let far = one.releases.until(jobs).ok_or(Unanswered::Undecided)?;
            let step = i128::from(far) + first - due + arrival;
            next = Some(next.map_or(step, |next| next.min(step)));
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::{Test, analyze};
    use crate::question;
    use crate::system::System;
    use crate::window::Limits;
    use proptest::prelude::*;

    fn answer(tasks: &[Task], test: Test) -> Verdict {
        let system = System { cores: 1, tasks: tasks.iter().map(|task| (*task).into()).collect() };
        analyze(&system, test, Limits::default()).unwrap()
    }

    #[test]
    fn responses_by_hand() {
        let task = |period, deadline_ns, cost| Task { deadline_ns, ..Task::implicit(period, cost) };
        // The second may wait for the first, which arrives 2 after it and is due no later.
        let two = [task(10, 4, 3), task(12, 6, 3)];
        assert_eq!(answer(&two, Test::EdfRta).response_times, [Some(4), Some(6)]);
        assert_eq!(
            answer(&[task(10, 5, 2), task(20, 20, 9)], Test::EdfRta).response_times,
            [Some(2), Some(13)]
        );
        assert_eq!(answer(&[task(10, 5, 6)], Test::EdfRta).response_times, [None]);
        let late = Task { jitter_ns: 2, ..task(10, 5, 3) };
        assert_eq!(answer(&[late], Test::EdfRta).response_times, [Some(5)]);
        assert_eq!(answer(&[Task { jitter_ns: 3, ..late }], Test::EdfRta).response_times, [None]);
        assert!(answer(&[], Test::EdfRta).schedulable);
    }

    #[test]
    fn curves_and_supply_count() {
        let line = r#"{"supply":{"budget":4,"period":10},"tasks":[{"arrivals":[[0,2],[90,3]],"cost":2,"deadline":50},{"period":60,"costs":[3,4],"deadline":60}]}"#;
        let question = question::read(line).unwrap();
        let verdict = analyze(&question.system, Test::EdfRta, Limits::default()).unwrap();
        // Two releases and one of the other: 7 of the budget.
        assert_eq!(verdict.response_times, [Some(16), Some(25)]);
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let most = crate::MAX_NS;
        let full =
            Task { period_ns: most, deadline_ns: most, cost_ns: most, jitter_ns: most, blocking_ns: most };
        let dense = Task { period_ns: 1, ..full };
        for set in [vec![full], vec![full; 3], vec![dense, full], vec![full, Task::implicit(1, 1)]] {
            assert!(!answer(&set, Test::EdfRta).schedulable);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn accepts_exactly_what_processor_demand_accepts(
            tasks in prop::collection::vec((4u64..40, 1u64..14, 10u64..250, 0u64..12, 0u64..5), 1..6),
            blocked in any::<bool>(),
        ) {
            let tasks: Vec<Task> = tasks.iter().map(|&(period_ns, cost_ns, deadline, jitter_ns, blocking)| Task {
                period_ns, cost_ns, jitter_ns,
                deadline_ns: (period_ns * deadline / 100).max(1),
                blocking_ns: if blocked { blocking } else { 0 },
            }).collect();
            let (times, demand) = (answer(&tasks, Test::EdfRta), answer(&tasks, Test::EdfQpa));
            if times.undecided.is_empty() {
                prop_assert_eq!(times.schedulable, demand.schedulable, "{:?}", times.response_times);
            }
        }
    }
}
