//! Taking SMT siblings offline at run time: which CPUs go, by which steps, and what was offline
//! before.
//!
//! It comes after all other changes and is undone before them: when a partition is dissolved,
//! kernel threads that nobody can move get the CPUs that are online then and stay on them (seen on
//! Linux 6.1), and an affinity cannot be restored on a CPU that is offline.
//!
//! Sources: Linux `Documentation/ABI/testing/sysfs-devices-system-cpu` (smt/control);
//! `kernel/cpu.c`, `cpuhp_smt_enable`: `on` brings every sibling online, those too that somebody
//! had taken offline one by one.

use machine::{Root, SMT_CONTROL, check_online, cores};
use model::plan::{Left, Step, StepKind};
use model::{Cpus, Error, Machine};

/// The mechanism.
pub(super) const ID: &str = "smt-control";

/// The first thread of each core that is online.
pub(super) fn firsts(machine: &Machine) -> Cpus {
    let online = &machine.topology.online;
    let first = |cpu: &u32| {
        let threads = cores(machine, &Cpus::one(*cpu)).and(online);
        threads.0.first() == Some(cpu)
    };
    online.iter().filter(first).collect()
}

/// The machine as it will be when only these CPUs are online.
pub(super) fn shrunk(machine: &Machine, kept: &Cpus) -> Machine {
    let mut machine = machine.clone();
    machine.topology.online = kept.clone();
    machine
}

/// Of the CPUs named those that stay when siblings go. Error: one that would go while nothing of
/// its core is named.
pub(super) fn staying(machine: &Machine, named: &Cpus) -> Result<Cpus, Error> {
    check_online(machine, named)?;
    let stay = named.and(&firsts(machine));
    let lost = named.minus(&cores(machine, &stay));
    if lost.is_empty() {
        return Ok(stay);
    }
    let what =
        format!("{lost} would go offline as SMT siblings of {}", cores(machine, &lost).and(&firsts(machine)));
    Err(Error::invalid("CPUs to isolate", what, format!("the first thread of each core, or no --with {ID}")))
}

/// Takes these CPUs offline: by the one switch where its undoing brings back these and no others,
/// else one by one.
pub(super) fn steps(root: &Root, machine: &Machine, gone: &Cpus, why: &str, cost: &str) -> Vec<Step> {
    if gone.is_empty() {
        return Vec::new();
    }
    let step = |mechanism: &str, kind, target: String, old: Option<&str>, new: &str| Step {
        mechanism: mechanism.to_owned(),
        kind,
        target,
        old: old.map(str::to_owned),
        new: new.to_owned(),
        why: why.to_owned(),
        cost: cost.to_owned(),
        risky: false,
        note: None,
    };
    let mut steps =
        vec![step("cpu-hotplug-cycle", StepKind::Affinities, "all".to_owned(), None, "remembered")];
    let siblings = machine.topology.online.minus(&firsts(machine));
    let all_are_online = offline(machine).is_empty();
    if *gone == siblings && all_are_online && root.maybe(SMT_CONTROL).as_deref() == Some("on") {
        steps.push(step(ID, StepKind::File, format!("/{SMT_CONTROL}"), Some("on"), "off"));
    } else {
        let file = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/online");
        steps.extend(gone.iter().map(|cpu| step(ID, StepKind::File, file(cpu), Some("1"), "0")));
    }
    steps
}

/// What is offline already, and stays so.
pub(super) fn found(machine: &Machine) -> Option<Left> {
    let away = offline(machine);
    let (named, they, are) = if away.len() == 1 { ("CPU", "it", "is") } else { ("CPUs", "they", "are") };
    let reason =
        format!("{named} {away} {are} offline already: {they} will stay so, now and when this is undone");
    (!away.is_empty()).then(|| Left { mechanism: ID.to_owned(), reason })
}

fn offline(machine: &Machine) -> Cpus {
    machine.topology.present.minus(&machine.topology.online)
}
