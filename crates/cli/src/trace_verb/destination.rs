//! A file that the user asked for by name: it appears when it is whole, or not at all, and never in the place of what it is made from.

use model::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A file being made. Dropped before it is kept, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Destination {
    path: PathBuf,
    /// Where it is written until it is whole: beside its place, so that it can be put there at once.
    part: PathBuf,
}

impl Destination {
    /// A file at `path`, made from `source`: a file, or a directory of which no file is replaced.
    pub(crate) fn new(path: &Path, source: &Path) -> Result<Self, Error> {
        let refused = |what: &str, expected: &str| Err(Error::invalid(path.display(), what, expected));
        let Some(name) = path.file_name() else {
            return refused("it names no file", "the name of a file");
        };
        if let Ok(there) = fs::canonicalize(path) {
            if !there.is_file() {
                return refused("it is there and no regular file", "a new file, or one to replace");
            }
            let source = fs::canonicalize(source).map_err(|error| Error::io("read", source, error))?;
            if there.starts_with(&source) {
                return refused("that is what is exported", "a file outside of it");
            }
        }
        let mut part = name.to_owned();
        part.push(format!(".{}.part", std::process::id()));
        Ok(Self { path: path.to_owned(), part: path.with_file_name(part) })
    }

    /// Its name, as the user wrote it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Begins to write it.
    pub(crate) fn create(&self) -> Result<File, Error> {
        File::create_new(&self.part).map_err(|error| Error::io("create", &self.path, error))
    }

    /// Puts it in its place; returns its length in bytes.
    pub(crate) fn keep(self) -> Result<u64, Error> {
        let failed = |error| Error::io("write", &self.path, error);
        let file = File::open(&self.part).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        fs::rename(&self.part, &self.path).map_err(failed)?;
        Ok(length)
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        // After `keep` there is nothing under this name.
        let _ = fs::remove_file(&self.part);
    }
}
