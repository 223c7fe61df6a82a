//! End-to-end bounds for chains of periodic tasks.
//!
//! A segment is a task and those that the end of a job releases, one after another. Its tasks have
//! the arrivals of the first: each becomes ready as late as the one before it ends, so that its
//! response, from the arrival of the first, is that of the whole up to it (Tindell and Clark,
//! "Holistic schedulability analysis for distributed hard real-time systems", Microprocessing and
//! Microprogramming 40, 1994). Responses and jitters depend on each other; they grow from none to
//! their least fixpoint, at which all of them hold.
//!
//! Between segments the next reads what is there. A value is picked up by a job that arrives within
//! a period, which ends within its response: a change of the input is answered within the sum of
//! T and R over all segments (Davare and others, "Period optimization for hard real-time
//! distributed automotive systems", DAC 2007). Backwards, a job reads what was written by a job that
//! arrived at most T and R before: an output is at most the sum of R, and of T of all segments but
//! the last, after the arrival of the job that read its input. Jobs may read and write at any time
//! while they run. Both need arrivals exactly a period apart, before jitter: jobs that come at least
//! a period apart have no longest wait.

use crate::analyze::{Refusal, Test};
use crate::ask::Ask;
use crate::asked::Question;
use crate::chain::{Chain, Edge};
use crate::system::SystemTask;
use crate::task::MAX_NS;
use crate::verdict::Verdict;
use crate::window::Limits;
use thiserror::Error;

/// Passes over all response times until they are given up.
const MOST_PASSES: usize = 10_000;

/// The bounds of one chain, ns; none where a response is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainBound {
    /// From a change of the input to the end of the first job of the last task that reflects it, or
    /// a later change. None, too, where the first task has an arrival curve: it may be silent.
    pub reaction_ns: Option<u64>,
    /// From the arrival of a job of the first task to the end of the last job of the last task that
    /// uses what it has read.
    pub age_ns: Option<u64>,
}

/// The answer for all chains of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainVerdict {
    /// Of the tasks. A response of a task that is released by another counts from the arrival of
    /// the first of its segment.
    pub tasks: Verdict,
    /// Of each chain.
    pub chains: Vec<ChainBound>,
    /// Whether all tasks meet their deadlines, and all chains the limits that they have.
    pub holds: bool,
}

/// Why chains are not bounded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChainError {
    /// The tasks have no answer.
    #[error(transparent)]
    Tasks(#[from] Refusal),
    /// A chain contradicts its tasks, or other chains.
    #[error("{field}: {found}, expected {expected}")]
    Chain {
        /// As in `chains[0].tasks[1]`.
        field: String,
        /// What is there.
        found: String,
        /// What should be.
        expected: String,
    },
}

/// Bounds chains of the tasks of a question, which it prepares.
pub fn bound_chains(
    ask: &Ask,
    question: &mut Question,
    chains: &[Chain],
    limits: Limits,
) -> Result<ChainVerdict, ChainError> {
    let has_times = matches!(ask.test, Test::FpRta | Test::FpLimited | Test::EdfRta);
    if !has_times || ask.blocking_only.is_some() {
        return Err(refused("the test", ask.test.name(), "fp-rta, fp-limited or edf-rta"));
    }
    let placed = ask.prepare(question)?;
    let priorities = question.priorities();
    let links = Links { question, priorities: &priorities, chains };
    links.check_places()?;
    let triggers = links.triggers(ask)?;
    links.check_periods()?;
    let mut tasks = if placed {
        responses(ask, question, &triggers, limits)?
    } else {
        Verdict::not_placed(&question.system)
    };
    // With suspensions and locks, responses rest on those of others.
    let apart = ask.locks.is_none() && !question.system.suspends();
    if !apart && !tasks.schedulable {
        tasks.response_times.fill(None);
    }
    let bounds: Vec<ChainBound> =
        chains.iter().map(|chain| bound(chain, question, &priorities, &tasks)).collect();
    let within = |limit: Option<u64>, bound: Option<u64>| {
        limit.is_none_or(|limit| bound.is_some_and(|bound| bound <= limit))
    };
    let holds = chains.iter().zip(&bounds).all(|(chain, bound)| {
        within(chain.reaction_ns, bound.reaction_ns) && within(chain.age_ns, bound.age_ns)
    });
    Ok(ChainVerdict { holds: holds && tasks.schedulable, tasks, chains: bounds })
}

fn refused(field: impl Into<String>, found: impl Into<String>, expected: impl Into<String>) -> ChainError {
    ChainError::Chain { field: field.into(), found: found.into(), expected: expected.into() }
}

/// The tasks, and how chains join them.
struct Links<'a> {
    question: &'a Question,
    /// For each place in the question that in the system.
    priorities: &'a [usize],
    chains: &'a [Chain],
}

impl Links<'_> {
    fn task(&self, place: usize) -> Result<&SystemTask, ChainError> {
        let task = self.priorities.get(place).and_then(|&at| self.question.system.tasks.get(at));
        task.ok_or_else(|| refused("chains", format!("task {place}"), "a task of the line"))
    }

    /// Refuses chains that are not about tasks of the question, with an edge between each two.
    fn check_places(&self) -> Result<(), ChainError> {
        for (number, chain) in self.chains.iter().enumerate() {
            if chain.tasks.len() != chain.edges.len() + 1 {
                let found = format!("{} edges of {} tasks", chain.edges.len(), chain.tasks.len());
                return Err(refused(format!("chains[{number}]"), found, "one edge between two tasks"));
            }
            chain.tasks.iter().try_for_each(|place| self.task(*place).map(|_| ()))?;
        }
        Ok(())
    }

    /// For each task of the system the one whose jobs release its jobs.
    fn triggers(&self, ask: &Ask) -> Result<Vec<Option<usize>>, ChainError> {
        let mut triggers: Vec<Option<usize>> = vec![None; self.priorities.len()];
        for (number, chain) in self.chains.iter().enumerate() {
            for step in (0..chain.edges.len()).filter(|&step| chain.edges[step] == Edge::Event) {
                let (from, to) = (chain.tasks[step], chain.tasks[step + 1]);
                let at = || format!("chains[{number}].tasks[{}]", step + 1);
                let (one, other) = (self.task(from)?, self.task(to)?);
                let curve =
                    |one: &SystemTask| one.bounds.as_ref().map_or(Vec::new(), |one| one.intervals_ns.clone());
                if one.task.period_ns != other.task.period_ns || curve(one) != curve(other) {
                    let found = format!("task {to} with other arrivals than task {from}, which releases it");
                    return Err(refused(at(), found, "the same period or the same arrivals"));
                }
                let (from, to) = (self.priorities[from], self.priorities[to]);
                if triggers[to].is_some_and(|known| known != from) {
                    return Err(refused(at(), "released by two tasks", "one task that releases it"));
                }
                triggers[to] = Some(from);
            }
        }
        let any = triggers.iter().any(Option::is_some);
        let plain = matches!(ask.test, Test::FpRta | Test::FpLimited)
            && ask.locks.is_none()
            && ask.overheads.is_none()
            && !self.question.system.suspends();
        if any && !plain {
            let expected = "fp-rta or fp-limited without suspensions, locks and overheads";
            return Err(refused("chains", "edges by event", expected));
        }
        for start in 0..triggers.len() {
            let mut at = start;
            for _ in 0..triggers.len() {
                let Some(before) = triggers[at] else { break };
                at = before;
                if at == start {
                    let place = self.question.places[start];
                    return Err(refused(
                        "chains",
                        format!("task {place} releases itself"),
                        "chains that end",
                    ));
                }
            }
        }
        Ok(triggers)
    }

    /// Refuses chains of several segments in which a task may be silent for any time.
    fn check_periods(&self) -> Result<(), ChainError> {
        for (number, chain) in
            self.chains.iter().enumerate().filter(|(_, chain)| chain.edges.contains(&Edge::Time))
        {
            for (step, place) in chain.tasks.iter().enumerate() {
                if has_curve(self.task(*place)?) {
                    let found =
                        format!("task {place} with an arrival curve, which may be silent for any time");
                    let expected = "a period where edges are by time";
                    return Err(refused(format!("chains[{number}].tasks[{step}]"), found, expected));
                }
            }
        }
        Ok(())
    }
}

fn has_curve(task: &SystemTask) -> bool {
    task.bounds.as_ref().is_some_and(|one| !one.intervals_ns.is_empty())
}

/// Responses where each task is released as late as the one before it ends.
fn responses(
    ask: &Ask,
    question: &Question,
    triggers: &[Option<usize>],
    limits: Limits,
) -> Result<Verdict, Refusal> {
    let mut with = question.clone();
    for _ in 0..MOST_PASSES {
        let verdict = ask.verdict(&with, limits)?;
        let mut changed = false;
        for (task, trigger) in triggers.iter().enumerate() {
            let Some(trigger) = *trigger else { continue };
            let Some(response_ns) = in_time(&verdict, trigger) else {
                // Nothing is known of what it releases, nor of what that delays.
                return Ok(Verdict::not_placed(&question.system));
            };
            let own_ns = question.system.tasks[task].task.jitter_ns;
            let jitter_ns = own_ns.saturating_add(response_ns);
            if jitter_ns > MAX_NS {
                return Ok(Verdict::not_placed(&question.system));
            }
            let known = &mut with.system.tasks[task].task.jitter_ns;
            changed |= *known != jitter_ns;
            *known = jitter_ns;
        }
        if !changed {
            return Ok(verdict);
        }
    }
    let mut unknown = Verdict::not_placed(&question.system);
    unknown.undecided = (0..triggers.len()).collect();
    Ok(unknown)
}

/// The response of a task that meets its deadline: beyond it, tests may look at one job alone.
fn in_time(verdict: &Verdict, task: usize) -> Option<u64> {
    verdict.response_times[task].filter(|response_ns| *response_ns <= verdict.tasks[task].deadline_ns)
}

fn bound(chain: &Chain, question: &Question, priorities: &[usize], verdict: &Verdict) -> ChainBound {
    let task = |step: usize| priorities[chain.tasks[step]];
    // The last task of each segment has the response of all of it.
    let ends = |step: &usize| chain.edges.get(*step).is_none_or(|edge| *edge == Edge::Time);
    let mut all: Option<(u64, u64)> = Some((0, 0));
    for step in (0..chain.tasks.len()).filter(ends) {
        let period_ns = question.system.tasks[task(step)].task.period_ns;
        let response_ns = in_time(verdict, task(step));
        all = all.zip(response_ns).map(|((reaction, age), response_ns)| {
            let last = step + 1 == chain.tasks.len();
            let reaction = reaction.saturating_add(response_ns).saturating_add(period_ns);
            let wait = if last { 0 } else { period_ns };
            (reaction, age.saturating_add(response_ns).saturating_add(wait))
        });
    }
    let silent = has_curve(&question.system.tasks[task(0)]);
    ChainBound { reaction_ns: all.filter(|_| !silent).map(|all| all.0), age_ns: all.map(|all| all.1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::{read, read_with_chains};

    fn answer(line: &str, test: Test) -> Result<ChainVerdict, ChainError> {
        let (mut question, chains) = read_with_chains(line).unwrap();
        bound_chains(&Ask::of(test), &mut question, &chains, Limits::default())
    }

    const TASKS: &str = r#"{"period":10,"cost":2},{"period":20,"cost":5},{"period":20,"cost":3}"#;

    fn bounds(tasks: &str, chain: &str) -> (Option<u64>, Option<u64>) {
        let line = format!(r#"{{"tasks":[{tasks}],"chains":[{chain}]}}"#);
        let ChainBound { reaction_ns, age_ns } = answer(&line, Test::FpRta).unwrap().chains[0];
        (reaction_ns, age_ns)
    }

    #[test]
    fn segments_add_up_and_events_wait_for_no_period() {
        // Responses 2, 7 and 10.
        assert_eq!(bounds(TASKS, r#"{"tasks":[0]}"#), (Some(12), Some(2)));
        assert_eq!(bounds(TASKS, r#"{"tasks":[1,2]}"#), (Some(20 + 7 + 20 + 10), Some(20 + 7 + 10)));
        // By event: the third is released 7 after the arrival of the second, and takes 10 then.
        let event = r#"{"tasks":[1,2],"edges":["event"]}"#;
        assert_eq!(bounds(TASKS, event), (Some(20 + 17), Some(17)));
        let mixed = r#"{"tasks":[0,1,2],"edges":["time","event"]}"#;
        assert_eq!(bounds(TASKS, mixed), (Some(10 + 2 + 20 + 17), Some(10 + 2 + 17)));
    }

    #[test]
    fn limits_are_judged_and_late_tasks_bound_nothing() {
        let line = |limit: &str| {
            format!(r#"{{"unit":"us","tasks":[{TASKS}],"chains":[{{"tasks":[1,2],{limit}}}]}}"#)
        };
        let holds = |limit: &str| answer(&line(limit), Test::FpRta).unwrap().holds;
        assert!(holds(r#""reaction":57,"age":37"#));
        assert!(!holds(r#""reaction":56"#) && !holds(r#""age":36"#));
        let late = TASKS.replace(r#""cost":2"#, r#""cost":9"#);
        assert_eq!(bounds(&late, r#"{"tasks":[0,1]}"#), (None, None));
        assert_eq!(bounds(&late, r#"{"tasks":[1,2],"edges":["event"]}"#), (None, None));
        assert!(answer(&line(r#""reaction":90"#), Test::EdfRta).unwrap().holds);
    }

    #[test]
    fn an_arrival_curve_has_an_age_and_no_reaction() {
        let tasks = r#"{"arrivals":[[0,2],[40,3]],"cost":2,"deadline":20},{"arrivals":[[0,2],[40,3]],"cost":3,"deadline":20}"#;
        // Both jobs of the first, then both of the second, released at 2 and at 4.
        let (reaction, age) = bounds(tasks, r#"{"tasks":[0,1],"edges":["event"]}"#);
        assert_eq!((reaction, age), (None, Some(14)));
    }

    #[test]
    fn contradictions_are_named() {
        let wrong = |tasks: &str, chains: &str, test: Test| {
            let line = format!(r#"{{"tasks":[{tasks}],"chains":[{chains}]}}"#);
            answer(&line, test).unwrap_err().to_string()
        };
        for (tasks, chains, test, expected) in [
            (
                TASKS,
                r#"{"tasks":[0,1],"edges":["event"]}"#,
                Test::FpRta,
                "chains[0].tasks[1]: task 1 with other arrivals",
            ),
            (TASKS, r#"{"tasks":[1,2],"edges":["event"]}"#, Test::EdfRta, "chains: edges by event"),
            (TASKS, r#"{"tasks":[1,2]}"#, Test::EdfQpa, "the test: edf-qpa, expected fp-rta"),
            (
                TASKS,
                r#"{"tasks":[1,2],"edges":["event"]},{"tasks":[2,1],"edges":["event"]}"#,
                Test::FpRta,
                "chains: task 1 releases itself",
            ),
            (
                r#"{"period":9,"cost":1},{"period":9,"cost":1},{"period":9,"cost":1}"#,
                r#"{"tasks":[0,2],"edges":["event"]},{"tasks":[1,2],"edges":["event"]}"#,
                Test::FpRta,
                "chains[1].tasks[1]: released by two tasks",
            ),
            (
                r#"{"period":9,"cost":1},{"arrivals":[[3,2]],"cost":1,"deadline":3}"#,
                r#"{"tasks":[0,1]}"#,
                Test::FpRta,
                "chains[0].tasks[1]: task 1 with an arrival curve, which may be silent",
            ),
            (
                r#"{"period":9,"cost":1,"suspension":1},{"period":9,"cost":1}"#,
                r#"{"tasks":[0,1],"edges":["event"]}"#,
                Test::FpRta,
                "chains: edges by event",
            ),
        ] {
            let error = wrong(tasks, chains, test);
            assert!(error.starts_with(expected), "{chains}: {error}");
        }
    }

    #[test]
    fn lines_are_judged_and_every_other_command_refuses_chains() {
        let line = |chain: &str| format!(r#"{{"tasks":[{TASKS}],"chains":[{chain}]}}"#);
        for (chain, expected) in [
            ("", "chains: 0 of them, expected 1 to"),
            ("7", "chains[0]: 7, expected an object"),
            (r#"{"edges":[]}"#, "chains[0].tasks: nothing, expected a list of tasks"),
            (r#"{"tasks":[0,3]}"#, "chains[0].tasks[1]: 3, expected an integer from 0 to 2"),
            (r#"{"tasks":[0,0]}"#, "chains[0].tasks[1]: 0, expected every task once"),
            (
                r#"{"tasks":[0,1],"edges":[]}"#,
                "chains[0].edges: 0 of them, expected one between two tasks, 1",
            ),
            (
                r#"{"tasks":[0,1],"edges":["data"]}"#,
                "chains[0].edges[0]: \"data\", expected \"time\" or \"event\"",
            ),
            (r#"{"tasks":[0],"age":0}"#, "chains[0].age: 0, expected an integer from 1"),
            (
                r#"{"tasks":[0],"deadline":9}"#,
                "chains[0]: unknown key \"deadline\", expected some of tasks, edges",
            ),
            (r#"{"tasks":[0],"age":9,"age":9}"#, "chains[0]: key \"age\" twice"),
        ] {
            let error = read_with_chains(line(chain)).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{chain}: {error}");
        }
        let empty = r#"{"tasks":[],"chains":[{"tasks":[0]}]}"#;
        let error = answer(empty, Test::FpRta).unwrap_err().to_string();
        assert_eq!(error, "chains: task 0, expected a task of the line");
        let error = read(line(r#"{"tasks":[0]}"#)).unwrap_err().to_string();
        assert_eq!(error, "chains: 1 of them, expected none here: sched chains bounds them");
        assert!(read_with_chains(format!(r#"{{"tasks":[{TASKS}]}}"#)).unwrap().1.is_empty());
    }
}
