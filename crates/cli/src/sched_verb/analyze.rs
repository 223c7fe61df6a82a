//! `stillcore sched analyze`: one question per line, one answer per line.

use super::answer::Answered;
use super::lines::{Batch, Line, Lines, Place};
use super::probabilistic;
use crate::sched_verb::analyze_args::{AnalyzeArgs, EdfJitter};
use crate::stdout;
use anyhow::Context;
use model::Error;
use rayon::prelude::*;
use sched::asked::Question;
use sched::certificate::Certificate;
use sched::global::sched_deadline::{Admission, RealTimeShare};
use sched::locks::{Locks, Protocol, Semantics};
use sched::{Ask, Heuristic, Limits, Order, Refusal, Test, Verdict, question};
use std::io::Write;
use std::path::Path;

/// Lines read before they are answered.
const SIDE_BY_SIDE: usize = 1024;
/// Lines that one thread takes at a time.
const AT_A_TIME: usize = 4;
/// Bytes printed at once.
const PRINTED: usize = 1 << 18;

/// Answers every line. Exit code 2 where a set is not schedulable.
pub(crate) fn run(args: &AnalyzeArgs) -> anyhow::Result<u8> {
    if args.probabilistic.probabilistic {
        return probabilistic::run(args);
    }
    let asked = Asked {
        ask: ask(args)?,
        certified: args.certificate,
        as_json: args.json,
        keep_going: args.keep_going,
    };
    let mut threads = Threads { wanted: args.threads, pool: None };
    let mut out = stdout::long(PRINTED);
    let (mut wrong, mut late, mut any) = (false, false, false);
    let mut lines = Lines::open(&args.file)?;
    let (mut batch, mut answers) = (Batch::default(), Vec::new());
    loop {
        let unread = batch.fill(&mut lines, SIDE_BY_SIDE);
        any |= !batch.places().is_empty();
        for answers in threads.answer(&asked, &args.file, &batch, &mut answers)? {
            late |= answers.late;
            let mut from = 0;
            for error in answers.wrong.drain(..) {
                out.write_all(&answers.text[from..error.after])?;
                out.flush()?;
                if !args.keep_going {
                    return Err(error.error.into());
                }
                from = error.after;
                wrong = true;
                crate::failure::show(&error.error.into(), args.json);
            }
            out.write_all(&answers.text[from..])?;
        }
        out.flush()?;
        if let Some(error) = unread {
            return Err(error);
        }
        if batch.places().is_empty() {
            break;
        }
    }
    if !any {
        return Err(super::lines::nothing(&args.file));
    }
    Ok(if wrong { 1 } else { u8::from(late) * 2 })
}

/// What is printed of some lines in turn; its buffer is used again.
#[derive(Default)]
struct Answers {
    text: Vec<u8>,
    wrong: Vec<WrongLine>,
    /// Whether a set is late.
    late: bool,
}

/// A line that has no answer.
struct WrongLine {
    /// How much of the text comes before it.
    after: usize,
    error: Error,
}

/// Threads, started where there is something to do side by side.
struct Threads {
    wanted: Option<u16>,
    pool: Option<rayon::ThreadPool>,
}

impl Threads {
    /// Answers all lines of a batch. The answers are in order.
    fn answer<'a>(
        &mut self,
        asked: &Asked,
        path: &Path,
        batch: &Batch,
        answers: &'a mut Vec<Answers>,
    ) -> anyhow::Result<&'a mut [Answers]> {
        let places = batch.places();
        let parts = places.len().div_ceil(AT_A_TIME);
        if answers.len() < parts {
            answers.resize_with(parts, Answers::default);
        }
        let answers = &mut answers[..parts];
        let each =
            |(places, answers): (&[Place], &mut Answers)| asked.answer_all(path, batch, places, answers);
        if places.len() < 2 || self.wanted == Some(1) {
            places.chunks(AT_A_TIME).zip(&mut *answers).for_each(each);
            return Ok(answers);
        }
        let pool = match &mut self.pool {
            Some(pool) => pool,
            none => {
                let pool =
                    rayon::ThreadPoolBuilder::new().num_threads(self.wanted.map_or(0, usize::from)).build();
                none.insert(pool.context("no threads can be started")?)
            }
        };
        pool.install(|| places.par_chunks(AT_A_TIME).zip(answers.par_iter_mut()).for_each(each));
        Ok(answers)
    }
}

/// The question that is put to every line.
fn ask(args: &AnalyzeArgs) -> anyhow::Result<Ask> {
    let ask = Ask {
        test: Test::by_name(&args.test).context("clap lets known tests through only")?,
        partition: args.partition.as_deref().and_then(Heuristic::by_name),
        order: args.order.as_deref().and_then(Order::by_name),
        locks: locks(args)?,
        blocking_only: args
            .blocking_only
            .then(|| Semantics::by_name(&args.semantics).context("clap lets known semantics through only"))
            .transpose()?,
        extra_jitter_ns: args.jitter.resolve()?,
        edf_jitter: match args.edf_jitter {
            EdfJitter::D => sched::EdfJitter::Deadlines,
            EdfJitter::Td => sched::EdfJitter::PeriodsToo,
        },
        overheads: args.overheads.resolve()?,
        admission: Admission {
            share: RealTimeShare {
                // As in the kernel: -1 is no limit at all.
                runtime_us: u64::try_from(args.rt_runtime).unwrap_or(u64::MAX),
                period_us: args.rt_period,
            },
            fair_server: args.fair_server,
        },
    };
    if args.edf_jitter == EdfJitter::Td && (ask.check().is_err() || args.certificate) {
        let expected = "--test edf-qpa by itself, without --locks, --overheads and --certificate";
        return Err(Error::invalid("--edf-jitter", "td", expected).into());
    }
    if ask.order.is_some() {
        ask.check()
            .map_err(|wrong| Error::invalid(format!("--{}", wrong.option), wrong.found, wrong.expected))?;
    }
    if let (Some(how), Test::Global(_)) = (&args.partition, ask.test) {
        let what = format!("--partition {how} with {}", ask.test.name());
        let expected = "fp-rta, edf-qpa or the like";
        return Err(Error::invalid(what, "a test that binds no task to a core", expected).into());
    }
    Ok(ask)
}

/// How requests are served; none where nothing is said of it.
fn locks(args: &AnalyzeArgs) -> anyhow::Result<Option<Locks>> {
    let Some(protocol) = args.locks.as_deref().and_then(Protocol::by_name) else { return Ok(None) };
    if !args.ceilings {
        return Ok(Some(Locks::of(protocol)));
    }
    let refused = || Error::invalid("--ceilings", format!("with {}", protocol.name()), Locks::TAKE_CEILINGS);
    Ok(Some(Locks::with_ceilings(protocol).ok_or_else(refused)?))
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
            Refusal::Placed => (
                "some task names its core".to_owned(),
                "none to be named where --partition assigns them".to_owned(),
            ),
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
    /// Whether the lines after a wrong one are answered.
    keep_going: bool,
}

impl Asked {
    /// Answers some lines in turn.
    fn answer_all(&self, path: &Path, batch: &Batch, places: &[Place], answers: &mut Answers) {
        answers.text.clear();
        answers.wrong.clear();
        answers.late = false;
        for place in places {
            match self.answer_line(path, &batch.line(place), &mut answers.text) {
                Ok(late) => answers.late |= late,
                Err(error) => {
                    answers.wrong.push(WrongLine { after: answers.text.len(), error });
                    if !self.keep_going {
                        return;
                    }
                }
            }
        }
    }

    /// Appends what is printed of a line, and returns whether its set is late.
    fn answer_line(&self, path: &Path, line: &Line<'_>, out: &mut Vec<u8>) -> Result<bool, Error> {
        let (question, verdict, certificate) =
            self.answer(line.text(path)?).map_err(|wrong| wrong.at(path, line.number))?;
        let answered = Answered {
            number: line.number,
            ask: &self.ask,
            question: &question,
            verdict: &verdict,
            certified: self.certified,
            certificate: certificate.as_ref(),
        };
        if self.as_json {
            answered.write_json(out);
        } else {
            answered.write_text(out);
        }
        Ok(!verdict.schedulable && self.ask.blocking_only.is_none())
    }

    /// The verdict on a line, and its certificate where one is required and was found.
    fn answer(&self, line: &[u8]) -> Result<(Question, Verdict, Option<Certificate>), Wrong> {
        let mut question = question::read(line).map_err(|error| Wrong {
            field: error.field,
            found: error.found,
            expected: error.expected,
        })?;
        if !self.ask.prepare(&mut question).map_err(|error| Wrong::refused(&error))? {
            let verdict = Verdict::not_placed(&question.system);
            return Ok((question, verdict, None));
        }
        let limits = Limits::default();
        let verdict = self.ask.verdict(&question, limits).map_err(|error| Wrong::refused(&error))?;
        let mut certificate = None;
        if self.certified {
            certificate = self.ask.certificate(&question, limits).map_err(|error| Wrong::refused(&error))?;
        }
        Ok((question, verdict, certificate))
    }
}
