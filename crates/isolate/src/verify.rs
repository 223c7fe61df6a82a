//! Verifying what stands: each change compared with what is there now, the mechanisms audited again
//! by their effective state, those that were right without a change among them, and what has come
//! since: tasks and interrupts that may run on the isolated CPUs, CPUs that went or came.

use super::setting::{Compared, Setting};
use super::standing::Found;
use super::watch;
use crate::watched::{Watched, handlers};
use audit::catalogue::Catalogue;
use audit::stray::seen;
use journal::settings::Settings;
use machine::{Irq, Root, irqs};
use model::plan::StepKind;
use model::{Finding, FindingState, Machine};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use sys::Error;

/// What verifying found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Changes that hold.
    pub holding: usize,
    /// Changes whose target is gone: a task that ended, an interrupt that was freed.
    pub gone: usize,
    /// The files among those that are gone.
    pub vanished: Vec<String>,
    /// Mechanisms that were right when the CPUs were isolated, and still are.
    pub right: usize,
    /// One sentence for each thing that is not as it was left.
    pub drifted: Vec<String>,
    /// The same for mechanisms that are a choice: reported, and no failure.
    pub choices: Vec<String>,
    /// Tasks that somebody has pinned there since, on CPUs isolated at boot, where no task runs by
    /// accident: reported, and no failure.
    pub guests: Vec<String>,
    /// Changes that this user may not look at, with the reason: whether they hold is not known.
    pub unread: Vec<String>,
    /// Interrupts that were moved and are handled there still, as they were when the CPUs were
    /// isolated.
    pub pending: Vec<String>,
}

/// Compares the machine with the isolation in force.
pub fn verify(
    root: &Root,
    catalogue: &Catalogue,
    found: &Found,
    settings: &mut dyn Settings,
) -> Result<Verified, Error> {
    let mut verified = Verified::default();
    let mut changed = BTreeSet::new();
    verified.drifted.extend(
        found
            .refused
            .iter()
            .map(|line| format!("what stands is not known in full: {line} of the journal cannot be trusted")),
    );
    for entry in found.in_force() {
        match entry.compare(settings) {
            Compared::Holds => verified.holding += 1,
            Compared::Gone => {
                verified.gone += 1;
                if entry.kind == StepKind::File {
                    verified.vanished.push(entry.target.clone());
                }
            }
            Compared::Drifted(now) => {
                let Setting { mechanism, target, new, .. } = entry;
                verified.drifted.push(format!("{mechanism} {target} is {now}, not {new}"));
                changed.insert(mechanism.as_str());
            }
            Compared::Unread(error) => {
                let list = if denied(&error) { &mut verified.unread } else { &mut verified.drifted };
                list.push(format!("{} {} is not known: {error}", entry.mechanism, entry.target));
            }
        }
    }
    let machine = machine::read(root)?;
    let present = found.head.isolated.or(&found.head.housekeeping);
    let online = &machine.topology.online;
    // CPUs that others have isolated are in neither set.
    let came = online.minus(&present).minus(&machine.topology.isolated).minus(&machine.topology.others());
    for (cpus, what) in [(present.minus(online), "went offline"), (came, "came online")] {
        if !cpus.is_empty() {
            verified.drifted.push(format!("CPU {cpus} {what} since"));
        }
    }
    if !found.head.isolated.is_empty() {
        newcomers(root, found, &mut verified);
        mechanisms(root, &machine, catalogue, found, &changed, &mut verified);
    }
    Ok(verified)
}

/// Whether it is the caller who lacks the right, as without root; anything else that cannot be read
/// is not as it was left.
fn denied(error: &Error) -> bool {
    matches!(error, Error::Os { source, .. } if source.kind() == ErrorKind::PermissionDenied)
}

/// Interrupts and tasks that may now run there.
fn newcomers(root: &Root, found: &Found, verified: &mut Verified) {
    let settings = found.settings.iter().map(|setting| &setting.target);
    let known: BTreeSet<_> = settings.chain(&found.immovable).map(String::as_str).collect();
    for irq in irqs(root).into_iter().filter(|irq| !found.purpose.keeps_interrupt(irq)) {
        let file = format!("/proc/irq/{}/smp_affinity_list", irq.number);
        interrupt(&irq, known.contains(file.as_str()), found, verified);
    }
    let seen = seen(root, &found.head.isolated, &found.head.housekeeping, &found.purpose);
    for step in seen.strays {
        if !known.contains(step.target.as_str()) {
            let may = step.old.unwrap_or_default();
            verified.drifted.push(format!("task {} may run on {may}", step.target));
        }
    }
    let Some(watched) = &found.watched else { return };
    let new =
        seen.pinned.into_iter().map(|step| step.target).filter(|target| !watched.pinned.contains(target));
    verified.guests = new.map(|target| format!("task {target} has been pinned there since")).collect();
}

/// An interrupt by where it may be handled, and by where it is. One that the journal lists and that
/// may come back is reported there.
fn interrupt(irq: &Irq, known: bool, found: &Found, verified: &mut Verified) {
    let isolated = &found.head.isolated;
    let (may, is) = (irq.allowed.and(isolated), irq.effective.and(isolated));
    let name = format!("interrupt {} {}", irq.number, handlers(irq));
    let watched = found.watched.as_ref();
    if !may.is_empty() {
        let stayed = watched.map_or(irq.movable == Some(false), |watched| watched.stayed(irq));
        verified.drifted.extend((!known && !stayed).then(|| format!("{name} may be handled on {may}")));
    } else if !is.is_empty() {
        let still = format!("{name} is handled on {is}, although it may only be on {}", irq.allowed);
        if watched.is_some_and(|watched| watched.was_late(irq)) {
            verified.pending.push(format!("{still}: it leaves when it comes next"));
        } else {
            verified.drifted.push(still);
        }
    }
}

/// Mechanisms that were changed and whose value is in force without effect; and those that were
/// right when the CPUs were isolated and are not now. `drifted_ids`: those whose value is already
/// reported.
fn mechanisms(
    root: &Root,
    machine: &Machine,
    catalogue: &Catalogue,
    found: &Found,
    drifted_ids: &BTreeSet<&str>,
    verified: &mut Verified,
) {
    let made = found.settings.iter().filter(|setting: &&Setting| !setting.kind.remembers());
    let changed: BTreeSet<_> = made.map(|setting| setting.mechanism.as_str()).collect();
    let nothing = Watched::default();
    let right = &found.watched.as_ref().unwrap_or(&nothing).right;
    if found.watched.is_none() {
        let what = "what was right when the CPUs were isolated is not known: the call was not brought to its end; apply again";
        verified.drifted.push(what.to_owned());
    }
    let asked = |id: &str| (changed.contains(id) || right.contains(id)) && !drifted_ids.contains(id);
    for finding in watch::findings(root, machine, catalogue, &found.head, &found.purpose, asked) {
        let was_right = right.contains(&finding.id);
        let wrong =
            matches!(finding.state, FindingState::Fixable | FindingState::Boot | FindingState::Immovable);
        let choice = finding.optional && !changed.contains(finding.id.as_str());
        match (wrong, was_right) {
            (false, _) => verified.right += usize::from(was_right),
            (true, true) if choice => verified.choices.push(no_longer(&finding)),
            (true, true) => verified.drifted.push(no_longer(&finding)),
            (true, false) => {
                verified
                    .drifted
                    .extend(finding.failed().then(|| format!("{}: {}", finding.id, finding.reason)));
            }
        }
    }
}

fn no_longer(finding: &Finding) -> String {
    format!("{}: was right when isolated, is not now: {}", finding.id, finding.reason)
}
