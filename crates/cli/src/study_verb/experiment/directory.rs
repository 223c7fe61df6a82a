//! The directory of an experiment: it records which part of which plan it holds. One call at a time
//! works on it; another call can end that one.

use super::cell;
use anyhow::Context;
use journal::trust;
use model::{Error, store};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use study::experiment::{PART_SCHEMA, Part};
use sys::process::Owner;

/// What the directory says of itself.
pub(crate) const PLAN: &str = "plan.json";
/// In a study's directory: locked while a call works on it.
const LOCK: &str = "lock";
/// Poll interval of a call that is to end.
const LOOK: Duration = Duration::from_millis(50);

/// A directory that is this process's until it ends, however it ends.
pub(crate) struct Held {
    _file: File,
}

/// What a directory says of itself, if it is one of an experiment.
pub(super) fn present(dir: &Path) -> anyhow::Result<Option<Part>> {
    let path = dir.join(PLAN);
    if !path.exists() {
        return Ok(None);
    }
    let part: Part = store::read_json(&path)?;
    if part.schema == PART_SCHEMA {
        Ok(Some(part))
    } else {
        Err(Error::invalid(path.display(), format!("schema {:?}", part.schema), PART_SCHEMA).into())
    }
}

/// Makes the directory, or resumes it; refuses one of something else, and one that another call
/// works on.
pub(super) fn open(out: &Path, part: &Part) -> anyhow::Result<Held> {
    match present(out)? {
        Some(there) if there.name != part.name => {
            let found = format!("experiment {:?}", there.name);
            let expected = format!("experiment {:?}, or another --out", part.name);
            return Err(Error::invalid(out.join(PLAN).display(), found, expected).into());
        }
        None if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) => {
            let expected = "a new or empty directory, or that of an experiment";
            return Err(Error::invalid(out.display(), "the directory is not empty", expected).into());
        }
        _ => {}
    }
    fs::create_dir_all(out).map_err(|source| Error::io("create", out, source))?;
    is_own(out)?;
    let held = hold(out)?;
    store::write_json(&out.join(PLAN), part)?;
    Ok(held)
}

/// Refuses, for root, a directory that others can write: what stands in it decides what is run.
fn is_own(out: &Path) -> anyhow::Result<()> {
    for dir in [out.to_owned(), out.join("runs")] {
        trust::is_own(&dir)?;
    }
    Ok(())
}

/// Takes the directory, which must exist; refuses one that another call works on.
pub(crate) fn hold(out: &Path) -> anyhow::Result<Held> {
    let path = out.join(LOCK);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(&path).map_err(|source| Error::io("open", &path, source))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let who = owner(&mut file).map_or_else(String::new, |owner| format!(", process {}", owner.pid));
            let found = format!("another call works on this study{who}");
            return Err(Error::invalid(out.display(), found, "one at a time, or another --out").into());
        }
        Err(TryLockError::Error(source)) => return Err(Error::io("lock", &path, source).into()),
    }
    let write = |file: &mut File| -> std::io::Result<()> {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(Owner::of_this_process().map_err(std::io::Error::other)?.to_string().as_bytes())
    };
    write(&mut file).map_err(|source| Error::io("write", &path, source))?;
    Ok(Held { _file: file })
}

/// Ends the call that works on a study's directory, as Ctrl-C does, and undoes what cells of a
/// killed call have left; returns what it did, in words. Kills a call that does not end within
/// `patience`.
pub(crate) fn stop(out: &Path, patience: Duration) -> anyhow::Result<String> {
    is_own(out)?;
    if present(out)?.is_none() {
        let expected = "a directory that `stillcore study run` has made for an experiment";
        return Err(Error::invalid(out.display(), format!("no {PLAN}"), expected).into());
    }
    let ended = end(out, patience);
    let mut said =
        ended.map_or_else(|| "nothing ran there".to_owned(), |pid| format!("process {pid} has ended"));
    let _held = hold(out).context("the study could not be ended")?;
    if cell::give_back(&out.join("runs"))? {
        said += "; called isolate undo";
    }
    Ok(said)
}

/// Ends the call that holds a directory, if one does, and gives its process id: as Ctrl-C does, and
/// after `patience` by force, without an undo of its own.
pub(crate) fn end(out: &Path, patience: Duration) -> Option<i32> {
    let mut file = File::open(out.join(LOCK)).ok()?;
    if file.try_lock().is_ok() {
        return None;
    }
    let owner = owner(&mut file)?;
    owner.interrupt();
    await_end(owner, patience);
    owner.kill();
    await_end(owner, patience);
    Some(owner.pid)
}

fn await_end(owner: Owner, patience: Duration) {
    let begun = Instant::now();
    while owner.alive() && begun.elapsed() < patience {
        std::thread::sleep(LOOK);
    }
}

fn owner(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_held_once_and_free_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let held = hold(dir.path()).unwrap();
        let error = hold(dir.path()).err().unwrap().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(held);
        drop(hold(dir.path()).unwrap());
    }
}
