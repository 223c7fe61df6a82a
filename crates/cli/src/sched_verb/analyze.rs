//! `stillcore sched analyze`: a question a line, an answer a line.

use super::jitter::JitterArgs;
use super::lines::{Line, Lines};
use super::overheads::OverheadsArgs;
use super::probabilistic::{self, ProbabilisticArgs};
use crate::measure::table::table;
use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use model::Error;
use rayon::prelude::*;
use sched::certificate::{Certificate, certify};
use sched::global::GlobalTest;
use sched::global::sched_deadline::RealTimeShare;
use sched::locks::{Protocol, Semantics};
use sched::question::{self, Question};
use sched::{Ask, Heuristic, Limits, Refusal, Test, Verdict};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const SCHEMA: &str = "stillcore.sched-analyze/1";

/// Arguments of `sched analyze`.
#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// Task sets, a JSON object a line; - is standard input.
    #[arg(value_name = "FILE.jsonl")]
    pub(crate) file: PathBuf,
    /// The test.
    #[arg(long, value_name = "NAME", default_value = "fp-rta", value_parser = PossibleValuesParser::new(Test::ALL.map(Test::name)))]
    pub(crate) test: String,
    /// Assign cores first, by bin packing: first, worst, best or next fit, with d by decreasing utilization.
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(Heuristic::ALL.map(|(name, _)| name)))]
    pub(crate) partition: Option<String>,
    /// Tasks spin for shared resources under this locking protocol.
    #[arg(long, value_name = "PROTOCOL", value_parser = PossibleValuesParser::new(Protocol::ALL.map(Protocol::name)))]
    pub(crate) locks: Option<String>,
    /// One pass of blocking from the response times given, no verdict.
    #[arg(long, requires = "locks", conflicts_with = "overheads")]
    pub(crate) blocking_only: bool,
    /// Whose counting that pass follows; verdicts are always sound.
    #[arg(long, value_name = "WHOSE", default_value = "schedcat", requires = "blocking_only", value_parser = PossibleValuesParser::new(Semantics::ALL.map(Semantics::name)))]
    pub(crate) semantics: String,
    #[command(flatten)]
    pub(crate) jitter: JitterArgs,
    #[command(flatten)]
    pub(crate) probabilistic: ProbabilisticArgs,
    /// How release jitter counts under edf-qpa.
    #[arg(long, value_name = "HOW", value_enum, default_value = "d")]
    pub(crate) edf_jitter: EdfJitter,
    #[command(flatten)]
    pub(crate) overheads: OverheadsArgs,
    /// What real-time tasks may take of each core, us in every --rt-period, -1 all (sched-deadline; kernel.sched_rt_runtime_us).
    #[arg(long, value_name = "US", default_value_t = 950_000, allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1..=1 << 40))]
    pub(crate) rt_runtime: i64,
    /// See --rt-runtime (kernel.sched_rt_period_us).
    #[arg(long, value_name = "US", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub(crate) rt_period: u64,
    /// Add to every answer numbers that prove it (fp-rta, edf-qpa), for check-certificate; with --json.
    #[arg(long, requires = "json", conflicts_with_all = ["locks", "overheads"])]
    pub(crate) certificate: bool,
    /// Threads [default: as many as there are CPUs].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Go on after a line that is no task set, and tell it.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Print a JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How release jitter counts under EDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EdfJitter {
    /// Deadlines shorter by it, D - J: exact
    D,
    /// Periods as well, T - J and D - J: as SchedCAT accounts for it, pessimistic
    Td,
}

/// Lines answered side by side.
const SIDE_BY_SIDE: usize = 1024;

/// Answers every line. Exit code 2 where a set is not schedulable.
pub(crate) fn run(args: &AnalyzeArgs) -> anyhow::Result<u8> {
    if args.probabilistic.probabilistic {
        return probabilistic::run(args);
    }
    let asked = Asked { ask: ask(args)?, certified: args.certificate, as_json: args.json };
    let mut threads = Threads { wanted: args.threads, pool: None };
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut wrong, mut late, mut told) = (false, false, false);
    let mut lines = Lines::open(&args.file)?;
    loop {
        let (batch, unread) = take(&mut lines);
        told |= !batch.is_empty();
        for answer in threads.each(&batch, |line| asked.tell(&args.file, line))? {
            match answer {
                Ok((text, is_late)) => {
                    late |= is_late;
                    out.write_all(&text)?;
                }
                Err(error) => {
                    out.flush()?;
                    if !args.keep_going {
                        return Err(error.into());
                    }
                    wrong = true;
                    crate::failure::show(&error.into(), args.json);
                }
            }
        }
        out.flush()?;
        if let Some(error) = unread {
            return Err(error);
        }
        if batch.is_empty() {
            break;
        }
    }
    if !told {
        return Err(super::lines::nothing(&args.file));
    }
    Ok(if wrong { 1 } else { u8::from(late) * 2 })
}

/// The next line and all that have come with it, so that nobody who asks line by line waits; and why there is no more, if that is an error.
fn take(lines: &mut Lines) -> (Vec<Line>, Option<anyhow::Error>) {
    let mut batch = Vec::new();
    while batch.is_empty() || (batch.len() < SIDE_BY_SIDE && lines.is_at_hand()) {
        match lines.next() {
            Ok(Some(line)) => batch.push(line),
            Ok(None) => break,
            Err(error) => return (batch, Some(error)),
        }
    }
    (batch, None)
}

/// Threads, started where there is something to do side by side.
struct Threads {
    wanted: Option<u16>,
    pool: Option<rayon::ThreadPool>,
}

impl Threads {
    fn each<T: Sync, A: Send>(
        &mut self,
        all: &[T],
        answer: impl Fn(&T) -> A + Sync + Send,
    ) -> anyhow::Result<Vec<A>> {
        if all.len() < 2 || self.wanted == Some(1) {
            return Ok(all.iter().map(answer).collect());
        }
        let pool = match &mut self.pool {
            Some(pool) => pool,
            none => {
                let pool =
                    rayon::ThreadPoolBuilder::new().num_threads(self.wanted.map_or(0, usize::from)).build();
                none.insert(pool.context("no threads can be started")?)
            }
        };
        Ok(pool.install(|| all.par_iter().with_min_len(4).map(answer).collect()))
    }
}

/// The question that is put to every line.
fn ask(args: &AnalyzeArgs) -> anyhow::Result<Ask> {
    let ask = Ask {
        test: Test::by_name(&args.test).context("clap lets known tests through only")?,
        partition: args.partition.as_deref().and_then(Heuristic::by_name),
        locks: args.locks.as_deref().and_then(Protocol::by_name),
        blocking_only: args
            .blocking_only
            .then(|| Semantics::by_name(&args.semantics).context("clap lets known semantics through only"))
            .transpose()?,
        extra_jitter_ns: args.jitter.told()?,
        edf_jitter: match args.edf_jitter {
            EdfJitter::D => sched::EdfJitter::Deadlines,
            EdfJitter::Td => sched::EdfJitter::PeriodsToo,
        },
        overheads: args.overheads.told()?,
        share: RealTimeShare {
            // As in the kernel: -1 is no limit at all.
            runtime_us: u64::try_from(args.rt_runtime).unwrap_or(u64::MAX),
            period_us: args.rt_period,
        },
    };
    if args.edf_jitter == EdfJitter::Td && (ask.check().is_err() || args.certificate) {
        let expected = "--test edf-qpa by itself, without --locks, --overheads and --certificate";
        return Err(Error::invalid("--edf-jitter", "td", expected).into());
    }
    if let (Some(how), Test::Global(_)) = (&args.partition, ask.test) {
        let what = format!("--partition {how} with {}", ask.test.name());
        let expected = "fp-rta, edf-qpa or the like";
        return Err(Error::invalid(what, "a test that binds no task to a core", expected).into());
    }
    Ok(ask)
}

/// What is wrong with a line: the field, what is there, what should be.
struct Wrong {
    field: String,
    found: String,
    expected: String,
}

impl Wrong {
    fn refused(error: &Refusal) -> Self {
        let (found, expected) = match error {
            Refusal::Beyond { test, what, instead } => {
                (format!("{test} knows nothing of {what}"), format!("a system without, or {instead}"))
            }
            other => (other.to_string(), "what this test is for".to_owned()),
        };
        Self { field: "the set".to_owned(), found, expected }
    }

    fn at(self, path: &Path, number: usize) -> Error {
        let place = format!("{}, line {number}, {}", path.display(), self.field);
        Error::invalid(place, self.found, self.expected)
    }
}

/// What is asked of every line.
#[derive(Debug, Clone, Copy)]
struct Asked {
    ask: Ask,
    /// With numbers that prove the answer.
    certified: bool,
    /// As JSON.
    as_json: bool,
}

impl Asked {
    /// What is printed of a line, and whether its set is late.
    fn tell(&self, path: &Path, line: &Line) -> Result<(Vec<u8>, bool), Error> {
        let (question, verdict, certificate) =
            self.answer(line.text(path)?).map_err(|wrong| wrong.at(path, line.number))?;
        let told = Told { number: line.number, asked: self, question: &question, verdict: &verdict };
        let text = if self.as_json { told.json(certificate.as_ref()) } else { told.text().into_bytes() };
        Ok((text, !verdict.schedulable && self.ask.blocking_only.is_none()))
    }

    /// The verdict on a line, and its certificate where it is asked for and was found.
    fn answer(&self, line: &[u8]) -> Result<(Question, Verdict, Option<Certificate>), Wrong> {
        let mut question = question::read(line).map_err(|error| Wrong {
            field: error.field,
            found: error.found,
            expected: error.expected,
        })?;
        if !self.ask.prepare(&mut question) {
            let verdict = Verdict::not_placed(&question.system);
            return Ok((question, verdict, None));
        }
        let limits = Limits::default();
        let verdict = self.ask.verdict(&question, limits).map_err(|error| Wrong::refused(&error))?;
        let mut certificate = None;
        if self.certified {
            certificate =
                certify(&question.system, self.ask.test, limits).map_err(|error| Wrong::refused(&error))?;
        }
        Ok((question, verdict, certificate))
    }
}

/// An answer as JSON, keys in order.
#[derive(Serialize)]
struct Answer<'a> {
    arrival: Vec<u64>,
    blocking: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<Value>,
    cores: Vec<u32>,
    line: usize,
    locks: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overheads: Option<Value>,
    response_times: Vec<Option<u64>>,
    rounds: u64,
    schedulable: Option<bool>,
    schema: &'a str,
    semantics: &'a str,
    spin: Vec<u64>,
    test: &'a str,
    undecided: Vec<usize>,
    unit: &'a str,
}

struct Told<'a> {
    number: usize,
    asked: &'a Asked,
    question: &'a Question,
    verdict: &'a Verdict,
}

impl Told<'_> {
    fn times(&self, ns: &[u64]) -> Vec<u64> {
        self.question.in_order(ns).into_iter().map(|ns| self.question.in_unit(ns)).collect()
    }

    fn responses(&self) -> Vec<Option<u64>> {
        self.question
            .in_order(&self.verdict.response_times)
            .into_iter()
            .map(|ns| ns.map(|ns| self.question.in_unit(ns)))
            .collect()
    }

    fn undecided(&self) -> Vec<usize> {
        let mut places: Vec<usize> =
            self.verdict.undecided.iter().map(|&at| self.question.places[at]).collect();
        places.sort_unstable();
        places
    }

    fn json(&self, certificate: Option<&Certificate>) -> Vec<u8> {
        let (verdict, ask) = (self.verdict, &self.asked.ask);
        let plain = |value: serde_json::Result<Value>| value.unwrap_or(Value::Null);
        let answer = Answer {
            arrival: self.times(&verdict.arrival),
            blocking: self.times(&verdict.blocking),
            certificate: self.asked.certified.then(|| plain(serde_json::to_value(certificate))),
            cores: self.question.in_order(&verdict.cores),
            line: self.number,
            locks: ask.locks.map(Protocol::name),
            overheads: ask.overheads.map(|overheads| plain(serde_json::to_value(overheads))),
            response_times: self.responses(),
            rounds: verdict.rounds,
            schedulable: ask.blocking_only.is_none().then_some(verdict.schedulable),
            schema: SCHEMA,
            semantics: ask.blocking_only.map_or("sound", Semantics::name),
            spin: self.times(&verdict.spin),
            test: ask.test.name(),
            undecided: self.undecided(),
            unit: self.question.unit.name(),
        };
        let mut text = serde_json::to_vec(&answer).unwrap_or_default();
        text.push(b'\n');
        text
    }

    fn text(&self) -> String {
        let unit = self.question.unit.name();
        let word = match (self.verdict.schedulable, self.verdict.undecided.is_empty()) {
            _ if self.asked.ask.blocking_only.is_some() => "blocking alone, no verdict",
            (true, _) => "schedulable",
            (false, true) => "not schedulable",
            (false, false) => "not decided within the cap on rounds, counted as not schedulable",
        };
        let word = match (self.asked.ask.test, self.verdict.schedulable) {
            (Test::Global(GlobalTest::EdfDa), true) => "bounded tardiness",
            (Test::SchedDeadline | Test::SchedDeadlinePartitioned, true) => "admitted",
            (Test::SchedDeadline | Test::SchedDeadlinePartitioned, false) => "not admitted",
            _ => word,
        };
        let locks = self.asked.ask.locks.map(|protocol| format!(", {}", protocol.name())).unwrap_or_default();
        let overheads = self.asked.ask.overheads.map_or("", |_| ", with overheads");
        let mut text =
            format!("line {}: {word} ({}{locks}{overheads})\n", self.number, self.asked.ask.test.name());
        let responses = self.responses();
        if responses.iter().any(Option::is_some) {
            let blocking = self.times(&self.verdict.blocking);
            let tasks = self.question.in_order(&self.question.system.tasks);
            let rows = tasks.iter().zip(&responses).zip(&blocking).enumerate().map(
                |(place, ((task, response), blocking))| {
                    vec![
                        place.to_string(),
                        task.core.to_string(),
                        self.question.in_unit(task.task.period_ns).to_string(),
                        self.question.in_unit(task.task.deadline_ns).to_string(),
                        self.question.in_unit(task.task.cost_ns).to_string(),
                        blocking.to_string(),
                        response.map_or_else(|| "-".to_owned(), |response| response.to_string()),
                    ]
                },
            );
            let head = ["task", "core", "period", "deadline", "cost", "blocking", "response"];
            text.push_str(&table(&head, rows.collect()));
            let _ = writeln!(text, "times in {unit}; response from the arrival, release jitter included");
        }
        text
    }
}
