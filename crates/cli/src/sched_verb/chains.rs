//! `stillcore sched chains`: how late data may be at the end of a chain of tasks.

use super::jitter::JitterArgs;
use super::lines::{self, Answering};
use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValuesParser;
use model::Error;
use sched::asked::Question;
use sched::{Ask, Chain, ChainBound, ChainError, ChainVerdict, Edge, Limits, Test, bound_chains, question};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;

const SCHEMA: &str = "stillcore.sched-chains/1";

/// Arguments of `sched chains`.
#[derive(Debug, Args)]
pub(crate) struct ChainsArgs {
    /// Task sets with chains, one JSON object per line; - = standard input.
    #[arg(value_name = "FILE.jsonl")]
    pub(crate) file: PathBuf,
    /// Test that bounds the response times.
    #[arg(long, value_name = "NAME", default_value = "fp-rta", value_parser = PossibleValuesParser::new(["fp-rta", "fp-limited", "edf-rta"]))]
    pub(crate) test: String,
    #[command(flatten)]
    pub(crate) jitter: JitterArgs,
    /// Report a line that is not a task set, and continue.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Answers every line. Exit code 2 where a task or a chain is late.
pub(crate) fn run(args: &ChainsArgs) -> anyhow::Result<u8> {
    let ask = Ask {
        extra_jitter_ns: args.jitter.resolve()?,
        ..Ask::of(Test::by_name(&args.test).context("clap lets known tests through only")?)
    };
    let answering = Answering { keep_going: args.keep_going, json: args.json };
    lines::answer_each(&args.file, &answering, |number, line| {
        let line = line?;
        let place = |field: &str| format!("{}, line {number}, {field}", args.file.display());
        let (mut question, chains) = question::read_with_chains(line)
            .map_err(|error| Error::invalid(place(&error.field), error.found, error.expected))?;
        if chains.is_empty() {
            let expected = "a list of chains, such as [{\"tasks\":[0,1]}]";
            return Err(Error::invalid(place("chains"), "nothing", expected).into());
        }
        let verdict = bound_chains(&ask, &mut question, &chains, Limits::default());
        let verdict = verdict.map_err(|error| match error {
            ChainError::Chain { field, found, expected } => {
                anyhow::Error::from(Error::invalid(place(&field), found, expected))
            }
            ChainError::Tasks(refusal) => anyhow::Error::from(refusal).context(place("the set")),
        })?;
        let answered =
            Answered { number, test: ask.test, question: &question, chains: &chains, verdict: &verdict };
        let text = if args.json { answered.json().to_string() + "\n" } else { answered.text() };
        Ok((text, !verdict.holds))
    })
}

/// What was answered to which line.
struct Answered<'a> {
    number: usize,
    test: Test,
    question: &'a Question,
    chains: &'a [Chain],
    verdict: &'a ChainVerdict,
}

impl Answered<'_> {
    fn each(&self) -> impl Iterator<Item = (&Chain, &ChainBound)> {
        self.chains.iter().zip(&self.verdict.chains)
    }

    fn in_unit(&self, ns: Option<u64>) -> Option<u64> {
        ns.map(|ns| self.question.in_unit(ns))
    }

    fn json(&self) -> Value {
        let chains = self.each().map(|(chain, bound)| {
            json!({
                "tasks": chain.tasks,
                "edges": chain.edges.iter().copied().map(word).collect::<Vec<_>>(),
                "reaction": self.in_unit(bound.reaction_ns),
                "age": self.in_unit(bound.age_ns),
                "holds": is_within(chain.reaction_ns, bound.reaction_ns) && is_within(chain.age_ns, bound.age_ns),
            })
        });
        let responses: Vec<Option<u64>> =
            self.verdict.tasks.response_times.iter().map(|&ns| self.in_unit(ns)).collect();
        json!({
            "chains": chains.collect::<Vec<_>>(),
            "holds": self.verdict.holds,
            "line": self.number,
            "response_times": self.question.in_order(&responses),
            "schedulable": self.verdict.tasks.schedulable,
            "schema": SCHEMA,
            "test": self.test.name(),
            "unit": self.question.unit.name(),
        })
    }

    fn text(&self) -> String {
        let late = self.question.in_order(&self.verdict.tasks.response_times);
        let tasks =
            if self.verdict.tasks.schedulable { "all tasks in time" } else { "not all tasks in time" };
        let word = if self.verdict.holds { "holds" } else { "does not hold" };
        let mut text = format!("line {}: {word} ({}, {tasks})\n", self.number, self.test.name());
        let unknown: Vec<String> =
            (0..late.len()).filter(|&task| late[task].is_none()).map(|task| task.to_string()).collect();
        if !unknown.is_empty() {
            let _ = writeln!(text, "tasks without a bound on their response: {}", unknown.join(", "));
        }
        for (number, (chain, bound)) in self.each().enumerate() {
            let mut path = chain.tasks[0].to_string();
            for (edge, task) in chain.edges.iter().zip(&chain.tasks[1..]) {
                let _ = write!(path, " -{}-> {task}", self::word(*edge));
            }
            let reaction = self.time(chain.reaction_ns, bound.reaction_ns);
            let age = self.time(chain.age_ns, bound.age_ns);
            let _ = writeln!(text, "chain {number}: {path}: reaction {reaction}, data age {age}");
        }
        text + "bounds hold for arrivals exactly a period apart\n"
    }

    /// A bound beside its limit.
    fn time(&self, limit_ns: Option<u64>, bound_ns: Option<u64>) -> String {
        let unit = self.question.unit.name();
        let bound = match self.in_unit(bound_ns) {
            Some(time) => format!("at most {time} {unit}"),
            None => "without a bound".to_owned(),
        };
        match self.in_unit(limit_ns) {
            Some(limit) if is_within(limit_ns, bound_ns) => format!("{bound} (limit {limit} {unit})"),
            Some(limit) => format!("{bound} (above its limit, {limit} {unit})"),
            None => bound,
        }
    }
}

fn is_within(limit_ns: Option<u64>, bound_ns: Option<u64>) -> bool {
    limit_ns.is_none_or(|limit| bound_ns.is_some_and(|bound| bound <= limit))
}

fn word(edge: Edge) -> &'static str {
    match edge {
        Edge::Time => "time",
        Edge::Event => "event",
    }
}
