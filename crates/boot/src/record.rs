//! What was written for the next boot, so that it can be taken out again: the words by name, and
//! each file as it was before.
//!
//! `/etc/stillcore/boot.json`, and the files themselves beside it: who must repair a machine that
//! does not boot finds them there in plain form.

use super::edit::Edit;
use super::store;
use crate::draft::Writing;
use machine::Root;
use model::Error;
use serde::{Deserialize, Serialize};

const RECORD: &str = "etc/stillcore/boot.json";
const SCHEMA: &str = "stillcore.boot-record/1";

/// What stands there because of us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) schema: String,
    /// The loader as found then.
    pub(crate) loader: String,
    /// Whether the loader keeps the words for every boot: not in an entry that boots once, nor
    /// where they were printed to be put there by hand.
    pub(crate) lasting: bool,
    /// The words, against the line without us.
    pub(crate) edits: Vec<Edit>,
    pub(crate) files: Vec<File>,
    /// Directories that were made for them, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) folders: Vec<String>,
}

/// One file that was changed or made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Under the root.
    pub(crate) path: String,
    /// Where its old bytes are, under the root; `None` where it was not there.
    pub(crate) backup: Option<String>,
    /// Length and CRC-32 of what was written.
    pub(crate) bytes: u64,
    pub(crate) crc32: u32,
}

impl File {
    pub(crate) fn new(path: &str, backup: Option<String>, written: &[u8]) -> Self {
        Self { path: path.to_owned(), backup, bytes: written.len() as u64, crc32: crc32fast::hash(written) }
    }

    /// Whether these are the bytes that were written.
    pub(crate) fn is_as_written(&self, bytes: &[u8]) -> bool {
        self.bytes == bytes.len() as u64 && self.crc32 == crc32fast::hash(bytes)
    }
}

/// The backup's place for a file, the `at`th that is written.
pub(crate) fn backup_of(at: usize, path: &str) -> String {
    format!("etc/stillcore/before/{at}-{}", path.trim_start_matches('/').replace('/', "-"))
}

/// The record; `None` where nothing of ours is in force. One that cannot be read is an error:
/// nothing can be restored from it.
pub(crate) fn read(root: &Root) -> Result<Option<Record>, Error> {
    let Some(bytes) = store::read(root, RECORD)? else { return Ok(None) };
    let bad = |what: String| -> Error {
        Error::invalid(root.at(RECORD).display(), what, format!("a record of {SCHEMA}"))
    };
    let record: Record = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    if record.schema != SCHEMA {
        return Err(bad(format!("schema {:?}", record.schema)));
    }
    for file in &record.files {
        let paths = [Some(&file.path), file.backup.as_ref()];
        let paths = paths.into_iter().chain(record.folders.iter().map(Some));
        if paths.flatten().any(|path| path.split('/').any(|part| part == "..")) {
            return Err(bad(format!("path {:?}", file.path)));
        }
    }
    Ok(Some(record))
}

/// The directories that writing all of this will make, the outermost first.
pub(crate) fn folders_to_make(root: &Root, writing: &Writing) -> Vec<String> {
    let mut folders = Vec::new();
    let files = writing.files.iter().map(|file| file.path.as_str());
    for folder in files.chain([RECORD]).flat_map(|file| store::missing_folders(root, file)) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Writes the record, before anything else is written.
pub(crate) fn write(
    root: &Root,
    writing: &Writing,
    files: Vec<File>,
    folders: Vec<String>,
) -> Result<(), Error> {
    let record = Record {
        schema: SCHEMA.to_owned(),
        loader: writing.loader.to_owned(),
        lasting: !writing.once && writing.by_hand.is_empty(),
        edits: writing.edits.clone(),
        files,
        folders,
    };
    let mut text = serde_json::to_vec_pretty(&record)
        .map_err(|error| Error::io("write", &root.at(RECORD), error.into()))?;
    text.push(b'\n');
    store::write(root, RECORD, &text, 0o644)
}

/// Takes the record and the backups away.
pub(crate) fn forget(root: &Root, record: &Record) -> Result<(), Error> {
    for file in &record.files {
        if let Some(backup) = &file.backup {
            store::remove(root, backup)?;
        }
    }
    store::remove(root, RECORD)?;
    remove_folders(root);
    store::remove_folders(root, record.folders.iter().map(String::as_str));
    Ok(())
}

/// Takes our directories away; only empty ones go.
pub(crate) fn remove_folders(root: &Root) {
    store::remove_folders(root, ["etc/stillcore", "etc/stillcore/before"].into_iter());
}

/// A file of each directory that is our own.
pub(crate) fn own_places() -> impl Iterator<Item = &'static str> {
    [RECORD, "etc/stillcore/before/x"].into_iter()
}
