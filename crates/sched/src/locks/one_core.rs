//! Priority inheritance where no resource is used by two cores: a job is blocked for a time that
//! depends on no response time, so that it goes with everything that `fp-rta` counts: deadlines
//! beyond periods, self-suspension, equal priorities, curves, and blocking by something else.
//!
//! Oracle: the adversary of the tests. Sha, Rajkumar and Lehoczky, "Priority inheritance
//! protocols", IEEE Transactions on Computers 39, 1990, theorems 3 and 6: a task below delays a job
//! by at most one section, and so does each resource, because a task below begins a section only
//! while nothing as urgent as the job is ready. While the job, or one above it, waits for a lock,
//! the core executes the holder, or what is more urgent still: nobody suspends with a lock. So
//! sections begin before the job arrives, and while it suspends itself: once more for each of its
//! suspensions (Rajkumar, "Synchronization in real-time systems", 1991, section 3). A section
//! counts if a task of at least the job's priority uses its resource; equals inherit from each
//! other.
//!
//! A job that waits for a lock does not leave its core to tasks below the holder, so it interferes
//! with those below it as if it did not wait.

use super::Protocol;
use super::answer::{MOST_TASKS, beyond};
use crate::analyze::Refusal;
use crate::asked::Question;
use crate::system::{System, SystemTask};
use crate::task::MAX_NS;

/// Whether requests stay on one core each, and no section of a job is without preemption.
pub(crate) fn is_known(system: &System) -> bool {
    let mut cores: Vec<(u32, u32)> =
        users(system).map(|(resource, at)| (resource, system.tasks[at].core)).collect();
    cores.sort_unstable();
    cores.dedup();
    cores.windows(2).all(|pair| pair[0].0 != pair[1].0) && !system.limits_preemption()
}

/// The question without locks, each task blocked as long as sections of others may block it; and
/// these times.
pub(crate) fn without_locks(question: &Question) -> Result<(Question, Vec<u64>), Refusal> {
    let name = Protocol::Pip.name();
    if question.system.tasks.len() > MOST_TASKS {
        let what = "more than 20,000 tasks, whose pairs it looks at";
        return Err(beyond(name, what, "a test without locks"));
    }
    let counted = |one: &SystemTask| one.suspension_ns == 0 || one.suspensions > 0;
    if !question.system.tasks.iter().all(counted) {
        let what = "self-suspension without the most `suspensions` of a job";
        return Err(beyond(name, what, "their number"));
    }
    let levels = levels(question);
    let ceilings = ceilings(&question.system, &levels);
    let blocked: Vec<u64> =
        (0..levels.len()).map(|at| blocked_ns(&question.system, &levels, &ceilings, at)).collect();
    let mut plain = question.clone();
    for (one, blocked_ns) in plain.system.tasks.iter_mut().zip(&blocked) {
        one.requests.clear();
        one.task.blocking_ns = one.task.blocking_ns.saturating_add(*blocked_ns).min(MAX_NS);
    }
    Ok((plain, blocked))
}

/// Resource and user, each pair as often as it stands in the question.
fn users(system: &System) -> impl Iterator<Item = (u32, usize)> + '_ {
    system.tasks.iter().enumerate().flat_map(|(at, one)| {
        one.requests.iter().filter(|request| request.count > 0).map(move |request| (request.resource, at))
    })
}

/// The place of each task's priority: equals have the same.
fn levels(question: &Question) -> Vec<usize> {
    let first = |at: usize| question.equals.iter().find(|run| run.contains(&at)).map_or(at, |run| run.start);
    (0..question.system.tasks.len()).map(first).collect()
}

/// Each resource with the highest level among its users, by number.
fn ceilings(system: &System, levels: &[usize]) -> Vec<(u32, usize)> {
    let mut all: Vec<(u32, usize)> = users(system).map(|(resource, at)| (resource, levels[at])).collect();
    all.sort_unstable();
    all.dedup_by_key(|one| one.0);
    all
}

/// How long sections of tasks below block a job, ns.
fn blocked_ns(system: &System, levels: &[usize], ceilings: &[(u32, usize)], task: usize) -> u64 {
    let own = &system.tasks[task];
    let reaches = |resource: u32| {
        let at = ceilings.binary_search_by_key(&resource, |one| one.0);
        at.is_ok_and(|at| ceilings[at].1 <= levels[task])
    };
    let below = || {
        let local = system.tasks.iter().zip(levels).filter(|(one, _)| one.core == own.core);
        local.filter(|(_, level)| **level > levels[task]).map(|(one, _)| one)
    };
    let sections = |one: &SystemTask| {
        let those = one.requests.iter().filter(|request| request.count > 0 && reaches(request.resource));
        those.map(|request| (request.resource, request.length_ns)).collect::<Vec<_>>()
    };
    let by_task = below()
        .filter_map(|one| sections(one).into_iter().map(|(_, length_ns)| length_ns).max())
        .fold(0, u64::saturating_add);
    let mut all: Vec<(u32, std::cmp::Reverse<u64>)> = below()
        .flat_map(|one| sections(one).into_iter().map(|(resource, ns)| (resource, std::cmp::Reverse(ns))))
        .collect();
    all.sort_unstable();
    all.dedup_by_key(|one| one.0);
    let by_resource = all.iter().fold(0u64, |sum, (_, longest)| sum.saturating_add(longest.0));
    let starts = u64::from(if own.suspension_ns > 0 { own.suspensions } else { 0 }) + 1;
    by_task.min(by_resource).saturating_mul(starts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Ask;
    use crate::locks::{Locks, analyze_with_locks};
    use crate::question;
    use crate::window::Limits;
    use crate::{Test, Verdict};
    use proptest::prelude::*;

    fn answer(line: &str) -> Result<Verdict, Refusal> {
        let ask = Ask { locks: Some(Locks::of(Protocol::Pip)), ..Ask::of(Test::FpRta) };
        ask.answer(&mut question::read(line.replace('\n', "")).unwrap(), Limits::default())
    }

    #[test]
    fn a_job_is_blocked_once_more_for_each_suspension() {
        let line = |suspends: &str| {
            format!(
                r#"{{"tasks":[{{"period":100,"cost":10,"requests":[{{"resource":0,"length":1}}]{suspends}}},
                {{"period":200,"cost":20,"requests":[{{"resource":0,"length":7}}]}}]}}"#
            )
        };
        assert_eq!(answer(&line("")).unwrap().response_times[0], Some(17));
        let twice = answer(&line(r#","suspension":5,"suspensions":2"#)).unwrap();
        assert_eq!((twice.response_times[0], twice.arrival[0]), (Some(10 + 5 + 21), 21));
        let refused = answer(&line(r#","suspension":5"#)).unwrap_err().to_string();
        assert!(refused.contains("the most `suspensions` of a job"), "{refused}");
    }

    #[test]
    fn equals_inherit_from_each_other_and_curves_and_late_deadlines_are_counted() {
        // The third task holds what the second uses, an equal of the first: it blocks both.
        let line = r#"{"tasks":[{"period":100,"cost":10,"priority":1},
            {"period":100,"cost":5,"priority":1,"requests":[{"resource":3,"length":1}]},
            {"arrivals":[[0,2],[300,3]],"deadline":500,"cost":20,"priority":2,"requests":[{"resource":3,"length":7}]}]}"#;
        let verdict = answer(line).unwrap();
        assert_eq!(verdict.arrival, [7, 7, 0]);
        assert_eq!(verdict.response_times, [Some(22), Some(22), Some(55)]);
        // A resource of tasks below blocks nobody above.
        let apart = answer(&line.replacen("\"resource\":3,\"length\":1", "\"resource\":4,\"length\":1", 1));
        assert_eq!(apart.unwrap().arrival, [0, 0, 0]);
    }

    #[test]
    fn what_two_cores_use_is_not_of_one() {
        let line = r#"{"cores":2,"tasks":[{"period":100,"cost":10,"requests":[{"resource":0,"length":1}]},
            {"period":200,"cost":20,"core":1,"blocking":3,"requests":[{"resource":0,"length":7}]}]}"#;
        assert!(answer(line).unwrap_err().to_string().contains("blocking by anything but locks"));
        assert!(answer(&line.replace("\"core\":1,", "")).is_ok());
    }

    proptest! {
        /// The same as the bound for several cores says of one.
        #[test]
        fn it_is_the_general_bound_of_a_single_core(
            rows in prop::collection::vec(
                (20u64..90, 4u64..9, prop::collection::vec((0u32..3, 1u64..4), 0..3)), 1..6),
        ) {
            let request = |(resource, length): &(u32, u64)| {
                format!(r#"{{"resource":{resource},"length":{length}}}"#)
            };
            let tasks: Vec<String> = rows.iter().map(|(period, cost, requests)| {
                let requests: Vec<String> = requests.iter().map(request).collect();
                format!(r#"{{"period":{period},"cost":{cost},"requests":[{}]}}"#, requests.join(","))
            }).collect();
            let question = question::read(format!(r#"{{"tasks":[{}]}}"#, tasks.join(","))).unwrap();
            let general = analyze_with_locks(&question.system, Test::FpRta, Protocol::Pip, Limits::default());
            let general = general.unwrap();
            let (plain, blocked) = without_locks(&question).unwrap();
            let answer = Ask::of(Test::FpRta).verdict(&plain, Limits::default()).unwrap();
            if general.schedulable {
                prop_assert_eq!(&general.arrival, &blocked);
                prop_assert_eq!(&general.response_times, &answer.response_times);
            } else {
                prop_assert!(!answer.schedulable);
            }
        }
    }
}
