//! `cargo xtask bench fuzz`: damaged input through every reader of what others have written, by the
//! million, on the stable compiler.
//! `fuzz [--executions N] [--seconds N] [--threads N] [--campaign N] [--from N] [--only TARGET,…] [--found DIR] [--rows FILE] [--done DIR] [--before FILE]`:
//! rows of each target that is done are kept in that directory, and a target whose rows are there
//! is not run again, so that hours of work can be interrupted. `--before FILE` with `--only`: the
//! rows that the stored result has of the other targets stay, each with the commit that it is of.
//! `--keep EXECUTION` with `--only TARGET`: the input of one execution as a file, without reading
//! it.
//!
//! cargo-fuzz guides itself by coverage, for which it needs a nightly compiler; this knows the
//! formats instead (`mutate.rs`). An execution is its number: target, campaign and number give the
//! same bytes again. Each target gets N executions, or as many as `--seconds` allow; a row says
//! where these were fewer. Panics, executions of more than ten seconds and a process of more than a
//! GiB are failures: the input goes to the folder of regressions, and the exit code is 1. An
//! allocation that the system refuses ends the process at once; the last line then says how far it
//! was.

#![allow(clippy::unwrap_used, reason = "a fuzzer that cannot go on must fail")]

#[path = "../../../ftrace/tests/common/mod.rs"]
mod common;
#[path = "../../../analysis/tests/damaged/mod.rs"]
mod damaged;
#[path = "../../tests/readers/mod.rs"]
mod readers;
#[path = "../../../analysis/tests/damaged/samples.rs"]
mod samples;
mod watch;

use common::corpus::{self, Corpus};
use common::execute::{self, Outcome};
use common::mutate::{Rng, mutate};
use model::events::EventCatalogue;
use result::{Limit, Of, Row, Sink, Stored};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use watch::Slot;

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

    fn damaged(&self, rng: &mut Rng) -> Vec<u8> {
        match &self.given {
            Given::Bytes { corpus, .. } => mutate(&corpus.seeds, &corpus.words, rng),
            Given::Reader(reader) => (reader.damage)(&reader.seeds, rng),
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

/// One target's executions.
pub(crate) struct Campaign<'a> {
    target: &'a Target,
    catalogue: &'a EventCatalogue,
    number: u64,
    end: u64,
    until: Instant,
    next: AtomicU64,
    outcomes: [AtomicU64; 3],
    slowest_us: AtomicU64,
    failures: AtomicU64,
    found: PathBuf,
}

/// Executions that a thread takes at once.
const BATCH: u64 = 64;

impl Campaign<'_> {
    fn bytes(&self, execution: u64) -> Vec<u8> {
        self.target.damaged(&mut Rng::new(self.number, execution))
    }

    fn work(&self, slot: &Slot) {
        loop {
            let first = self.next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= self.end || Instant::now() > self.until {
                return slot.rest();
            }
            for execution in first..(first + BATCH).min(self.end) {
                slot.begin(execution);
                self.one(execution);
            }
        }
    }

    fn one(&self, execution: u64) {
        let bytes = self.bytes(execution);
        let before_ns = watch::thread_cpu_ns();
        let done = std::panic::catch_unwind(|| self.target.execute(self.catalogue, bytes));
        let took_us = watch::thread_cpu_ns().saturating_sub(before_ns) / 1000;
        self.slowest_us.fetch_max(took_us, Ordering::Relaxed);
        match done {
            Ok(outcome) => drop(self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed)),
            Err(_) => self.failed(execution, "panic"),
        }
    }

    /// Keeps an input for the tests.
    pub(crate) fn failed(&self, execution: u64, what: &str) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let path = self.found.join(format!("{}-{}-{execution}.bin", self.target.name, self.number));
        let stored = std::fs::write(&path, self.bytes(execution));
        println!("{}: {what} in execution {execution}: {} {stored:?}", self.target.name, path.display());
    }

    fn done(&self) -> u64 {
        self.outcomes.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn rows(&self, started: Instant) -> Vec<Row> {
        let [refused, partial, whole] = [0, 1, 2].map(|at: usize| self.outcomes[at].load(Ordering::Relaxed));
        let n = refused + partial + whole;
        let row = |what: &str, value: f64, unit| {
            Row::new(format!("{}: {what}", self.target.name), value, unit).n(n)
        };
        let seconds = started.elapsed().as_secs_f64();
        vec![
            row("executions", n as f64, ""),
            row("refused", refused as f64, ""),
            row("read in part", partial as f64, ""),
            row("read whole", whole as f64, ""),
            row("failed", self.failures.load(Ordering::Relaxed) as f64, "")
                .budget(Of::Value, Limit::AtMost(0.0)),
            row("rate", n as f64 / seconds, "per s"),
            row("slowest", self.slowest_us.load(Ordering::Relaxed) as f64 / 1e3, "ms of CPU time"),
            row("peak memory", watch::memory_kib("VmHWM:") as f64 / 1024.0, "MiB"),
        ]
    }

    fn line(&self, started: Instant) -> String {
        let [refused, partial, whole] = [0, 1, 2].map(|at: usize| self.outcomes[at].load(Ordering::Relaxed));
        let done = refused + partial + whole;
        format!(
            "{:<10} {done:>9} executions: {refused} refused, {partial} partial, {whole} whole, {} failed; {:.0} s, {:.0}/s, slowest {} ms of CPU, peak {} MB",
            self.target.name,
            self.failures.load(Ordering::Relaxed),
            started.elapsed().as_secs_f64(),
            done as f64 / started.elapsed().as_secs_f64(),
            self.slowest_us.load(Ordering::Relaxed) / 1000,
            watch::memory_kib("VmHWM:") / 1024,
        )
    }
}

fn main() {
    let catalogue = EventCatalogue::embedded().unwrap();
    let (executions, threads): (u64, usize) = (option("--executions", 5_000_000), option("--threads", 2));
    let (number, from, only) =
        (option("--campaign", 1), option("--from", 0), option("--only", String::new()));
    let seconds = option("--seconds", 1_000_000);
    let kept: Option<u64> = option("--keep", String::new()).parse().ok();
    let (only, found): (String, String) = (only, option("--found", String::new()));
    let is_wanted = |target: &&Target| only.is_empty() || only.split(',').any(|name| name == target.name);
    // Panics are the aim, and their messages come by the hundred.
    std::panic::set_hook(Box::new(|panic| println!("{}", panic.to_string().replace('\n', ": "))));
    let (mut failures, mut total) = (0, 0);
    let mut rows = Sink::of_arguments();
    let done = Some(option("--done", PathBuf::new())).filter(|dir| !dir.as_os_str().is_empty());
    done.iter().for_each(|dir| std::fs::create_dir_all(dir).unwrap());
    let before = Before::read(&option("--before", PathBuf::new()));
    let targets = targets(&catalogue);
    let names: Vec<&str> = targets.iter().map(|target| target.name).collect();
    if let Some(other) = only.split(',').find(|name| !only.is_empty() && !names.contains(name)) {
        eprintln!("--only {other}: no such reader; there are {}", names.join(", "));
        std::process::exit(2);
    }
    for target in &targets {
        if !is_wanted(&target) {
            total += before.keep(target.name, &mut rows);
            continue;
        }
        let kept_rows = done.as_ref().map(|dir| dir.join(format!("{}.json", target.name)));
        if let Some(of_target) = kept_rows.as_ref().and_then(|path| std::fs::read(path).ok()) {
            let of_target: Vec<Row> = serde_json::from_slice(&of_target).unwrap();
            total += of_target[0].n.unwrap_or(0);
            of_target.into_iter().for_each(|row| rows.push(row).unwrap());
            continue;
        }
        let campaign = Campaign {
            target,
            catalogue: &catalogue,
            number,
            end: from + executions,
            until: Instant::now() + Duration::from_secs(seconds),
            next: AtomicU64::new(from),
            outcomes: Default::default(),
            slowest_us: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            found: PathBuf::from(if found.is_empty() { target.found } else { &found }),
        };
        if let Some(execution) = kept {
            campaign.failed(execution, "kept");
            continue;
        }
        let started = Instant::now();
        let slots: Vec<Slot> = (0..threads).map(|_| Slot::default()).collect();
        std::thread::scope(|scope| {
            for slot in &slots {
                scope.spawn(|| campaign.work(slot));
            }
            watch::until_all_rest(&campaign, &slots, || eprintln!("{}", campaign.line(started)));
        });
        eprintln!("{}", campaign.line(started));
        let of_target = campaign.rows(started);
        if let Some(path) = kept_rows.filter(|_| campaign.failures.load(Ordering::Relaxed) == 0) {
            let whole = path.with_extension("new");
            std::fs::write(&whole, serde_json::to_vec(&of_target).unwrap()).unwrap();
            std::fs::rename(whole, path).unwrap();
        }
        of_target.into_iter().for_each(|row| rows.push(row).unwrap());
        failures += campaign.failures.load(Ordering::Relaxed);
        total += campaign.done();
    }
    rows.note(format!("campaign {number}, executions from {from} on, {threads} threads")).unwrap();
    let all = Row::new("all: executions that failed", failures as f64, "").n(total);
    rows.push(all.budget(Of::Value, Limit::AtMost(0.0))).unwrap();
    print!("{}", rows.table());
    std::process::exit(i32::from(failures > 0));
}

/// A result that was stored before; none where there is no such file.
struct Before(Option<Stored>);

/// Begins a note that says of which commit the rows of a target are.
const OF_COMMIT: &str = "of commit ";

impl Before {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).ok();
        Self(text.map(|text| Stored::read(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()))))
    }

    /// Keeps the rows of a target, and says of which commit they are; gives its executions.
    fn keep(&self, target: &str, rows: &mut Sink) -> u64 {
        let Some(stored) = &self.0 else { return 0 };
        let begin = format!("{target}: ");
        let of_target: Vec<&Row> = stored.rows.iter().filter(|row| row.what.starts_with(&begin)).collect();
        let Some(first) = of_target.first() else { return 0 };
        let begin = format!("{begin}{OF_COMMIT}");
        let commit = stored.notes.iter().find_map(|note| note.strip_prefix(&begin));
        rows.note(format!("{begin}{}", commit.unwrap_or(&stored.commit))).unwrap();
        let executions = first.n.unwrap_or(0);
        of_target.into_iter().for_each(|row| rows.push(row.clone()).unwrap());
        executions
    }
}

/// The value after `name` on the command line; the default where it is absent or invalid.
fn option<T: FromStr>(name: &str, default: T) -> T {
    let arguments: Vec<String> = std::env::args().collect();
    let value =
        arguments.iter().position(|word| word == name).and_then(|at| arguments.get(at + 1)?.parse().ok());
    value.unwrap_or(default)
}
