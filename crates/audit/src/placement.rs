//! How the scheduler is kept off CPUs at run time: by the best of what this kernel and its mounts
//! allow.
//!
//! Sources: Linux `Documentation/admin-guide/cgroup-v2.rst` (Cpuset),
//! `Documentation/admin-guide/cgroup-v1/cpusets.rst` (§1.7, `sched_load_balance`). In version 1
//! tasks need not move: with balancing off at the top, the group of the housekeeping CPUs alone
//! makes a scheduling domain, and CPUs outside it are in none.

use super::tenants::Tenants;
use machine::{CpusetsV1, OURS, Partition, Root, cpusets_v1, mounts, partition_mount, partitions};
use model::plan::{Placement, Step, StepKind};
use model::{Cpus, Error, Machine};

/// Place of the placement's steps among the mechanisms'.
pub(super) const ORDER: u32 = 40;

/// Mechanisms that placement carries out.
pub const IDS: [&str; 2] = ["cpuset-partition", "cpuset-v1"];

/// Name of the group of the isolated CPUs, and of that of the others.
pub(super) const ISOLATED: &str = OURS;
const HOUSE: &str = "stillcore-house";
/// The file that makes a group a partition.
const PARTITION: &str = "/cpuset.cpus.partition";

/// A placement with its steps.
pub(super) struct Chosen {
    pub(super) placement: Placement,
    pub(super) reason: String,
    pub(super) steps: Vec<Step>,
}

/// Chooses; `asked` is refused where it cannot be.
pub(super) fn choose(
    root: &Root,
    machine: &Machine,
    isolated: &Cpus,
    asked: Option<Placement>,
    kept: &Tenants,
) -> Result<Chosen, Error> {
    let none = |placement, reason: &str| Chosen { placement, reason: reason.to_owned(), steps: Vec::new() };
    let partitions = partitions(root);
    let boot = || {
        let held = partitions.iter().fold(Cpus::default(), |all, one| all.or(&one.cpus));
        isolated.is_subset(&machine.topology.isolated.minus(&held)).then(|| {
            none(Placement::Boot, "the kernel already holds these CPUs outside its scheduling domains")
        })
    };
    let theirs = || {
        let meets = |one: &&Partition| one.is_valid() && !one.cpus.and(isolated).is_empty();
        let one = partitions.iter().filter(meets).find(|one| !one.group.ends_with(ISOLATED))?;
        let reason = format!(
            "the partition {} is somebody else's, who may end it at any moment; nothing is added to it but affinities",
            one.group
        );
        Some(Chosen { reason, ..none(Placement::Affinity, "") })
    };
    let partition = || {
        let place = partition_mount(root).filter(|_| theirs().is_none())?;
        Some(partition(&place, isolated, kept))
    };
    let hindrance = kept.hindrance();
    let affinity = match &hindrance {
        Some(why) if partition_mount(root).is_some() => Chosen {
            reason: format!("{why}, so only affinities keep tasks away"),
            ..none(Placement::Affinity, "")
        },
        _ => none(
            Placement::Affinity,
            "no cpuset controller can be used here, so only affinities keep tasks away",
        ),
    };
    let refused = |name: &str, why: &str| {
        let what = format!("placement {name} is not possible on this machine: {why}");
        Error::invalid("--placement", what, "another placement, or none to have the best chosen")
    };
    match asked {
        None => {
            let whole = || partition().filter(|_| hindrance.is_none());
            let best = boot().or_else(theirs).or_else(whole);
            Ok(best.or_else(|| cpuset(root, machine, isolated).ok()).unwrap_or(affinity))
        }
        Some(Placement::Boot) => {
            let why = format!("the kernel was not started with all of CPUs {isolated} isolated");
            boot().ok_or_else(|| refused("boot", &why))
        }
        Some(Placement::Partition) if !kept.kernel.is_empty() => {
            let what = hindrance.unwrap_or_default();
            Err(Error::invalid("--placement", what, "another placement"))
        }
        Some(Placement::Partition) => partition().ok_or_else(|| {
            let theirs = theirs().map(|chosen| chosen.reason);
            let why = theirs.as_deref().unwrap_or("no cpuset controller of cgroup version 2 is mounted");
            refused("partition", why)
        }),
        Some(Placement::Cpuset) => cpuset(root, machine, isolated).map_err(|why| refused("cpuset", &why)),
        Some(Placement::Affinity) => {
            Ok(Chosen { reason: "as asked: affinities alone".to_owned(), ..affinity })
        }
    }
}

/// The groups that are there under the names of ours, whoever made them.
pub fn groups_of_ours(root: &Root) -> Vec<String> {
    let of = |kind: &str, name: &str| {
        let mounted = mounts(root).into_iter().filter(|mount| mount.kind == kind).map(|mount| mount.target);
        mounted.map(|place| format!("{place}/{name}")).collect::<Vec<_>>()
    };
    let groups = [of("cgroup2", ISOLATED), of("cgroup", HOUSE)].concat();
    groups.into_iter().filter(|group| root.has(group)).collect()
}

/// The group that a step makes a partition.
pub fn becomes_partition(step: &Step) -> Option<&str> {
    step.target.strip_suffix(PARTITION).filter(|_| step.kind == StepKind::File)
}

/// What is kept joins the group before it becomes a partition, which takes the CPUs away from
/// everybody else.
fn partition(place: &str, isolated: &Cpus, kept: &Tenants) -> Chosen {
    let group = format!("{place}/{ISOLATED}");
    let step = |kind, target: String, old: &str, new: &str| step("cpuset-partition", kind, target, old, new);
    let mut steps = vec![
        step(StepKind::Affinities, "all".to_owned(), "", "remembered"),
        step(StepKind::Controller, format!("{place}#cpuset"), "", "on"),
        step(StepKind::Group, group.clone(), "absent", "present"),
        step(StepKind::File, format!("{group}/cpuset.cpus"), "", &isolated.to_string()),
    ];
    steps.extend(kept.processes.iter().map(|tenant| {
        let old = tenant.group.as_ref().map(|path| format!("{place}{}", path.trim_end_matches('/')));
        let roamer = tenant.roamer.as_ref();
        Step {
            why: "it is kept, and the partition takes these CPUs from all outside of it".to_owned(),
            note: roamer.map(|thread| format!("its thread {thread} comes with it onto these CPUs")),
            ..step(StepKind::Member, tenant.target.clone(), &old.unwrap_or_default(), &group)
        }
    }));
    steps.push(step(StepKind::File, format!("{group}{PARTITION}"), "member", "isolated"));
    let reason = "the cpuset controller of cgroup version 2 is there".to_owned();
    Chosen { placement: Placement::Partition, reason, steps }
}

/// Or why not: version 1 has no cpusets, or it is somebody else who says where is balanced.
fn cpuset(root: &Root, machine: &Machine, isolated: &Cpus) -> Result<Chosen, String> {
    let mounted = cpusets_v1(root).ok_or("no cpusets of cgroup version 1 are mounted")?;
    let CpusetsV1 { place, prefix, top_balances, below } = mounted;
    // Whoever has switched balancing off at the top has CPUs without it on purpose.
    if !top_balances && !root.has(&format!("{place}/{HOUSE}")) {
        return Err(format!(
            "{place}/{prefix}sched_load_balance is not 1, and it was not stillcore that set it"
        ));
    }
    let balanced_anyway = below.and(isolated);
    if !balanced_anyway.is_empty() {
        return Err(format!("another cpuset below {place} balances over CPUs {balanced_anyway}"));
    }
    let mems = format!("{place}/{prefix}mems");
    let mems = root.maybe(&mems).ok_or_else(|| format!("{mems} cannot be read"))?;
    let house = format!("{place}/{HOUSE}");
    let step = |kind, target: String, old: &str, new: &str| step("cpuset-v1", kind, target, old, new);
    let balanced = machine.topology.online.minus(isolated).minus(&machine.topology.others()).to_string();
    let steps = vec![
        step(StepKind::Affinities, "all".to_owned(), "", "remembered"),
        step(StepKind::Group, house.clone(), "absent", "present"),
        step(StepKind::File, format!("{house}/{prefix}cpus"), "", &balanced),
        step(StepKind::File, format!("{house}/{prefix}mems"), "", &mems),
        step(StepKind::File, format!("{place}/{prefix}sched_load_balance"), "1", "0"),
    ];
    let reason = format!("cpusets of cgroup version 1 are mounted at {place}");
    Ok(Chosen { placement: Placement::Cpuset, reason, steps })
}

fn step(mechanism: &str, kind: StepKind, target: String, old: &str, new: &str) -> Step {
    Step {
        mechanism: mechanism.to_owned(),
        kind,
        target,
        old: Some(old.to_owned()).filter(|old| !old.is_empty()),
        new: new.to_owned(),
        why: "the scheduler balances other tasks there".to_owned(),
        cost: "The CPUs get no load balancing, so several tasks on them must be placed by hand.".to_owned(),
        risky: false,
        note: None,
    }
}
