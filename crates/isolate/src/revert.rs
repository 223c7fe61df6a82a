//! Undoing standing isolation: newest first, compare and swap. A value that somebody else has set
//! meanwhile is left alone and reported.
//!
//! Every step may be repeated: a call that was killed is simply made again.

use super::heirs;
use super::setting::Setting;
use super::standing::{End, Standing};
use super::undone::Undone;
use journal::affinities::{self, Affinities};
use journal::settings::{Settings, value};
use journal::{Change, Entry, Phase, Present, Refused};
use model::plan::StepKind;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use sys::Error;

/// The result of undoing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reverted {
    /// Values restored, `mechanism target`.
    pub undone: Vec<String>,
    /// How many of these no change had set: they were only remembered, since a change makes the
    /// kernel compute them anew.
    pub remembered: usize,
    /// What had already the old value, or is gone.
    pub already: usize,
    /// How many values, read once more at the end, are what they were before the changes.
    pub as_before: usize,
    /// Those that are not, with what they are: what was undone or had the old value already, and
    /// changed again while the rest was undone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differ: Vec<String>,
    /// Those that could not be read again, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// What was compared.
    #[serde(skip)]
    given_back: Option<Undone>,
    /// Values that somebody else has set meanwhile, with what they are.
    pub left: Vec<String>,
    /// Values that could not be restored, with the reason.
    pub failed: Vec<String>,
    /// Values that were given up, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub abandoned: Vec<String>,
    /// Path of the journal that lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<PathBuf>,
    /// Tasks started meanwhile that got the affinity their forebears had.
    pub heirs: usize,
    /// Whether the changes were made in another boot, with which they went.
    pub other_boot: bool,
}

/// Undoes everything. The journal ends when nothing failed.
pub fn revert(standing: Standing, settings: &mut dyn Settings) -> Result<Reverted, Error> {
    revert_since(standing, settings, 0)
}

/// Undoes the changes with this number and later ones: those of one call. The journal ends when
/// none is left.
pub fn revert_since(
    mut standing: Standing,
    settings: &mut dyn Settings,
    first: u64,
) -> Result<Reverted, Error> {
    let reverted = take_back(&mut standing, settings, first)?;
    let earlier = !reverted.other_boot && standing.changes().any(|entry| entry.seq < first);
    if reverted.failed.is_empty() && !earlier {
        let state = standing.path().parent().map(Path::to_owned);
        standing.end()?;
        if let (Some(undone), Some(state)) = (&reverted.given_back, state) {
            // What is undone is undone, whether or not that can be written down.
            let _ = undone.keep(&state);
        }
    }
    Ok(reverted)
}

/// Undoes what can be undone and gives up the rest, for which its journal is kept under another
/// name.
pub fn forget(mut standing: Standing, settings: &mut dyn Settings) -> Result<Reverted, Error> {
    let mut reverted = take_back(&mut standing, settings, 0).unwrap_or_else(|error| {
        // Not even what was asked can be read.
        Reverted { failed: vec![error.to_string()], ..Reverted::default() }
    });
    if reverted.failed.is_empty() {
        standing.end()?;
    } else {
        reverted.kept = Some(standing.forget()?);
        reverted.abandoned = std::mem::take(&mut reverted.failed);
    }
    Ok(reverted)
}

fn take_back(standing: &mut Standing, settings: &mut dyn Settings, first: u64) -> Result<Reverted, Error> {
    let mut reverted = Reverted::default();
    let Some(found) = standing.found()? else {
        return if standing.refused().is_empty() && standing.changes().next().is_none() {
            Ok(reverted)
        } else {
            let what = "its first line cannot be read, so nothing was undone; look into it, then give it up with \
                        stillcore isolate undo --forget";
            Err(Error::failed(format!("the journal {}", standing.path().display()), what))
        };
    };
    if !found.this_boot {
        reverted.other_boot = true;
        return Ok(reverted);
    }
    let entries: Vec<Entry> = standing.changes().filter(|entry| entry.seq >= first).cloned().collect();
    let settings_made: Vec<Setting> =
        entries.iter().filter_map(|entry| entry.change.of::<Setting>().cloned()).collect();
    let mut others = set_by_others(&entries, &settings_made, settings, &mut reverted);
    let remembers = |entry: &&Entry| match entry.change.of::<Setting>() {
        Some(setting) => setting.kind.remembers() && !others.contains_key(&setting.target),
        None => true,
    };
    let end = |entry: &Entry, phase| End { seq: entry.seq, phase, read_back: None };
    let ends: Vec<_> = entries.iter().filter(remembers).map(|entry| end(entry, Phase::Done)).collect();
    if !ends.is_empty() {
        // From here on undoing changes them, and a call that is killed must not take that for
        // somebody else's doing.
        let _ = standing.settle(&ends);
    }
    let mut lacking = BTreeSet::new();
    for entry in entries.iter().rev() {
        let failed = reverted.failed.len();
        if let Some(kept) = entry.change.of::<Affinities>() {
            // What lacked CPUs before may have got them, by an older change that is undone since.
            lacking = affinities::restore(&kept.before, settings, &others);
        } else if let Some(setting) = entry.change.of::<Setting>() {
            one(setting, settings, &mut reverted, &mut others);
        }
        if reverted.failed.len() == failed {
            // The next call finds the old value and nothing to do, should this line be lost.
            let _ = standing.settle(&[end(entry, Phase::Undone)]);
        }
    }
    reverted.left.extend(without_offline(&lacking));
    if reverted.failed.is_empty() {
        // Undoing one value may have made the kernel compute another anew.
        let in_use = settings_made.iter().filter(|one| settings.user(one.kind, &one.target).is_some());
        let in_use: Vec<&str> = in_use.map(|one| one.target.as_str()).collect();
        let known = others.keys().chain(&lacking).map(String::as_str).chain(in_use).collect();
        let undone = Undone::of(&entries)?;
        let compared = undone.compare_but(settings, &known);
        (reverted.as_before, reverted.differ) = (compared.as_before, compared.differ);
        reverted.unread = compared.unread;
        reverted.given_back = Some(undone);
    }
    reverted.heirs = heirs::give_back(&settings_made, &found.head, settings);
    reverted.failed.extend(untrusted(standing.path(), standing.refused()));
    Ok(reverted)
}

/// One sentence for the lines that cannot be acted upon, the first of them by name.
fn untrusted(journal: &Path, refused: &[Refused]) -> Option<String> {
    const NAMED: usize = 8;
    let lines = match refused.len() {
        0 => return None,
        1 => "1 line".to_owned(),
        several => format!("{several} lines"),
    };
    let named: Vec<_> = refused.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match refused.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "{lines} of {} cannot be trusted and is not undone: {}{more}",
        journal.display(),
        named.join("; ")
    ))
}

/// What is remembered and no longer what the changes had made of it. Asked before anything is
/// undone, which changes it again.
fn set_by_others(
    entries: &[Entry],
    made: &[Setting],
    settings: &mut dyn Settings,
    reverted: &mut Reverted,
) -> BTreeMap<String, String> {
    let mut others = BTreeMap::new();
    for kept in entries.iter().filter_map(|entry| entry.change.of::<Affinities>()) {
        let Some(after) = &kept.after else { continue };
        for (target, now) in affinities::foreign(&kept.before, after, settings) {
            // A setting with an entry of its own is reported there.
            let own = made.iter().any(|setting| setting.target == target);
            if others.insert(target.clone(), now.clone()).is_none() && !own {
                reverted.left.push(format!("{target} may run on {now}, which somebody else has set"));
            }
        }
    }
    for kept in made.iter().filter(|setting| setting.kind == StepKind::Kept) {
        if let Ok(Present::Other(now)) = kept.check(settings) {
            others.insert(kept.target.clone(), now);
        }
    }
    others
}

/// One sentence for all that may run, or be handled, on fewer CPUs than before.
fn without_offline(lacking: &BTreeSet<String>) -> Option<String> {
    let first = lacking.first()?;
    let more = if lacking.len() == 1 { String::new() } else { format!(" and {} more", lacking.len() - 1) };
    Some(format!(
        "{first}{more} had CPUs that are offline now, which the kernel lets nobody give back until they are online"
    ))
}

fn one(
    setting: &Setting,
    settings: &mut dyn Settings,
    reverted: &mut Reverted,
    others: &mut BTreeMap<String, String>,
) {
    let Some(old) = &setting.old else { return };
    let named = setting.describe();
    if setting.kind == StepKind::Kept
        && let Some(theirs) = others.get(&setting.target)
    {
        // Undoing later changes may have made the kernel compute it anew.
        let now = settings.read(StepKind::Kept, &setting.target).ok().flatten();
        if now.is_some_and(|now| !value::same(&now, theirs)) {
            let _ = settings.write(StepKind::Kept, &setting.target, theirs);
        }
        left_alone(setting, theirs, old, &mut reverted.left);
        return;
    }
    match setting.check(settings) {
        Ok(Present::Gone | Present::Before) => reverted.already += 1,
        // A value that the kernel computes while later changes are undone was set by no user.
        Ok(Present::Other(now)) if setting.kind != StepKind::Kept => {
            left_alone(setting, &now, old, &mut reverted.left);
            others.insert(setting.target.clone(), now);
        }
        Ok(Present::Made | Present::Other(_)) => match settings.user(setting.kind, &setting.target) {
            Some(user) => {
                let now = settings.read(setting.kind, &setting.target).ok().flatten();
                let now = now.unwrap_or_else(|| setting.new.clone());
                reverted.left.push(format!("{named} stays {now}, because {user} uses it"));
            }
            None => match setting.undo(settings) {
                Ok(()) => {
                    reverted.remembered += usize::from(setting.kind.remembers());
                    reverted.undone.push(named);
                }
                Err(error) => reverted.failed.push(failure(&named, &error)),
            },
        },
        Err(error) => reverted.failed.push(failure(&named, &error)),
    }
}

/// Adds that it is left. Where several calls have set it, the oldest knows what it was before all.
fn left_alone(setting: &Setting, now: &str, old: &str, left: &mut Vec<String>) {
    let begin = format!("{} is ", setting.describe());
    left.retain(|newer| !newer.starts_with(&begin));
    left.push(format!("{begin}{now}, which somebody else has set; it was {old}"));
}

fn failure(named: &str, error: &Error) -> String {
    match error {
        // It says itself what it is about.
        Error::Failed { part, what } if part == named => format!("{named}: {what}"),
        error => format!("{named}: {error}"),
    }
}
