//! Where fetched kernels live, and the lock that keeps two runs from writing there at once.

use crate::error::{Error, IoContext, Result};
use crate::stop::Stop;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// `$XDG_CACHE_HOME/stillcore`, else `$HOME/.cache/stillcore` (XDG base directory specification: a
/// relative or empty value counts as unset).
pub fn dir(xdg_cache_home: Option<OsString>, home: Option<OsString>) -> Result<PathBuf> {
    let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(xdg_cache_home)
        .or_else(|| absolute(home).map(|home| home.join(".cache")))
        .map(|base| base.join("stillcore"))
        .ok_or_else(|| Error::Argument {
            what: "cache directory",
            value: String::new(),
            expected: "HOME or XDG_CACHE_HOME to hold an absolute path".into(),
        })
}

/// How often a held lock is tried again.
const POLL: Duration = Duration::from_millis(50);

/// The exclusive lock on a cache directory. The kernel drops it when the file closes, so that a
/// killed run leaves none.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock until `stop` asks; makes the directory if need be.
    pub fn acquire(cache: &Path, stop: &Stop) -> Result<Self> {
        fs::create_dir_all(cache).context("create", cache)?;
        let path = cache.join("lock");
        let file = File::options().create(true).append(true).open(&path).context("open", &path)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(error)) => return Err(error).context("lock", &path),
                Err(TryLockError::WouldBlock) if stop.is_asked() => return Err(Error::StoppedEarly),
                Err(TryLockError::WouldBlock) => thread::sleep(POLL),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_base_directory_specification() {
        let some = |text: &str| Some(OsString::from(text));
        assert_eq!(dir(some("/x"), some("/h")).unwrap(), Path::new("/x/stillcore"));
        assert_eq!(dir(some("relative"), some("/h")).unwrap(), Path::new("/h/.cache/stillcore"));
        assert_eq!(dir(None, some("/h")).unwrap(), Path::new("/h/.cache/stillcore"));
        assert!(dir(None, some("")).is_err());
    }

    #[test]
    fn lock_excludes_until_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let stop = Stop::default();
        let lock = Lock::acquire(dir.path(), &stop).unwrap();
        let second = File::open(dir.path().join("lock")).unwrap();
        assert!(second.try_lock().is_err());
        stop.stop();
        assert!(matches!(Lock::acquire(dir.path(), &stop), Err(Error::StoppedEarly)));
        drop(lock);
        assert!(second.try_lock().is_ok());
    }
}
