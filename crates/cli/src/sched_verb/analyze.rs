//! `stillcore sched analyze`: a question a line, an answer a line.

use super::jitter::JitterArgs;
use super::overheads::OverheadsArgs;
use super::probabilistic::{self, ProbabilisticArgs};
use crate::measure::table::table;
use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use model::Error;
use sched::certificate::{Certificate, certify};
use sched::global::GlobalTest;
use sched::global::sched_deadline::RealTimeShare;
use sched::locks::{Protocol, Semantics};
use sched::question::{self, Question};
use sched::{Ask, Heuristic, Limits, Refusal, Test, Verdict};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
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

/// Answers every line. Exit code 2 where a set is not schedulable.
pub(crate) fn run(args: &AnalyzeArgs) -> anyhow::Result<u8> {
    if args.probabilistic.probabilistic {
        return probabilistic::run(args);
    }
    let asked = Asked { ask: ask(args)?, certified: args.certificate };
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut wrong, mut late, mut told) = (0u64, false, false);
    let mut number = 0;
    let mut input = open(&args.file)?;
    let mut line = String::new();
    loop {
        line.clear();
        number += 1;
        match input.read_line(&mut line) {
            Ok(0) => break,
            Ok(_) if line.trim().is_empty() => continue,
            Ok(_) => told = true,
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot read {}, line {number}", args.file.display()));
            }
        }
        match asked.answer(&line) {
            Ok((question, verdict, certificate)) => {
                late |= !verdict.schedulable && asked.ask.blocking_only.is_none();
                let told = Told { number, asked, question: &question, verdict: &verdict };
                let mut json = told.json();
                if let Some(overheads) = asked.ask.overheads {
                    json["overheads"] = serde_json::to_value(overheads)?;
                }
                if args.certificate {
                    json["certificate"] = serde_json::to_value(&certificate)?;
                }
                let text = if args.json { json.to_string() + "\n" } else { told.text() };
                out.write_all(text.as_bytes())?;
            }
            Err(error) => {
                let error = located(&args.file, number, &error);
                if !args.keep_going {
                    out.flush()?;
                    return Err(error.into());
                }
                wrong += 1;
                out.flush()?;
                eprintln!("stillcore: {error}");
            }
        }
    }
    out.flush()?;
    if !told {
        return Err(super::lines::nothing(&args.file));
    }
    Ok(if wrong > 0 { 1 } else { u8::from(late) * 2 })
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

fn open(path: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(Box::new(BufReader::new(file)))
}

/// What is wrong with a line: the field, what is there, what should be.
struct Wrong {
    field: String,
    found: String,
    expected: String,
}

fn located(path: &Path, number: usize, wrong: &Wrong) -> Error {
    let place = format!("{}, line {number}, {}", path.display(), wrong.field);
    Error::invalid(place, wrong.found.clone(), wrong.expected.clone())
}

/// What is asked of every line.
#[derive(Debug, Clone, Copy)]
struct Asked {
    ask: Ask,
    /// With numbers that prove the answer.
    certified: bool,
}

impl Asked {
    /// The verdict on a line, and its certificate where it is asked for and was found.
    fn answer(self, line: &str) -> Result<(Question, Verdict, Option<Certificate>), Wrong> {
        let mut question = question::read(line).map_err(|error| Wrong {
            field: error.field,
            found: error.found,
            expected: error.expected,
        })?;
        if !self.ask.prepare(&mut question) {
            let verdict = Verdict::not_placed(&question.system);
            return Ok((question, verdict, None));
        }
        let refused = |error: Refusal| Wrong {
            field: "the set".to_owned(),
            found: error.to_string(),
            expected: "what this test is for".to_owned(),
        };
        let verdict = self.ask.verdict(&question, Limits::default()).map_err(refused)?;
        let mut certificate = None;
        if self.certified {
            certificate = certify(&question.system, self.ask.test, Limits::default()).map_err(refused)?;
        }
        Ok((question, verdict, certificate))
    }
}

struct Told<'a> {
    number: usize,
    asked: Asked,
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

    fn json(&self) -> Value {
        let verdict = self.verdict;
        json!({
            "schema": SCHEMA,
            "line": self.number,
            "test": self.asked.ask.test.name(),
            "locks": self.asked.ask.locks.map(Protocol::name),
            "semantics": self.asked.ask.blocking_only.map_or("sound", Semantics::name),
            "unit": self.question.unit.name(),
            "schedulable": self.asked.ask.blocking_only.is_none().then_some(verdict.schedulable),
            "response_times": self.responses(),
            "blocking": self.times(&verdict.blocking),
            "spin": self.times(&verdict.spin),
            "arrival": self.times(&verdict.arrival),
            "cores": self.question.in_order(&verdict.cores),
            "rounds": verdict.rounds,
            "undecided": self.undecided(),
        })
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
