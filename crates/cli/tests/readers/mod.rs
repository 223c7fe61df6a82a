//! Every reader of bytes that others have written, but for the formats of traces and samples, which
//! have their own: the inputs of each, and the checks that must hold for any input. Shared by the
//! test of the corpus (`tests/it/readers_in_short.rs`) and the fuzzer (`examples/fuzz`).

pub(crate) mod archives;
pub(crate) mod bundle;
pub(crate) mod experiments;
pub(crate) mod graphs;
pub(crate) mod guests;
pub(crate) mod imports;
pub(crate) mod journals;
pub(crate) mod loaders;
pub(crate) mod loads;
pub(crate) mod machines;
pub(crate) mod profiles;
pub(crate) mod runs;
pub(crate) mod sets;
pub(crate) mod stored;
pub(crate) mod tables;
pub(crate) mod tails;
pub(crate) mod traces;
pub(crate) mod tuned;
pub(crate) mod words;

#[path = "../../src/owners.rs"]
mod owners;

use super::common;
use super::common::execute::Outcome;
use super::common::mutate::Rng;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A reader, and its inputs.
pub(crate) struct Reader {
    /// Its name in the fuzzer and in the files of findings.
    pub(crate) name: &'static str,
    /// Inputs that are read whole.
    pub(crate) seeds: Vec<Vec<u8>>,
    /// A damaged copy of one of them.
    pub(crate) damage: fn(&[Vec<u8>], &mut Rng) -> Vec<u8>,
    /// Reads; panics where something does not hold.
    pub(crate) read: fn(&[u8]) -> Outcome,
    /// Executions of the short test.
    #[allow(dead_code, reason = "the fuzzer has a number of its own")]
    pub(crate) short: u64,
}

/// All of them.
pub(crate) fn all() -> Vec<Reader> {
    vec![
        journals::reader(),
        tails::reader(),
        runs::reader(),
        traces::reader(),
        imports::reader(),
        experiments::reader(),
        experiments::checkpoints(),
        sets::reader(),
        sets::certificates(),
        sets::executors(),
        tables::reader(),
        graphs::reader(),
        archives::reader(),
        machines::reader(),
        machines::mechanisms(),
        profiles::reader(),
        tuned::reader(),
        loaders::reader(),
        loaders::lines(),
        loads::reader(),
        guests::reader(),
        guests::programs(),
    ]
}

/// Damage to words in three of four cases, to bytes otherwise.
fn text(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    if rng.below(4) == 0 { bytes(seeds, rng) } else { words::mutate(seeds, rng) }
}

/// Damage to bytes.
fn bytes(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    common::mutate::mutate(seeds, &[0, 1, 2, 0x7f, 0x80, 0x7fff, 0x8000, 0xffff], rng)
}

/// The outcome of a reader with only two.
fn whole(is: bool) -> Outcome {
    if is { Outcome::Whole } else { Outcome::Refused }
}

/// A directory of this thread, in memory where possible: readers are given paths.
struct Scratch(TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Calls with the directory of this thread.
fn in_scratch<T>(action: impl FnOnce(&Scratch) -> T) -> T {
    thread_local! {
        static SCRATCH: Scratch = Scratch::new();
    }
    SCRATCH.with(action)
}

/// A file of the repository.
fn repository(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

fn fixture(file: &str) -> Vec<u8> {
    let path = repository(file);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of a folder of the repository with this ending, by name.
fn fixtures(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(repository(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == ending));
    paths.sort();
    assert!(!paths.is_empty(), "{folder}");
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}
