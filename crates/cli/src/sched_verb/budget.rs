//! `stillcore sched budget`: how much release jitter, say wake-up latency of a core, task sets tolerate on top of their own; or how much
//! more cost (`budget_cost`).

use super::budget_cost::CostBudget;
use super::{analyze, lines};
use crate::measure::table::table;
use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use model::Error;
use sched::question::{self, Question};
use sched::{Heuristic, Limits, System, TaskError, jitter_margin, jitter_margin_edf};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

pub(super) const SCHEMA: &str = "stillcore.sched-budget/1";

/// Arguments of `sched budget`.
#[derive(Debug, Args)]
pub(crate) struct BudgetArgs {
    /// Task sets, a JSON object a line; - is standard input.
    #[arg(value_name = "FILE.jsonl")]
    pub(crate) file: PathBuf,
    /// What may grow: the jitter of all tasks, the cost of all and of each, or the utilization of each core.
    #[arg(long, value_name = "WHAT", default_value = "jitter")]
    pub(crate) of: Of,
    /// The test that has to hold.
    #[arg(long, value_name = "NAME", default_value = "fp-rta", value_parser = ["fp-rta", "edf-qpa"])]
    pub(crate) test: String,
    /// Assign cores first, by bin packing: first, worst, best or next fit, with d by decreasing utilization.
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(Heuristic::ALL.map(|(name, _)| name)))]
    pub(crate) partition: Option<String>,
    /// Print a JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Of {
    /// Release jitter.
    Jitter,
    /// Costs, by a factor.
    Cost,
    /// The same, told as the load of each core.
    Utilization,
}

/// The budget of one set. Times in ns, tasks by priority.
struct Budget {
    set: Option<u64>,
    limiting: Option<usize>,
    /// None where the test does not tell tasks apart.
    tasks: Option<Vec<Option<u64>>>,
}

/// Answers every line. Exit code 2 where a set is late even without additional jitter.
pub(crate) fn run(args: &BudgetArgs) -> anyhow::Result<u8> {
    let heuristic = args.partition.as_deref().and_then(Heuristic::by_name);
    let mut out = BufWriter::new(io::stdout().lock());
    let mut late = false;
    lines::for_each(&args.file, |number, line| {
        let mut question = read(args, number, line)?;
        let placed = heuristic.is_none_or(|heuristic| analyze::place(&mut question.system, heuristic));
        if args.of != Of::Jitter {
            let (text, too_late) = cost(args, number, &question, placed)?;
            late |= too_late;
            return out.write_all(text.as_bytes()).context("cannot write");
        }
        let budget = match args.test.as_str() {
            _ if !placed => Ok(Budget { set: None, limiting: None, tasks: None }),
            "fp-rta" => fixed(&question.system),
            _ => edf(&question.system),
        };
        let budget = budget.with_context(|| format!("{}, line {number}", args.file.display()))?;
        late |= budget.set.is_none() && !question.system.tasks.is_empty();
        let text = if args.json {
            budget.json(args, number, &question) + "\n"
        } else {
            budget.text(number, &question)
        };
        out.write_all(text.as_bytes()).context("cannot write")
    })?;
    out.flush()?;
    Ok(u8::from(late) * 2)
}

fn read(args: &BudgetArgs, number: usize, line: &str) -> anyhow::Result<Question> {
    let place = |field: &str| format!("{}, line {number}, {field}", args.file.display());
    let question = question::read(line)
        .map_err(|error| Error::invalid(place(&error.field), error.found, error.expected))?;
    if question.system.suspends() || question.system.shares() {
        let found = "self-suspension or requests for resources";
        return Err(Error::invalid(
            place("the set"),
            found,
            "a set without, whose budget is known how to find",
        )
        .into());
    }
    Ok(question)
}

/// Factors of costs as text, and whether the set is late as given.
fn cost(
    args: &BudgetArgs,
    number: usize,
    question: &Question,
    placed: bool,
) -> anyhow::Result<(String, bool)> {
    let budget = if placed {
        CostBudget::of(&question.system, &args.test)
            .with_context(|| format!("{}, line {number}", args.file.display()))?
    } else {
        CostBudget::not_placed(&question.system)
    };
    let text = match args.of {
        _ if args.json => budget.json(&args.test, number, question) + "\n",
        Of::Utilization => budget.text_of_utilization(number),
        Of::Cost | Of::Jitter => budget.text_of_costs(number, question),
    };
    Ok((text, budget.late()))
}

/// Core by core; the least counts.
fn fixed(system: &System) -> Result<Budget, TaskError> {
    let mut tasks = vec![None; system.tasks.len()];
    for indices in system.by_core() {
        let margins = jitter_margin(&system.set_of(&indices)?, Limits::default()).per_task_ns;
        for (index, margin) in indices.into_iter().zip(margins) {
            tasks[index] = margin;
        }
    }
    // None, late as given, sorts before every number.
    let limiting = (0..tasks.len()).min_by_key(|&index| tasks[index]);
    Ok(Budget { set: limiting.and_then(|index| tasks[index]), limiting, tasks: Some(tasks) })
}

fn edf(system: &System) -> Result<Budget, TaskError> {
    let mut cores = Vec::new();
    for indices in system.by_core().iter().filter(|indices| !indices.is_empty()) {
        cores.push(jitter_margin_edf(&system.set_of(indices)?, Limits::default()));
    }
    Ok(Budget { set: cores.into_iter().min().flatten(), limiting: None, tasks: None })
}

impl Budget {
    /// Places in the question instead of priorities.
    fn in_order(&self, question: &Question) -> Option<Vec<Option<u64>>> {
        let mut ordered: Vec<_> = question.places.iter().zip(self.tasks.as_ref()?).collect();
        ordered.sort_by_key(|(place, _)| **place);
        Some(ordered.into_iter().map(|(_, margin)| *margin).collect())
    }

    fn json(&self, args: &BudgetArgs, number: usize, question: &Question) -> String {
        let unit = |ns: u64| ns / question.unit.ns();
        let tasks = self.in_order(question);
        let object = json!({
            "schema": SCHEMA,
            "line": number,
            "test": args.test,
            "unit": question.unit.name(),
            "schedulable": self.set.is_some() || question.system.tasks.is_empty(),
            "budget": self.set.map(unit),
            "budget_ns": self.set,
            "limiting_task": self.limiting.map(|index| question.places[index]),
            "budgets": tasks.as_ref().map(|tasks| tasks.iter().map(|ns| ns.map(unit)).collect::<Vec<_>>()),
            "budgets_ns": tasks,
        });
        object.to_string()
    }

    fn text(&self, number: usize, question: &Question) -> String {
        let mut text = match self.set {
            Some(ns) => {
                format!(
                    "line {number}: budget {ns} ns, the most that may be added to the jitter of every task\n"
                )
            }
            None if question.system.tasks.is_empty() => format!("line {number}: no task\n"),
            None => format!("line {number}: not schedulable as it is\n"),
        };
        if let Some(tasks) = self.in_order(question) {
            let limiting = self.limiting.map(|index| question.places[index]);
            let rows = tasks.iter().enumerate().map(|(place, ns)| {
                let mark = if limiting == Some(place) { "first to be late" } else { "" };
                vec![
                    place.to_string(),
                    ns.map_or_else(|| "late".to_owned(), |ns| ns.to_string()),
                    mark.to_owned(),
                ]
            });
            text.push_str(&table(&["task", "budget, ns", ""], rows.collect()));
            let _ =
                writeln!(text, "budget of a task: added to the jitter of all, and this one is still in time");
        }
        text
    }
}
