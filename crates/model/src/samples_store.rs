//! Samples on their way to disk, so that they are there whatever ends the writer: killed, out of
//! disk space, without power. At most half a second of them is in memory alone.
//!
//! A separate thread writes and waits for the disk; the thread that drains a ring waits for
//! neither. Rows go to the tail of the file at once ([`crate::samples_tail`]), and to the file in
//! row groups. A tail is removed when its row group and the next tail are on the disk.

use crate::Error;
use crate::probe::ProbeDetail;
use crate::sample::{Sample, SampleMeta};
use crate::samples_file::SampleWriter;
use crate::samples_tail::{self, Handover, Opening};
use crate::store;
use crate::usage::Stretch;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long rows may be in memory alone.
const KEEP: Duration = Duration::from_millis(500);
/// Handovers that may wait for a slow disk before the one who hands over waits too.
const WAITING: usize = 16;

/// Stores samples as they come.
pub struct SampleStore {
    path: PathBuf,
    /// Columns of the probe's own.
    own: usize,
    pending: Handover,
    kept: Instant,
    /// Taken when it ends, as is the thread.
    to: Option<SyncSender<Handover>>,
    thread: Option<JoinHandle<Result<SampleWriter, Error>>>,
}

impl SampleStore {
    /// Creates the file, which must not exist, and its tail.
    pub fn create(path: &Path, opening: Opening) -> Result<Self, Error> {
        let own = opening.columns.len();
        let writer = SampleWriter::marked(path, &opening.columns)?;
        let [name, _] = samples_tail::names(path);
        let tail = samples_tail::begin(&name, &opening, &Handover::default())?;
        let ours = Ours { path: path.to_owned(), opening, writer, tail, k: 0 };
        let (to, from) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("samples".to_owned()).spawn(move || ours.run(&from));
        let thread = thread.map_err(|source| Error::io("start a thread for", path, source))?;
        Ok(Self {
            path: path.to_owned(),
            own,
            pending: Handover::default(),
            kept: Instant::now(),
            to: Some(to),
            thread: Some(thread),
        })
    }

    /// Adds one sample with its own columns; a value that is not given is stored as 0.
    pub fn push_with(&mut self, sample: Sample, own: &[i64]) {
        self.pending.rows.push(sample);
        let given = own.iter().copied().chain(std::iter::repeat(0));
        self.pending.more.extend(given.take(self.own));
    }

    /// Adds a stretch in which a busy loop ran, CLOCK_MONOTONIC ns.
    pub fn ran(&mut self, slice: Stretch) {
        self.pending.slices.push(slice);
    }

    /// Hands over the samples that have waited for some time; call it often.
    pub fn keep(&mut self) -> Result<(), Error> {
        if self.kept.elapsed() < KEEP { Ok(()) } else { self.hand_over() }
    }

    fn hand_over(&mut self) -> Result<(), Error> {
        if self.pending.rows.is_empty() && self.pending.slices.is_empty() {
            return Ok(());
        }
        self.kept = Instant::now();
        let rows = std::mem::take(&mut self.pending);
        match self.to.as_ref().map(|to| to.send(rows)) {
            Some(Ok(())) => Ok(()),
            // It has given up, and says why.
            Some(Err(_)) | None => self.end().map(drop),
        }
    }

    /// Writes metadata and footer, and waits until they are on the disk. Returns the number of
    /// rows. The tail stays until the run names the file ([`samples_tail::remove`]).
    pub fn finish(mut self, meta: &SampleMeta) -> Result<u64, Error> {
        self.hand_over()?;
        self.end()?.finish(meta)
    }

    fn end(&mut self) -> Result<SampleWriter, Error> {
        self.to = None;
        let gone = || Error::invalid(self.path.display(), "its writer is gone", "one that writes");
        self.thread.take().and_then(|thread| thread.join().ok()).ok_or_else(gone)?
    }
}

impl Drop for SampleStore {
    fn drop(&mut self) {
        // What has come stays, whatever went wrong elsewhere.
        if self.thread.is_some() {
            let _ = self.hand_over();
            let _ = self.end();
        }
    }
}

/// What the thread has.
struct Ours {
    path: PathBuf,
    opening: Opening,
    writer: SampleWriter,
    tail: File,
    /// Which of the two names the tail has.
    k: usize,
}

impl Ours {
    fn run(mut self, from: &Receiver<Handover>) -> Result<SampleWriter, Error> {
        let names = samples_tail::names(&self.path);
        store::sync_data(&self.tail, &names[0])?;
        self.sync_names()?;
        for rows in from {
            let failed = |source| Error::io("write", &names[self.k], source);
            samples_tail::add(&mut self.tail, &rows).map_err(failed)?;
            let groups = self.writer.marked_at();
            for (at, row) in rows.rows.iter().enumerate() {
                self.writer.push_with(*row, rows.more_of(at))?;
            }
            if let ProbeDetail::Noise(noise) = &mut self.opening.record.detail {
                noise.slices.extend_from_slice(&rows.slices);
            }
            if self.writer.marked_at() == groups {
                store::sync_data(&self.tail, &names[self.k])?;
            } else {
                self.writer.sync()?;
                self.succeed(&names)?;
            }
        }
        Ok(self.writer)
    }

    /// Begins a tail behind the last row group, and gives up the one before.
    fn succeed(&mut self, names: &[PathBuf; 2]) -> Result<(), Error> {
        (self.opening.last, self.opening.rows) = self.writer.marked_at();
        let before = self.k;
        self.k = 1 - before;
        self.tail = samples_tail::begin(&names[self.k], &self.opening, &self.writer.loose())?;
        store::sync_data(&self.tail, &names[self.k])?;
        self.sync_names()?;
        fs::remove_file(&names[before]).map_err(|source| Error::io("remove", &names[before], source))
    }

    fn sync_names(&self) -> Result<(), Error> {
        self.path.parent().map_or(Ok(()), store::sync_directory)
    }
}

#[cfg(test)]
mod tests;
