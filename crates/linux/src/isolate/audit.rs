//! The audit: each mechanism of the catalogue judged on one machine, for the CPUs that are to be still. Nothing is written.
//!
//! A setting is judged by its effect wherever the kernel shows the effect: a parameter on the command line that the kernel
//! dropped is not in force (lesson of the RTSS 2024 paper, §IV: mechanisms have no common interface and fail silently).

use super::catalogue::{Catalogue, Effective, Mechanism, Probe, ValueType, Want};
use super::probe::{self, Outcome, Scene};
use crate::machine::{self, Root};
use model::machine::{SCHEMA, Snapshot};
use model::{Cpus, Error, Finding, FindingState, Machine};
use std::collections::BTreeMap;

/// Judges every mechanism for the CPUs; one finding a mechanism, in the catalogue's order.
pub fn audit(root: &Root, machine: &Machine, catalogue: &Catalogue, cpus: &Cpus) -> Vec<Finding> {
    let scene = Scene::new(root, machine, cpus);
    catalogue.mechanisms.iter().map(|mechanism| finding(&scene, mechanism)).collect()
}

/// Every mechanism's value as read, for `MachineState`; those that keep a table of their own there are left out.
pub fn values(root: &Root, machine: &Machine, catalogue: &Catalogue) -> BTreeMap<String, String> {
    let scene = Scene::new(root, machine, &machine.topology.online);
    let all = catalogue.mechanisms.iter();
    all.filter_map(|mechanism| Some((mechanism.id.clone(), probe::value(&scene, mechanism)?))).collect()
}

/// The machine and how it is set.
pub fn snapshot(root: &Root, catalogue: &Catalogue) -> Result<Snapshot, Error> {
    let machine = machine::read(root)?;
    let state = machine::state(root, values(root, &machine, catalogue));
    Ok(Snapshot { schema: SCHEMA.to_owned(), machine, state })
}

impl Catalogue {
    /// What `machine::capture` must take besides the machine's own files, so that the capture can be audited by this catalogue.
    pub fn selection(&self) -> machine::Selection {
        let mut wanted = machine::Selection::default();
        for mechanism in &self.mechanisms {
            match &mechanism.probe {
                Probe::FileWord { paths }
                | Probe::FileBracketedWord { paths }
                | Probe::FileInteger { paths }
                | Probe::CpulistFile { paths }
                | Probe::HexmaskFile { paths } => wanted.files.extend(paths.iter().cloned()),
                Probe::Kconfig { evidence: Some(path), .. } | Probe::Cmdline { evidence: Some(path), .. } => {
                    wanted.files.push(path.clone());
                }
                Probe::Daemon { process, spare_list, spare_hex, .. } => {
                    wanted.daemons.push(process.clone());
                    wanted.variables.extend(spare_list.iter().chain(spare_hex).cloned());
                }
                Probe::Aspm {} => wanted.files.push("sys/module/pcie_aspm/parameters/policy".to_owned()),
                _ => {}
            }
            if let Some(Effective::HexmaskFile { path }) = &mechanism.effective {
                wanted.files.push(path.clone());
            }
            wanted.files.extend(mechanism.moot.iter().map(|moot| moot.path.clone()));
        }
        wanted
    }
}

fn finding(scene: &Scene, mechanism: &Mechanism) -> Finding {
    let mut outcome = probe::judge(scene, mechanism);
    if let Some(moot) = mechanism.moot.as_ref().filter(|_| wrong(outcome.state))
        && scene.root.maybe(&moot.path).as_deref() == Some(&moot.value)
    {
        outcome = Outcome {
            state: FindingState::Ok,
            reason: moot.note.clone(),
            remedy: None,
            caveat: None,
            ..outcome
        };
    }
    Finding {
        id: mechanism.id.clone(),
        title: mechanism.title.clone(),
        cpus: scene.cpus.clone(),
        state: outcome.state,
        want: want(scene, mechanism),
        have: outcome.have,
        effective: outcome.effective,
        reason: outcome.reason,
        removes: mechanism.removes.clone(),
        remedy: outcome.remedy,
        caveat: outcome.caveat,
        cost: Some(mechanism.cost.clone()),
        risky: mechanism.risky,
    }
}

fn wrong(state: FindingState) -> bool {
    matches!(state, FindingState::Fixable | FindingState::Boot | FindingState::Immovable)
}

/// The wanted state in the mechanism's own spelling.
fn want(scene: &Scene, mechanism: &Mechanism) -> String {
    let set =
        |cpus: &Cpus| if mechanism.value == ValueType::Hexmask { cpus.to_hex() } else { cpus.to_string() };
    match &mechanism.want {
        Want::Literal { value } => value.clone(),
        Want::Covers {} => set(scene.cpus),
        Want::Avoids {} => set(&scene.housekeeping),
        Want::None {} => "none".to_owned(),
        Want::Any { .. } => "any".to_owned(),
        Want::Contested { values, .. } => values.join(" or "),
    }
}
