//! A file that the user asked for by name: it appears when it is whole, or not at all, and never
//! replaces its source.

use model::Error;
use model::new_file::NewFile;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A file being made. Dropped before it is kept, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Destination {
    path: PathBuf,
    file: Option<NewFile>,
}

impl Destination {
    /// A file at `path`, made from `source`: a file, or a directory of which no file is replaced.
    pub(crate) fn new(path: &Path, source: &Path) -> Result<Self, Error> {
        let refused = |what: &str, expected: &str| Err(Error::invalid(path.display(), what, expected));
        if path.file_name().is_none() {
            return refused("it names no file", "the name of a file");
        }
        if let Ok(there) = fs::canonicalize(path) {
            if !there.is_file() {
                return refused("it is there and no regular file", "a new file, or one to replace");
            }
            let source = fs::canonicalize(source).map_err(|error| Error::io("read", source, error))?;
            if there.starts_with(&source) {
                return refused("that is what is exported", "a file outside of it");
            }
        }
        Ok(Self { path: path.to_owned(), file: None })
    }

    /// Its name, as the user wrote it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Begins to write it.
    pub(crate) fn create(&mut self) -> Result<File, Error> {
        let file = NewFile::create(&self.path)?;
        let out = file.try_clone();
        self.file = Some(file);
        out
    }

    /// Puts it in its place; returns its length in bytes.
    pub(crate) fn keep(self) -> Result<u64, Error> {
        self.file.map_or(Ok(0), NewFile::keep)
    }
}
