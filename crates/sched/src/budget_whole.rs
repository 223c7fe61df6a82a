//! Budgets of systems that are answered as a whole: whose cores wait for each other's locks, or
//! whose tasks run on any core.
//!
//! A test that accepts a cost or a jitter promises deadlines for every smaller one, because both
//! are upper limits of what jobs may do. So each value that was checked is a budget, whatever the
//! test. Whether it is the largest depends on the test: one is sustainable if it accepts no more
//! where a parameter gets worse (Baruah and Burns, "Sustainable scheduling analysis", RTSS 2006);
//! not every test of global EDF is (Baker and Baruah, "Sustainable multiprocessor scheduling of
//! sporadic task systems", ECRTS 2009). For those that are, by the form of their equations, halving
//! finds the largest value. For the others it finds one that holds, and values spread above it are
//! tried from the largest down; [`WholeBudget::exact`] is false. Oracle: every value of small
//! systems.
//!
//! Sections grow with the cost of their task.

use crate::analyze::{Refusal, Test};
use crate::ask::Ask;
use crate::asked::Question;
use crate::cost_margin::UNCHANGED_PPM;
use crate::global::GlobalTest;
use crate::largest::largest;
use crate::locks::Protocol;
use crate::system::SystemTask;
use crate::task::MAX_NS;
use crate::verdict::Verdict;
use crate::window::Limits;

/// Values tried above one that holds, where a test may accept more again.
const TRIED: u64 = 32;

/// What a system tolerates as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeBudget {
    /// Of all tasks at once; none where even nothing is too much, and for no tasks.
    pub all: Option<u64>,
    /// Of each task alone, by priority, all deadlines of the system met.
    pub tasks: Vec<Option<u64>>,
    /// Whether nothing larger is accepted. Else each value is one at which the test accepts the
    /// system, and a larger one may be, too.
    pub exact: bool,
}

/// The most release jitter that may be added to every task, ns, and to each one alone. The question
/// is prepared.
pub fn jitter_of_whole(ask: &Ask, question: &Question, limits: Limits) -> Result<WholeBudget, Refusal> {
    let late = |one: &SystemTask| {
        let fixed = one.task.cost_ns.saturating_add(one.task.jitter_ns);
        one.task.deadline_ns.saturating_sub(fixed) + 1
    };
    let grow = |one: &mut SystemTask, more_ns: u64| one.task.jitter_ns += more_ns;
    // Nothing added is the set as given.
    search(ask, question, limits, late, 0, grow)
}

/// The largest factor of all costs, in millionths, and of each one alone. The question is prepared.
pub fn cost_of_whole(ask: &Ask, question: &Question, limits: Limits) -> Result<WholeBudget, Refusal> {
    let late = |one: &SystemTask| {
        let factor =
            u128::from(one.task.deadline_ns) * u128::from(UNCHANGED_PPM) / u128::from(one.task.cost_ns);
        u64::try_from(factor + 1).unwrap_or(u64::MAX)
    };
    let grow = |one: &mut SystemTask, factor_ppm: u64| {
        let scaled = |ns: u64| {
            let grown = (u128::from(ns) * u128::from(factor_ppm)).div_ceil(UNCHANGED_PPM.into());
            u64::try_from(grown).unwrap_or(MAX_NS).min(MAX_NS)
        };
        one.task.cost_ns = scaled(one.task.cost_ns);
        one.requests.iter_mut().for_each(|request| request.length_ns = scaled(request.length_ns));
    };
    search(ask, question, limits, late, 1, grow)
}

/// The largest values below `late` of a task, from `least` on.
fn search(
    ask: &Ask,
    question: &Question,
    limits: Limits,
    late: impl Fn(&SystemTask) -> u64,
    least: u64,
    grow: impl Fn(&mut SystemTask, u64),
) -> Result<WholeBudget, Refusal> {
    let exact = accepts_no_more(ask);
    // What is refused is refused whatever the numbers.
    ask.verdict(question, limits)?;
    let holds = |only: Option<usize>, value: u64| {
        let mut grown = question.clone();
        for (at, task) in grown.system.tasks.iter_mut().enumerate() {
            if only.is_none_or(|only| only == at) {
                grow(task, value);
            }
        }
        ask.verdict(&grown, limits).is_ok_and(|verdict: Verdict| verdict.schedulable)
    };
    let tasks = &question.system.tasks;
    let most = |only: Option<usize>| {
        let of = tasks.iter().enumerate().filter(|(at, _)| only.is_none_or(|only| only == *at));
        of.map(|(_, one)| late(one)).min()
    };
    let find = |only: Option<usize>| {
        let late = most(only)?;
        let holds = |value: u64| value < least || holds(only, value);
        let mut found = largest(late, holds);
        if !exact {
            found = further(found, late, holds);
        }
        (found >= least && holds(found)).then_some(found)
    };
    Ok(WholeBudget { all: find(None), tasks: (0..tasks.len()).map(|at| find(Some(at))).collect(), exact })
}

/// A value that holds, above one that does if any is found there: those spread over the rest, the
/// largest first, then by halves.
fn further(found: u64, late: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let step = ((late - found) / TRIED).max(1);
    let above = (1..=TRIED).rev().map(|at| found.saturating_add(at * step)).filter(|value| *value < late);
    match above.into_iter().find(|value| holds(*value)) {
        None => found,
        Some(value) => {
            let beyond = value.saturating_add(step).min(late);
            value + largest(beyond - value, |more| holds(value + more))
        }
    }
}

/// Whether the test accepts no more where a cost or a jitter grows.
///
/// Response times and demands on pinned tasks do not fall with either, nor do the blocking terms
/// that are computed from them; where the order of service is by locking priority, or none, the
/// wait of a request that outgrows the period is replaced by the response time, which is shorter.
/// The density test of global EDF is a sum of densities.
fn accepts_no_more(ask: &Ask) -> bool {
    use Protocol::{Priority, PriorityFifo, PriorityFifoP, PriorityP, Unordered, UnorderedP};
    let ordered = ask.locks.is_none_or(|locks| {
        let protocol = locks.protocol();
        !matches!(protocol, Priority | PriorityP | PriorityFifo | PriorityFifoP | Unordered | UnorderedP)
    });
    let test = match ask.test {
        Test::FpRta | Test::EdfQpa => true,
        Test::Global(test) => test == GlobalTest::EdfGfb && ask.locks.is_none(),
        _ => false,
    };
    test && ordered && ask.overheads.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::Locks;
    use crate::question;
    use proptest::prelude::*;

    fn asks() -> Vec<Ask> {
        let with = |test, protocol: Protocol| Ask { locks: Some(protocol.into()), ..Ask::of(test) };
        let known = |one: &Protocol| *one != Protocol::MsrpLp;
        let mut all: Vec<Ask> =
            Protocol::ALL.into_iter().filter(known).map(|one| with(Test::FpRta, one)).collect();
        all.extend([Protocol::MsrpClassic, Protocol::MsrpLp].map(|one| with(Test::EdfQpa, one)));
        let global = GlobalTest::ALL.into_iter().filter(|test| *test != GlobalTest::EdfDa).map(Test::Global);
        all.extend(global.clone().map(Ask::of));
        all.extend(global.map(|test| with(test, Protocol::Omlp)));
        all
    }

    const SHARED: &str = r#"{"cores":2,"tasks":[
        {"period":100,"cost":10,"core":0,"requests":[{"resource":0,"length":2}]},
        {"period":100,"cost":20,"core":1},
        {"period":200,"cost":10,"core":1,"requests":[{"resource":0,"length":5}]}]}"#;

    #[test]
    fn by_hand() {
        let question = question::read(SHARED.replace('\n', "")).unwrap();
        let ask = Ask { locks: Some(Locks::of(Protocol::FmlpPlus)), ..Ask::of(Test::FpRta) };
        // The second task responds within 25 + J, the first within 15 + J.
        let budget = jitter_of_whole(&ask, &question, Limits::default()).unwrap();
        assert_eq!((budget.all, budget.exact), (Some(75), true));
        // The second's cost, 20, may grow to 94: twice in 200 beside 12 of the last, with its wait.
        let costs = cost_of_whole(&ask, &question, Limits::default()).unwrap();
        assert_eq!(costs.tasks[1], Some(4_700_000));
        assert!(jitter_of_whole(&Ask::of(Test::FpRta), &question, Limits::default()).is_err());
        let gfb = Ask::of(Test::Global(GlobalTest::EdfGfb));
        let plain = question::read(r#"{"cores":2,"tasks":[{"period":10,"cost":5},{"period":10,"cost":5}]}"#);
        // 2 x <= 2 - x for densities of x = 5 / (10 - J): J = 2 gives 0.625, J = 3 gives 0.714.
        let budget = jitter_of_whole(&gfb, &plain.unwrap(), Limits::default()).unwrap();
        assert_eq!((budget.all, budget.exact), (Some(2), true));
    }

    #[test]
    fn late_as_given_and_nothing_at_all() {
        let late = question::read(r#"{"cores":2,"tasks":[{"period":10,"cost":11},{"period":10,"cost":2}]}"#)
            .unwrap();
        let ask = Ask::of(Test::Global(GlobalTest::FpGuan));
        assert_eq!(jitter_of_whole(&ask, &late, Limits::default()).unwrap().all, None);
        let costs = cost_of_whole(&ask, &late, Limits::default()).unwrap();
        assert_eq!((costs.all, costs.exact), (Some(909_090), false));
        let none = question::read(r#"{"cores":2,"tasks":[]}"#).unwrap();
        assert_eq!(cost_of_whole(&ask, &none, Limits::default()).unwrap().all, None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        /// Each value found holds; where the budget is exact, nothing above it does.
        #[test]
        fn what_is_found_holds_and_is_the_largest_where_it_says_so(
            rows in prop::collection::vec((20u64..60, 2u64..10, 0u64..4, 0u32..2, 0u32..2, 1u64..3), 2..5),
        ) {
            let task = |&(period, cost, jitter, core, resource, length): &(u64, u64, u64, u32, u32, u64), shares: bool| {
                let requests = if shares { format!(r#","requests":[{{"resource":{resource},"length":{length}}}]"#) } else { String::new() };
                format!(r#"{{"period":{period},"cost":{cost},"jitter":{jitter},"core":{core}{requests}}}"#)
            };
            let line = |shares| {
                let tasks: Vec<String> = rows.iter().map(|row| task(row, shares)).collect();
                format!(r#"{{"cores":2,"tasks":[{}]}}"#, tasks.join(","))
            };
            for ask in asks() {
                let question = question::read(line(ask.locks.is_some())).unwrap();
                let Ok(budget) = jitter_of_whole(&ask, &question, Limits::default()) else { continue };
                for (only, found) in std::iter::once((None, budget.all)).chain(budget.tasks.iter().enumerate().map(|(at, one)| (Some(at), *one))) {
                    let holds = |more: u64| {
                        let mut grown = question.clone();
                        let tasks = grown.system.tasks.iter_mut().enumerate();
                        tasks.filter(|(at, _)| only.is_none_or(|only| only == *at)).for_each(|(_, one)| one.task.jitter_ns += more);
                        ask.verdict(&grown, Limits::default()).unwrap().schedulable
                    };
                    let scanned = (0..60).rev().find(|more| holds(*more));
                    if budget.exact {
                        prop_assert_eq!(found, scanned, "{:?} {:?}", ask, only);
                    } else {
                        prop_assert!(found.is_none_or(holds) && found <= scanned, "{:?} {:?}", ask, only);
                        prop_assert!(found.is_some() || !holds(0), "{:?} {:?}", ask, only);
                    }
                }
                // A factor to the thousandth is enough to look between.
                let costs = cost_of_whole(&ask, &question, Limits::default()).unwrap();
                if let (true, Some(found)) = (costs.exact, costs.all) {
                    let holds = |factor: u64| {
                        let mut grown = question.clone();
                        for one in &mut grown.system.tasks {
                            let scaled = |ns: u64| (ns * factor).div_ceil(UNCHANGED_PPM);
                            one.task.cost_ns = scaled(one.task.cost_ns);
                            one.requests.iter_mut().for_each(|request| request.length_ns = scaled(request.length_ns));
                        }
                        ask.verdict(&grown, Limits::default()).unwrap().schedulable
                    };
                    prop_assert!(holds(found) && !holds(found + 1), "{ask:?}");
                    let above = (1..100).map(|at| found + at * 37_000);
                    prop_assert!(above.into_iter().all(|factor| !holds(factor)), "{ask:?}");
                }
            }
        }
    }
}
