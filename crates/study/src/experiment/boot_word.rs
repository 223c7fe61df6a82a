//! Checks words of a boot line against a machine as it booted: whether each is on the kernel's
//! command line, and in force where the kernel shows it.
//!
//! `nohz_full=2-3` requires the parameter to cover these CPUs, `nohz_full=` requires its absence,
//! as in the lab. What the kernel reports counts more than the line: it drops a list that names a
//! CPU which does not exist, and a second `isolcpus=` that differs (Linux
//! `kernel/sched/isolation.c`, `kernel/rcu/tree_nocb.h`).

use crate::experiment::ground::Ground;
use model::booted::Parameter;
use model::{Cpus, Machine};

/// Parameters that name CPUs.
const LISTS: [&str; 4] = ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"];

/// What `isolcpus=` does without flags.
const DOMAIN: &str = "domain";

/// Why a word is not that of this boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is not on the command line.
    With(String),
    /// The parameter is on the command line, and must not be.
    Without(String),
    /// The line is as wanted; what the kernel made of it is not.
    Effect(String),
    /// It is on the line, and the kernel is built without it.
    Ignored(String),
}

/// Why the word does not match this boot, or nothing where it does.
pub(super) fn missing(word: &str, ground: &Ground) -> Option<Missing> {
    match word.split_once('=') {
        Some((name, "")) if ground.booted.parameters.iter().any(|one| same(&one.name, name)) => {
            Some(Missing::Without(name.to_owned()))
        }
        Some((name, "")) => still_there(name, ground).map(Missing::Effect),
        Some((name, value)) if !given(name, value, ground) => Some(Missing::With(format!("{name}={value}"))),
        Some((name, value)) if ground.booted.ignored.iter().any(|one| same(one, name)) => {
            Some(Missing::Ignored(format!("{name}={value}")))
        }
        Some((name, value)) => not_in_force(name, value, ground).map(Missing::Effect),
        None => {
            let given = ground.booted.parameters.iter().any(|one| same(&one.name, word));
            (!given).then(|| Missing::With(word.to_owned()))
        }
    }
}

/// `isolcpus=domain,managed_irq,2-3`: flags and CPUs.
fn list(value: &str) -> Option<(Vec<&str>, Cpus)> {
    let is_flag = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic());
    let flags: Vec<&str> = value.split(',').take_while(is_flag).collect();
    let rest = value.split(',').skip(flags.len()).collect::<Vec<_>>().join(",");
    Some((flags, Cpus::parse_list(&rest).ok()?))
}

/// Whether two texts name the same CPUs, as `0-1` and `0,1` do.
fn same_list(one: &str, other: &str) -> bool {
    let cpus = |text: &str| Cpus::parse_list(text).ok().filter(|cpus| !cpus.is_empty());
    cpus(one).is_some_and(|cpus_of_one| cpus(other) == Some(cpus_of_one))
}

/// Whether the command line has it.
fn given(name: &str, value: &str, ground: &Ground) -> bool {
    let named = |one: &&Parameter| same(&one.name, name);
    let mut found = ground.booted.parameters.iter().filter(named);
    // Compares word for word; whether the kernel took it is checked next.
    if LISTS.contains(&name) && found.clone().any(|one| one.value == value) {
        return true;
    }
    let covers = |one: &Parameter, cpus: &Cpus| one.cpus.as_ref().is_some_and(|has| cpus.is_subset(has));
    match (name, list(value)) {
        ("isolcpus", Some((flags, cpus))) => {
            let has = |one: &Parameter, flag: &&str| {
                one.flags.iter().any(|has| has == flag) || one.flags.is_empty() && *flag == DOMAIN
            };
            let flags = if flags.is_empty() { vec![DOMAIN] } else { flags };
            found.any(|one| covers(one, &cpus) && flags.iter().all(|flag| has(one, flag)))
        }
        ("nohz_full", Some((_, cpus))) => {
            let implied = |one: &Parameter| {
                same(&one.name, "isolcpus")
                    && one.flags.iter().any(|flag| flag == "nohz")
                    && covers(one, &cpus)
            };
            found.any(|one| covers(one, &cpus)) || ground.booted.parameters.iter().any(implied)
        }
        ("rcu_nocbs", Some((_, cpus))) => found.any(|one| covers(one, &cpus)),
        ("irqaffinity", Some((_, cpus))) => {
            found.any(|one| one.cpus.as_ref().is_some_and(|has| has.is_subset(&cpus)))
        }
        _ => found.next_back().is_some_and(|one| one.value == value || same_list(&one.value, value)),
    }
}

/// What the kernel shows where a parameter is given but not in force.
fn not_in_force(name: &str, value: &str, ground: &Ground) -> Option<String> {
    let (flags, cpus) = list(value)?;
    let taken = |one: &Parameter| same(&one.name, name) && one.cpus.is_some();
    if LISTS.contains(&name) && !ground.booted.parameters.iter().any(taken) && name != "nohz_full" {
        return Some(format!(
            "{name}={value} in force: it names CPUs that are not there, and the kernel drops it"
        ));
    }
    let Machine { topology, .. } = &ground.machine;
    let shown = match name {
        "isolcpus" if flags.is_empty() || flags.contains(&DOMAIN) => &topology.isolated,
        "nohz_full" => &topology.nohz_full,
        "rcu_nocbs" => match &ground.booted.offloaded {
            Ok(offloaded) => offloaded,
            Err(reason) => return Some(format!("{name}={value} in force, which is not known: {reason}")),
        },
        "irqaffinity" => return interrupts_reach(ground).then(|| format!("{name}={value} in force{SENT}")),
        _ => return None,
    };
    let left = cpus.minus(shown);
    (!left.is_empty()).then(|| {
        format!(
            "{name}={value} in force: it is on the command line, and the kernel shows CPUs {left} without it"
        )
    })
}

const SENT: &str = ": /proc/irq/default_smp_affinity names measured CPUs, or cannot be read";

/// What the kernel shows of a parameter that is not given.
fn still_there(name: &str, ground: &Ground) -> Option<String> {
    let topology = &ground.machine.topology;
    let of = |cpus: &Cpus, what: &str| {
        (!cpus.is_empty()).then(|| format!("a machine without {what} (CPUs {cpus})"))
    };
    match name {
        "isolcpus" => of(&topology.isolated, "isolated CPUs"),
        "nohz_full" => of(&topology.nohz_full, "nohz_full CPUs"),
        // nohz_full= implies it for its own CPUs.
        "rcu_nocbs" => match &ground.booted.offloaded {
            Ok(offloaded) => of(&offloaded.minus(&topology.nohz_full), "offloaded RCU callbacks"),
            Err(reason) => {
                Some(format!("a machine without offloaded RCU callbacks; not known here: {reason}"))
            }
        },
        "irqaffinity" => {
            let kept = ground.booted.irq_default.as_ref().is_none_or(|sent| ground.cpus.is_subset(sent));
            (!kept).then(|| "a default affinity of interrupts that names the measured CPUs".to_owned())
        }
        _ => None,
    }
}

/// Whether new interrupts may be sent to measured CPUs, as far as that is known.
fn interrupts_reach(ground: &Ground) -> bool {
    ground.booted.irq_default.as_ref().is_none_or(|sent| !sent.and(&ground.cpus).is_empty())
}

/// Names as the kernel compares them: `-` is `_`.
pub(super) fn same(one: &str, other: &str) -> bool {
    let plain = |c: u8| if c == b'-' { b'_' } else { c };
    one.bytes().map(plain).eq(other.bytes().map(plain))
}
