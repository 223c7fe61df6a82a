//! `stillcore sched analyze --jitter-from RUN --probabilistic`: how probable a late job is, from
//! all wake-ups that a run measured.
//!
//! Says in words what the number of wake-ups cannot support: with none of n later, 3/n is the least
//! probability that can be stated for one release, and a job depends on several.

use super::lines::{self, Answering};
use crate::measure::table::table;
use crate::sched_verb::analyze_args::AnalyzeArgs;
use analysis::latencies::{WindowLatencies, exceedance, latencies};
use anyhow::Context;
use model::Error;
use report::format;
use sched::asked::Question;
use sched::probabilistic::{LatestError, OnCore, Releases, on_cores};
use sched::{Heuristic, Limits, System, Test, question};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const SCHEMA: &str = "stillcore.sched-probabilistic/1";
/// Probabilities of one job for which response times are printed.
const LEVELS: [f64; 3] = [1e-2, 1e-3, 1e-4];

/// What a run says of releases.
struct Measured {
    releases: Releases,
    /// Wake-ups of the window with the fewest.
    n: u64,
    conditions: String,
}

impl Measured {
    fn read(dir: &Path) -> anyhow::Result<Self> {
        let windows = latencies(dir).with_context(|| format!("{} cannot be analysed", dir.display()))?;
        let Some(n) = windows.iter().map(WindowLatencies::n).min().filter(|n| *n > 0) else {
            let expected = "a run of assess or of measure wakeup";
            return Err(Error::invalid(dir.display(), "no wake-up was measured", expected).into());
        };
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for (latency_ns, count) in windows.iter().flat_map(|window| &window.counts) {
            *counts.entry(*latency_ns).or_default() += count;
        }
        let counts: Vec<(u64, u64)> = counts.into_iter().collect();
        let releases = Releases::new(exceedance(&windows), &counts)?;
        let all: u64 = windows.iter().map(WindowLatencies::n).sum();
        let policies: Vec<&str> = windows.iter().map(|window| window.policy.as_str()).collect();
        let conditions = format!(
            "release latencies of {}: {} in {}, the fewest {} ({}), observed maximum {}; probabilities are upper bounds at 95 % \
             confidence of the worst window, its wake-ups taken for independent draws of what will be",
            dir.display(),
            format::plural(all, "wake-up"),
            format::plural(windows.len() as u64, "window"),
            format::count(n),
            policies.first().copied().unwrap_or_default(),
            format::ns(releases.longest_ns as i64),
        );
        Ok(Self { releases, n, conditions })
    }
}

/// Answers every line. Exit code 2 where a job may be late more often than allowed, or that is not
/// known.
pub(super) fn run(args: &AnalyzeArgs) -> anyhow::Result<u8> {
    let asked = &args.probabilistic;
    if args.test != "fp-rta" {
        let found = format!("--test {}", args.test);
        return Err(Error::invalid("--probabilistic", found, "fp-rta").into());
    }
    let dir = args.jitter.jitter_from.as_deref().context("clap asks for the run")?;
    let measured = Measured::read(dir)?;
    let latest_ns = asked.latest.map(|latest| u64::try_from(latest.as_nanos()).unwrap_or(u64::MAX));
    eprintln!("note: {}", measured.conditions);
    let answering = Answering { keep_going: args.keep_going, json: args.json };
    lines::answer_each(&args.file, &answering, |number, line| {
        answer(args, &measured, latest_ns, number, line?)
    })
}

/// The answer to a line, and whether a job may be late more often than allowed.
fn answer(
    args: &AnalyzeArgs,
    measured: &Measured,
    latest_ns: Option<u64>,
    number: usize,
    line: &[u8],
) -> anyhow::Result<(String, bool)> {
    let place = |field: &str| format!("{}, line {number}, {field}", args.file.display());
    let mut question = question::read(line)
        .map_err(|error| Error::invalid(place(&error.field), error.found, error.expected))?;
    if let Some(found) = question.system.beyond_independent() {
        let expected = "a set without, of whose probabilities something is known";
        return Err(Error::invalid(place("the set"), found, expected).into());
    }
    question
        .refuse_equals(Test::FpRta)
        .map_err(|error| Error::invalid(place("the set"), error.to_string(), "priorities that differ"))?;
    let heuristic = args.partition.as_deref().and_then(Heuristic::by_name);
    let placed = heuristic.map_or(Ok(true), |heuristic| question.place(heuristic));
    let placed = placed.with_context(|| place("the set"))?;
    let tasks = if placed { analyze(&question.system, measured, latest_ns) } else { Ok(Vec::new()) };
    let tasks = tasks.with_context(|| place("the set"))?;
    let allowed = args.probabilistic.late_at_most;
    let answer = Answer { number, question: &question, tasks: &tasks, measured, allowed };
    let text = if args.json { answer.json().to_string() + "\n" } else { answer.text() };
    Ok((text, !answer.holds()))
}

/// Analyzes all tasks, in priority order.
fn analyze(system: &System, measured: &Measured, latest_ns: Option<u64>) -> anyhow::Result<Vec<OnCore>> {
    on_cores(system, &measured.releases, latest_ns, &LEVELS, Limits::default()).map_err(|error| match error {
        LatestError::Observed { latest_ns, longest_ns } => {
            let found = format!("{} (by default the shortest period)", format::ns(latest_ns as i64));
            let expected = format!("at least {}, which was observed", format::ns(longest_ns as i64));
            Error::invalid("--latest", found, expected).into()
        }
        other => other.into(),
    })
}

struct Answer<'a> {
    number: usize,
    question: &'a Question,
    tasks: &'a [OnCore],
    measured: &'a Measured,
    allowed: f64,
}

impl Answer<'_> {
    fn holds(&self) -> bool {
        self.tasks.len() == self.question.system.tasks.len()
            && self.tasks.iter().all(|one| one.likelihood.late_at_most <= self.allowed)
    }

    /// Wake-ups required, none of them later than the budget, to show the allowed probability for
    /// the task that depends on most releases.
    fn needed(&self) -> Option<u64> {
        let floor = self.measured.releases.exceedance.least();
        let borne = |one: &&OnCore| {
            let releases = one.likelihood.releases.unwrap_or(0) as f64;
            one.likelihood.budget_ns.is_some() && releases * floor > self.allowed
        };
        let most = self.tasks.iter().filter(borne).filter_map(|one| one.likelihood.releases).max()?;
        Some((3.0 * most as f64 / self.allowed).ceil() as u64)
    }

    /// In the order of the question.
    fn in_order(&self) -> Vec<&OnCore> {
        let mut ordered: Vec<_> = self.question.places.iter().zip(self.tasks).collect();
        ordered.sort_by_key(|(place, _)| **place);
        ordered.into_iter().map(|(_, task)| task).collect()
    }

    fn json(&self) -> Value {
        let unit_ns = self.question.unit.ns();
        let task = |one: &&OnCore| {
            let mut object = json!(one.likelihood);
            object["latest_ns"] = json!(one.latest_ns);
            let response = |(p, ns): (&f64, &Option<u64>)| json!({ "exceeded_at_most": p, "response_time": ns.map(|ns| ns.div_ceil(unit_ns)) });
            object["responses"] = LEVELS.iter().zip(&one.responses).map(response).collect();
            object
        };
        json!({
            "schema": SCHEMA,
            "line": self.number,
            "test": "fp-rta",
            "unit": self.question.unit.name(),
            "allowed": self.allowed,
            "holds": self.holds(),
            "wakeups": self.measured.n,
            "wakeups_needed": self.needed(),
            "tasks": self.in_order().iter().map(task).collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let number = self.number;
        if self.tasks.len() < self.question.system.tasks.len() {
            return format!("line {number}: not placed on its cores\n");
        }
        let word = if self.holds() {
            "no job is late with a probability above"
        } else {
            "not shown: late jobs at most at"
        };
        let mut text = format!("line {number}: {word} {}\n", chance(self.allowed));
        if let Some(needed) = self.needed() {
            let _ = writeln!(
                text,
                "{} do not bear it: one job depends on so many releases that it takes {}, none later than the budget",
                format::plural(self.measured.n, "wake-up"),
                format::plural(needed, "wake-up"),
            );
        }
        let unit_ns = self.question.unit.ns();
        let row = |(place, one): (usize, &&OnCore)| {
            let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            let likelihood = &one.likelihood;
            let mut row = vec![
                place.to_string(),
                known(likelihood.budget_ns.map(|ns| format::ns(ns as i64))),
                known(likelihood.releases.map(format::count)),
                chance(likelihood.late_at_most),
                known(likelihood.late_at_most_if_stopped.map(chance)),
                known(likelihood.late_estimate.map(chance)),
            ];
            row.extend(one.responses.iter().map(|ns| known(ns.map(|ns| ns.div_ceil(unit_ns).to_string()))));
            row
        };
        let heads = LEVELS.map(|p| format!("R {}", chance(p)));
        let mut head = vec!["task", "budget", "releases", "late <=", "if stopped", "estimate"];
        head.extend(heads.iter().map(String::as_str));
        text.push_str(&table(&head, self.in_order().iter().enumerate().map(row).collect()));
        let _ = writeln!(
            text,
            "late <=: of one job, whatever releases have to do with one another. If stopped: where late jobs are stopped at their\n\
             deadlines. Estimate: no bound, latencies independent. R P: response time, {}, that a job exceeds with at most P",
            self.question.unit.name()
        );
        text
    }
}

/// A probability with two digits.
fn chance(p: f64) -> String {
    if p >= 0.01 || p <= 0.0 { format!("{}", (p * 1e4).ceil() / 1e4) } else { format!("{p:.1e}") }
}
