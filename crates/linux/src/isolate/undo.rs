//! Taking changes back: by the process that made them, by its guardian, or by the next stillcore call.
//!
//! Every undo may run twice and may find the change already gone.

use super::change::Live;
use super::journal::{self, Entry, Phase};
use super::{reach, remember, trust};
use crate::error::Error;
use crate::record::{instance, kprobe};
use crate::sys::clock;
use crate::sys::modules;
use crate::sys::process::Owner;
use rustix::mount::{UnmountFlags, unmount};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Changes that last only as long as a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transient {
    /// A directory of stillcore's own; target: its path.
    Directory,
    /// A mount of tracefs; target: the mount point.
    TracefsMount,
    /// A tracing instance; target: its directory.
    TraceInstance,
    /// A kernel probe; target: [`kprobe::target`].
    Kprobe,
    /// A control group; target: its directory.
    Cgroup,
    /// A child process; target: [`Owner`].
    Process,
    /// The value of a file that a disturbance writes; target: its path.
    Value,
    /// A kernel module that a disturbance loads and unloads; target: [`modules::target`].
    Module,
    /// Affinities that the kernel widens when a disturbance ends, of tasks and interrupts; target: [`ALL_TASKS`].
    Affinities,
}

/// The target of [`Transient::Affinities`].
pub const ALL_TASKS: &str = "all";

impl Transient {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Directory, "directory"),
        (Self::TracefsMount, "tracefs-mount"),
        (Self::TraceInstance, "trace-instance"),
        (Self::Kprobe, "kprobe"),
        (Self::Cgroup, "cgroup"),
        (Self::Process, "process"),
        (Self::Value, "value"),
        (Self::Module, "module"),
        (Self::Affinities, "affinities"),
    ];

    /// The id that the journal uses.
    pub fn id(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, id)| id)
    }

    fn from_id(id: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == id).map(|(kind, _)| *kind)
    }
}

/// Takes one change back; `old` is the value before, where there was one. Tries for up to a second where something may still hold on
/// to the target.
pub fn undo(id: &str, target: &str, old: Option<&str>) -> Result<(), Error> {
    let Some(kind) = Transient::from_id(id) else {
        return Err(Error::failed(
            format!("undoing {id} of {target}"),
            "this version of stillcore does not know such a change",
        ));
    };
    reach::transient(kind, target)?;
    let path = Path::new(target);
    match kind {
        Transient::Process => {
            if let Ok(owner) = target.parse::<Owner>() {
                owner.kill();
                await_end(owner);
            }
            Ok(())
        }
        Transient::TraceInstance => patiently(|| instance::remove(path)),
        Transient::Kprobe => patiently(|| kprobe::remove(target)),
        Transient::Cgroup => patiently(|| Ok(crate::disturb::confine::remove(path)?)),
        Transient::TracefsMount => patiently(|| unmount_at(path)),
        Transient::Directory => remove_directory(path),
        Transient::Value => old.map_or(Ok(()), |old| give_back(path, old)),
        Transient::Module => old.map_or(Ok(()), |old| patiently(|| modules::give_back(target, old))),
        Transient::Affinities => {
            // Reading and setting affinities takes no program.
            let mut live = Live::new(Path::new("/proc/self/exe"));
            old.into_iter().for_each(|old| remember::narrow(old, &mut live));
            Ok(())
        }
    }
}

/// What stands before a change whose undo has to know it: nothing for what is made anew, or for what this kernel lacks.
pub fn standing(kind: Transient, target: &str) -> Option<String> {
    match kind {
        Transient::Value => fs::read_to_string(target).ok().map(|value| value.trim().to_owned()),
        Transient::Module => modules::standing(target),
        Transient::Affinities => Some(remember::affinities()),
        _ => None,
    }
}

/// Writes a value back unless it is there; a file that is gone is fine.
fn give_back(path: &Path, old: &str) -> Result<(), Error> {
    match fs::read_to_string(path) {
        Ok(now) if now.trim() == old => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        _ => fs::write(path, old).map_err(|source| Error::os("write", path.display(), source)),
    }
}

/// Waits a second at most for a killed process to let go of what it holds. One in an uninterruptible sleep is not waited for.
fn await_end(owner: Owner) {
    let give_up = clock::now_ns() + clock::SECOND_NS;
    while owner.alive() && clock::now_ns() < give_up {
        clock::sleep_until(clock::now_ns() + 5_000_000);
    }
}

fn patiently(mut action: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    let give_up = clock::now_ns() + clock::SECOND_NS;
    loop {
        match action() {
            Err(_) if clock::now_ns() < give_up => clock::sleep_until(clock::now_ns() + 20_000_000),
            result => return result,
        }
    }
}

/// Unmounts; a place where nothing is mounted is fine.
fn unmount_at(path: &Path) -> Result<(), Error> {
    match unmount(path, UnmountFlags::NOFOLLOW) {
        Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(Error::os("unmount", path.display(), error)),
    }
}

fn remove_directory(path: &Path) -> Result<(), Error> {
    match fs::remove_dir(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(Error::os("remove", path.display(), source))
        }
        _ => Ok(()),
    }
}

/// What undoing a journal came to.
#[derive(Debug, Default)]
pub struct Restored {
    /// Changes taken back, `id target`.
    pub undone: Vec<String>,
    /// Changes that could not be taken back, with the reason.
    pub failed: Vec<String>,
}

/// Takes back every open change of a journal, newest first, and removes the journal when none is left.
pub fn undo_journal(path: &Path) -> Result<Restored, Error> {
    let mut restored = Restored::default();
    let boot_id = journal::boot_id()?;
    let (open, damaged) = journal::read(path)?;
    for entry in open.iter().rev() {
        undo_entry(path, entry, &boot_id, &mut restored)?;
    }
    // Whatever it was to say, perhaps in a later version's words, it is not passed over in silence.
    let untrusted =
        |line: &journal::Damaged| format!("{}: {line} cannot be trusted and is not undone", path.display());
    restored.failed.extend(damaged.iter().map(untrusted));
    if restored.failed.is_empty() {
        journal::remove(path)?;
    }
    Ok(restored)
}

fn undo_entry(path: &Path, entry: &Entry, boot_id: &str, restored: &mut Restored) -> Result<(), Error> {
    // Whatever lasts only as long as a boot is gone with it, and its target may by now be somebody else's. Directories last longer.
    let outlived = entry.boot_id != boot_id && Transient::from_id(&entry.id) != Some(Transient::Directory);
    let result = if outlived { Ok(()) } else { undo(&entry.id, &entry.target, entry.old.as_deref()) };
    match result {
        Ok(()) => {
            restored.undone.push(format!("{} {}", entry.id, entry.target));
            journal::append_to(path, entry, Phase::Undone)
        }
        Err(error) => {
            restored.failed.push(error.to_string());
            Ok(())
        }
    }
}

/// Takes back what dead stillcore processes left under a state directory.
pub fn recover(state: &Path) -> Result<Restored, Error> {
    let mut restored = Restored::default();
    for path in abandoned(state)? {
        let one = undo_journal(&path)?;
        restored.undone.extend(one.undone);
        restored.failed.extend(one.failed);
    }
    Ok(restored)
}

/// Journals whose process is gone.
fn abandoned(state: &Path) -> Result<Vec<PathBuf>, Error> {
    let dir = journal::directory(state);
    if !trust::is_own(&dir)? {
        return Ok(Vec::new());
    }
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::os("read", dir.display(), source)),
    };
    let boot_id = journal::boot_id()?;
    let is_abandoned = |path: &PathBuf| {
        let owner =
            path.file_stem().and_then(|name| name.to_str()).and_then(|name| name.parse::<Owner>().ok());
        let other_boot =
            || journal::read_open(path).is_ok_and(|open| open.iter().any(|entry| entry.boot_id != boot_id));
        owner.is_some_and(|owner| !owner.alive() || other_boot())
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).filter(is_abandoned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolate::journal::Journal;

    #[test]
    fn what_a_dead_process_left_is_taken_back_newest_first() {
        let state = tempfile::tempdir().unwrap();
        let (outer, inner) = (state.path().join("tracefs-1"), state.path().join("tracefs-1/tracefs-2"));
        let mut journal = Journal::create(state.path()).unwrap();
        for dir in [&outer, &inner] {
            let seq =
                journal.intent(Transient::Directory.id(), &dir.display().to_string(), None, None).unwrap();
            fs::create_dir(dir).unwrap();
            journal.done(seq).unwrap();
        }
        assert!(recover(state.path()).unwrap().undone.is_empty(), "its process still lives");
        // A process id that is beyond every kernel's limit stands for a dead process.
        let dead = journal.path().with_file_name("99999999-1.jsonl");
        fs::rename(journal.path(), &dead).unwrap();
        let restored = recover(state.path()).unwrap();
        assert_eq!((restored.undone.len(), restored.failed.len()), (2, 0));
        assert!(!outer.exists() && !dead.exists());
    }

    #[test]
    fn an_intent_that_led_to_nothing_is_no_failure() {
        for (kind, target) in [
            (Transient::Directory, "/proc/self/no/tracefs-1"),
            (Transient::TraceInstance, "/proc/self/instances/stillcore-1"),
            (Transient::TracefsMount, "/proc/self/no/tracefs-1"),
        ] {
            undo(kind.id(), target, None).unwrap();
        }
    }

    #[test]
    fn a_line_that_this_version_does_not_know_is_told_by_path_and_number() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(state.path()).unwrap();
        journal.intent("directory", "/proc/self/no/tracefs-1", None, None).unwrap();
        let dead = journal.path().with_file_name("99999999-1.jsonl");
        fs::rename(journal.path(), &dead).unwrap();
        let newer =
            fs::read_to_string(&dead).unwrap() + "{\"version\":9,\"seq\":1,\"change\":{\"kind\":\"new\"}}\n";
        fs::write(&dead, newer).unwrap();
        let restored = recover(state.path()).unwrap();
        assert_eq!((restored.undone.len(), restored.failed.len()), (1, 1), "{restored:?}");
        assert!(restored.failed[0].contains("99999999-1.jsonl: line 2 (unreadable)"), "{restored:?}");
        assert!(dead.exists());
    }

    #[test]
    fn a_planted_journal_changes_nothing() {
        let state = tempfile::tempdir().unwrap();
        let victim = state.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let target = victim.display().to_string();
        let mut journal = Journal::create(state.path()).unwrap();
        for (id, old) in
            [("value", Some("PWNED")), ("directory", None), ("module", Some("loaded")), ("new", None)]
        {
            journal.intent(id, &target, old, None).unwrap();
        }
        let dead = journal.path().with_file_name("99999999-1.jsonl");
        fs::rename(journal.path(), &dead).unwrap();
        let restored = recover(state.path()).unwrap();
        assert_eq!((restored.undone.len(), restored.failed.len()), (0, 4), "{restored:?}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(dead.exists(), "what cannot be undone is reported again");
    }
}
