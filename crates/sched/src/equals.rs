//! Tasks of equal priority, as `SCHED_FIFO` has them: they do not preempt each other, and one that
//! becomes ready waits for all of them that did so before (sched(7)).
//!
//! Equals therefore delay a task by at most as much as tasks above it: its response time is bounded
//! by that of a task below all its equals. Each is analysed as the last; tasks of other priorities
//! do not depend on the order of equals. That holds only where the bound of a task does not depend
//! on the response times of others, which are wrong while these are not the last: not with
//! suspensions (those: `equals_suspending`), locks and global tests.

use crate::analyze::{Refusal, Test, analyze, beyond};
use crate::system::System;
use crate::verdict::Verdict;
use crate::window::Limits;
use std::ops::Range;

/// The runs of equal priorities among ascending ones, as places; empty where all differ.
pub fn equals<T: PartialEq>(priorities: &[T]) -> Vec<Range<usize>> {
    let mut from = 0;
    let mut runs = Vec::new();
    for run in priorities.chunk_by(|one, other| one == other) {
        if run.len() > 1 {
            runs.push(from..from + run.len());
        }
        from += run.len();
    }
    runs
}

/// The sentence where equals are not counted.
pub(crate) fn uncounted_equals(test: Test) -> Refusal {
    let instead = "analyze --test fp-rta, without locks, overheads and certificates";
    beyond(test, "tasks of equal priority here", instead)
}

/// Answers with each task as the last of its equals: of `fp-rta` without suspensions, and
/// `fp-limited`.
pub(crate) fn each_as_the_last(
    system: &System,
    runs: &[Range<usize>],
    test: Test,
    limits: Limits,
) -> Result<Verdict, Refusal> {
    let mut whole = analyze(system, test, limits)?;
    whole.undecided.retain(|task| !runs.iter().any(|run| run.contains(task)));
    let most = runs.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    for turn in 0..most {
        let mut turned = system.clone();
        let lasts = || runs.iter().filter(|run| turn < run.len());
        for run in lasts() {
            turned.tasks[run.start + turn..run.end].rotate_left(1);
        }
        let one = analyze(&turned, test, limits)?;
        whole.rounds += one.rounds;
        for run in lasts() {
            let (task, last) = (run.start + turn, run.end - 1);
            whole.response_times[task] = one.response_times[last];
            whole.blocking[task] = one.blocking[last];
            if one.undecided.contains(&last) {
                whole.undecided.push(task);
            }
        }
    }
    whole.undecided.sort_unstable();
    whole.schedulable = whole.undecided.is_empty() && whole.meets_deadlines();
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Ask;
    use crate::question;
    use proptest::prelude::*;

    fn answer(line: &str, test: Test) -> Result<Verdict, Refusal> {
        Ask::of(test).answer(&mut question::read(line).unwrap(), Limits::default())
    }

    #[test]
    fn equals_wait_for_each_other() {
        let line = r#"{"unit":"ms","tasks":[{"period":20,"cost":5,"deadline":5,"priority":50},{"period":20,"cost":5,"priority":50}]}"#;
        let verdict = answer(line, Test::FpRta).unwrap();
        let ms = |time: u64| Some(time * 1_000_000);
        assert_eq!((verdict.schedulable, verdict.response_times), (false, vec![None, ms(10)]));
        assert!(
            answer(&line.replacen("\"deadline\":5", "\"deadline\":10", 1), Test::FpRta).unwrap().schedulable
        );
        // The first sleeps 3 and waits for the second; so does the second, 15 behind its arrival.
        let suspends = line.replacen("\"deadline\":5", "\"suspension\":3", 1);
        let verdict = answer(&suspends, Test::FpRta).unwrap();
        assert_eq!((verdict.schedulable, verdict.response_times), (true, vec![ms(13), ms(10)]));
        // A supply is not counted there, and a set that has one is not answered as if it had none.
        let supplied = suspends.replacen('{', r#"{"supply":{"budget":1,"period":100},"#, 1);
        assert!(answer(&supplied, Test::FpRta).unwrap_err().to_string().contains("supply"));
        // EDF ignores priorities; where they matter but are not counted, they are refused.
        assert!(answer(line, Test::EdfQpa).unwrap().schedulable);
        for test in Test::ALL.into_iter().filter(|test| test.is_by_priority()) {
            match test {
                Test::FpRta | Test::FpLimited => assert!(!answer(line, test).unwrap().schedulable),
                _ => assert!(answer(line, test).unwrap_err().to_string().contains("equal priority")),
            }
        }
    }

    #[test]
    fn runs_of_equals_are_found() {
        assert_eq!(equals(&[1, 2, 2, 3, 4, 4, 4]), [1..3, 4..7]);
        assert_eq!(equals::<u64>(&[]), []);
        assert_eq!(equals(&[1, 2]), []);
    }

    /// First come first served among equals, priorities otherwise, a unit at a time: the longest
    /// response of each task.
    fn simulate(tasks: &[[u64; 4]], offsets: &[u64], until: u64) -> Vec<u64> {
        let mut ready: Vec<(u64, u64, usize, u64)> = Vec::new();
        let mut longest = vec![0; tasks.len()];
        for now in 0..until {
            for (task, [period, cost, priority, _]) in tasks.iter().enumerate() {
                if now >= offsets[task] && (now - offsets[task]).is_multiple_of(*period) {
                    ready.push((*priority, now, task, *cost));
                }
            }
            // The one that runs came first of its equals: the order stays until it ends.
            ready.sort_by_key(|job| (job.0, job.1));
            let Some(job) = ready.first_mut() else { continue };
            job.3 -= 1;
            if job.3 == 0 {
                longest[job.2] = longest[job.2].max(now + 1 - job.1);
                ready.remove(0);
            }
        }
        longest
    }

    proptest! {
        #[test]
        fn no_response_of_fifo_equals_is_longer_than_its_bound(
            tasks in prop::collection::vec((4u64..16, 1u64..4, 0u64..2), 2..5),
            offsets in prop::collection::vec(0u64..8, 5),
        ) {
            let mut sorted: Vec<[u64; 4]> =
                tasks.iter().enumerate().map(|(at, (t, c, p))| [*t, *c, *p, at as u64]).collect();
            sorted.sort_by_key(|one| one[2]);
            let text: Vec<String> = sorted
                .iter()
                .map(|[t, c, p, _]| format!("{{\"period\":{t},\"cost\":{c},\"priority\":{p}}}"))
                .collect();
            let bounds = answer(&format!("{{\"tasks\":[{}]}}", text.join(",")), Test::FpRta).unwrap();
            let seen = simulate(&sorted, &offsets, 600);
            for (bound, seen) in bounds.response_times.iter().zip(seen) {
                prop_assert!(bound.is_none_or(|bound| seen <= bound), "{sorted:?} {offsets:?} {bounds:?} {seen}");
            }
        }
    }
}
