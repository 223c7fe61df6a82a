//! Random access to the bytes of a trace, from a file or from memory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;

/// Bytes with a length and a name for messages. Clones share the file.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    path: Arc<PathBuf>,
    len: u64,
    store: Store,
}

#[derive(Clone, Debug)]
enum Store {
    /// The lock covers seek and read, so that streams of one trace may live on several threads.
    File(Arc<Mutex<File>>),
    Memory(Arc<[u8]>),
}

impl Input {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Io { path: path.to_owned(), action: "open", source };
        let mut file = File::open(path).map_err(failed)?;
        // Not the metadata's length: it is 0 for block devices; and a directory must fail here.
        let len = file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(Self { path: Arc::new(path.to_owned()), len, store: Store::File(Arc::new(Mutex::new(file))) })
    }

    pub(crate) fn memory(name: &Path, bytes: Vec<u8>) -> Self {
        Self { path: Arc::new(name.to_owned()), len: bytes.len() as u64, store: Store::Memory(bytes.into()) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Fills as much of `buffer` from `offset` as there is; returns how much.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let available = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(available);
        let target = &mut buffer[..wanted];
        match &self.store {
            Store::Memory(bytes) => {
                // `available` is 0 where `offset` is outside, so the range is inside.
                let start = if wanted == 0 { 0 } else { offset as usize };
                target.copy_from_slice(&bytes[start..start + wanted]);
                Ok(wanted)
            }
            Store::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                read_file(&mut file, offset, target).map_err(|source| Error::Io {
                    path: self.path.to_path_buf(),
                    action: "read",
                    source,
                })
            }
        }
    }
}

/// Reads up to the end of the file: it may have shrunk since it was opened.
fn read_file(file: &mut File, offset: u64, target: &mut [u8]) -> std::io::Result<usize> {
    file.seek(SeekFrom::Start(offset))?;
    let mut done = 0;
    while done < target.len() {
        match file.read(&mut target[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}
