//! The audit: each mechanism of the catalogue judged on one machine, for the CPUs that are to be
//! still. Nothing is written.
//!
//! A setting is judged by its effect wherever the kernel shows the effect: a parameter on the
//! command line that the kernel dropped is not in force (lesson of the RTSS 2024 paper, §IV:
//! mechanisms have no common interface and fail silently).

use super::catalogue::{Catalogue, Effective, Mechanism, Moot, Probe, ValueType, Want};
use super::next_boot;
use super::probe::{self, Outcome, Scene};
use super::purpose::Purpose;
use machine::Root;
use model::boot::BootLine;
use model::machine::{SCHEMA, Snapshot};
use model::plan::Step;
use model::{Cpus, Error, Finding, FindingState, Machine};
use std::collections::BTreeMap;

/// What an audit comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// One finding a mechanism, in the catalogue's order.
    pub findings: Vec<Finding>,
    /// The kernel command line that the default plan wants of the next boot.
    pub boot_line: BootLine,
}

/// Judges every mechanism for the CPUs; one finding a mechanism, in the catalogue's order.
pub fn audit(root: &Root, machine: &Machine, catalogue: &Catalogue, cpus: &Cpus) -> Vec<Finding> {
    audit_with_line(root, machine, catalogue, cpus).findings
}

/// As [`audit`], with the boot line.
pub fn audit_with_line(root: &Root, machine: &Machine, catalogue: &Catalogue, cpus: &Cpus) -> Audit {
    audit_around(root, machine, catalogue, cpus, &Purpose::default())
}

/// The same without judging who is there on purpose.
pub(crate) fn audit_around(
    root: &Root,
    machine: &Machine,
    catalogue: &Catalogue,
    cpus: &Cpus,
    purpose: &Purpose,
) -> Audit {
    let scene = Scene::new(root, machine, cpus).sparing(purpose);
    let judged = catalogue.mechanisms.iter().map(|mechanism| judge(&scene, mechanism).finding);
    let mut findings: Vec<_> = judged.collect();
    let own = machine::cores(machine, cpus).and(&machine.topology.online);
    let boot_line = next_boot::remedies(&scene, &own, catalogue, &mut findings);
    Audit { findings, boot_line }
}

/// An isolation as somebody asked for it.
#[derive(Debug, Clone, Copy)]
pub struct Requested<'a> {
    /// The CPUs that are to be still.
    pub cpus: &'a Cpus,
    /// They and, unless cores were split, their siblings.
    pub isolated: &'a Cpus,
    /// Those for everything else.
    pub housekeeping: &'a Cpus,
    /// Who is on the isolated CPUs on purpose, and is not judged.
    pub purpose: &'a Purpose,
}

/// Judges some mechanisms for an isolation as it was requested; one finding each, in this order.
pub fn audit_requested<'m>(
    root: &Root,
    machine: &Machine,
    requested: Requested,
    mechanisms: impl IntoIterator<Item = &'m Mechanism>,
) -> Vec<Finding> {
    let Requested { cpus, isolated, housekeeping, purpose } = requested;
    let scene = Scene::of(root, machine, cpus, isolated.clone(), housekeeping.clone()).sparing(purpose);
    mechanisms.into_iter().map(|mechanism| judge(&scene, mechanism).finding).collect()
}

/// A finding, and what would change it.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    pub(crate) finding: Finding,
    /// Changes that can be made now, where the state is `fixable`.
    pub(super) steps: Vec<Step>,
    /// The parameter for the next boot, where one would do.
    pub(super) parameter: Option<String>,
    /// What no remedy changes, and why: a clause.
    pub(super) stays: Option<String>,
}

/// Every mechanism's value as read, for `MachineState`; those that keep a table of their own there
/// are left out.
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
    /// What `machine::capture` must take besides the machine's own files, so that the capture can
    /// be audited by this catalogue.
    pub fn selection(&self) -> machine::Selection {
        let mut wanted = machine::Selection::default();
        for mechanism in &self.mechanisms {
            match &mechanism.probe {
                Probe::FileWord { paths }
                | Probe::FileBracketedWord { paths }
                | Probe::FileInteger { paths }
                | Probe::CpulistFile { paths }
                | Probe::HexmaskFile { paths }
                | Probe::Flag { paths, .. }
                | Probe::Listing { paths } => {
                    wanted.files.extend(paths.iter().map(|path| path.replace("{cpu}", "*")));
                }
                Probe::CpusetMems {} => {
                    wanted.files.extend(
                        ["*/cpuset.mems", "*/*/cpuset.mems"].map(|file| format!("{{cgroup2}}/{file}")),
                    );
                }
                Probe::Units { units } => {
                    let places = ["etc/systemd/system", "usr/lib/systemd/system"];
                    wanted.names.extend(
                        units.iter().flat_map(|unit| places.map(|place| format!("{place}/*.wants/{unit}"))),
                    );
                }
                Probe::Kconfig { evidence: Some(path), .. } | Probe::Cmdline { evidence: Some(path), .. } => {
                    wanted.files.push(path.clone());
                }
                Probe::Daemon { process, spare_list, spare_hex, others, .. } => {
                    wanted.daemons.push(process.clone());
                    wanted.daemons.extend(others.iter().map(|other| other.process.clone()));
                    wanted.variables.extend(spare_list.iter().chain(spare_hex).cloned());
                }
                Probe::Aspm {} => wanted.files.push("sys/module/pcie_aspm/parameters/policy".to_owned()),
                _ => {}
            }
            if let Probe::Cmdline { parameter, .. } = &mechanism.probe {
                wanted.parameters.push(parameter.clone());
            }
            if let Some(
                Effective::HexmaskFile { path } | Effective::File { path, .. } | Effective::Within { path },
            ) = &mechanism.effective
            {
                wanted.files.push(path.clone());
            }
            wanted.files.extend(mechanism.moot.iter().filter_map(|moot| moot.path.clone()));
        }
        wanted
    }
}

/// Reads and judges one mechanism.
pub(crate) fn judge(scene: &Scene, mechanism: &Mechanism) -> Judgement {
    let mut outcome = probe::judge(scene, mechanism);
    let moot = mechanism.moot.as_ref().filter(|moot| is_moot(scene, moot, outcome.state));
    let asked = moot.is_none() && asked(mechanism, &outcome);
    if let Some(moot) = moot {
        outcome = Outcome {
            state: FindingState::Ok,
            reason: moot.note.clone(),
            remedy: None,
            caveat: None,
            steps: Vec::new(),
            parameter: None,
            ..outcome
        };
    }
    let unproven = mechanism.shown.unproven(scene.machine).filter(|_| asked);
    if let Some(why) = &unproven {
        outcome.state = FindingState::Unknown;
        outcome.reason = format!("asked; cannot be proven here: {why}");
    }
    let finding = Finding {
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
        otherwise: outcome.otherwise.or_else(|| otherwise(scene, mechanism)),
        caveat: outcome.caveat,
        cost: Some(mechanism.cost.clone()),
        risky: mechanism.risky,
        optional: mechanism.optional,
        unproven: unproven.is_some(),
    };
    Judgement { finding, steps: outcome.steps, parameter: outcome.parameter, stays: outcome.stays }
}

/// Whether the setting is as isolation wants it, where it wants something: a value that may be any
/// is asked of nobody.
fn asked(mechanism: &Mechanism, outcome: &Outcome) -> bool {
    let of_a_value = matches!(
        mechanism.probe,
        Probe::Kconfig { .. }
            | Probe::FileWord { .. }
            | Probe::FileBracketedWord { .. }
            | Probe::FileInteger { .. }
            | Probe::CpulistFile { .. }
            | Probe::HexmaskFile { .. }
    );
    let any = of_a_value && matches!(mechanism.want, Want::Any { .. });
    outcome.state == FindingState::Ok && !any
}

/// What leads to the other side of a contested setting, where this machine is not there already.
fn otherwise(scene: &Scene, mechanism: &Mechanism) -> Option<String> {
    let outcome = probe::judge(scene, &mechanism.decided()?);
    outcome.remedy.filter(|_| outcome.state == FindingState::Fixable)
}

fn is_moot(scene: &Scene, moot: &Moot, state: FindingState) -> bool {
    let concerned = if moot.absent { state == FindingState::NotApplicable } else { wrong(state) };
    if !concerned {
        return false;
    }
    let Some(path) = &moot.path else { return moot.realtime && scene.machine.kernel.realtime };
    let avoids = || scene.root.cpus(path).is_some_and(|cpus| cpus.and(scene.cpus).is_empty());
    match &moot.value {
        Some(value) => scene.root.maybe(path).is_some_and(|text| text == *value || moot.or.contains(&text)),
        None => moot.avoids && avoids(),
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
        Want::Literal { value } if value.is_empty() => "given".to_owned(),
        Want::Literal { value } => value.clone(),
        Want::Covers {} => set(scene.cpus),
        Want::Avoids {} => set(&scene.housekeeping),
        Want::OneOf { values } if values.iter().any(String::is_empty) => "given".to_owned(),
        Want::AtLeast { value, .. } => format!("{value} or more"),
        Want::AtMost { value } => format!("{value} or less"),
        Want::NotOneOf { values } => format!("not {}", values.join(" or ")),
        Want::Unset {} => "not set".to_owned(),
        Want::None {} => "none".to_owned(),
        Want::Any { .. } => "any".to_owned(),
        Want::OneOf { values } | Want::Contested { values, .. } => values.join(" or "),
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::By;
    use super::*;
    use fixture::tree;

    fn judged(id: &str, files: &[(&str, &str)]) -> Finding {
        let all = [&[("sys/devices/system/cpu/online", "0-3")], files].concat();
        let (_dir, root) = tree(&all);
        let machine = machine::read(&root).unwrap();
        let findings = audit(&root, &machine, &Catalogue::embedded().unwrap(), &"2-3".parse().unwrap());
        findings.into_iter().find(|finding| finding.id == id).unwrap()
    }

    #[test]
    fn what_nothing_shows_at_work_is_never_ok() {
        let poll = |value| judged("edac", &[("sys/module/edac_core/parameters/edac_mc_poll_msec", value)]);
        let seldom = poll("60000");
        assert_eq!((seldom.state, seldom.unproven), (FindingState::Unknown, true));
        assert!(seldom.reason.starts_with("asked; cannot be proven here: "), "{}", seldom.reason);
        let often = poll("1000");
        assert_eq!((often.state, often.unproven), (FindingState::Fixable, false), "{}", often.reason);
    }

    #[test]
    fn a_virtual_machine_proves_no_frequency_and_no_idle_state() {
        let governor = [
            ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance"),
            ("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "performance"),
        ];
        let bare = judged("cpufreq-governor", &governor);
        assert_eq!((bare.state, bare.unproven), (FindingState::Ok, false), "{}", bare.reason);
        let flags = ("proc/cpuinfo", "flags\t\t: fpu hypervisor\n");
        let guest = judged("cpufreq-governor", &[&governor[..], &[flags]].concat());
        assert_eq!((guest.state, guest.unproven), (FindingState::Unknown, true), "{}", guest.reason);
        assert!(guest.reason.contains("virtual machine"), "{}", guest.reason);
    }

    /// Counted in guests: no softirq of RCU on 6.1-rt, and no file that offers the choice.
    #[test]
    fn what_real_time_kernels_do_unasked_is_not_missing_from_them() {
        let file = ("sys/module/rcutree/parameters/use_softirq", "Y");
        let realtime = ("sys/kernel/realtime", "1");
        let state = |files: &[(&str, &str)]| judged("rcutree-use_softirq", files).state;
        assert_eq!(state(&[realtime]), FindingState::Ok);
        assert_eq!(state(&[]), FindingState::NotApplicable);
        // One that has the file says itself what it does.
        assert_eq!(state(&[realtime, file]), FindingState::Boot);
        assert_eq!(state(&[file]), FindingState::Boot);
    }

    #[test]
    fn a_value_that_may_be_any_is_asked_of_nobody() {
        let reporting = ("sys/module/page_reporting/parameters/page_reporting_order", "9");
        assert_eq!(judged("page_reporting", &[reporting]).state, FindingState::Ok);
    }

    #[test]
    fn no_mechanism_that_nothing_shows_is_ok_on_any_captured_machine() {
        let catalogue = Catalogue::embedded().unwrap();
        let machines = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
        let mut judged = 0;
        for entry in std::fs::read_dir(machines).unwrap() {
            let Ok(root) = Root::open(&entry.unwrap().path()) else { continue };
            let Ok(machine) = machine::read(&root) else { continue };
            let Ok(cpus) = machine::cpus_default(&machine, &machine.topology.online) else { continue };
            for finding in audit(&root, &machine, &catalogue, &cpus) {
                let shown = &catalogue.get(&finding.id).unwrap().shown;
                let hidden = shown.by == By::None || shown.bare_metal && machine.hypervisor.is_some();
                let ok = finding.state == FindingState::Ok;
                assert!(!(hidden && ok) || finding.want == "any", "{}: {}", finding.id, finding.reason);
                judged += usize::from(hidden);
            }
        }
        assert!(judged > 0);
    }
}
