//! Breaches on disk: a run directory each, the oldest given up where all together are too large,
//! and an index of all, also of those that are not kept.
//!
//! The directory is the monitor's user's alone, so that nobody else puts anything there.

use crate::run::output::RunOutput;
use anyhow::Context;
use journal::trust;
use model::monitor::{Breach, Dropped, FILE, Fate, NotRecorded};
use model::{Error, store};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Breaches, a directory each.
pub(super) const BREACHES: &str = "breaches";
/// One line a breach, and one more when it is explained: the last of an id counts.
pub(super) const INDEX: &str = "index.jsonl";
/// The lines before those.
pub(super) const INDEX_BEFORE: &str = "index.1.jsonl";
/// What each breach's run begins with, while a monitor runs.
const TEMPLATE: &str = "template";
/// How things stand.
pub(super) const STATUS: &str = "status.json";
/// So long may an index be until the next one begins, bytes.
const MOST_INDEX: u64 = 4 << 20;

/// What is kept.
pub(super) struct Store {
    dir: PathBuf,
    quota: u64,
    /// Name and size, the oldest first.
    kept: VecDeque<(String, u64)>,
    bytes: u64,
    given_up: u64,
    /// The name that was given last.
    last: String,
}

impl Store {
    /// Opens it, with what earlier monitors have kept.
    pub(super) fn open(state: &Path, name: &str, quota: u64) -> anyhow::Result<Self> {
        trust::make_directory(state, name)?;
        let dir = state.join(name);
        trust::make_directory(&dir, BREACHES)?;
        let breaches = dir.join(BREACHES);
        let mut kept = Vec::new();
        let reading = |source| Error::io("read", &breaches, source);
        let mut unfinished = Vec::new();
        for entry in fs::read_dir(&breaches).map_err(reading)? {
            let entry = entry.map_err(reading)?;
            let (Ok(name), true) = (entry.file_name().into_string(), entry.path().is_dir()) else { continue };
            if is_whole(&entry.path()) {
                kept.push((name, size(&entry.path())));
            } else {
                unfinished.push(name);
            }
        }
        kept.sort();
        let bytes = kept.iter().map(|(_, bytes)| bytes).sum();
        let mut store = Self { dir, quota, kept: kept.into(), bytes, given_up: 0, last: String::new() };
        store.remove_template()?;
        unfinished.iter().try_for_each(|id| store.end_unfinished(id))?;
        store.give_up(None)?;
        Ok(store)
    }

    /// One that an earlier monitor was writing when it was killed: entered as such, and removed.
    fn end_unfinished(&self, id: &str) -> anyhow::Result<()> {
        if let Ok(breach) = store::read_json::<Breach>(&self.path(id).join(FILE)) {
            self.enter(&Breach { fate: Fate::NotRecorded(NotRecorded::Ended), ..breach })?;
        }
        Ok(remove(&self.path(id))?)
    }

    /// Where the run that is never kept is.
    pub(super) fn template(&self) -> PathBuf {
        self.dir.join(TEMPLATE)
    }

    /// Takes it away, if it was left.
    pub(super) fn remove_template(&self) -> Result<(), Error> {
        remove(&self.template())
    }

    /// The directory of a breach.
    pub(super) fn path(&self, id: &str) -> PathBuf {
        self.dir.join(BREACHES).join(id)
    }

    /// A name that no other breach has, for one of that time.
    pub(super) fn name(&mut self, at: jiff::Timestamp) -> String {
        let base = at.strftime("%Y%m%d-%H%M%S").to_string();
        let ms = at.subsec_millisecond();
        let names = (0..).map(|more| match more {
            0 => format!("{base}-{ms:03}"),
            more => format!("{base}-{ms:03}-{more}"),
        });
        // One that is not kept has no directory.
        let is_free = |name: &String| *name != self.last && !self.path(name).exists();
        let name = names.into_iter().find(is_free).unwrap_or(base);
        self.last.clone_from(&name);
        name
    }

    /// Enters a breach whose run directory is written. `Some`: why it is not kept after all.
    pub(super) fn keep(&mut self, id: &str) -> anyhow::Result<Option<Dropped>> {
        let path = self.path(id);
        let bytes = size(&path);
        if bytes > self.quota {
            remove(&path)?;
            return Ok(Some(Dropped::Quota));
        }
        self.kept.push_back((id.to_owned(), bytes));
        self.bytes += bytes;
        self.give_up(Some(id))?;
        Ok(None)
    }

    /// Gives up the oldest where all are too large together, but not the one that was just written.
    fn give_up(&mut self, but: Option<&str>) -> anyhow::Result<()> {
        while self.bytes > self.quota {
            let Some((name, bytes)) = self.kept.pop_front() else { return Ok(()) };
            if but == Some(name.as_str()) {
                self.kept.push_front((name, bytes));
                return Ok(());
            }
            remove(&self.path(&name))?;
            self.bytes -= bytes;
            self.given_up += 1;
        }
        Ok(())
    }

    /// Adds a line to the index.
    pub(super) fn enter(&self, breach: &Breach) -> anyhow::Result<()> {
        let path = self.dir.join(INDEX);
        if fs::symlink_metadata(&path).is_ok_and(|data| data.len() > MOST_INDEX) {
            let before = self.dir.join(INDEX_BEFORE);
            fs::rename(&path, &before).map_err(|source| Error::io("rename", &path, source))?;
        }
        append(&path, &serde_json::to_string(breach)?)
    }

    /// Takes away what was written of a breach that cannot be kept.
    pub(super) fn abandon(&self, id: &str) {
        let _ = remove(&self.path(id));
    }

    /// Writes how things stand.
    pub(super) fn write_status(&self, status: &model::monitor::Status) -> anyhow::Result<()> {
        Ok(store::write_json(&self.dir.join(STATUS), status)?)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn quota(&self) -> u64 {
        self.quota
    }

    pub(super) fn given_up(&self) -> u64 {
        self.given_up
    }
}

/// Adds a line to a file. One that was being written when the power went or the disk was full is
/// taken away first: together they would be neither.
pub(super) fn append(path: &Path, line: &str) -> anyhow::Result<()> {
    let write = || {
        let mut file = File::options().create(true).read(true).append(true).open(path)?;
        let length = file.metadata()?.len();
        let mut last = [b'\n'];
        if length > 0 {
            file.read_exact_at(&mut last, length - 1)?;
        }
        if last != [b'\n'] {
            let mut all = Vec::new();
            file.read_to_end(&mut all)?;
            let whole = all.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            file.set_len(whole as u64)?;
        }
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    };
    Ok(write().map_err(|source| Error::io("write", path, source))?)
}

/// Begins the run directory of a breach with what the monitor knew from its start.
pub(super) fn begin_run(
    dir: &Path,
    place: &crate::run::place::Place,
    template: &RunOutput,
) -> anyhow::Result<RunOutput> {
    let mut output = RunOutput::create(dir, place)?;
    let from = &template.run;
    output.run.observer.clone_from(&from.observer);
    output.run.idle_states.clone_from(&from.idle_states);
    output.run.frequency_change_ns.clone_from(&from.frequency_change_ns);
    output.run.limits.clone_from(&from.limits);
    for name in [store::MACHINE_BEFORE, store::FINDINGS] {
        let (source, target) = (template.dir.join(name), dir.join(name));
        fs::copy(&source, &target).with_context(|| format!("cannot copy {name} into {}", dir.display()))?;
    }
    Ok(output)
}

/// Whether its trace is written.
fn is_whole(dir: &Path) -> bool {
    model::run::stored::read_run(dir).is_ok_and(|run| run.complete)
}

/// Bytes of all files in a directory that nobody else writes to.
fn size(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let of = |path: PathBuf| match fs::symlink_metadata(&path) {
        Ok(data) if data.is_dir() => size(&path),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.filter_map(|entry| Some(of(entry.ok()?.path()))).sum()
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", path, source))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "2026-11-29T17:00:01.25Z";

    fn opened(quota: u64) -> (tempfile::TempDir, Store) {
        let state = tempfile::tempdir().unwrap();
        let store = Store::open(state.path(), "monitor", quota).unwrap();
        (state, store)
    }

    /// A breach's directory of so many bytes.
    fn written(store: &Store, id: &str, bytes: usize) {
        let path = store.path(id);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("trace.dat"), vec![0; bytes]).unwrap();
    }

    #[test]
    fn the_oldest_give_way_and_one_that_is_too_large_is_not_kept() {
        let (_state, mut store) = opened(1000);
        for (id, bytes, kept) in [("a", 400, 1), ("b", 500, 2), ("c", 600, 1), ("d", 1001, 1), ("e", 1000, 1)]
        {
            written(&store, id, bytes);
            let why_not = store.keep(id).unwrap();
            assert_eq!(why_not, (bytes > 1000).then_some(Dropped::Quota));
            let there = ["a", "b", "c", "d", "e"].iter().filter(|id| store.path(id).exists()).count();
            assert_eq!((there, store.bytes() <= 1000), (kept, true), "{id}");
        }
        assert_eq!((store.given_up(), store.path("e").exists()), (3, true));
    }

    #[test]
    fn no_two_breaches_have_one_name() {
        let (_state, mut store) = opened(1000);
        let at: jiff::Timestamp = AT.parse().unwrap();
        let first = store.name(at);
        assert_eq!(first, "20261129-170001-250");
        // Not kept, then kept.
        assert_eq!(store.name(at), "20261129-170001-250-1");
        written(&store, "20261129-170001-250", 1);
        assert_eq!(store.name(at), "20261129-170001-250-2");
    }
}
