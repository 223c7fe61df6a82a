//! `stillcore sched executors`: response times of callbacks in executors of ROS 2, and of chains of
//! them.

use super::lines::{self, Answering};
use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValuesParser;
use model::Error;
use sched::Limits;
use sched::executor::{
    Callback, ExecutorAnalysis, ExecutorQuestion, ExecutorVerdict, bound_executors, read_executors,
};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;

const SCHEMA: &str = "stillcore.sched-executors/1";

/// Arguments of `sched executors`.
#[derive(Debug, Args)]
pub(crate) struct ExecutorsArgs {
    /// Executors with their callbacks and chains, one JSON object per line; - = standard input.
    #[arg(value_name = "FILE.jsonl")]
    pub(crate) file: PathBuf,
    /// Analysis that bounds the response times; best = the least bound of the others.
    #[arg(long, value_name = "NAME", default_value = "best", value_parser = PossibleValuesParser::new(ExecutorAnalysis::ALL.map(ExecutorAnalysis::name)))]
    pub(crate) analysis: String,
    /// Report a line that is not a system of executors, and continue.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Answers every line. Exit code 2 where a callback or a chain exceeds its limit, or may.
pub(crate) fn run(args: &ExecutorsArgs) -> anyhow::Result<u8> {
    let analysis = ExecutorAnalysis::by_name(&args.analysis).context("clap lets known names through only")?;
    let answering = Answering { keep_going: args.keep_going, json: args.json };
    lines::answer_each(&args.file, &answering, |number, line| {
        let line = line?;
        let question = read_executors(line).map_err(|error| {
            let place = format!("{}, line {number}, {}", args.file.display(), error.field);
            Error::invalid(place, error.found, error.expected)
        })?;
        let verdict = bound_executors(&question.system, analysis, Limits::default());
        let answered = Answered { number, analysis, question: &question, verdict: &verdict };
        let text = if args.json { answered.json().to_string() + "\n" } else { answered.text() };
        Ok((text, !verdict.holds))
    })
}

/// What was answered to which line.
struct Answered<'a> {
    number: usize,
    analysis: ExecutorAnalysis,
    question: &'a ExecutorQuestion,
    verdict: &'a ExecutorVerdict,
}

impl Answered<'_> {
    /// Rounded up: of a bound no part may be lost.
    fn in_unit(&self, ns: Option<u64>) -> Option<u64> {
        ns.map(|ns| ns.div_ceil(self.question.unit.ns()))
    }

    fn json(&self) -> Value {
        let responses = self.verdict.responses_ns.iter().map(|&ns| self.in_unit(ns));
        let chains = self.question.system.chains.iter().zip(&self.verdict.chains_ns);
        let chains = chains.map(|(chain, &bound)| {
            json!({
                "callbacks": chain.callbacks,
                "holds": is_within(chain.limit_ns, bound),
                "latency": self.in_unit(bound),
                "limit": self.in_unit(chain.limit_ns),
            })
        });
        json!({
            "analysis": self.analysis.name(),
            "chains": chains.collect::<Vec<_>>(),
            "holds": self.verdict.holds,
            "line": self.number,
            "order": self.question.system.order.name(),
            "response_times": responses.collect::<Vec<_>>(),
            "schema": SCHEMA,
            "undecided": self.verdict.undecided,
            "unit": self.question.unit.name(),
        })
    }

    fn text(&self) -> String {
        let system = &self.question.system;
        let word = if self.verdict.holds { "holds" } else { "does not hold" };
        let (analysis, order) = (self.analysis.name(), system.order.name());
        let mut text = format!("line {}: {word} ({analysis}, order {order})\n", self.number);
        for (place, one) in system.callbacks.iter().enumerate() {
            let response = self.time(one.deadline_ns, self.verdict.responses_ns[place]);
            let given_up = if self.verdict.undecided.contains(&place) { ", search given up" } else { "" };
            let Callback { kind, executor, .. } = one;
            let name = kind.name();
            let _ = writeln!(text, "callback {place} ({name}, executor {executor}): {response}{given_up}");
        }
        for (number, (chain, &bound)) in system.chains.iter().zip(&self.verdict.chains_ns).enumerate() {
            let path: Vec<String> = chain.callbacks.iter().map(usize::to_string).collect();
            let bound = self.time(chain.limit_ns, bound);
            let _ = writeln!(text, "chain {number}: {}: {bound}", path.join(" -> "));
        }
        text + "responses count from the activation of the callback, of a chain from that of its first\n"
    }

    /// A bound beside its limit.
    fn time(&self, limit_ns: Option<u64>, bound_ns: Option<u64>) -> String {
        let unit = self.question.unit.name();
        let bound = match self.in_unit(bound_ns) {
            Some(time) => format!("at most {time} {unit}"),
            None => "without a bound".to_owned(),
        };
        match (self.in_unit(limit_ns), bound_ns) {
            (Some(limit), Some(_)) if is_within(limit_ns, bound_ns) => {
                format!("{bound} (limit {limit} {unit})")
            }
            (Some(limit), Some(_)) => format!("{bound} (above its limit, {limit} {unit})"),
            (Some(limit), None) => format!("{bound} (limit {limit} {unit}, not shown)"),
            (None, _) => bound,
        }
    }
}

fn is_within(limit_ns: Option<u64>, bound_ns: Option<u64>) -> bool {
    limit_ns.is_none_or(|limit| bound_ns.is_some_and(|bound| bound <= limit))
}
