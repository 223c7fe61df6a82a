//! Checkpoints: one file a finished cell, `cells/<id>.json`, in a directory of the study.
//!
//! A checkpoint is written to a temporary name, synced, renamed and the directory synced, so that
//! after a crash it is there whole or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::cell::Cell;

/// The schema of a checkpoint.
pub const CELL_SCHEMA: &str = "stillcore.cell/1";

/// A finished cell on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// [`CELL_SCHEMA`].
    pub schema: String,
    /// What was run.
    pub cell: Cell,
    /// What came out.
    pub result: Value,
}

/// What a store holds for a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Nothing.
    Absent,
    /// A result of exactly this cell.
    Done(Value),
    /// A file that is not a result of this cell, and why.
    Stale(String),
}

/// One file of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The file.
    pub path: PathBuf,
    /// Its contents, or why it is not a checkpoint.
    pub checkpoint: Result<Checkpoint, String>,
}

/// A file could not be read or written.
#[derive(Debug, Error)]
#[error("{}: {source}", .path.display())]
pub struct StoreError {
    /// Which file or directory.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// A directory of checkpoints.
#[derive(Debug, Clone)]
pub struct Store {
    cells: PathBuf,
}

impl Store {
    /// The store in `directory`, which is made when the first checkpoint is written.
    pub fn new(directory: impl AsRef<Path>) -> Self {
        Self { cells: directory.as_ref().join("cells") }
    }

    /// Where the checkpoint of a cell is.
    pub fn path(&self, id: &str) -> PathBuf {
        self.cells.join(format!("{id}.json"))
    }

    /// What is there for a cell. Another seed is another experiment: such a file is stale.
    pub fn find(&self, cell: &Cell) -> Result<Found, StoreError> {
        let path = self.path(&cell.id);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
            Err(source) => return Err(StoreError { path, source }),
        };
        Ok(match parse(&bytes) {
            Ok(checkpoint) if checkpoint.cell == *cell => Found::Done(checkpoint.result),
            Ok(_) => Found::Stale("it is of another cell or another seed".to_owned()),
            Err(reason) => Found::Stale(reason),
        })
    }

    /// Writes the checkpoint of a cell, over a stale one if there is one.
    pub fn save(&self, cell: &Cell, result: Value) -> Result<(), StoreError> {
        let checkpoint = Checkpoint { schema: CELL_SCHEMA.to_owned(), cell: cell.clone(), result };
        let path = self.path(&cell.id);
        let failed = |source| StoreError { path: path.clone(), source };
        let mut bytes = serde_json::to_vec_pretty(&checkpoint).map_err(|error| failed(error.into()))?;
        bytes.push(b'\n');
        write_whole(&self.cells, &path, &bytes).map_err(failed)
    }

    /// Removes the checkpoint of a cell, if there is one.
    pub fn remove(&self, id: &str) -> Result<(), StoreError> {
        let path = self.path(id);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(StoreError { path, source }),
            _ => Ok(()),
        }
    }

    /// Every file with the name of a checkpoint, by name. A store not made yet is empty.
    pub fn all(&self) -> Result<Vec<Entry>, StoreError> {
        let failed = |source| StoreError { path: self.cells.clone(), source };
        let entries = match fs::read_dir(&self.cells) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed(source)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        let read = |path: PathBuf| match fs::read(&path) {
            Ok(bytes) => Ok(Entry { path, checkpoint: parse(&bytes) }),
            Err(source) => Err(StoreError { path, source }),
        };
        paths.into_iter().map(read).collect()
    }
}

fn parse(bytes: &[u8]) -> Result<Checkpoint, String> {
    let checkpoint: Checkpoint = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if checkpoint.schema != CELL_SCHEMA {
        return Err(format!("schema is \"{}\", expected \"{CELL_SCHEMA}\"", checkpoint.schema));
    }
    if !checkpoint.cell.id_matches() {
        return Err("its id is not the hash of its cell".to_owned());
    }
    Ok(checkpoint)
}

/// Two shards may share a directory, and write to the same name at once.
fn write_whole(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    model::store::write_whole(path, bytes).map_err(|error| match error {
        model::Error::Io { source, .. } => source,
        other => io::Error::other(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn cell(seed: u64) -> Cell {
        Cell::new("s", seed, BTreeMap::from([("x".to_owned(), json!(1))]), 0)
    }

    #[test]
    fn saved_is_found_and_leaves_no_temporary() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("new"));
        assert_eq!(store.find(&cell(1)).unwrap(), Found::Absent);
        assert!(store.all().unwrap().is_empty());
        store.save(&cell(1), json!({ "max_ns": 7 })).unwrap();
        assert_eq!(store.find(&cell(1)).unwrap(), Found::Done(json!({ "max_ns": 7 })));
        assert_eq!(fs::read_dir(directory.path().join("new/cells")).unwrap().count(), 1);
    }

    #[test]
    fn what_is_not_a_result_of_the_cell_is_stale() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        store.save(&cell(1), json!(1)).unwrap();
        let path = store.path(&cell(1).id);
        assert!(matches!(store.find(&cell(2)).unwrap(), Found::Stale(_)), "another seed");

        let good = fs::read_to_string(&path).unwrap();
        for (from, to) in [("cell/1", "cell/2"), ("\"x\": 1", "\"x\": 2"), ("\"repetition\"", "\"rep\"")] {
            assert!(good.contains(from));
            fs::write(&path, good.replace(from, to)).unwrap();
            assert!(matches!(store.find(&cell(1)).unwrap(), Found::Stale(_)), "{from} -> {to}");
        }
        for cut in 0..good.len() - 2 {
            fs::write(&path, &good[..cut]).unwrap();
            assert!(matches!(store.find(&cell(1)).unwrap(), Found::Stale(_)), "cut at {cut}");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Store::new(&file).save(&cell(1), json!(1)).unwrap_err();
        assert!(error.to_string().starts_with(file.to_str().unwrap()), "{error}");
    }
}
