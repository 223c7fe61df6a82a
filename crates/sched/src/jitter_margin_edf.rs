//! The largest release jitter, the same for every task on top of its own, at which a set still
//! meets its deadlines under EDF. Exact to the nanosecond.
//!
//! Jitter takes from deadlines and leaves periods (see `edf_qpa`), so that no demand falls when it
//! grows: the jitters a set tolerates are those from 0 to some largest one, which a search by
//! halves finds. A task that is alone needs C of D - J.

use crate::edf_qpa::edf_qpa;
use crate::largest::largest;
use crate::task::TaskSet;
use crate::window::Limits;

/// The margin, ns; none if the set is not schedulable as given, or has no task to limit it. A
/// question left open at the cap counts as late.
pub fn jitter_margin_edf(set: &TaskSet, limits: Limits) -> Option<u64> {
    let tolerates =
        |extra: u64| set.with_added_jitter(extra).is_ok_and(|set| edf_qpa(&set, limits).schedulable);
    let room = |task: &crate::task::Task| task.deadline_ns.checked_sub(task.jitter_ns + task.cost_ns);
    let most = set.tasks().iter().map(room).min()??;
    tolerates(0).then(|| largest(most + 1, tolerates))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use proptest::prelude::*;

    #[test]
    fn a_full_core_tolerates_what_its_demand_leaves() {
        // With 1 ns more than 1, 41 ns are due in 40.
        let set = TaskSet::new(vec![Task::implicit(10, 5), Task::implicit(14, 7)]).unwrap();
        let margin = jitter_margin_edf(&set, Limits::default());
        let holds = |extra| edf_qpa(&set.with_added_jitter(extra).unwrap(), Limits::default()).schedulable;
        assert_eq!(margin, (0..10).take_while(|extra| holds(*extra)).last());
        assert_eq!(jitter_margin_edf(&TaskSet::default(), Limits::default()), None);
        let late = TaskSet::new(vec![Task::implicit(10, 11)]).unwrap();
        assert_eq!(jitter_margin_edf(&late, Limits::default()), None);
    }

    proptest! {
        #[test]
        fn is_the_last_jitter_that_holds(rows in prop::collection::vec((10u64..200, 1u64..40, 50u64..200, 0u64..20), 1..6)) {
            let task = |&(period_ns, cost_ns, percent, jitter_ns): &(u64, u64, u64, u64)| Task {
                deadline_ns: period_ns * percent / 100, jitter_ns, ..Task::implicit(period_ns, cost_ns)
            };
            let set = TaskSet::new(rows.iter().map(task).collect()).unwrap();
            let holds = |extra| edf_qpa(&set.with_added_jitter(extra).unwrap(), Limits::default()).schedulable;
            let scanned = (0..420).take_while(|extra| holds(*extra)).last();
            prop_assert_eq!(jitter_margin_edf(&set, Limits::default()), scanned);
        }
    }
}
