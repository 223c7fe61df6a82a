//! How much more jitter or cost a core tolerates beside its overheads.
//!
//! The charges only grow where a jitter or a cost does: the core must do more, and interrupts come
//! with more jitter. The margins are therefore found as without overheads, by binary search.

use super::{Overheads, charge_fixed, earliest_deadline, fixed_priorities};
use crate::analyze::{Refusal, Test, beyond};
use crate::fp_rta::Level;
use crate::largest::largest;
use crate::task::TaskSet;
use crate::window::{Limits, Load};

/// Whether the tasks of one core meet all deadlines with the overheads counted, `fp-rta` or
/// `edf-qpa`. What is out of range does not.
pub fn meets_deadlines(
    set: &TaskSet,
    test: Test,
    overheads: &Overheads,
    limits: Limits,
) -> Result<bool, Refusal> {
    overheads.check()?;
    match test {
        Test::FpRta => Ok(fixed_priorities(set, overheads, limits).is_ok_and(|verdict| verdict.schedulable)),
        Test::EdfQpa => Ok(earliest_deadline(set, overheads, limits).schedulable),
        _ => Err(beyond(test, "overheads", "fp-rta or edf-qpa")),
    }
}

/// Fixed priorities: for each task the largest jitter, added to every task, at which this one meets
/// its deadline, ns; none where it does not as given.
pub fn jitter_margins(
    set: &TaskSet,
    overheads: &Overheads,
    limits: Limits,
) -> Result<Vec<Option<u64>>, Refusal> {
    overheads.check()?;
    let margin = |index: usize| {
        let tolerates = |extra_ns: u64| {
            let charged = set.with_added_jitter(extra_ns).and_then(|set| charge_fixed(&set, overheads));
            charged.is_ok_and(|charged| {
                let (tasks, index) = (charged.set.tasks(), charged.interrupts + index);
                let load = Load::of(&tasks[..index], 0);
                Level { tasks, index, extra_jitter: 0, load: &load, limits, want_slack: false }
                    .meets_deadline()
            })
        };
        tolerates(0).then(|| largest(set.tasks()[index].deadline_ns, tolerates))
    };
    Ok((0..set.tasks().len()).map(margin).collect())
}

/// EDF: the largest jitter, added to every task, at which all meet their deadlines, ns; none where
/// they do not as given, and for no tasks.
pub fn jitter_margin_edf(
    set: &TaskSet,
    overheads: &Overheads,
    limits: Limits,
) -> Result<Option<u64>, Refusal> {
    overheads.check()?;
    let Some(shortest) = set.tasks().iter().map(|task| task.deadline_ns).min() else { return Ok(None) };
    let tolerates = |extra_ns: u64| {
        set.with_added_jitter(extra_ns)
            .is_ok_and(|set| earliest_deadline(&set, overheads, limits).schedulable)
    };
    Ok(tolerates(0).then(|| largest(shortest, tolerates)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_NS, Task, cost_margin, cost_margin_where, jitter_margin};
    use proptest::prelude::*;

    #[test]
    fn a_switch_takes_twice_its_cost_off_the_margin_of_a_task_alone() {
        let set = TaskSet::new(vec![Task::implicit(100, 30)]).unwrap();
        let switches = Overheads { context_switch_ns: 5, ..Overheads::default() };
        assert_eq!(jitter_margins(&set, &switches, Limits::default()).unwrap(), [Some(60)]);
        assert_eq!(jitter_margin_edf(&set, &switches, Limits::default()).unwrap(), Some(60));
        let late = Overheads { context_switch_ns: 36, ..Overheads::default() };
        assert_eq!(jitter_margins(&set, &late, Limits::default()).unwrap(), [None]);
        assert!(meets_deadlines(&set, Test::FpLimited, &switches, Limits::default()).is_err());
        let none = Overheads { tick_ns: 1, ..Overheads::default() };
        assert!(jitter_margins(&set, &none, Limits::default()).is_err());
        assert!(
            meets_deadlines(
                &set,
                Test::EdfQpa,
                &Overheads { ipi_ns: MAX_NS + 1, ..switches },
                Limits::default()
            )
            .is_err()
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        #[test]
        fn margins_hold_and_one_more_does_not(
            rows in prop::collection::vec((100u64..1_000, 5u64..100, 80u64..=100), 1..5),
            numbers in (0u64..10, 0u64..5, 0u64..5, 0u64..5, 50u64..200, 0u64..5),
        ) {
            let task = |&(period_ns, cost_ns, percent): &(u64, u64, u64)| Task {
                deadline_ns: period_ns * percent / 100, ..Task::implicit(period_ns, cost_ns)
            };
            let set = TaskSet::new(rows.iter().map(task).collect()).unwrap();
            let limits = Limits::default();
            let plain = jitter_margins(&set, &Overheads::default(), limits).unwrap();
            prop_assert_eq!(plain, jitter_margin(&set, limits).per_task_ns);
            let overheads = Overheads {
                release_latency_ns: numbers.0, release_ns: numbers.1, schedule_ns: numbers.2, tick_ns: numbers.3,
                tick_period_ns: numbers.4, cache_related_ns: numbers.5, ..Overheads::default()
            };
            for test in [Test::FpRta, Test::EdfQpa] {
                let margin = match test {
                    Test::FpRta => jitter_margins(&set, &overheads, limits).unwrap().into_iter().min().flatten(),
                    _ => jitter_margin_edf(&set, &overheads, limits).unwrap(),
                };
                let holds = |set: &TaskSet| meets_deadlines(set, test, &overheads, limits).unwrap();
                prop_assert_eq!(margin.is_some(), holds(&set));
                if let Some(margin) = margin {
                    prop_assert!(holds(&set.with_added_jitter(margin).unwrap()));
                    prop_assert!(!holds(&set.with_added_jitter(margin + 1).unwrap()));
                }
                let costs = cost_margin_where(&set, holds);
                prop_assert_eq!(costs.factor_ppm.is_some_and(|factor| factor >= 1_000_000), holds(&set));
                let without = cost_margin(&set, limits).factor_ppm;
                prop_assert!(test == Test::EdfQpa || costs.factor_ppm <= without);
            }
        }
    }
}
