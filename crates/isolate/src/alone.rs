//! One hold a state directory: a lock with the number of its holder, gone when that ends.

use journal::trust;
use rustix::fs::{FlockOperation, OFlags, flock, fstat, stat};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use sys::Error;

/// The longest number of a process, and a line end.
const MOST: u64 = 16;

/// Held until it is dropped.
#[derive(Debug)]
pub struct Alone {
    path: PathBuf,
    _file: File,
}

fn path(state: &Path) -> PathBuf {
    state.join("hold.lock")
}

/// Takes it. Error: another process holds an isolation here.
pub fn take(state: &Path) -> Result<Alone, Error> {
    trust::make_state(state)?;
    let path = path(state);
    let failed = |error: Errno| Error::os("lock", path.display(), error);
    loop {
        let file = trust::open_file(&path, OFlags::RDWR | OFlags::CREATE)?.ok_or(failed(Errno::NOENT))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let who = holder(state).map_or("another process".to_owned(), |pid| format!("process {pid}"));
                let what = format!(
                    "{who} holds the isolation of {} already; end that first, or let it do its work",
                    state.display()
                );
                return Err(Error::failed("holding", what));
            }
            Err(error) => return Err(failed(error)),
        }
        // Whoever had it may have removed the file between the two calls.
        let own = fstat(&file).map_err(failed)?;
        if stat(&path).is_ok_and(|there| (there.st_ino, there.st_dev) == (own.st_ino, own.st_dev)) {
            let mut file = file;
            let number = format!("{}\n", std::process::id());
            let written = file.set_len(0).and_then(|()| file.write_all(number.as_bytes()));
            written.map_err(|source| Error::os("write", path.display(), source))?;
            return Ok(Alone { path, _file: file });
        }
    }
}

/// The process that holds the isolation of a state directory, if one does.
pub fn holder(state: &Path) -> Option<u32> {
    let path = path(state);
    let file = trust::open_file(&path, OFlags::RDONLY).ok().flatten()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        // It was killed.
        Ok(()) => None,
        Err(_) => trust::read_text(&path, MOST).ok().flatten()?.trim().parse().ok(),
    }
}

/// Removes what one that was killed has left.
pub(crate) fn tidy(state: &Path) {
    if path(state).exists() && holder(state).is_none() {
        drop(take(state));
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // While it is still locked: nobody else can have taken it.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_at_a_time_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(holder(dir.path()), None);
        let first = take(dir.path()).unwrap();
        assert_eq!(holder(dir.path()), Some(std::process::id()));
        let error = take(dir.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("process {} holds", std::process::id())), "{error}");
        drop(first);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        // Killed, it leaves a file that nobody has locked.
        fs::write(path(dir.path()), "1\n").unwrap();
        assert_eq!(holder(dir.path()), None);
        tidy(dir.path());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let held = take(dir.path()).unwrap();
        tidy(dir.path());
        assert_eq!(holder(dir.path()), Some(std::process::id()), "one that runs keeps it");
        drop(held);
    }
}
