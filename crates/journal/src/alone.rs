//! One resident program of a kind a state directory: a lock with the number of its holder, gone
//! when that ends.

use crate::trust;
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

/// What a resident program is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It holds an isolation.
    Hold,
    /// It watches CPUs.
    Monitor,
}

impl Role {
    fn file(self) -> &'static str {
        match self {
            Self::Hold => "hold.lock",
            Self::Monitor => "monitor.lock",
        }
    }

    /// What it does, and what of another one that does it already.
    fn words(self) -> [&'static str; 2] {
        match self {
            Self::Hold => ["holding", "holds the isolation of"],
            Self::Monitor => ["monitoring", "keeps a monitor's breaches in"],
        }
    }
}

fn path(state: &Path, role: Role) -> PathBuf {
    state.join(role.file())
}

/// Takes it. Error: another process has this role here.
pub fn take(state: &Path, role: Role) -> Result<Alone, Error> {
    trust::make_state(state)?;
    let path = path(state, role);
    let failed = |error: Errno| Error::os("lock", path.display(), error);
    loop {
        let file = trust::open_file(&path, OFlags::RDWR | OFlags::CREATE)?.ok_or(failed(Errno::NOENT))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let who =
                    holder(state, role).map_or("another process".to_owned(), |pid| format!("process {pid}"));
                let [doing, does] = role.words();
                let what = format!(
                    "{who} {does} {} already; end that first, or let it do its work",
                    state.display()
                );
                return Err(Error::failed(doing, what));
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

/// The process that has this role in a state directory, if one does.
pub fn holder(state: &Path, role: Role) -> Option<u32> {
    let path = path(state, role);
    let file = trust::open_file(&path, OFlags::RDONLY).ok().flatten()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        // It was killed.
        Ok(()) => None,
        Err(_) => trust::read_text(&path, MOST).ok().flatten()?.trim().parse().ok(),
    }
}

/// Removes what one that was killed has left.
pub fn tidy(state: &Path, role: Role) {
    if path(state, role).exists() && holder(state, role).is_none() {
        drop(take(state, role));
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
        assert_eq!(holder(dir.path(), Role::Hold), None);
        let first = take(dir.path(), Role::Hold).unwrap();
        assert_eq!(holder(dir.path(), Role::Hold), Some(std::process::id()));
        drop(take(dir.path(), Role::Monitor).unwrap());
        let error = take(dir.path(), Role::Hold).unwrap_err().to_string();
        assert!(error.contains(&format!("process {} holds", std::process::id())), "{error}");
        drop(first);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        // Killed, it leaves a file that nobody has locked.
        fs::write(path(dir.path(), Role::Hold), "1\n").unwrap();
        assert_eq!(holder(dir.path(), Role::Hold), None);
        tidy(dir.path(), Role::Hold);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let held = take(dir.path(), Role::Hold).unwrap();
        tidy(dir.path(), Role::Hold);
        assert_eq!(holder(dir.path(), Role::Hold), Some(std::process::id()), "one that runs keeps it");
        drop(held);
    }
}
