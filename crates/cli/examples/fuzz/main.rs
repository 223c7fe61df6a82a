//! `cargo xtask bench fuzz`: damaged input through every reader of what others have written, by the
//! million, on the stable compiler.
//! `fuzz [--executions N] [--still SECONDS] [--threads N] [--campaign N] [--only TARGET,…] [--found DIR]
//! [--rows FILE] [--work DIR] [--corpus DIR] [--store yes] [--before FILE]`:
//! what each target has done is stored in the directory of work, and goes on from there when it is
//! called again; on another machine from the directory of the corpus, where `--store yes` puts it.
//! `--before FILE` with `--only`: the rows that the stored result has of the other
//! targets stay, each with the commit that it is of.
//!
//! Damage knows the formats (`mutate.rs`), and is guided by coverage (`edges.rs`, `campaign.rs`).
//! Each target gets N executions; a slow one is over before that when it has had so many seconds of
//! CPU time without a new edge. Panics, executions of more than ten seconds of CPU time and a
//! process of more than a GiB are failures: the input goes to the folder of regressions, and the
//! exit code is 1. An allocation that the system refuses ends the process at once; the last line
//! then says how far it was.

#![allow(clippy::unwrap_used, reason = "a fuzzer that cannot go on must fail")]

#[path = "../../../ftrace/tests/common/mod.rs"]
mod common;
#[path = "../../../analysis/tests/damaged/mod.rs"]
mod damaged;
#[path = "../../tests/readers/mod.rs"]
mod readers;
#[path = "../../../analysis/tests/damaged/samples.rs"]
mod samples;

mod before;
mod campaign;
mod edges;
mod watch;

use before::Before;
use campaign::{Bounds, Campaign};
use common::corpus::{self, Corpus};
use common::execute::{self, Outcome};
use common::mutate::{Rng, mutate};
use model::events::EventCatalogue;
use readers::stored;
use result::{Limit, Of, Row, Sink};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A reader, and its inputs.
struct Target {
    name: &'static str,
    given: Given,
    /// The folder of findings.
    found: &'static str,
}

enum Given {
    /// A trace or samples.
    Bytes { corpus: Corpus, execute: fn(&EventCatalogue, Vec<u8>) -> Outcome },
    /// Anything else.
    Reader(readers::Reader),
}

const TRACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ftrace/tests/regressions");
const OTHERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/found");

impl Target {
    fn bytes(name: &'static str, corpus: Corpus, execute: fn(&EventCatalogue, Vec<u8>) -> Outcome) -> Self {
        Self { name, given: Given::Bytes { corpus, execute }, found: TRACES }
    }

    fn seeds(&self) -> &[Vec<u8>] {
        match &self.given {
            Given::Bytes { corpus, .. } => &corpus.seeds,
            Given::Reader(reader) => &reader.seeds,
        }
    }

    /// A damaged copy of one of these inputs.
    fn damaged(&self, inputs: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
        match &self.given {
            Given::Bytes { corpus, .. } => mutate(inputs, &corpus.words, rng),
            Given::Reader(reader) => (reader.damage)(inputs, rng),
        }
    }

    fn execute(&self, catalogue: &EventCatalogue, bytes: Vec<u8>) -> Outcome {
        match &self.given {
            Given::Bytes { execute, .. } => execute(catalogue, bytes),
            Given::Reader(reader) => (reader.read)(&bytes),
        }
    }
}

fn targets(catalogue: &EventCatalogue) -> Vec<Target> {
    let mut all = vec![
        Target::bytes("container", corpus::containers(), |_, bytes| execute::container(bytes)),
        Target::bytes("pages", corpus::pages(), |_, bytes| execute::pages(&bytes)),
        Target::bytes("text", corpus::texts(), |_, bytes| execute::text(&bytes)),
        Target::bytes("attribute", damaged::seeds(catalogue), damaged::attribute),
        Target::bytes("samples", samples::seeds(), |_, bytes| samples::read(&bytes)),
    ];
    let others = readers::all().into_iter();
    all.extend(others.map(|reader| Target {
        name: reader.name,
        given: Given::Reader(reader),
        found: OTHERS,
    }));
    all
}

fn main() {
    if let Some(word) = unknown(std::env::args().skip(1)) {
        eprintln!("{word}: no such option, or no value behind it; there are {}", OPTIONS.join(", "));
        std::process::exit(2);
    }
    let catalogue = EventCatalogue::embedded().unwrap();
    let threads: usize = option("--threads", 2);
    let number = option("--campaign", 1);
    let bounds = Bounds {
        executions: option("--executions", 5_000_000),
        still: Duration::from_secs(option("--still", 3_600)),
    };
    let only: String = option("--only", String::new());
    let found: String = option("--found", String::new());
    // Panics are the aim, and their messages come by the hundred.
    std::panic::set_hook(Box::new(|panic| println!("{}", panic.to_string().replace('\n', ": "))));
    let work = Some(option("--work", PathBuf::new())).filter(|dir| !dir.as_os_str().is_empty());
    let corpus = Some(option("--corpus", PathBuf::new())).filter(|dir| !dir.as_os_str().is_empty());
    let store = option("--store", String::new()) == "yes";
    let before = Before::read(&option("--before", PathBuf::new()));
    let targets = targets(&catalogue);
    let names: Vec<&str> = targets.iter().map(|target| target.name).collect();
    if let Some(other) = only.split(',').find(|name| !only.is_empty() && !names.contains(name)) {
        eprintln!("--only {other}: no such reader; there are {}", names.join(", "));
        std::process::exit(2);
    }
    let (mut failures, mut total) = (0, 0);
    let mut rows = Sink::of_arguments();
    for target in &targets {
        if !only.is_empty() && !only.split(',').any(|name| name == target.name) {
            total += before.keep(target.name, &mut rows);
            continue;
        }
        let found = PathBuf::from(if found.is_empty() { target.found } else { &found });
        if let (Some(work), Some(corpus)) = (&work, &corpus) {
            stored::unpack(corpus, target.name, work);
        }
        let campaign = Campaign::new((target, &catalogue), number, bounds, found, work.as_deref());
        campaign.run(threads);
        eprintln!("{}", campaign.line());
        if let (Some(work), Some(corpus), true) = (&work, &corpus, store) {
            stored::pack(corpus, target.name, work);
        }
        campaign.rows().into_iter().for_each(|row| rows.push(row).unwrap());
        failures += campaign.failures();
        total += campaign.executions();
    }
    rows.note(format!("campaign {number}, {threads} threads")).unwrap();
    let all = Row::new("all: executions that failed", failures as f64, "").n(total);
    rows.push(all.budget(Of::Value, Limit::AtMost(0.0))).unwrap();
    print!("{}", rows.table());
    std::process::exit(i32::from(failures > 0));
}

/// Each takes a value.
const OPTIONS: [&str; 11] = [
    "--executions",
    "--still",
    "--threads",
    "--campaign",
    "--only",
    "--found",
    "--rows",
    "--work",
    "--corpus",
    "--store",
    "--before",
];

/// The first word that is no option, where one should be: hours would be spent on what was not
/// meant.
fn unknown(mut words: impl Iterator<Item = String>) -> Option<String> {
    std::iter::from_fn(|| words.next().map(|name| (name, words.next())))
        .find(|(name, value)| !OPTIONS.contains(&name.as_str()) || value.is_none())
        .map(|(name, _)| name)
}

/// The value after `name` on the command line; the default where it is absent or invalid.
fn option<T: FromStr>(name: &str, default: T) -> T {
    let arguments: Vec<String> = std::env::args().collect();
    let value =
        arguments.iter().position(|word| word == name).and_then(|at| arguments.get(at + 1)?.parse().ok());
    value.unwrap_or(default)
}
