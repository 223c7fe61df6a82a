//! `stillcore sched budget` with locks, and under global tests: one answer for the whole set, and
//! how far it was looked.

use super::budget_args::{BudgetArgs, Of};
use super::budget_cost::{SCHEMA, factor};
use crate::measure::table::table;
use anyhow::Context;
use model::Error;
use sched::asked::Question;
use sched::locks::{Locks, Protocol};
use sched::overheads::Overheads;
use sched::{
    Ask, Heuristic, Limits, System, Test, UNCHANGED_PPM, WholeBudget, cost_of_whole, jitter_of_whole,
    question,
};
use serde_json::json;

/// Most tasks of a set: each is asked about many times.
const MOST_TASKS: usize = 100;

/// What is asked of every line.
pub(super) struct Whole<'a> {
    args: &'a BudgetArgs,
    ask: Ask,
}

impl<'a> Whole<'a> {
    pub(super) fn of(args: &'a BudgetArgs, overheads: Option<Overheads>) -> anyhow::Result<Self> {
        let ask = Ask {
            partition: args.partition.as_deref().and_then(Heuristic::by_name),
            locks: args.locks.as_deref().and_then(Protocol::by_name).map(Locks::of),
            overheads,
            ..Ask::of(Test::by_name(&args.test).context("clap lets known tests through only")?)
        };
        ask.check()
            .map_err(|wrong| Error::invalid(format!("--{}", wrong.option), wrong.found, wrong.expected))?;
        Ok(Self { args, ask })
    }

    /// What is printed of a line, and whether its set is late as given.
    pub(super) fn answer(&self, number: usize, line: &[u8]) -> anyhow::Result<(String, bool)> {
        let place = |field: &str| format!("{}, line {number}, {field}", self.args.file.display());
        let mut question = question::read(line)
            .map_err(|error| Error::invalid(place(&error.field), error.found, error.expected))?;
        let tasks = question.system.tasks.len();
        if tasks > MOST_TASKS {
            let expected = format!("at most {MOST_TASKS} for a budget with locks or of a global test");
            return Err(Error::invalid(place("the set"), format!("{tasks} tasks"), expected).into());
        }
        let found = || place("the set");
        let late = if self.ask.prepare(&mut question).with_context(found)? {
            !self.ask.verdict(&question, Limits::default()).with_context(found)?.schedulable
        } else {
            return Ok((self.not_placed(number, &question), true));
        };
        let budget = match self.args.of {
            Of::Jitter => jitter_of_whole(&self.ask, &question, Limits::default()),
            Of::Cost | Of::Utilization => cost_of_whole(&self.ask, &question, Limits::default()),
        };
        let budget = budget.with_context(found)?;
        let text = if self.args.json {
            self.json(number, &question, &budget, late)
        } else {
            self.text(number, &question, &budget)
        };
        Ok((text, late))
    }

    fn not_placed(&self, number: usize, question: &Question) -> String {
        let none = WholeBudget { all: None, tasks: vec![None; question.system.tasks.len()], exact: true };
        if self.args.json {
            return self.json(number, question, &none, true);
        }
        format!("line {number}: not schedulable as it is: some task found no core\n")
    }

    fn json(&self, number: usize, question: &Question, budget: &WholeBudget, late: bool) -> String {
        let tasks = question.in_order(&budget.tasks);
        let mut object = json!({
            "schema": SCHEMA,
            "line": number,
            "test": self.args.test,
            "locks": self.args.locks,
            "unit": question.unit.name(),
            "schedulable": !late,
            "exact": budget.exact,
        });
        let more = if self.args.of == Of::Jitter {
            json!({"budget_ns": budget.all, "budgets_alone_ns": tasks})
        } else {
            json!({"of": "cost", "factor_ppm": budget.all, "factors_ppm": tasks})
        };
        if let (Some(all), Some(more)) = (object.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        object.to_string() + "\n"
    }

    fn text(&self, number: usize, question: &Question, budget: &WholeBudget) -> String {
        if budget.tasks.is_empty() {
            return format!("line {number}: no task\n");
        }
        let jitter = self.args.of == Of::Jitter;
        let how = match (budget.exact, jitter) {
            (true, true) => "the most that may be added to the jitter of every task",
            (false, true) => "may be added to the jitter of every task: checked; more may hold, too",
            (true, false) => "the largest factor of all at which deadlines are met",
            (false, false) => "deadlines are met: checked; a larger factor may hold, too",
        };
        let head = match budget.all {
            None if jitter => "not schedulable as it is".to_owned(),
            None => "late with any costs".to_owned(),
            Some(ns) if jitter => format!("budget {ns} ns, {how}"),
            Some(ppm) if ppm < UNCHANGED_PPM => {
                format!("not schedulable as it is; costs times {}, {how}", factor(Some(ppm)))
            }
            Some(ppm) => format!("costs times {}, {how}", factor(Some(ppm))),
        };
        if self.args.of == Of::Utilization {
            return format!("line {number}: {head}\n{}", utilizations(&question.system, budget.all));
        }
        let shown = |one: &Option<u64>| match one {
            Some(ns) if jitter => ns.to_string(),
            None if jitter => "late".to_owned(),
            ppm => factor(*ppm),
        };
        let rows = question.in_order(&budget.tasks);
        let rows = rows.iter().enumerate().map(|(place, one)| vec![place.to_string(), shown(one)]);
        let (column, name, what) =
            if jitter { ("budget, ns", "budget", "jitter") } else { ("factor", "factor", "cost") };
        format!("line {number}: {head}\n")
            + &table(&["task", column], rows.collect())
            + &format!("{name} of a task: its {what} alone grows, and all tasks are still in time\n")
    }
}

/// The load of all cores together, as given and with all costs at the factor.
fn utilizations(system: &System, factor_ppm: Option<u64>) -> String {
    let load: f64 = system.tasks.iter().map(|one| one.task.utilization()).sum();
    let most = factor_ppm.map(|ppm| load * ppm as f64 / UNCHANGED_PPM as f64);
    let most = most.map_or_else(|| "-".to_owned(), |most| format!("{most:.6}"));
    let row = vec![system.cores.to_string(), format!("{load:.6}"), most];
    table(&["cores", "utilization of all", "at the factor"], vec![row])
}
