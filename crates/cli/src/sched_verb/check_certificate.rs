//! `stillcore sched check-certificate`: whether the numbers that `sched analyze --certificate`
//! gives prove its verdicts.

use super::lines;
use crate::stdout;
use anyhow::{Context, bail};
use clap::Args;
use model::Error;
use sched::asked::Question;
use sched::certificate::{Certificate, check};
use sched::question;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "stillcore.sched-check-certificate/1";

/// Arguments of `sched check-certificate`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Answers of analyze --certificate --json, or bare certificates, one per line; - = standard
    /// input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Task sets, one per line; each certificate must match its line in numbers, order and cores.
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) question: Option<PathBuf>,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Checks every line. Exit code 2 where one does not hold.
pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    let questions = args.question.as_deref().map(questions).transpose()?;
    let mut out = stdout::long(stdout::ROOM);
    let (mut all_hold, mut seen) = (true, HashSet::new());
    lines::for_each(&args.file, |number, line| {
        let stated = Stated::read(&args.file, number, line?)?;
        seen.insert(stated.line);
        let proved = stated.check(questions.as_ref());
        all_hold &= proved.is_ok();
        let text = if args.json { stated.json(number, &proved) } else { stated.text(number, &proved) };
        writeln!(out, "{text}").context("cannot write")
    })?;
    out.flush()?;
    let without = questions.iter().flat_map(HashMap::keys).filter(|line| !seen.contains(line)).count();
    if without > 0 {
        eprintln!("note: {without} of {} task sets have no certificate here", without + seen.len());
    }
    Ok(if all_hold { 0 } else { 2 })
}

/// The question of each line.
fn questions(path: &Path) -> anyhow::Result<HashMap<usize, Question>> {
    let mut all = HashMap::new();
    lines::for_each(path, |number, line| {
        let question = question::read(line?).map_err(|error| {
            let place = format!("{}, line {number}, {}", path.display(), error.field);
            Error::invalid(place, error.found, error.expected)
        })?;
        all.insert(number, question);
        Ok(())
    })?;
    Ok(all)
}

/// What a line states.
struct Stated {
    /// The line of the question.
    line: usize,
    /// The verdict of the answer around the certificate, if there is one.
    schedulable: Option<bool>,
    /// And its test.
    test: Option<String>,
    /// And its response times.
    response_times: Option<Vec<Option<u64>>>,
    certificate: Option<Certificate>,
}

/// What the certificate of a line proves beside its verdict.
#[derive(Clone, Copy)]
struct Proved {
    /// Number of response times.
    response_times: usize,
}

impl Stated {
    fn read(path: &Path, number: usize, text: &[u8]) -> anyhow::Result<Self> {
        let wrong = |found: String| {
            let expected = "an answer of sched analyze --certificate --json, or a certificate";
            Error::invalid(format!("{}, line {number}", path.display()), found, expected)
        };
        let value: Value = serde_json::from_slice(text).map_err(|error| wrong(error.to_string()))?;
        let inner = value.get("certificate");
        let certificate: Option<Certificate> = serde_json::from_value(inner.unwrap_or(&value).clone())
            .map_err(|error| wrong(error.to_string()))?;
        let line = value.get("line").and_then(Value::as_u64).map_or(number, |line| line as usize);
        let schedulable = inner.and(value.get("schedulable")).and_then(Value::as_bool);
        let test = inner.and(value.get("test")).and_then(Value::as_str).map(str::to_owned);
        let response_times = inner.and(value.get("response_times")).map(|times| {
            serde_json::from_value(times.clone()).map_err(|error| wrong(format!("response_times: {error}")))
        });
        let response_times = response_times.transpose()?;
        Ok(Self { line, schedulable, test, response_times, certificate })
    }

    /// What the certificate proves beside its verdict, or why it does not hold.
    fn check(&self, questions: Option<&HashMap<usize, Question>>) -> anyhow::Result<Proved> {
        let certificate = self.certificate.as_ref().context("there is none")?;
        check(certificate)?;
        if self.schedulable.is_some_and(|schedulable| schedulable != certificate.schedulable) {
            bail!("it proves the contrary of the answer it comes with");
        }
        if let Some(test) = self.test.as_ref().filter(|test| **test != certificate.test) {
            bail!("it is of {}, and the answer it comes with of {test}", certificate.test);
        }
        let Some(questions) = questions else { return Ok(Proved { response_times: 0 }) };
        let line = self.line;
        let question = questions.get(&line).with_context(|| format!("the question has no line {line}"))?;
        certificate.is_about(question).with_context(|| format!("line {line} of the question"))?;
        let times = self.response_times.as_deref();
        let proved = times.map_or(Ok(0), |times| certificate.proves_responses(question, times));
        Ok(Proved { response_times: proved? })
    }

    fn json(&self, number: usize, proved: &anyhow::Result<Proved>) -> String {
        let certificate = self.certificate.as_ref();
        let object = json!({
            "schema": SCHEMA,
            "line": number,
            "holds": proved.is_ok(),
            "why": proved.as_ref().err().map(|error| format!("{error:#}")),
            "response_times": proved.as_ref().map_or(0, |proved| proved.response_times),
            "test": certificate.map(|certificate| &certificate.test),
            "partition": certificate.and_then(|certificate| certificate.partition.as_ref()),
            "schedulable": certificate.map(|certificate| certificate.schedulable),
        });
        object.to_string()
    }

    fn text(&self, number: usize, proved: &anyhow::Result<Proved>) -> String {
        match (proved, &self.certificate) {
            (Ok(Proved { response_times }), Some(certificate)) => {
                let verdict = if certificate.schedulable { "schedulable" } else { "not schedulable" };
                let tasks: usize = certificate.cores.iter().map(|core| core.tasks.tasks().len()).sum();
                let placed = certificate.partition.as_ref();
                let placed = placed.map(|name| format!(", placed by {name}")).unwrap_or_default();
                let times = match response_times {
                    0 => String::new(),
                    count => format!("; response times: {count}"),
                };
                format!(
                    "line {number}: proved {verdict} ({}, tasks: {tasks}{placed}{times})",
                    certificate.test
                )
            }
            (Err(why), _) => format!("line {number}: proves nothing: {why:#}"),
            (Ok(_), None) => format!("line {number}: proves nothing: there is none"),
        }
    }
}
