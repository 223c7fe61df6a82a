//! Priorities given to the tasks of a question: by a key of the tasks, or by Audsley's search.
//!
//! The search gives the lowest place of a core to any task that holds there, the next one to any of
//! the rest, and so on. Where it finds no task for a place, no order of fixed priorities passes the
//! test (Audsley, "On priority assignment in fixed priority scheduling", Information Processing
//! Letters 79, 2001): what a task may do depends on which tasks are above and below it, not on
//! their order. That is so for `fp-rta`, and for `fp-limited`, whose blocking is the longest section
//! of any task below (Davis and others, "A review of priority assignment in real-time systems",
//! Journal of Systems Architecture 65, 2016). It is not so with self-suspension, where the response
//! times of those above count.

use crate::analyze::{Refusal, Test, beyond, refuse_bounds};
use crate::asked::Question;
use crate::fp_rta::{Level, Outcome};
use crate::order::{deadline_minus_jitter_monotonic, deadline_monotonic, rate_monotonic};
use crate::system::{System, SystemTask};
use crate::task::Task;
use crate::window::{Limits, Load, Work};

/// How the tasks of each core get their priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Shortest period first.
    RateMonotonic,
    /// Shortest relative deadline first.
    DeadlineMonotonic,
    /// Shortest deadline after the latest release first.
    DeadlineMinusJitter,
    /// By search: an order in which all deadlines are met, where there is one.
    Audsley,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::RateMonotonic, Self::DeadlineMonotonic, Self::DeadlineMinusJitter, Self::Audsley];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RateMonotonic => "rm",
            Self::DeadlineMonotonic => "dm",
            Self::DeadlineMinusJitter => "dj",
            Self::Audsley => "audsley",
        }
    }

    /// The order of one name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }

    /// Whether it can be found for a test.
    pub const fn is_for(self, test: Test) -> bool {
        match self {
            Self::Audsley => matches!(test, Test::FpRta | Test::FpLimited),
            _ => test.is_by_priority(),
        }
    }
}

/// Gives the tasks their priorities; those of the question are overruled. Where the search finds no
/// order, or not within the cap on rounds, the tasks get that of their deadlines less their jitter.
pub(crate) fn assign(
    question: &mut Question,
    order: Order,
    test: Test,
    limits: Limits,
) -> Result<(), Refusal> {
    refuse_bounds(&question.system, test)?;
    let tasks: Vec<Task> = question.system.tasks.iter().map(|task| task.task).collect();
    let by_key = match order {
        Order::RateMonotonic => rate_monotonic(&tasks),
        Order::DeadlineMonotonic => deadline_monotonic(&tasks),
        Order::DeadlineMinusJitter | Order::Audsley => deadline_minus_jitter_monotonic(&tasks),
    };
    reorder(question, &by_key);
    if order == Order::Audsley {
        if question.system.suspends() {
            return Err(beyond(test, "a search of priorities with self-suspension", "--order dj"));
        }
        if let Some(found) = search(&question.system, test, limits) {
            reorder(question, &found);
        }
    }
    Ok(())
}

fn reorder(question: &mut Question, order: &[usize]) {
    let tasks = order.iter().map(|&at| question.system.tasks[at].clone()).collect();
    question.system.tasks = tasks;
    question.places = order.iter().map(|&at| question.places[at]).collect();
    question.equals.clear();
}

/// Audsley's search, core by core: the places of the tasks, highest priority first.
fn search(system: &System, test: Test, limits: Limits) -> Option<Vec<usize>> {
    let mut order = Vec::with_capacity(system.tasks.len());
    let mut work = Work::of(limits);
    for mut above in system.by_core() {
        let mut lowest_first = Vec::with_capacity(above.len());
        // Of the tasks that have a place already.
        let mut longest_below = 0;
        while !above.is_empty() {
            // Those with the longest deadlines hold most often.
            let at = (0..above.len()).rev().find(|&at| {
                let (last, others) = (above[at], above.iter().filter(|&&other| other != above[at]));
                let tasks = others.chain([&last]).map(|&index| system.tasks[index].task).collect();
                let blocking_ns = if test == Test::FpLimited { longest_below } else { 0 };
                holds_at_the_end(tasks, blocking_ns, &mut work)
            })?;
            let found = above.remove(at);
            let SystemTask { non_preemptive_ns, task, .. } = system.tasks[found];
            longest_below = longest_below.max(non_preemptive_ns.min(task.cost_ns));
            lowest_first.push(found);
        }
        order.extend(lowest_first.into_iter().rev());
    }
    Some(order)
}

/// Whether the last task meets its deadline below all others.
fn holds_at_the_end(mut tasks: Vec<Task>, blocking_ns: u64, work: &mut Work) -> bool {
    let n = tasks.len();
    let (Some(limits), Some(last)) = (work.rounds_of(n), tasks.last_mut()) else { return false };
    last.blocking_ns = last.blocking_ns.saturating_add(blocking_ns);
    let deadline_ns = last.deadline_ns;
    let load = Load::of(&tasks[..n - 1], 0);
    let level =
        Level { tasks: &tasks, index: n - 1, extra_jitter: 0, load: &load, limits, want_slack: false };
    let response = level.response();
    work.spend(response.rounds, n);
    matches!(response.outcome, Outcome::Within { response_ns, .. } if response_ns <= deadline_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::analyze;
    use crate::question;
    use crate::verdict::Verdict;
    use proptest::prelude::*;

    fn answered(line: &str, order: Option<Order>, test: Test) -> (Verdict, Vec<usize>) {
        let mut question = question::read(line).unwrap();
        if let Some(order) = order {
            assign(&mut question, order, test, Limits::default()).unwrap();
        }
        (analyze(&question.system, test, Limits::default()).unwrap(), question.places)
    }

    #[test]
    fn the_list_is_not_in_order_and_each_key_gives_its_own() {
        let line = r#"{"tasks":[{"period":100,"cost":30},{"period":10,"cost":3,"deadline":9,"jitter":1},
            {"period":20,"cost":4,"deadline":8}]}"#;
        assert!(!answered(line, None, Test::FpRta).0.schedulable);
        let place = |order| answered(line, Some(order), Test::FpRta).1;
        assert_eq!(place(Order::RateMonotonic), [1, 2, 0]);
        assert_eq!(place(Order::DeadlineMonotonic), [2, 1, 0]);
        assert_eq!(place(Order::DeadlineMinusJitter), [1, 2, 0], "equal keys keep the order of the list");
        assert!(answered(line, Some(Order::Audsley), Test::FpRta).0.schedulable);
    }

    #[test]
    fn the_search_finds_an_order_where_no_key_does() {
        // Deadlines beyond periods: deadline monotonic is not optimal (Lehoczky 1990).
        let line =
            r#"{"tasks":[{"period":100,"cost":52,"deadline":110},{"period":140,"cost":52,"deadline":154}]}"#;
        let holds = |order| answered(line, Some(order), Test::FpRta).0.schedulable;
        assert!(!holds(Order::DeadlineMonotonic) && !holds(Order::RateMonotonic) && holds(Order::Audsley));
        assert_eq!(Order::by_name("audsley"), Some(Order::Audsley));
        assert!(!Order::Audsley.is_for(Test::FpPublished(crate::fp_published::Published::Replication)));
        let suspends = r#"{"tasks":[{"period":10,"cost":3,"suspension":1},{"period":20,"cost":3}]}"#;
        let mut question = question::read(suspends).unwrap();
        let refused = assign(&mut question, Order::Audsley, Test::FpRta, Limits::default()).unwrap_err();
        assert!(refused.to_string().contains("--order dj"), "{refused}");
    }

    /// All orders of so many things.
    fn permutations(n: usize) -> Vec<Vec<usize>> {
        if n == 0 {
            return vec![Vec::new()];
        }
        let shorter = permutations(n - 1);
        let all = shorter.iter().flat_map(|order| {
            (0..n).map(move |at| {
                let mut order = order.clone();
                order.insert(at, n - 1);
                order
            })
        });
        all.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn the_search_finds_an_order_exactly_where_one_of_all_holds(
            tasks in proptest::collection::vec((4u64..40, 1u64..12, 3u64..60, 0u64..6, 0u64..4, 0u64..6, 0u32..2), 1..6),
            limited in any::<bool>(),
        ) {
            let test = if limited { Test::FpLimited } else { Test::FpRta };
            let tasks: Vec<String> = tasks.iter().map(|(period, cost, deadline, jitter, blocking, section, core)| {
                let section = if limited { format!(",\"non_preemptive\":{}", section.min(cost)) } else { String::new() };
                format!("{{\"period\":{period},\"cost\":{cost},\"deadline\":{deadline},\"jitter\":{jitter},\"blocking\":{blocking},\"core\":{core}{section}}}")
            }).collect();
            let line = format!("{{\"cores\":2,\"tasks\":[{}]}}", tasks.join(","));
            let question = question::read(line.as_bytes()).unwrap();
            let holds = |order: &Vec<usize>| {
                let mut question = question.clone();
                reorder(&mut question, order);
                analyze(&question.system, test, Limits::default()).unwrap().schedulable
            };
            let any = permutations(tasks.len()).iter().any(holds);
            let (found, places) = answered(&line, Some(Order::Audsley), test);
            prop_assert_eq!(found.schedulable, any);
            let mut all = places;
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..tasks.len()));
        }
    }
}
