//! The plan: what the audit finds wrong and a running machine can change, as ordered steps; the
//! rest for the next boot, or left.
//!
//! Nothing is written. Choices ([`Mechanism::optional`]), what can take a machine away (`risky`)
//! and settings on which the field does not agree ([`Mechanism::decided`]) come in only when named.

use super::catalogue::{Catalogue, Mechanism};
use super::in_force::{self, Setting};
use super::judge::{Judgement, judge};
use super::lost_workers::cpus_without_their_workers;
use super::probe::Scene;
use super::purpose::Purpose;
use super::residents::{Planned, residents};
use super::tenants::Tenants;
use super::{next_boot, placement, smt};
use boot::Wanted;
use machine::Root;
use model::boot::BootLine;
use model::plan::{BootStep, Left, Placement, Plan, SCHEMA, Step, StepKind};
use model::{Cpus, Error, FindingState, Machine};
use std::collections::BTreeSet;

/// What the user wants isolated, and how.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The CPUs that are to be still.
    pub cpus: Cpus,
    /// Isolate CPU 0 too if it is among them, and CPUs that belong to somebody else.
    pub force: bool,
    /// Isolate some threads of a core and leave its others to housekeeping.
    pub allow_split: bool,
    /// Choices and risks to take in.
    pub with: Vec<String>,
    /// Mechanisms to leave as they are.
    pub without: Vec<String>,
    /// How to keep the scheduler off; the best possible where none is named.
    pub placement: Option<Placement>,
    /// The release of the kernel that the next boot is planned for; the one that runs where none is
    /// named.
    pub kernel: Option<String>,
    /// An image that is going to boot on such a machine, in the place of what is installed on this
    /// one.
    pub image: Option<Root>,
    /// Who is there on purpose and stays.
    pub purpose: Purpose,
    /// Also move tasks that somebody has pinned to CPUs isolated at boot, which the scheduler moves
    /// nobody to.
    pub move_pinned: bool,
}

/// A plan, and what is right without it.
pub(super) struct Made {
    pub(super) plan: Plan,
    /// Files that are as wanted, by path.
    pub(super) right: Vec<(String, Setting)>,
    /// What the next boot is to have, whether this one has it or not.
    pub(super) words: Vec<Wanted>,
    /// What was named and cannot be read here.
    pub(super) unread: Vec<Left>,
}

/// Makes the plan. Errors: CPUs that cannot or should not be isolated, names that the catalogue
/// does not have.
pub fn plan(root: &Root, machine: &Machine, catalogue: &Catalogue, request: &Request) -> Result<Plan, Error> {
    make(root, machine, catalogue, request).map(|made| made.plan)
}

/// The same, with what is right already.
pub(super) fn make(
    root: &Root,
    machine: &Machine,
    catalogue: &Catalogue,
    request: &Request,
) -> Result<Made, Error> {
    known(catalogue, request)?;
    // Siblings that go offline are no part of what is planned for the rest.
    match catalogue.get(smt::ID).filter(|_| request.with.iter().any(|id| id == smt::ID)) {
        Some(control) if root.maybe(machine::SMT_CONTROL).as_deref() == Some("on") => {
            without_siblings(root, machine, catalogue, request, control)
        }
        _ => plan_for(root, machine, catalogue, request),
    }
}

fn without_siblings(
    root: &Root,
    machine: &Machine,
    catalogue: &Catalogue,
    request: &Request,
    control: &Mechanism,
) -> Result<Made, Error> {
    let kept = smt::firsts(machine);
    let gone = machine.topology.online.minus(&kept);
    let mut rest = Request { cpus: smt::staying(machine, &request.cpus)?, ..request.clone() };
    rest.with.retain(|id| id != smt::ID);
    let mut made = plan_for(root, &smt::shrunk(machine, &kept), catalogue, &rest)?;
    made.plan.steps.extend(smt::steps(root, machine, &gone, &control.harm, &control.cost));
    made.plan.left.extend(smt::found(machine));
    Ok(made)
}

fn plan_for(root: &Root, machine: &Machine, catalogue: &Catalogue, request: &Request) -> Result<Made, Error> {
    let housekeeping = check(machine, request)?;
    let isolated = machine.topology.online.minus(&housekeeping).and(&cores(machine, request));
    let scene = Scene::of(root, machine, &request.cpus, isolated.clone(), housekeeping.clone());
    let scene = scene.sparing(&request.purpose).evicting(request.move_pinned);
    let lost = cpus_without_their_workers(root, &scene.processes().kernel, &machine.topology.online);
    if !lost.is_empty() && !request.force {
        let what = format!(
            "the kernel's own workers of CPUs {lost} may not stay there: on kernels before 5.11 a cpuset partition of somebody's does that, \
             and whoever waits for such a worker, as isolating does, waits for ever"
        );
        return Err(Error::invalid("the kernel", what, "another boot without that partition, or --force"));
    }
    let tenants = Tenants::of(root, &isolated, &request.purpose);
    let chosen = placement::choose(root, machine, &isolated, request.placement, &tenants)?;
    let mut plan = Plan {
        schema: SCHEMA.to_owned(),
        cpus: request.cpus.clone(),
        isolated,
        housekeeping,
        placement: chosen.placement,
        placement_reason: chosen.reason,
        steps: Vec::new(),
        boot: Vec::new(),
        left: Vec::new(),
        boot_line: BootLine::default(),
        keep: request.purpose.keep.iter().map(ToString::to_string).collect(),
        residents: Vec::new(),
        move_pinned: request.move_pinned,
    };
    let (mut next_words, mut right, mut given) = (Vec::new(), Vec::new(), Vec::new());
    let mut unread = Vec::new();
    let what = next_boot::For { release: request.kernel.as_deref(), image: request.image.as_ref() };
    let next = next_boot::Next::of(root, machine, what);
    let mut ordered: Vec<_> = catalogue.mechanisms.iter().filter(|one| wanted(one, request)).collect();
    ordered.sort_by_key(|mechanism| (mechanism.order(), &mechanism.id));
    let mut placed = Some(chosen.steps);
    for mechanism in ordered {
        if mechanism.order() >= placement::ORDER {
            plan.steps.extend(placed.take().unwrap_or_default());
        }
        if placement::IDS.contains(&mechanism.id.as_str()) {
            continue;
        }
        let named = request.with.contains(&mechanism.id);
        let decided = mechanism.decided().filter(|_| named);
        let as_decided = decided.as_ref().unwrap_or(mechanism);
        let judgement = judge(&scene, as_decided);
        let asked = !mechanism.risky || named;
        let word = next_boot::wanted(&scene, &next, mechanism, judgement.finding.state);
        if word.is_none() {
            given.extend(in_force::parameter(&scene, mechanism, &judgement));
        }
        next_words.extend(word);
        if asked {
            right.extend(in_force::files(&scene, as_decided, &judgement));
        }
        let finding = &judgement.finding;
        if named && finding.state == FindingState::Unknown && !finding.unproven {
            unread.push(Left { mechanism: mechanism.id.clone(), reason: finding.reason.clone() });
        }
        let first = plan.steps.len();
        add(&mut plan, judgement, asked);
        if plan.steps.len() > first {
            plan.steps.splice(
                first..first,
                mechanism.disturbs.iter().filter_map(|path| kept(root, mechanism, path)),
            );
        }
    }
    plan.steps.extend(placed.unwrap_or_default());
    once(&mut plan.steps);
    let line = next.line(&plan.isolated, &next_words);
    next_boot::agree(&mut plan, line, &next_words);
    let planned = Planned { isolated: &plan.isolated, online: &machine.topology.online, steps: &plan.steps };
    plan.residents = residents(root, &planned, &request.purpose);
    next_words.extend(given);
    Ok(Made { plan, right, words: next_words, unread })
}

/// The CPUs to isolate and, unless cores may be split, all their siblings.
fn cores(machine: &Machine, request: &Request) -> Cpus {
    if request.allow_split { request.cpus.clone() } else { machine::cores(machine, &request.cpus) }
}

/// The housekeeping CPUs, or why the request is refused.
fn check(machine: &Machine, request: &Request) -> Result<Cpus, Error> {
    let refuse =
        |what: String, expected: &str| Err(Error::invalid("CPUs to isolate", what, expected.to_owned()));
    let topology = &machine.topology;
    if request.cpus.is_empty() {
        return refuse("none are named".to_owned(), "a list such as 2,3");
    }
    machine::check_cpus(machine, &request.cpus)?;
    if request.cpus.contains(0) && !request.force {
        return refuse(
            "CPU 0 is among them, where the kernel does work that cannot be moved".to_owned(),
            "other CPUs, or --force",
        );
    }
    let wanted = cores(machine, request);
    let theirs = topology.owned.iter().find(|owned| !owned.cpus.and(&wanted).is_empty());
    if let Some(owned) = theirs.filter(|_| !request.force) {
        let cpus = owned.cpus.and(&wanted);
        let named =
            if cpus.len() == 1 { format!("CPU {cpus} belongs") } else { format!("CPUs {cpus} belong") };
        return refuse(format!("{named} to {}", owned.owner), "other CPUs, or --force");
    }
    let split = machine::cores(machine, &request.cpus).and(&topology.online).minus(&request.cpus);
    if !split.is_empty() && !request.allow_split {
        let named = if split.len() == 1 { "CPU" } else { "CPUs" };
        return refuse(
            format!("{} share cores with {named} {split}, which would go on working there", request.cpus),
            "whole cores, or --allow-split",
        );
    }
    if request.allow_split {
        let left = machine::shared(topology, &topology.online.minus(&request.cpus));
        if left.is_empty() {
            return refuse("no other CPU is for everybody".to_owned(), "fewer CPUs");
        }
        return Ok(left);
    }
    machine::housekeeping(machine, &request.cpus)
}

fn known(catalogue: &Catalogue, request: &Request) -> Result<(), Error> {
    for (option, ids) in [("--with", &request.with), ("--without", &request.without)] {
        if let Some(id) = ids.iter().find(|id| catalogue.get(id).is_none()) {
            let ids = catalogue.mechanisms.iter().map(|mechanism| &mechanism.id);
            let expected = "the id of a mechanism, as stillcore audit --all lists them";
            return Err(Error::unknown(option, "mechanism", id, ids).expecting(expected));
        }
    }
    Ok(())
}

/// The value of a file that the change of a mechanism disturbs, to be restored when that is undone.
fn kept(root: &Root, mechanism: &Mechanism, path: &str) -> Option<Step> {
    let old = root.maybe(path)?;
    Some(Step {
        mechanism: mechanism.id.clone(),
        kind: StepKind::Kept,
        target: format!("/{path}"),
        new: old.clone(),
        old: Some(old),
        why: mechanism.harm.clone(),
        cost: mechanism.cost.clone(),
        risky: false,
        note: None,
    })
}

/// Whether a mechanism has a place in this plan.
pub(super) fn wanted(mechanism: &Mechanism, request: &Request) -> bool {
    let named = |ids: &[String]| ids.contains(&mechanism.id);
    (!mechanism.optional || named(&request.with)) && !named(&request.without)
}

/// `asked`: whether it is harmless, or the user took the risk.
fn add(plan: &mut Plan, judgement: Judgement, asked: bool) {
    let Judgement { finding, steps, parameter, stays } = judgement;
    let mechanism = finding.id;
    let stays = stays.map(|reason| Left { mechanism: mechanism.clone(), reason });
    match finding.state {
        FindingState::Fixable if !asked => {
            let reason = format!("{}; a risk, taken only with --with {mechanism}", finding.reason);
            plan.left.push(Left { mechanism, reason });
        }
        FindingState::Fixable if !steps.is_empty() => plan.steps.extend(steps),
        FindingState::Fixable => {
            let by_hand = finding.remedy.map_or_else(String::new, |remedy| format!("; by hand: {remedy}"));
            plan.left.push(Left { mechanism, reason: format!("{}{by_hand}", finding.reason) });
        }
        FindingState::Boot => {
            let what = finding.remedy.unwrap_or(finding.reason);
            plan.boot.push(BootStep { mechanism, parameter, what });
        }
        FindingState::Immovable => plan.left.push(Left { mechanism, reason: finding.reason }),
        FindingState::Ok | FindingState::NotApplicable | FindingState::Unknown => {}
    }
    plan.left.extend(stays);
}

/// The first step wins where two mechanisms change the same thing.
fn once(steps: &mut Vec<Step>) {
    let mut seen = BTreeSet::new();
    steps.retain(|step| seen.insert((step.kind, step.target.clone())));
}
