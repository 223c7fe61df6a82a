//! `stillcore sched budget`: how much release jitter, such as a core's wake-up latency, task sets
//! tolerate on top of their own; or how much more cost (`budget_cost`). With locks and under global
//! tests a set is answered as a whole (`budget_whole`).

use super::budget_args::{BudgetArgs, Of};
use super::budget_cost;
use super::budget_whole::Whole;
use super::lines::{self, Answering};
use crate::measure::table::table;
use crate::sched_verb::budget_cost::SCHEMA;
use anyhow::Context;
use model::Error;
use sched::asked::Question;
use sched::overheads::Overheads;
use sched::{BudgetTest, CostBudget, Heuristic, JitterBudget, Limits, Refusal, System, question};
use serde_json::json;
use std::fmt::Write as _;

/// Most tasks of a core.
const MOST_TASKS: usize = 1_000;

/// Answers every line. Exit code 2 where a set is late even without additional jitter.
pub(crate) fn run(args: &BudgetArgs) -> anyhow::Result<u8> {
    let (overheads, answering) =
        (args.overheads.resolve()?, Answering { keep_going: args.keep_going, json: args.json });
    let by_core = BudgetTest::by_name(&args.test).filter(|_| args.locks.is_none());
    let Some(test) = by_core else {
        let whole = Whole::of(args, overheads)?;
        return lines::answer_each(&args.file, &answering, |number, line| whole.answer(number, line?));
    };
    let heuristic = args.partition.as_deref().and_then(Heuristic::by_name);
    let asked = Asked { args, heuristic, test, overheads };
    lines::answer_each(&args.file, &answering, |number, line| asked.answer(number, line?))
}

/// What is asked of every line.
struct Asked<'a> {
    args: &'a BudgetArgs,
    heuristic: Option<Heuristic>,
    test: BudgetTest,
    overheads: Option<Overheads>,
}

impl Asked<'_> {
    /// What is printed of a line, and whether its set is late as given.
    fn answer(&self, number: usize, line: &[u8]) -> anyhow::Result<(String, bool)> {
        let (args, test) = (self.args, self.test);
        let mut question = read(args, number, line)?;
        question
            .refuse_equals(test.verdict())
            .with_context(|| format!("{}, line {number}, the set", args.file.display()))?;
        let placed = self.heuristic.map_or(Ok(true), |heuristic| question.place(heuristic));
        let placed = placed.with_context(|| format!("{}, line {number}, the set", args.file.display()))?;
        refuse_crowds(args, number, &question.system)?;
        if args.of != Of::Jitter {
            return cost(args, test, number, &question, placed, self.overheads.as_ref());
        }
        let (system, limits) = (&question.system, Limits::default());
        let budget = match &self.overheads {
            _ if !placed => Ok(JitterBudget::not_placed()),
            None => JitterBudget::of(system, test, limits).map_err(Refusal::from),
            Some(overheads) => JitterBudget::with_overheads(system, test, overheads, limits),
        };
        let budget = budget.with_context(|| format!("{}, line {number}", args.file.display()))?;
        let text = if args.json {
            json(&budget, args, number, &question) + "\n"
        } else {
            text(&budget, number, &question)
        };
        Ok((text, budget.set_ns.is_none() && !question.system.tasks.is_empty()))
    }
}

fn read(args: &BudgetArgs, number: usize, line: &[u8]) -> anyhow::Result<Question> {
    let place = |field: &str| format!("{}, line {number}, {field}", args.file.display());
    let question = question::read(line)
        .map_err(|error| Error::invalid(place(&error.field), error.found, error.expected))?;
    if let Some(found) = question.system.beyond_independent() {
        let without = "a set without, whose budget is known how to find";
        let locks = "--locks PROTOCOL";
        let expected = if found == "requests for resources" { locks } else { without };
        return Err(Error::invalid(place("the set"), found, expected).into());
    }
    Ok(question)
}

/// A budget asks about each task of a core many times: the answer for more would not come.
fn refuse_crowds(args: &BudgetArgs, number: usize, system: &System) -> anyhow::Result<()> {
    match system.by_core().iter().enumerate().find(|(_, tasks)| tasks.len() > MOST_TASKS) {
        None => Ok(()),
        Some((core, tasks)) => {
            let place = format!("{}, line {number}, core {core}", args.file.display());
            let expected = format!("at most {MOST_TASKS} for a budget");
            Err(Error::invalid(place, format!("{} tasks", tasks.len()), expected).into())
        }
    }
}

/// Factors of costs as text, and whether the set is late as given.
fn cost(
    args: &BudgetArgs,
    test: BudgetTest,
    number: usize,
    question: &Question,
    placed: bool,
    overheads: Option<&Overheads>,
) -> anyhow::Result<(String, bool)> {
    let (system, limits) = (&question.system, Limits::default());
    let budget = match overheads {
        _ if !placed => Ok(CostBudget::not_placed(system)),
        None => CostBudget::of(system, test, limits).map_err(Refusal::from),
        Some(overheads) => CostBudget::with_overheads(system, test, overheads, limits),
    };
    let budget = budget.with_context(|| format!("{}, line {number}", args.file.display()))?;
    let text = match args.of {
        _ if args.json => budget_cost::json(&budget, &args.test, number, question) + "\n",
        Of::Utilization => budget_cost::text_of_utilization(&budget, number),
        Of::Cost | Of::Jitter => budget_cost::text_of_costs(&budget, number, question),
    };
    Ok((text, budget.late()))
}

/// Places in the question instead of priorities.
fn in_order(budget: &JitterBudget, question: &Question) -> Option<Vec<Option<u64>>> {
    Some(question.in_order(budget.tasks_ns.as_ref()?))
}

fn json(budget: &JitterBudget, args: &BudgetArgs, number: usize, question: &Question) -> String {
    let unit = |ns: u64| ns / question.unit.ns();
    let tasks = in_order(budget, question);
    let object = json!({
        "schema": SCHEMA,
        "line": number,
        "test": args.test,
        "unit": question.unit.name(),
        "schedulable": budget.set_ns.is_some() || question.system.tasks.is_empty(),
        "budget": budget.set_ns.map(unit),
        "budget_ns": budget.set_ns,
        "limiting_task": budget.limiting.map(|index| question.places[index]),
        "budgets": tasks.as_ref().map(|tasks| tasks.iter().map(|ns| ns.map(unit)).collect::<Vec<_>>()),
        "budgets_ns": tasks,
    });
    object.to_string()
}

fn text(budget: &JitterBudget, number: usize, question: &Question) -> String {
    let mut text = match budget.set_ns {
        Some(ns) => {
            format!("line {number}: budget {ns} ns, the most that may be added to the jitter of every task\n")
        }
        None if question.system.tasks.is_empty() => format!("line {number}: no task\n"),
        None => format!("line {number}: not schedulable as it is\n"),
    };
    if let Some(tasks) = in_order(budget, question) {
        let limiting = budget.limiting.map(|index| question.places[index]);
        let rows = tasks.iter().enumerate().map(|(place, ns)| {
            let mark = if limiting == Some(place) { "first to be late" } else { "" };
            vec![
                place.to_string(),
                ns.map_or_else(|| "late".to_owned(), |ns| ns.to_string()),
                mark.to_owned(),
            ]
        });
        text.push_str(&table(&["task", "budget, ns", ""], rows.collect()));
        let _ = writeln!(text, "budget of a task: added to the jitter of all, and this one is still in time");
    }
    text
}
