//! What is kept of one probe beside its samples: how counters grew, and the contexts of samples
//! that reach a threshold.

use super::contexts::Watcher;
use super::look::Looks;
use model::growth::{Growth, GrowthWriter};
use model::run::OverThreshold;
use model::{Cpus, Sample, store};
use std::fs;
use std::path::{Path, PathBuf};
use sys::Error;

/// What to keep in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// The context of samples at or above this value is kept, ns.
    pub threshold_ns: Option<i64>,
}

/// The files being written.
pub(super) struct Watching {
    run: PathBuf,
    counters_file: String,
    contexts_file: String,
    writer: GrowthWriter,
    watcher: Option<Watcher>,
}

impl Watching {
    /// Creates the files of the probe whose samples are in `samples`, with names like that.
    pub(super) fn create(run: &Path, samples: &str, watch: Watch) -> Result<Self, Error> {
        let name = samples.trim_start_matches(store::SAMPLES).trim_end_matches(".parquet");
        let counters_file = format!("{}{name}.parquet", store::COUNTERS);
        let contexts_file = format!("{}{name}.json", store::CONTEXTS);
        make(&run.join(store::COUNTERS))?;
        let writer = GrowthWriter::create(&run.join(&counters_file))?;
        let watcher = watch.threshold_ns.map(Watcher::new);
        Ok(Self { run: run.to_owned(), counters_file, contexts_file, writer, watcher })
    }

    /// Takes a sample in its turn.
    pub(super) fn add(&mut self, sample: Sample) {
        if let Some(watcher) = &mut self.watcher {
            watcher.add(sample);
        }
    }

    /// Whether a sample waits for a look.
    pub(super) fn waits(&self) -> bool {
        self.watcher.as_ref().is_some_and(Watcher::waits)
    }

    /// Stores a growth that the probe has read.
    pub(super) fn store(&mut self, growth: Growth) -> Result<(), Error> {
        Ok(self.writer.push(growth)?)
    }

    /// Stores how the counters grew until the last look, and completes contexts.
    pub(super) fn looked(&mut self, looks: &Looks, cpus: &Cpus, thread: u32) -> Result<(), Error> {
        if let Some(watcher) = &mut self.watcher {
            watcher.looked(looks, cpus, thread);
        }
        let Some((before, last)) = looks.last_two() else { return Ok(()) };
        self.store(before.growth(last, cpus, thread))
    }

    /// Closes the files; gives the name of the first, and what reached the threshold.
    pub(super) fn finish(self) -> Result<(Option<String>, Option<OverThreshold>), Error> {
        let Self { run, counters_file, contexts_file, writer, watcher } = self;
        writer.finish()?;
        let Some(contexts) = watcher.map(Watcher::finish) else { return Ok((Some(counters_file), None)) };
        let any = !contexts.contexts.is_empty();
        if any {
            make(&run.join(store::CONTEXTS))?;
            store::write_json(&run.join(&contexts_file), &contexts)?;
        }
        let over = OverThreshold {
            threshold_ns: contexts.threshold_ns,
            over: contexts.over,
            not_kept: contexts.not_kept,
            contexts_file: any.then_some(contexts_file),
        };
        Ok((Some(counters_file), Some(over)))
    }
}

fn make(dir: &Path) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(|source| Error::os("create", dir.display(), source))
}
