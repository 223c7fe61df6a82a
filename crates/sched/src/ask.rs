//! The question for every set: a test by name, with all that may be counted beside it. Shared by
//! the command and Python.

use crate::analyze::{Refusal, Test, admission, analyze, refuse_bounds};
use crate::asked::Question;
use crate::assign::{Order, assign};
use crate::certificate::{Certificate, certify};
use crate::equals::{each_as_the_last, uncounted_equals};
use crate::equals_suspending::response_times_of_suspending_equals;
use crate::global::sched_deadline::Admission;
use crate::locks::{
    Locks, Protocol, Semantics, analyze_with_locks, block_once, block_once_globally, is_on_one_core_each,
    without_locks,
};
use crate::overheads::{Overheads, analyze_with_locks_and_overheads, analyze_with_overheads};
use crate::partition::Heuristic;
use crate::task::MAX_NS;
use crate::verdict::Verdict;
use crate::window::Limits;

/// How release jitter counts under EDF.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EdfJitter {
    /// Deadlines are shorter by it, D - J: exact.
    #[default]
    Deadlines,
    /// Periods as well, T - J and D - J: SchedCAT's accounting, pessimistic.
    PeriodsToo,
}

impl EdfJitter {
    /// All of them with their names on the command line.
    pub const ALL: [(&'static str, Self); 2] = [("d", Self::Deadlines), ("td", Self::PeriodsToo)];
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ask {
    /// The test.
    pub test: Test,
    /// How tasks get cores first; none where they have them.
    pub partition: Option<Heuristic>,
    /// How tasks get priorities; none where they have them.
    pub order: Option<Order>,
    /// How requests for resources are served.
    pub locks: Option<Locks>,
    /// One pass of blocking from the response times given, counted so, and no verdict.
    pub blocking_only: Option<Semantics>,
    /// Release jitter on top of every task's own, ns.
    pub extra_jitter_ns: u64,
    /// How release jitter counts.
    pub edf_jitter: EdfJitter,
    /// What the kernel costs.
    pub overheads: Option<Overheads>,
    /// The kernel's settings for admission to `SCHED_DEADLINE`.
    pub admission: Admission,
}

/// Options that do not go together: which, with what, and what would.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {found}; expected {expected}")]
pub struct AskError {
    /// The option, as on the command line without its dashes.
    pub option: &'static str,
    /// What it is.
    pub found: String,
    /// What would be accepted.
    pub expected: &'static str,
}

impl Ask {
    /// A test and nothing else.
    pub const fn of(test: Test) -> Self {
        Self {
            test,
            partition: None,
            order: None,
            locks: None,
            blocking_only: None,
            extra_jitter_ns: 0,
            edf_jitter: EdfJitter::Deadlines,
            overheads: None,
            admission: Admission::LINUX,
        }
    }

    /// Whether the options go together.
    pub fn check(&self) -> Result<(), AskError> {
        let wrong = |option, found: String, expected| Err(AskError { option, found, expected });
        let alone = self.test == Test::EdfQpa && self.locks.is_none() && self.overheads.is_none();
        if self.edf_jitter == EdfJitter::PeriodsToo && !alone {
            return wrong("edf-jitter", "td".to_owned(), "edf-qpa by itself, without locks and overheads");
        }
        if let (Some(_), Test::Global(test)) = (self.partition, self.test) {
            let found = format!("a partition with {}, a test that binds no task to a core", test.name());
            return wrong("partition", found, "fp-rta, edf-qpa or the like");
        }
        if let Some(order) = self.order {
            let found = |with: &str| format!("{} with {with}", order.name());
            if !order.is_for(self.test) {
                let expected = "a test by priority; audsley with fp-rta and fp-limited";
                return wrong("order", found(self.test.name()), expected);
            }
            if self.locks.is_some() {
                return wrong(
                    "order",
                    found("locks"),
                    "priorities in the question: requests are served by them",
                );
            }
            if order == Order::Audsley && self.overheads.is_some() {
                return wrong("order", found("overheads"), "rm, dm or dj");
            }
        }
        if self.blocking_only.is_some() && self.overheads.is_some() {
            return wrong("overheads", "beside one pass of blocking".to_owned(), "one of them");
        }
        if self.blocking_only.is_some() && self.locks.is_none() {
            return wrong("blocking-only", "no protocol".to_owned(), "locks");
        }
        Ok(())
    }

    /// Adds jitter, and assigns cores and priorities; whether all tasks found a core.
    pub fn prepare(&self, question: &mut Question) -> Result<bool, Refusal> {
        for task in &mut question.system.tasks {
            task.task.jitter_ns = task.task.jitter_ns.saturating_add(self.extra_jitter_ns).min(MAX_NS);
        }
        if self.partition.is_some() {
            refuse_bounds(&question.system, self.test)?;
        }
        let placed = self.partition.map_or(Ok(true), |heuristic| question.place(heuristic))?;
        if let Some(order) = self.order.filter(|_| placed) {
            assign(question, order, self.test, Limits::default())?;
        }
        Ok(placed)
    }

    /// Prepares the question and answers it.
    pub fn answer(&self, question: &mut Question, limits: Limits) -> Result<Verdict, Refusal> {
        if self.prepare(question)? {
            self.verdict(question, limits)
        } else {
            Ok(Verdict::not_placed(&question.system))
        }
    }

    /// An order of priorities other than that of the question in which the test accepts it; none
    /// where no such order was found, or where orders are no part of what is asked. The question is
    /// prepared.
    pub fn other_order(&self, question: &Question, limits: Limits) -> Option<Order> {
        use Order::{Audsley, DeadlineMinusJitter, DeadlineMonotonic, RateMonotonic};
        // Those first that cost least.
        let orders = [DeadlineMonotonic, DeadlineMinusJitter, RateMonotonic, Audsley];
        let holds = |order: &Order| {
            let ask = Self { order: Some(*order), partition: None, extra_jitter_ns: 0, ..*self };
            let known = ask.check().is_ok() && ask.blocking_only.is_none();
            known && ask.answer(&mut question.clone(), limits).is_ok_and(|verdict| verdict.schedulable)
        };
        if self.order.is_some() { None } else { orders.into_iter().find(holds) }
    }

    /// The certificate of the verdict on a question that is prepared.
    pub fn certificate(&self, question: &Question, limits: Limits) -> Result<Option<Certificate>, Refusal> {
        question.refuse_equals(self.test)?;
        certify(&question.system, self.test, self.partition, limits)
    }

    /// Whether response times under priority inheritance are asked for, and nothing beside.
    fn is_inheritance_alone(&self) -> bool {
        let inherits = self.locks.is_some_and(|locks| locks.protocol() == Protocol::Pip);
        inherits && self.test == Test::FpRta && self.blocking_only.is_none() && self.overheads.is_none()
    }

    /// The same where each resource stays on one core.
    fn inheriting(&self, question: &Question, limits: Limits) -> Result<Verdict, Refusal> {
        let (plain, blocked) = without_locks(question)?;
        let mut verdict = Self { locks: None, ..*self }.verdict(&plain, limits)?;
        // The tasks of the question, of which blocking by locks is no part.
        verdict.tasks = question.system.tasks.iter().map(|one| one.task).collect();
        verdict.arrival = blocked;
        Ok(verdict)
    }

    /// The verdict on a question that is prepared.
    pub fn verdict(&self, question: &Question, limits: Limits) -> Result<Verdict, Refusal> {
        let system = &question.system;
        if self.is_inheritance_alone() && is_on_one_core_each(system) {
            return self.inheriting(question, limits);
        }
        if self.locks.is_some() || self.overheads.is_some() || self.edf_jitter == EdfJitter::PeriodsToo {
            refuse_bounds(system, self.test)?;
        }
        if !question.equals.is_empty() {
            let alone = self.locks.is_none() && self.overheads.is_none();
            if alone && self.test == Test::FpRta && system.suspends() && !system.limits_preemption() {
                return response_times_of_suspending_equals(system, &question.equals, limits);
            }
            if alone && matches!(self.test, Test::FpRta | Test::FpLimited) && !system.suspends() {
                return each_as_the_last(system, &question.equals, self.test, limits);
            }
            question.refuse_equals(self.test)?;
            // Under any scheduler, the order of service may depend on the priority.
            if self.locks.is_some() {
                return Err(uncounted_equals(self.test));
            }
        }
        if self.edf_jitter == EdfJitter::PeriodsToo {
            let Some(released) = system.from_release() else { return Ok(Verdict::not_placed(system)) };
            return analyze(&released, self.test, limits);
        }
        let test = match self.test {
            // Tasks bound to cores are admitted to the cpusets of these cores.
            Test::SchedDeadline if question.placed || self.partition.is_some() => {
                Test::SchedDeadlinePartitioned
            }
            test => test,
        };
        if let (Some(locks), Some(_), Test::Global(test)) = (self.locks, self.blocking_only, test) {
            return block_once_globally(system, locks, test);
        }
        match (self.locks, &self.overheads, self.blocking_only) {
            (None, None, _) if test == Test::SchedDeadline => admission(system, false, self.admission),
            (None, None, _) if test == Test::SchedDeadlinePartitioned => {
                admission(system, true, self.admission)
            }
            (None, None, _) => analyze(system, test, limits),
            (None, Some(overheads), _) => analyze_with_overheads(system, test, overheads, limits),
            (Some(locks), _, Some(semantics)) => block_once(system, locks, semantics),
            (Some(locks), None, None) => analyze_with_locks(system, test, locks, limits),
            (Some(locks), Some(overheads), None) => {
                analyze_with_locks_and_overheads(system, test, locks, overheads, limits)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::global::GlobalTest;
    use crate::locks::Protocol;
    use crate::question;

    fn asked(line: &str, ask: &Ask) -> Verdict {
        ask.answer(&mut question::read(line).unwrap(), Limits::default()).unwrap()
    }

    #[test]
    fn jitter_is_added_to_each_tasks_own() {
        let ask = Ask { extra_jitter_ns: 3, ..Ask::of(Test::FpRta) };
        let verdict = asked(r#"{"tasks":[{"period":20,"cost":4,"jitter":2},{"period":40,"cost":5}]}"#, &ask);
        assert_eq!(verdict.response_times, [Some(9), Some(12)]);
    }

    #[test]
    fn a_set_that_does_not_fit_is_not_schedulable() {
        let line =
            r#"{"cores":2,"tasks":[{"period":10,"cost":7},{"period":10,"cost":7},{"period":10,"cost":7}]}"#;
        let ask = Ask { partition: Heuristic::by_name("ffd"), ..Ask::of(Test::FpRta) };
        assert!(!asked(line, &ask).schedulable);
        let two = line.replace(r#",{"period":10,"cost":7}]"#, "]");
        let verdict = asked(&two, &ask);
        assert_eq!((verdict.schedulable, verdict.cores), (true, vec![0, 1]));
    }

    #[test]
    fn bound_tasks_are_admitted_core_by_core() {
        let line = |core: &str| {
            format!(
                r#"{{"unit":"ms","cores":2,"tasks":[{{"period":100,"cost":60{core}}},{{"period":100,"cost":60}}]}}"#
            )
        };
        let ask = Ask::of(Test::SchedDeadline);
        assert!(asked(&line(""), &ask).schedulable);
        assert!(!asked(&line(r#","core":0"#), &ask).schedulable);
    }

    #[test]
    fn another_order_is_found_where_one_holds() {
        let other = |line: &str, ask: &Ask| {
            let mut question = question::read(line).unwrap();
            assert!(!ask.answer(&mut question, Limits::default()).unwrap().schedulable, "{line}");
            ask.other_order(&question, Limits::default())
        };
        let fp = Ask::of(Test::FpRta);
        let list = r#"{"tasks":[{"period":100,"cost":30},{"period":10,"cost":3}]}"#;
        assert_eq!(other(list, &fp), Some(Order::DeadlineMonotonic));
        assert_eq!(
            other(list, &Ask { overheads: Some(Overheads::default()), ..fp }),
            Some(Order::DeadlineMonotonic)
        );
        // Jitter that is added has been added already: 3 + 4 of 10 beside it.
        assert_eq!(other(list, &Ask { extra_jitter_ns: 4, ..fp }), Some(Order::DeadlineMonotonic));
        let beyond =
            r#"{"tasks":[{"period":100,"cost":52,"deadline":110},{"period":140,"cost":52,"deadline":154}]}"#;
        assert_eq!(other(beyond, &fp), Some(Order::Audsley));
        let guan = Ask::of(Test::Global(GlobalTest::FpGuan));
        let global = r#"{"cores":2,"tasks":[{"period":100,"cost":30},{"period":100,"cost":30},{"period":10,"cost":3}]}"#;
        assert_eq!(other(global, &guan), Some(Order::DeadlineMonotonic));
        let never = r#"{"tasks":[{"period":10,"cost":6},{"period":10,"cost":6}]}"#;
        assert_eq!(other(never, &fp), None);
        // Locks go with the priorities of the line.
        let locks = Ask { locks: Protocol::by_name("fifo-np").map(Locks::of), ..fp };
        assert_eq!(other(list, &locks), None);
    }

    #[test]
    fn options_that_do_not_go_together_are_refused() {
        let ask = Ask::of(Test::FpRta);
        let wrong = [
            Ask { edf_jitter: EdfJitter::PeriodsToo, ..ask },
            Ask { partition: Heuristic::by_name("ffd"), ..Ask::of(Test::Global(GlobalTest::EdfGfb)) },
            Ask {
                locks: Protocol::by_name("fifo-np").map(Locks::of),
                blocking_only: Some(Semantics::Sound),
                overheads: Some(Overheads::default()),
                ..ask
            },
            Ask { blocking_only: Semantics::by_name("schedcat"), ..ask },
        ];
        let options: Vec<_> = wrong.iter().map(|ask| ask.check().unwrap_err().option).collect();
        assert_eq!(options, ["edf-jitter", "partition", "overheads", "blocking-only"]);
        assert_eq!(Ask { edf_jitter: EdfJitter::PeriodsToo, test: Test::EdfQpa, ..ask }.check(), Ok(()));
    }
}
