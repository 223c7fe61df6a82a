//! Tests of global scheduling: any task on any of m equal cores, the m most urgent jobs at a time.
//!
//! One test per file. All are sufficient only: "no" means "not shown". Deadlines are at most
//! periods. Quotients are compared exactly.
//!
//! Time goes in ticks, as in the papers: all parameters are whole ticks, and jobs arrive, start and
//! stop only at ticks. Work that keeps m cores busy is therefore divided by m and rounded down. For
//! [`global`] a tick is a nanosecond; a question in microseconds is analysed in microseconds
//! ([`crate::answer`]).
//!
//! Release jitter: a task becomes ready up to J after its arrival. From its release on, it is a
//! sporadic task of period T - J and deadline D - J (Brandenburg, "Scheduling and locking in
//! multiprocessor real-time operating systems", University of North Carolina 2011, chapter 3).
//! Fixed priorities need nothing else. Under EDF, the scheduler must count deadlines of D - J from
//! the release, as `SCHED_DEADLINE` does with such a reservation. An order by arrival + D is a
//! different one, which the tests do not cover. Response times count from the arrival.

mod bak;
mod bar;
mod bcl;
mod bcl_iterative;
mod bertogna;
mod da;
mod ff_dbf;
mod gfb;
mod guan;
mod load;
mod rta;
pub mod sched_deadline;

use crate::fractions::{Fraction, Open, at_most_zero};
use crate::task::Task;
use crate::verdict::Verdict;
use crate::window::Limits;

/// A test of global scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GlobalTest {
    /// EDF, total density.
    EdfGfb,
    /// EDF, load of a busy window.
    EdfBak,
    /// EDF, interference in the window of one job.
    EdfBcl,
    /// The same with slacks.
    EdfBclIterative,
    /// EDF, demand since the last idle instant.
    EdfBar,
    /// EDF, response times.
    EdfRta,
    /// EDF, forced-forward demand.
    EdfFfDbf,
    /// EDF, load and largest density.
    EdfLoad,
    /// EDF, any of the above: accepted where one of them accepts.
    EdfAny,
    /// EDF, bounded tardiness.
    EdfDa,
    /// Fixed priorities, response times with limited carry-in.
    FpGuan,
    /// Fixed priorities, response times with carry-in from all.
    FpBertogna,
}

impl GlobalTest {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 12] = [
        Self::EdfGfb,
        Self::EdfBak,
        Self::EdfBcl,
        Self::EdfBclIterative,
        Self::EdfBar,
        Self::EdfRta,
        Self::EdfFfDbf,
        Self::EdfLoad,
        Self::EdfAny,
        Self::EdfDa,
        Self::FpGuan,
        Self::FpBertogna,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EdfGfb => "gedf-gfb",
            Self::EdfBak => "gedf-bak",
            Self::EdfBcl => "gedf-bcl",
            Self::EdfBclIterative => "gedf-bcl-iterative",
            Self::EdfBar => "gedf-bar",
            Self::EdfRta => "gedf-rta",
            Self::EdfFfDbf => "gedf-ff-dbf",
            Self::EdfLoad => "gedf-load",
            Self::EdfAny => "gedf-any",
            Self::EdfDa => "gedf-da",
            Self::FpGuan => "gfp-guan",
            Self::FpBertogna => "gfp-bertogna",
        }
    }
}

/// The input of every test of this folder: tasks without jitter, D <= T, highest priority first.
#[derive(Debug, Clone, Copy)]
struct Case<'a> {
    tasks: &'a [Task],
    /// At least 1.
    cores: u64,
}

/// Task visits that a whole set may cost for each of [`Limits::rounds_per_task`]: some seconds by
/// default, however many tasks there are.
const LOOKS_A_ROUND: u64 = 300;

/// What a test may cost: a round is a look at all tasks.
#[derive(Debug)]
struct Effort {
    rounds: u64,
    cap: u64,
}

impl Effort {
    /// One round, below the cap.
    fn spend(&mut self) -> Result<(), Open> {
        if self.rounds >= self.cap {
            return Err(Open);
        }
        self.rounds += 1;
        Ok(())
    }
}

/// A test's answer: response times where it has them.
enum Answer {
    Decided(bool),
    Responses(Vec<Option<u64>>),
}

/// Answers for tasks with D <= T, in priority order, on `cores` cores. With [`GlobalTest::EdfDa`],
/// schedulable means bounded tardiness.
pub fn global(tasks: &[Task], cores: u32, test: GlobalTest, limits: Limits) -> Verdict {
    let mut verdict = Verdict::unanswered(tasks);
    let Some(released) = tasks.iter().map(Task::from_release).collect::<Option<Vec<_>>>() else {
        return verdict;
    };
    let cap = limits.rounds_per_task.saturating_mul(LOOKS_A_ROUND) / (tasks.len() as u64).max(1);
    let mut effort = Effort { rounds: 0, cap };
    let case = Case { tasks: &released, cores: u64::from(cores) };
    let answer = answer(case, test, &mut effort);
    verdict.rounds = effort.rounds;
    match answer {
        Err(Open) => verdict.undecided = (0..tasks.len()).collect(),
        Ok(Answer::Decided(schedulable)) => verdict.schedulable = schedulable,
        Ok(Answer::Responses(responses)) => {
            let from_arrival = |(response, task): (Option<u64>, &Task)| response?.checked_add(task.jitter_ns);
            verdict.response_times = responses.into_iter().zip(tasks).map(from_arrival).collect();
            verdict.schedulable = if test == GlobalTest::EdfDa {
                verdict.response_times.iter().all(Option::is_some)
            } else {
                verdict.meets_deadlines()
            };
        }
    }
    verdict
}

fn answer(case: Case<'_>, test: GlobalTest, effort: &mut Effort) -> Result<Answer, Open> {
    let by_priority = matches!(test, GlobalTest::FpGuan | GlobalTest::FpBertogna);
    // The tests by deadline assume that this necessary condition holds.
    if !by_priority && !may_be_feasible(case)? {
        return Ok(Answer::Decided(false));
    }
    Ok(match test {
        GlobalTest::EdfAny => Answer::Decided(any(case, effort)?),
        GlobalTest::EdfGfb => Answer::Decided(gfb::schedulable(case)?),
        GlobalTest::EdfBak => Answer::Decided(bak::schedulable(case, effort)?),
        GlobalTest::EdfBcl => Answer::Decided(bcl::schedulable(case, effort)?),
        GlobalTest::EdfBclIterative => Answer::Decided(bcl_iterative::schedulable(case, effort)?),
        GlobalTest::EdfBar => Answer::Decided(bar::schedulable(case, effort)?),
        GlobalTest::EdfFfDbf => Answer::Decided(ff_dbf::schedulable(case, effort)?),
        GlobalTest::EdfLoad => Answer::Decided(load::schedulable(case, effort)?),
        GlobalTest::EdfRta => Answer::Responses(rta::responses(case, effort)?),
        GlobalTest::EdfDa => Answer::Responses(da::responses(case)?),
        GlobalTest::FpGuan => Answer::Responses(guan::responses(case, effort)?),
        GlobalTest::FpBertogna => Answer::Responses(bertogna::responses(case, effort)?),
    })
}

/// The tests by deadline, those first that cost least.
const BY_DEADLINE: [GlobalTest; 8] = [
    GlobalTest::EdfGfb,
    GlobalTest::EdfBcl,
    GlobalTest::EdfBak,
    GlobalTest::EdfLoad,
    GlobalTest::EdfBclIterative,
    GlobalTest::EdfRta,
    GlobalTest::EdfFfDbf,
    GlobalTest::EdfBar,
];

/// Whether any of them accepts the set: each is sufficient by itself. Each has the whole effort.
fn any(case: Case<'_>, effort: &mut Effort) -> Result<bool, Open> {
    let mut undecided = false;
    // That one knows no single core.
    let tests = BY_DEADLINE.into_iter().filter(|test| case.cores > 1 || *test != GlobalTest::EdfFfDbf);
    for test in tests {
        let mut own = Effort { rounds: 0, cap: effort.cap };
        let answer = answer(case, test, &mut own);
        effort.rounds = effort.rounds.saturating_add(own.rounds);
        let in_time = |(response, task): (&Option<u64>, &Task)| {
            response.is_some_and(|response| response <= task.deadline_ns)
        };
        match answer {
            Ok(Answer::Decided(true)) => return Ok(true),
            Ok(Answer::Responses(all)) if all.iter().zip(case.tasks).all(in_time) => return Ok(true),
            Ok(_) => {}
            Err(Open) => undecided = true,
        }
    }
    if undecided { Err(Open) } else { Ok(false) }
}

/// C <= D for every task, and U <= m.
fn may_be_feasible(case: Case<'_>) -> Result<bool, Open> {
    let all = case.tasks.iter().map(|task| Fraction::new(task.cost_ns, task.period_ns));
    let fits = at_most_zero(all.chain([Fraction::whole(-i128::from(case.cores))]))?;
    Ok(fits && case.tasks.iter().all(|task| task.cost_ns <= task.deadline_ns))
}

/// How much further than one round says the least solution of x = C + floor(sum min(W_i(x), x - C + 1) / m) must lie.
///
/// `works` are the W_i(x), which do not fall, and `most` is x - C + 1. While m of them are above
/// `most`, the sum grows by m with each tick of x and x runs before its solution tick by tick: none
/// lies before the window in which fewer are.
fn stride(works: impl Iterator<Item = u128>, most: u128, cores: u64) -> u128 {
    let mut above: Vec<u128> = works.filter_map(|work| work.checked_sub(most)).collect();
    let cores = usize::try_from(cores).unwrap_or(usize::MAX);
    if above.len() < cores {
        return 0;
    }
    *above.select_nth_unstable_by(cores - 1, |a, b| b.cmp(a)).1
}

/// Response times down to the first task that may be late, each by those above it; nothing below
/// it.
fn downwards(
    case: Case<'_>,
    mut response: impl FnMut(usize, &[u64]) -> Result<Option<u64>, Open>,
) -> Result<Vec<Option<u64>>, Open> {
    let mut found: Vec<u64> = Vec::with_capacity(case.tasks.len());
    for index in 0..case.tasks.len() {
        match response(index, &found)? {
            Some(response) => found.push(response),
            None => break,
        }
    }
    let mut all: Vec<Option<u64>> = found.into_iter().map(Some).collect();
    all.resize(case.tasks.len(), None);
    Ok(all)
}

/// Sum of the `count` largest.
fn sum_of_largest(values: &mut [u128], count: usize) -> u128 {
    if count == 0 {
        return 0;
    }
    if count < values.len() {
        values.select_nth_unstable_by(count - 1, |a, b| b.cmp(a));
    }
    values.iter().take(count).sum()
}

/// The task of the largest density, C/D.
fn densest(tasks: &[Task]) -> Option<Task> {
    let denser = |a: &&Task, b: &&Task| {
        let cross = |one: &Task, other: &Task| u128::from(one.cost_ns) * u128::from(other.deadline_ns);
        cross(a, b).cmp(&cross(b, a))
    };
    tasks.iter().max_by(denser).copied()
}

#[cfg(test)]
mod tests;
