//! What the last undo of this boot gave back, or had to leave as it was, so that it can be compared
//! with the machine once more, there and later: `isolation.undone.json` in the state directory. The
//! next isolation removes it.

use super::setting::Setting;
use journal::affinities::{self, Affinities};
use journal::settings::Settings;
use journal::{Entry, trust};
use model::plan::StepKind;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use sys::Error;

/// Schema of the file.
const SCHEMA: &str = "stillcore.undone/1";
/// The largest file that is read, bytes.
const MOST: u64 = 64 << 20;

/// What was given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Undone {
    schema: String,
    /// The boot it is of.
    boot_id: String,
    /// Values as they were before the isolation.
    values: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Value {
    mechanism: String,
    kind: StepKind,
    target: String,
    was: String,
}

/// The machine beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Compared {
    /// How many values are what they were before the isolation.
    pub as_before: usize,
    /// How many are of what is gone: a task that ended, an interrupt that was freed.
    pub gone: usize,
    /// Values that are otherwise, a sentence each.
    pub differ: Vec<String>,
    /// Values that could not be read, with the reason: whether they are as before is not known.
    pub unread: Vec<String>,
}

impl Undone {
    /// Of what stood, oldest first: the first entry that has a target knows what it was before all.
    /// Affinities that were written down before a partition was made are such entries: making it
    /// has changed some of them before their own setting was.
    pub(crate) fn of(entries: &[Entry]) -> Result<Self, Error> {
        let mut before = BTreeMap::<String, String>::new();
        for entry in entries {
            if let Some(kept) = entry.change.of::<Affinities>() {
                for (target, was) in affinities::texts(&kept.before) {
                    before.entry(target).or_insert(was);
                }
            } else if let Some(Setting { target, old: Some(old), .. }) = entry.change.of::<Setting>() {
                before.entry(target.clone()).or_insert_with(|| old.clone());
            }
        }
        let settings = entries.iter().filter_map(|entry| entry.change.of::<Setting>());
        // A group that a process was in may have gone with the last of its tasks.
        let kept = |one: &&Setting| one.kind != StepKind::Member;
        let value = |Setting { mechanism, kind, target, .. }: &Setting| {
            let was = before.remove(target)?;
            Some(Value { mechanism: mechanism.clone(), kind: *kind, target: target.clone(), was })
        };
        let values = settings.filter(kept).filter_map(value).collect();
        Ok(Self { schema: SCHEMA.to_owned(), boot_id: journal::boot_id()?, values })
    }

    /// Reads every value.
    pub fn compare(&self, settings: &mut dyn Settings) -> Compared {
        self.compare_but(settings, &BTreeSet::new())
    }

    /// The same without those that are known to be otherwise.
    pub(crate) fn compare_but(&self, settings: &mut dyn Settings, known: &BTreeSet<&str>) -> Compared {
        let mut compared = Compared::default();
        let values = self.values.iter().filter(|one| !known.contains(one.target.as_str()));
        for Value { mechanism, kind, target, was } in values {
            match settings.read(*kind, target) {
                Ok(Some(now)) if Setting::is_back(*kind, &now, was) => compared.as_before += 1,
                Ok(Some(now)) => {
                    compared.differ.push(format!("{mechanism} {target} is {now}; it was {was}"));
                }
                Ok(None) => compared.gone += 1,
                Err(error) => compared.unread.push(format!("{mechanism} {target} is not known: {error}")),
            }
        }
        compared
    }

    /// Writes it into a state directory, in place of an older one.
    pub(crate) fn keep(&self, state: &Path) -> Result<(), Error> {
        let path = path(state);
        let failed = |source| Error::os("write", path.display(), source);
        let text = serde_json::to_vec(self).map_err(|error| Error::failed("what was undone", error))?;
        let file = trust::open_file(&path, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        let Some(mut file) = file else { return Ok(()) };
        file.write_all(&text).map_err(failed)
    }
}

fn path(state: &Path) -> PathBuf {
    state.join("isolation.undone.json")
}

/// What the last undo gave back under the first of these directories that has it; `None` where it
/// was in another boot, or the file is not whole.
pub fn find(states: &[PathBuf]) -> Result<Option<Undone>, Error> {
    for state in states {
        let Some(text) = trust::read_text(&path(state), MOST)? else { continue };
        let undone: Option<Undone> = serde_json::from_str(&text).ok();
        let boot_id = journal::boot_id()?;
        return Ok(undone.filter(|one| one.schema == SCHEMA && one.boot_id == boot_id));
    }
    Ok(None)
}

/// Removes it: something is isolated again.
pub(crate) fn forget(state: &Path) {
    // It is of no use any more, and does no harm where it cannot be removed.
    let _ = std::fs::remove_file(path(state));
}
