//! Response times under fixed priorities with arrival curves, cost curves and a core that supplies
//! less than all of its time.
//!
//! Every job q of the longest busy window, which begins with the releases of all: its own jobs up to
//! it, blocking, and the releases of higher priority in the window that ends with it are done at
//! the least w with
//!
//! > w = the time in which the core supplies B + cost(q + 1) + sum cost_k(releases of k in w)
//!
//! and R = max (w_q + J - the shortest way to job q), until a job ends before the next is released.
//! The equation, the offsets (the steps of the own curve) and their end are those of the abstract
//! analysis whose proofs a machine has checked (Bozhko and Brandenburg, "Abstract response-time
//! analysis: a formal foundation for the busy-window principle", ECRTS 2020), the supply as there
//! its inverse. Release jitter J lengthens the interval in which releases of others count. For
//! sporadic tasks on a whole core the values are those of `fp_rta`.

use crate::flow::{Flow, MARGIN, Rounds, Unanswered, supply_of, time_for};
use crate::supply::Supply;
use crate::system::SystemTask;
use crate::task::Task;
use crate::verdict::Verdict;
use crate::window::Work;

/// Response times of the tasks of one core, highest priority first.
pub(crate) fn response_times_with_bounds(tasks: &[&SystemTask], work: &mut Work) -> Verdict {
    let plain: Vec<Task> = tasks.iter().map(|one| one.task).collect();
    let mut verdict = Verdict::unanswered(&plain);
    let supply = supply_of(tasks);
    let mut flows: Vec<Flow> = tasks.iter().map(|one| Flow::of(one)).collect();
    let mut load = 0.0;
    for index in 0..flows.len() {
        load += flows[index].load();
        let Some(limits) = work.rounds_of(index + 1) else {
            verdict.undecided.push(index);
            continue;
        };
        // The queue grows without end.
        if load > supply.map_or(1.0, Supply::share) * (1.0 + MARGIN) {
            continue;
        }
        let (higher, own) = flows.split_at_mut(index);
        let mut rounds = Rounds { used: 0, cap: limits.rounds_per_task };
        let outcome = own.first_mut().map(|own| Core { supply, higher }.response(own, &mut rounds));
        work.spend(rounds.used, index + 1);
        verdict.rounds += rounds.used;
        match outcome {
            Some(Ok(response_ns)) => verdict.response_times[index] = Some(response_ns),
            Some(Err(Unanswered::Late)) | None => {}
            Some(Err(Unanswered::Undecided)) => verdict.undecided.push(index),
        }
    }
    verdict.schedulable = verdict.undecided.is_empty() && verdict.meets_deadlines();
    verdict
}

/// The core as the tasks above leave it.
struct Core<'a> {
    supply: Option<Supply>,
    higher: &'a mut [Flow],
}

impl Core<'_> {
    fn response(&mut self, own: &mut Flow, rounds: &mut Rounds) -> Result<u64, Unanswered> {
        let task = own.task;
        let (mut worst, mut end) = (0, 0);
        for job in 0.. {
            let arrival = own.releases.until(job).ok_or(Unanswered::Undecided)?;
            // The first arrived J before the window.
            if job > 0 && end <= arrival.saturating_sub(task.jitter_ns) {
                break;
            }
            let cost = own.costs.of_jobs(job + 1).ok_or(Unanswered::Undecided)?;
            let base = cost.saturating_add(task.blocking_ns);
            let limit = arrival.saturating_add(task.deadline_ns);
            end = self.end(base, end, limit, rounds)?;
            // With J above the way to a job it may end before that, but not before its arrival.
            worst = worst.max(end.saturating_add(task.jitter_ns).saturating_sub(arrival));
        }
        Ok(worst)
    }

    /// The end of the window of so much demand, not before `start`, if it is at most `limit`.
    fn end(&mut self, base: u64, start: u64, limit: u64, rounds: &mut Rounds) -> Result<u64, Unanswered> {
        let mut window = time_for(self.supply, base).max(start);
        loop {
            if window > limit {
                return Err(Unanswered::Late);
            }
            rounds.take()?;
            let mut demand = base;
            for one in &mut *self.higher {
                demand = demand.saturating_add(one.demand(window).ok_or(Unanswered::Undecided)?);
            }
            let next = time_for(self.supply, demand);
            if next <= window {
                return Ok(window);
            }
            window = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::{Test, analyze};
    use crate::question;
    use crate::window::Limits;
    use crate::{TaskSet, response_times};
    use proptest::prelude::*;

    fn answer(line: &str) -> Verdict {
        let question = question::read(line).unwrap();
        analyze(&question.system, Test::FpRta, Limits::default()).unwrap()
    }

    #[test]
    fn a_burst_delays_its_own_jobs_and_those_below() {
        // Three at once, the next three 40 later.
        let line =
            r#"{"tasks":[{"arrivals":[[0,2],[0,3],[40,4]],"cost":3,"deadline":9},{"period":20,"cost":5}]}"#;
        assert_eq!(answer(line).response_times, [Some(9), Some(14)]);
        // As many jobs, but each costs less after another.
        let line = r#"{"tasks":[{"arrivals":[[0,2],[0,3],[40,4]],"costs":[3,4,5],"deadline":9},{"period":20,"cost":5}]}"#;
        assert_eq!(answer(line).response_times, [Some(5), Some(10)]);
        assert!(answer(line).schedulable);
    }

    #[test]
    fn a_supply_comes_after_its_longest_gap() {
        // 2 x (10 - 4) = 12 without, then 3; the second task needs 4 of the next budget, too.
        let line =
            r#"{"supply":{"budget":4,"period":10},"tasks":[{"period":50,"cost":3},{"period":60,"cost":4}]}"#;
        assert_eq!(answer(line).response_times, [Some(15), Some(25)]);
        // The second core is whole.
        let line = r#"{"cores":2,"supply":[{"budget":4,"period":10},null],"tasks":[{"period":50,"cost":3},{"period":60,"cost":4,"core":1}]}"#;
        assert_eq!(answer(line).response_times, [Some(15), Some(4)]);
        let line = r#"{"supply":{"budget":4,"period":10},"tasks":[{"period":10,"cost":5,"deadline":1000}]}"#;
        assert_eq!(answer(line).response_times, [None]);
    }

    #[test]
    fn extreme_values_do_not_overflow_and_the_cap_is_reported() {
        let most = crate::MAX_NS;
        let line = format!(
            r#"{{"supply":{{"budget":1,"period":{most}}},"tasks":[{{"arrivals":[[0,2],[{most},3]],"costs":[{most},{most}],"deadline":{most}}},{{"period":1,"cost":{most}}}]}}"#
        );
        assert_eq!(answer(&line).response_times, [None, None]);
        // A full core whose busy window does not end among the jobs that are looked at.
        let line = format!(r#"{{"tasks":[{{"arrivals":[[0,2],[2,3]],"cost":1,"deadline":{most}}}]}}"#);
        let verdict = answer(&line);
        assert_eq!((verdict.schedulable, verdict.response_times), (true, vec![Some(2)]));
        let line = format!(
            r#"{{"tasks":[{{"arrivals":[[2,2]],"cost":1,"deadline":{most}}},{{"arrivals":[[0,2],[4,3]],"cost":1,"deadline":{most},"blocking":1}}]}}"#
        );
        assert_eq!(answer(&line).undecided, [1]);
    }

    fn tasks() -> impl Strategy<Value = Vec<Task>> {
        let one = (5u64..60, 1u64..20, 1u64..300, 0u64..20, 0u64..8);
        let task = one.prop_map(|(period_ns, cost, deadline, jitter_ns, blocking_ns)| Task {
            period_ns,
            deadline_ns: 1 + period_ns * deadline / 100,
            cost_ns: cost.min(period_ns),
            jitter_ns,
            blocking_ns,
        });
        prop::collection::vec(task, 1..6)
    }

    fn bounded(tasks: &[SystemTask]) -> Verdict {
        let tasks: Vec<&SystemTask> = tasks.iter().collect();
        response_times_with_bounds(&tasks, &mut Work::of(Limits::default()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]
        #[test]
        fn sporadic_tasks_on_a_whole_core_have_the_values_of_fp_rta(tasks in tasks()) {
            let plain = response_times(&TaskSet::new(tasks.clone()).unwrap(), Limits::default());
            let same: Vec<SystemTask> = tasks.iter().map(|task| (*task).into()).collect();
            let found = bounded(&same);
            // That test knows when a busy window of a full core repeats, and looks at one job where D <= T:
            // one that ends after the next arrival is late.
            for (at, (task, response)) in tasks.iter().zip(&plain.response_times).enumerate() {
                let first_only = task.deadline_ns <= task.period_ns && response.is_none_or(|response| response > task.period_ns);
                if !first_only && !found.undecided.contains(&at) {
                    prop_assert_eq!(found.response_times[at], *response);
                }
            }
            prop_assert!(found.schedulable == plain.schedulable || !found.undecided.is_empty());
            // The same as curves of two jobs, and with a supply that is the whole core.
            let curves: Vec<SystemTask> = tasks.iter().map(|task| SystemTask {
                bounds: Some(Box::new(crate::Bounds {
                    intervals_ns: vec![task.period_ns],
                    costs_ns: vec![task.cost_ns],
                    supply: Some(Supply { budget_ns: 7, period_ns: 7 }),
                })),
                ..(*task).into()
            }).collect();
            prop_assert_eq!(bounded(&curves).response_times, found.response_times);
        }

        #[test]
        fn monotone_in_supply_and_curves(tasks in tasks(), budget in 3u64..7, at in 0usize..6, less in 1u64..4) {
            let with = |budget_ns: u64, less: u64| {
                let task = |(index, task): (usize, &Task)| {
                    let less = if index == at { less } else { 0 };
                    let intervals_ns = vec![4 - less, task.period_ns + 4 - less, 2 * task.period_ns + 9 - less];
                    let supply = Some(Supply { budget_ns, period_ns: 7 });
                    SystemTask {
                        bounds: Some(Box::new(crate::Bounds { intervals_ns, costs_ns: Vec::new(), supply })),
                        ..Task { cost_ns: 1 + task.cost_ns / 6, deadline_ns: 3 * task.deadline_ns, ..*task }.into()
                    }
                };
                bounded(&tasks.iter().enumerate().map(task).collect::<Vec<_>>())
            };
            let before = with(budget, 0);
            for after in [with(budget - 1, 0), with(budget, less)] {
                for (after, before) in after.response_times.iter().zip(&before.response_times) {
                    prop_assert!(after.is_none() || before.is_some_and(|before| Some(before) <= *after));
                }
            }
        }
    }
}
