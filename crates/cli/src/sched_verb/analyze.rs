//! `stillcore sched analyze`: sets from lines of JSON or from a table, one answer each.

use super::answer::{Answered, Cells, LAST_SEARCHED};
use super::lines::{Batch, Lines};
use super::probabilistic;
use super::sets::{LinesOf, Sets};
use super::simple_answer::SimpleAnswer;
use super::tables::Table;
use crate::sched_verb::analyze_args::{AnalyzeArgs, EdfJitter};
use crate::stdout;
use anyhow::Context;
use model::Error;
use rayon::prelude::*;
use sched::asked::{Question, Unit};
use sched::certificate::Certificate;
use sched::global::sched_deadline::{Admission, RealTimeShare};
use sched::locks::{Locks, Protocol, Semantics};
use sched::simple::{SimpleSet, SimpleTests};
use sched::{Ask, Heuristic, Limits, Order, Refusal, Test, Verdict, question};
use std::io::{BufWriter, StdoutLock, Write};
use std::ops::Range;
use std::path::Path;

/// Lines read before they are answered.
const SIDE_BY_SIDE: usize = 1024;
/// Lines that one thread takes at a time.
const AT_A_TIME: usize = 4;
/// Bytes printed at once.
const PRINTED: usize = 1 << 18;

/// Answers every set. Exit code 2 where a set is not schedulable.
pub(crate) fn run(args: &AnalyzeArgs) -> anyhow::Result<u8> {
    if args.probabilistic.probabilistic {
        return probabilistic::run(args);
    }
    let ask = ask(args)?;
    let asked = Asked {
        ask,
        is_simple: ask.is_simple() && !args.certificate,
        certified: args.certificate,
        as_json: args.json,
        keep_going: args.keep_going,
    };
    let mut answering = Answering {
        asked,
        threads: Threads { wanted: args.threads, pool: None },
        out: stdout::long(PRINTED),
        answers: Vec::new(),
        wrong: false,
        late: false,
    };
    let unit =
        args.unit.as_deref().map(|name| Unit::by_name(name).context("clap lets known units through only"));
    let unit = unit.transpose()?;
    let table =
        if args.file == Path::new("-") { None } else { Table::open(&args.file, unit.unwrap_or_default())? };
    if let Some(table) = table {
        answer_table(&mut answering, table, &args.file)?;
    } else if let Some(unit) = unit {
        let what = format!("{} with lines of JSON", unit.name());
        return Err(Error::invalid("--unit", what, "\"unit\" in each line").into());
    } else {
        answer_lines(&mut answering, &args.file)?;
    }
    Ok(if answering.wrong { 1 } else { u8::from(answering.late) * 2 })
}

/// Answers every set of a table.
fn answer_table(answering: &mut Answering, table: Table, file: &Path) -> anyhow::Result<()> {
    let mut any = false;
    table.for_each(SIDE_BY_SIDE, |sets| {
        any = true;
        answering.answer(sets)
    })?;
    if any { Ok(()) } else { Err(Error::invalid(file.display(), "empty input", "a row a task").into()) }
}

/// Answers every line of a file.
fn answer_lines(answering: &mut Answering, file: &Path) -> anyhow::Result<()> {
    let mut any = false;
    let mut lines = Lines::open(file)?;
    let mut batch = Batch::default();
    loop {
        let unread = batch.fill(&mut lines, SIDE_BY_SIDE);
        any |= batch.len() > 0;
        answering.answer(&LinesOf { file, batch: &batch })?;
        if let Some(error) = unread {
            return Err(error);
        }
        if batch.len() == 0 {
            return if any { Ok(()) } else { Err(super::lines::nothing(file)) };
        }
    }
}

/// What goes on from batch to batch.
struct Answering {
    asked: Asked,
    threads: Threads,
    out: BufWriter<stdout::Escaping<StdoutLock<'static>>>,
    answers: Vec<Answers>,
    /// Whether a set has no answer.
    wrong: bool,
    /// Whether a set is late.
    late: bool,
}

impl Answering {
    /// Answers some sets and prints what came out, in order.
    fn answer(&mut self, sets: &impl Sets) -> anyhow::Result<()> {
        for answers in self.threads.answer(&self.asked, sets, &mut self.answers)? {
            self.late |= answers.late;
            let mut from = 0;
            for error in answers.wrong.drain(..) {
                self.out.write_all(&answers.text[from..error.after])?;
                self.out.flush()?;
                if !self.asked.keep_going {
                    return Err(error.error.into());
                }
                from = error.after;
                self.wrong = true;
                crate::failure::show(&error.error.into(), self.asked.as_json);
            }
            self.out.write_all(&answers.text[from..])?;
        }
        Ok(self.out.flush()?)
    }
}

/// What is printed of some sets in turn; its memory is used again.
#[derive(Default)]
struct Answers {
    text: Vec<u8>,
    wrong: Vec<WrongLine>,
    /// Whether a set is late.
    late: bool,
    set: SimpleSet,
    tests: SimpleTests,
    cells: Cells,
}

/// A set that has no answer.
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
    /// Answers all sets. The answers are in order.
    fn answer<'a>(
        &mut self,
        asked: &Asked,
        sets: &impl Sets,
        answers: &'a mut Vec<Answers>,
    ) -> anyhow::Result<&'a mut [Answers]> {
        let count = sets.count();
        let parts = count.div_ceil(AT_A_TIME);
        if answers.len() < parts {
            answers.resize_with(parts, Answers::default);
        }
        let answers = &mut answers[..parts];
        let each = |(part, answers): (usize, &mut Answers)| {
            let from = part * AT_A_TIME;
            asked.answer_all(sets, from..(from + AT_A_TIME).min(count), answers);
        };
        if count < 2 || self.wanted == Some(1) {
            answers.iter_mut().enumerate().for_each(each);
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
        pool.install(|| answers.par_iter_mut().enumerate().for_each(each));
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

    fn at(self, place: &str) -> Error {
        Error::invalid(format!("{place}, {}", self.field), self.found, self.expected)
    }
}

/// What is asked of every line.
#[derive(Debug, Clone, Copy)]
struct Asked {
    ask: Ask,
    /// Whether simple sets are answered the short way.
    is_simple: bool,
    /// With numbers that prove the answer.
    certified: bool,
    /// As JSON.
    as_json: bool,
    /// Whether the lines after a wrong one are answered.
    keep_going: bool,
}

impl Asked {
    /// Answers some sets in turn.
    fn answer_all(&self, sets: &impl Sets, range: Range<usize>, answers: &mut Answers) {
        answers.text.clear();
        answers.wrong.clear();
        answers.late = false;
        for at in range {
            let late = self.answer_simple(sets, at, answers);
            match late.map_or_else(|| self.answer_any(sets, at, &mut answers.text), Ok) {
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

    /// Appends what is printed of a simple set, and returns whether it is late. None where the set
    /// is not simple, or not decided, or late among the first, where another order is looked for.
    fn answer_simple(&self, sets: &impl Sets, at: usize, answers: &mut Answers) -> Option<bool> {
        let Answers { text, set, tests, cells, .. } = answers;
        if !self.is_simple || !sets.take(at, set) {
            return None;
        }
        let verdict = tests.answer(&self.ask, set)?;
        let late = !verdict.schedulable;
        if late && sets.number(at) <= LAST_SEARCHED {
            return None;
        }
        let test = self.ask.test.name();
        let answer = SimpleAnswer { number: sets.number(at), test, set, verdict };
        if self.as_json {
            answer.write_json(text);
        } else {
            answer.write_text(cells, text);
        }
        Some(late)
    }

    /// Appends what is printed of any set, and returns whether it is late.
    fn answer_any(&self, sets: &impl Sets, at: usize, out: &mut Vec<u8>) -> Result<bool, Error> {
        let line = sets.line(at)?;
        let (question, verdict, certificate) =
            self.answer(&line).map_err(|wrong| wrong.at(&sets.place(at)))?;
        let answered = Answered {
            number: sets.number(at),
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
