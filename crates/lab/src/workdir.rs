//! A private directory for the files of one boot, removed at the end, or by the next run if this
//! one is killed.
//!
//! Its owner holds a lock on a file inside. The kernel drops that lock however the owner ends, so a
//! directory whose lock can be taken has no owner. Process numbers, which are reused, would not
//! show that.

use crate::cache::Lock;
use crate::error::{IoContext, Result};
use crate::stop::Stop;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";

/// The directory; dropped, it is removed.
#[derive(Debug)]
pub(crate) struct WorkDir {
    path: PathBuf,
    _lock: File,
}

impl WorkDir {
    /// Makes a new one below `<cache>/work`, and removes what killed runs have left there.
    pub(crate) fn create(cache: &Path, stop: &Stop) -> Result<Self> {
        let _guard = Lock::acquire(cache, stop)?;
        let base = cache.join("work");
        fs::create_dir_all(&base).context("create", &base)?;
        remove_abandoned(&base);
        let number = (0..u32::MAX).find(|n| !base.join(n.to_string()).exists()).unwrap_or_default();
        let path = base.join(number.to_string());
        fs::create_dir(&path).context("create", &path)?;
        let lock = File::create_new(path.join(LOCK)).context("create", path.join(LOCK))?;
        lock.lock().context("lock", path.join(LOCK))?;
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // A failure only leaves it for the next run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn remove_abandoned(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for dir in entries.flatten().map(|entry| entry.path()) {
        let held = File::open(dir.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err());
        if !held {
            let _ = fs::remove_dir_all(dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn living_stay_and_abandoned_go() {
        let cache = tempfile::tempdir().unwrap();
        let first = WorkDir::create(cache.path(), &Stop::default()).unwrap();
        fs::create_dir(cache.path().join("work/77")).unwrap();
        fs::write(cache.path().join("work/77").join(LOCK), "").unwrap();
        let second = WorkDir::create(cache.path(), &Stop::default()).unwrap();
        assert!(first.path.exists() && second.path.exists() && first.path != second.path);
        assert!(!cache.path().join("work/77").exists());
        drop(first);
        drop(second);
        assert_eq!(fs::read_dir(cache.path().join("work")).unwrap().count(), 0);
    }
}
