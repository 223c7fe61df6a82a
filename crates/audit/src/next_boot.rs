//! The boot line that plan, audit and persist propose: what the catalogue requires of a boot for
//! the requested CPUs, merged with the present command line.
//!
//! CPUs that are isolated now may be so by a partition, which ends with this boot, or by words that
//! stillcore has written itself. So lists of isolated CPUs are always required, and `boot::merge`
//! finds those that are there already.

use super::catalogue::{Catalogue, Change, Effective, Mechanism, Probe, When};
use super::probe::{Scene, fill};
use boot::{AtHand, Kernel, Wanted};
use machine::Root;
use model::boot::BootLine;
use model::plan::{BootStep, Plan};
use model::{Cpus, Finding, FindingState, Machine};

/// What one mechanism wants of the next boot, where it wants a parameter at all.
pub(super) fn wanted(
    scene: &Scene,
    next: &Next,
    mechanism: &Mechanism,
    state: FindingState,
) -> Option<Wanted> {
    let asked = match state {
        FindingState::NotApplicable => false,
        FindingState::Boot => true,
        _ => lists_isolated(mechanism) || next.at_hand.is_own(&template(mechanism)?),
    };
    if !asked {
        return None;
    }
    let option = match &mechanism.probe {
        Probe::Cmdline { option, .. } => option.clone(),
        _ => None,
    };
    let parameter = fill(scene, &template(mechanism)?);
    Some(Wanted { mechanism: mechanism.id.clone(), parameter, option })
}

/// Whether the mechanism is a parameter that lists the isolated CPUs.
fn lists_isolated(mechanism: &Mechanism) -> bool {
    matches!(mechanism.probe, Probe::Cmdline { .. })
        && matches!(
            mechanism.effective,
            Some(Effective::IsolatedCpus {} | Effective::NohzFullCpus {} | Effective::RcuOffload {})
        )
}

/// The parameter as the catalogue spells it, where it is the first that another boot would change.
fn template(mechanism: &Mechanism) -> Option<String> {
    match mechanism.change.iter().find(|change| change.when() != When::Now)? {
        Change::Parameter { value } => Some(value.clone()),
        _ => None,
    }
}

/// The kernel and the place that a line is for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct For<'a> {
    /// Its release; the one that runs where none is named.
    pub(super) release: Option<&'a str>,
    /// An image that is going to boot on such a machine.
    pub(super) image: Option<&'a Root>,
}

/// What the next boot has to do with: read once, for any number of lines.
pub(super) struct Next {
    kernel: Kernel,
    at_hand: AtHand,
    /// Whether it is the kernel that runs.
    runs: bool,
}

impl Next {
    pub(super) fn of(root: &Root, machine: &Machine, what: For) -> Self {
        let installed = what.image.unwrap_or(root);
        let runs = what.image.is_none() && what.release.is_none();
        let kernel = if runs {
            Kernel::running(root, machine)
        } else {
            Kernel::other(root, machine, installed, what.release)
        };
        // The line of this machine's boot is none of the image's.
        let cmdline = if what.image.is_some() { "" } else { &machine.cmdline };
        Self { kernel, at_hand: boot::at_hand(installed, cmdline), runs }
    }

    /// The line for these CPUs.
    pub(super) fn line(&self, cpus: &Cpus, wanted: &[Wanted]) -> BootLine {
        let mut line = boot::merge(&self.kernel, self.at_hand.lines(), cpus, wanted);
        if !self.runs {
            line.notes.push("all else in this plan is of the kernel that runs".to_owned());
        }
        if self.kernel.release.is_empty() {
            line.notes.push(String::from(
                "which kernel boots is not known, so the rules of a new one are taken: name it with --for-kernel",
            ));
        }
        line.notes.extend(self.at_hand.notes.iter().cloned());
        line
    }
}

/// Makes the steps for the next boot say what the line says.
pub(super) fn agree(plan: &mut Plan, line: BootLine, wanted: &[Wanted]) {
    for one in wanted {
        let step = spelled(&line, one);
        match plan.boot.iter_mut().find(|step| step.mechanism == one.mechanism) {
            // Why a parameter is left out may be a matter of another kernel, which the audit has
            // said better.
            Some(old) if step.is_none() => old.parameter = None,
            Some(old) => step.into_iter().for_each(|step| *old = step),
            None => plan.boot.extend(step.filter(|step| step.parameter.is_some())),
        }
    }
    plan.boot_line = line;
}

/// What the line says of one parameter; `None` where it is left out.
fn spelled(line: &BootLine, wanted: &Wanted) -> Option<BootStep> {
    let step = |parameter: Option<String>, what: String| {
        Some(BootStep { mechanism: wanted.mechanism.clone(), parameter, what })
    };
    if let Some(reason) = &line.refused {
        return step(None, format!("{}: no line is proposed, {reason}", wanted.parameter));
    }
    if line.omitted.iter().any(|omitted| omitted.mechanism == wanted.mechanism) {
        return None;
    }
    let changed = changes_of(line, wanted);
    if changed.is_empty() {
        return step(None, format!("{} needs no change of the kernel command line", wanted.parameter));
    }
    let words: Vec<_> = changed.iter().flat_map(|change| change.new.clone()).collect();
    let what: Vec<_> = changed.iter().map(|change| change.instruction()).collect();
    step(Some(words.join(" ")), what.join("; "))
}

fn changes_of<'a>(line: &'a BootLine, wanted: &Wanted) -> Vec<&'a model::boot::BootWord> {
    let names: Vec<_> =
        wanted.parameter.split_whitespace().filter_map(|word| word.split('=').next()).collect();
    let named = |name: &str| names.iter().any(|one| machine::same_name(one, name));
    line.changes.iter().filter(|change| named(&change.name) && !change.new.is_empty()).collect()
}

/// Makes the remedies of an audit say what the line says.
pub(super) fn remedies(
    scene: &Scene,
    own: &Cpus,
    catalogue: &Catalogue,
    findings: &mut [Finding],
) -> BootLine {
    let of_own = Scene::of(scene.root, scene.machine, scene.cpus, own.clone(), scene.housekeeping.clone());
    let next = Next::of(scene.root, scene.machine, For::default());
    let pairs = || catalogue.mechanisms.iter().zip(findings.iter());
    let all = pairs().filter(|(mechanism, _)| !mechanism.optional);
    let all: Vec<_> =
        all.filter_map(|(mechanism, found)| wanted(&of_own, &next, mechanism, found.state)).collect();
    let base = next.line(own, &all);
    for (mechanism, finding) in catalogue.mechanisms.iter().zip(findings) {
        let Some(one) = wanted(&of_own, &next, mechanism, finding.state) else { continue };
        if finding.state != FindingState::Boot || scene.housekeeping.is_empty() {
            continue;
        }
        let with_it = || {
            let mut choice = all.clone();
            choice.push(one.clone());
            next.line(own, &choice)
        };
        let step = if mechanism.optional { spelled(&with_it(), &one) } else { spelled(&base, &one) };
        if let Some(step) = step {
            finding.remedy = Some(step.what);
        }
    }
    base
}
