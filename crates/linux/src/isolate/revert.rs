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
use std::collections::BTreeSet;

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
    let mut reverted = Reverted::default();
    let Some(found) = standing.found()? else {
        return if standing.damaged() == 0 && standing.changes().next().is_none() {
            standing.end().map(|()| reverted)
        } else {
            let what = "its first line cannot be read, so nothing was undone; look into it, then remove it";
            Err(Error::failed(format!("the journal {}", standing.path().display()), what))
        };
    };
    if !found.this_boot {
        reverted.other_boot = true;
        standing.end()?;
        return Ok(reverted);
    }
    let entries: Vec<Entry> = standing.changes().filter(|entry| entry.seq >= first).cloned().collect();
    let mut others = set_by_others(&entries, settings, &mut reverted);
    let checked =
        |entry: &&Entry| entry.kind.is_some_and(StepKind::remembers) && !others.contains(&entry.target);
    let ends: Vec<_> = entries.iter().filter(checked).map(|entry| (entry.seq, Phase::Done, None)).collect();
    if !ends.is_empty() {
        // From here on undoing changes them, and a call that is killed must not take that for somebody else's doing.
        let _ = standing.settle(&ends);
    }
    for entry in entries.iter().rev() {
        one(entry, settings, &mut reverted, &mut others);
        if !reverted.failed.last().is_some_and(|failed| failed.starts_with(&named(entry))) {
            // The next call finds the old value and nothing to do, should this line be lost.
            let _ = standing.settle(&[(entry.seq, Phase::Undone, None)]);
        }
    }
    reverted.heirs = heirs::give_back(&entries, &found.head, settings);
    if standing.damaged() > 0 {
        reverted.failed.push(format!(
            "{} lines of {} are damaged, and what they say is not undone; look into it, then remove it",
            standing.damaged(),
            standing.path().display()
        ));
    }
    let earlier = standing.changes().any(|entry| entry.seq < first);
    if reverted.failed.is_empty() && !earlier {
        standing.end()?;
    }
    Ok(reverted)
}

/// What is remembered and no longer what the changes had made of it. Asked before anything is undone, which changes it again.
fn set_by_others(
    entries: &[Entry],
    settings: &mut dyn Settings,
    reverted: &mut Reverted,
) -> BTreeSet<String> {
    let mut others = BTreeSet::new();
    for entry in entries.iter().filter(|entry| entry.kind == Some(StepKind::Affinities)) {
        let (Some(before), Some(after)) = (&entry.old, &entry.read_back) else { continue };
        for (target, now) in remember::foreign(before, after, settings) {
            // What has an entry of its own is told there.
            if !entries.iter().any(|entry| entry.target == target) {
                reverted.left.push(format!("{target} may run on {now}, which somebody else has set"));
            }
            others.insert(target);
        }
    }
    for entry in entries.iter().filter(|entry| entry.kind == Some(StepKind::Kept)) {
        let now = settings.read(StepKind::Kept, &entry.target).ok().flatten();
        let is =
            |text: &Option<String>| matches!((&now, text), (Some(now), Some(text)) if value::same(now, text));
        if entry.read_back.is_some() && !is(&entry.read_back) && !is(&entry.old) {
            others.insert(entry.target.clone());
        }
    }
    others
}

fn named(entry: &Entry) -> String {
    format!("{} {}", entry.id, entry.target)
}

fn one(entry: &Entry, settings: &mut dyn Settings, reverted: &mut Reverted, others: &mut BTreeSet<String>) {
    let (Some(kind), Some(old)) = (entry.kind, &entry.old) else { return };
    if kind == StepKind::Affinities {
        remember::restore(old, settings, others);
        return;
    }
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
    if kind == StepKind::Kept && !value::same(&now, old) && !others.contains(&entry.target) {
        return give_back(entry, kind, old, settings, reverted);
    }
    let ours = |text: &Option<String>| text.as_ref().is_some_and(|text| value::same(&now, text));
    if value::same(&now, old) {
        reverted.already += 1;
    } else if ours(&entry.new) || ours(&entry.read_back) || derived(entry, kind, &now) {
        give_back(entry, kind, old, settings, reverted);
    } else {
        others.insert(entry.target.clone());
        reverted.left.push(format!("{} is {now}, which somebody else has set; it was {old}", named(entry)));
    }
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
            if now.as_ref().is_none_or(|now| value::same(now, old)) || kind == StepKind::Task {
                reverted.undone.push(named(entry));
            } else {
                let now = now.unwrap_or_default();
                reverted.failed.push(format!("{}: {old} was written and {now} reads back", named(entry)));
            }
        }
        Err(error) => reverted.failed.push(format!("{}: {error}", named(entry))),
    }
}
