//! Undoing standing isolation: newest first, compare and swap. A value that somebody else has set meanwhile is left alone and told.
//!
//! Every step may be repeated: a call that was killed is simply made again.

use super::change::{Settings, value};
use super::heirs;
use super::journal::{Entry, Phase};
use super::remember;
use super::standing::Standing;
use crate::error::Error;
use model::plan::StepKind;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What undoing came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reverted {
    /// Values given back, `mechanism target`.
    pub undone: Vec<String>,
    /// What had already the old value, or is gone.
    pub already: usize,
    /// Values that somebody else has set meanwhile, with what they are.
    pub left: Vec<String>,
    /// Values that could not be given back, with the reason.
    pub failed: Vec<String>,
    /// Values that were given up, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub abandoned: Vec<String>,
    /// Where the journal is kept that tells of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<PathBuf>,
    /// Tasks started meanwhile that got the affinity their forebears had.
    pub heirs: usize,
    /// Whether the changes were made in another boot, with which they went.
    pub other_boot: bool,
}

/// Takes everything back. The journal ends when nothing failed.
pub fn revert(standing: Standing, settings: &mut dyn Settings) -> Result<Reverted, Error> {
    revert_since(standing, settings, 0)
}

/// Takes back the changes with this number and later ones: those of one call. The journal ends when none is left.
pub fn revert_since(
    mut standing: Standing,
    settings: &mut dyn Settings,
    first: u64,
) -> Result<Reverted, Error> {
    let reverted = take_back(&mut standing, settings, first)?;
    let earlier = !reverted.other_boot && standing.changes().any(|entry| entry.seq < first);
    if reverted.failed.is_empty() && !earlier {
        standing.end()?;
    }
    Ok(reverted)
}

/// Takes back what can be taken back and gives up the rest, for which its journal is kept under another name.
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
        return if standing.damaged().is_empty() && standing.changes().next().is_none() {
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
    let mut others = set_by_others(&entries, settings, &mut reverted);
    let checked =
        |entry: &&Entry| entry.kind.is_some_and(StepKind::remembers) && !others.contains_key(&entry.target);
    let ends: Vec<_> = entries.iter().filter(checked).map(|entry| (entry.seq, Phase::Done, None)).collect();
    if !ends.is_empty() {
        // From here on undoing changes them, and a call that is killed must not take that for somebody else's doing.
        let _ = standing.settle(&ends);
    }
    let mut lacking = BTreeSet::new();
    for entry in entries.iter().rev() {
        if let (Some(StepKind::Affinities), Some(old)) = (entry.kind, &entry.old) {
            // What lacked CPUs before may have got them, by an older change that is undone since.
            lacking = remember::restore(old, settings, &others);
        } else {
            one(entry, settings, &mut reverted, &mut others);
        }
        if !reverted.failed.last().is_some_and(|failed| failed.starts_with(&named(entry))) {
            // The next call finds the old value and nothing to do, should this line be lost.
            let _ = standing.settle(&[(entry.seq, Phase::Undone, None)]);
        }
    }
    reverted.left.extend(without_offline(&lacking));
    reverted.heirs = heirs::give_back(&entries, &found.head, settings);
    let damaged = standing.damaged();
    if !damaged.is_empty() {
        const NAMED: usize = 8;
        let named: Vec<_> = damaged.iter().take(NAMED).map(ToString::to_string).collect();
        let more = match damaged.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        reverted.failed.push(format!(
            "{} of {} cannot be trusted and is not undone: {}{more}",
            if damaged.len() == 1 { "1 line".to_owned() } else { format!("{} lines", damaged.len()) },
            standing.path().display(),
            named.join("; ")
        ));
    }
    Ok(reverted)
}

/// What is remembered and no longer what the changes had made of it. Asked before anything is undone, which changes it again.
fn set_by_others(
    entries: &[Entry],
    settings: &mut dyn Settings,
    reverted: &mut Reverted,
) -> BTreeMap<String, String> {
    let mut others = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.kind == Some(StepKind::Affinities)) {
        let (Some(before), Some(after)) = (&entry.old, &entry.read_back) else { continue };
        for (target, now) in remember::foreign(before, after, settings) {
            // What has an entry of its own is told there.
            let own = entries.iter().any(|entry| entry.target == target);
            if others.insert(target.clone(), now.clone()).is_none() && !own {
                reverted.left.push(format!("{target} may run on {now}, which somebody else has set"));
            }
        }
    }
    for entry in entries.iter().filter(|entry| entry.kind == Some(StepKind::Kept)) {
        let now = settings.read(StepKind::Kept, &entry.target).ok().flatten();
        let is =
            |text: &Option<String>| matches!((&now, text), (Some(now), Some(text)) if value::same(now, text));
        let foreign = entry.read_back.is_some() && !is(&entry.read_back) && !is(&entry.old);
        if let Some(now) = now.clone().filter(|_| foreign) {
            others.insert(entry.target.clone(), now);
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

fn named(entry: &Entry) -> String {
    format!("{} {}", entry.id, entry.target)
}

fn one(
    entry: &Entry,
    settings: &mut dyn Settings,
    reverted: &mut Reverted,
    others: &mut BTreeMap<String, String>,
) {
    let (Some(kind), Some(old)) = (entry.kind, &entry.old) else { return };
    let now = match settings.read(kind, &entry.target) {
        Ok(Some(now)) => now,
        Ok(None) => {
            reverted.already += 1;
            return;
        }
        Err(error) => {
            reverted.failed.push(format!("{}: {error}", named(entry)));
            return;
        }
    };
    if kind == StepKind::Kept {
        return kept(entry, &now, old, others.get(&entry.target), settings, reverted);
    }
    let ours = |text: &Option<String>| text.as_ref().is_some_and(|text| value::same(&now, text));
    if is_back(kind, &now, old) {
        reverted.already += 1;
    } else if ours(&entry.new) || ours(&entry.read_back) || derived(entry, kind, &now) {
        match settings.user(kind, &entry.target) {
            Some(user) => reverted.left.push(format!("{} stays {now}, because {user} uses it", named(entry))),
            None => give_back(entry, kind, old, settings, reverted),
        }
    } else {
        others.insert(entry.target.clone(), now.clone());
        reverted.left.push(set_since(entry, &now, old));
    }
}

fn set_since(entry: &Entry, now: &str, old: &str) -> String {
    format!("{} is {now}, which somebody else has set; it was {old}", named(entry))
}

/// `theirs`: what somebody else has set, which undoing later changes may have made the kernel compute anew.
fn kept(
    entry: &Entry,
    now: &str,
    old: &str,
    theirs: Option<&String>,
    settings: &mut dyn Settings,
    reverted: &mut Reverted,
) {
    if let Some(theirs) = theirs {
        reverted.left.push(set_since(entry, theirs, old));
        if !value::same(now, theirs) {
            let _ = settings.write(StepKind::Kept, &entry.target, theirs);
        }
    } else if value::same(now, old) {
        reverted.already += 1;
    } else {
        give_back(entry, StepKind::Kept, old, settings, reverted);
    }
}

/// Whether a value is as it was. Which priority below zero a swap area has, the kernel says, by what else is switched on.
fn is_back(kind: StepKind, now: &str, old: &str) -> bool {
    let own = |text: &str| text.starts_with("on -");
    value::same(now, old) || (kind == StepKind::Swap && own(now) && own(old))
}

/// A partition that has become invalid meanwhile is still ours.
fn derived(entry: &Entry, kind: StepKind, now: &str) -> bool {
    let partition = kind == StepKind::File && entry.target.ends_with("/cpuset.cpus.partition");
    partition && now.starts_with(entry.new.as_deref().unwrap_or("isolated"))
}

fn give_back(entry: &Entry, kind: StepKind, old: &str, settings: &mut dyn Settings, reverted: &mut Reverted) {
    match settings.write(kind, &entry.target, old) {
        Ok(()) => {
            let now = settings.read(kind, &entry.target).ok().flatten();
            // A group may be gone, with the last of its tasks.
            let loose = matches!(kind, StepKind::Task | StepKind::Member);
            if now.as_ref().is_none_or(|now| is_back(kind, now, old)) || loose {
                reverted.undone.push(named(entry));
            } else {
                let now = now.unwrap_or_default();
                reverted.failed.push(format!("{}: {old} was written and {now} reads back", named(entry)));
            }
        }
        Err(error) => reverted.failed.push(format!("{}: {error}", named(entry))),
    }
}
