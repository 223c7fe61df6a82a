//! Which CPUs to measure, and which are left for everything else.
//!
//! Rules: never every CPU; a measured CPU's SMT siblings stay idle, so none is a housekeeping CPU.

use model::machine::Topology;
use model::{Cpus, Error, Machine};

/// The CPUs to measure when nobody named any, of those that can be reached
/// ([`journal::enter::reachable`]; of a captured machine all): the isolated ones that are online,
/// else the highest CPU that leaves another core for everything else.
pub fn cpus_default(machine: &Machine, reachable: &Cpus) -> Result<Cpus, Error> {
    let topology = &machine.topology;
    let online = topology.online.and(reachable);
    let isolated = topology.isolated.or(&topology.nohz_full).and(&online);
    if !isolated.is_empty() && isolated != online {
        return Ok(isolated);
    }
    let highest = online.iter().collect::<Vec<_>>().into_iter().rev();
    let mut single = highest.map(Cpus::one);
    let leaves_some = |cpu: &Cpus| housekeeping(machine, cpu).is_ok_and(|left| !left.and(&online).is_empty());
    single.find(leaves_some).ok_or_else(|| {
        let what = if online != topology.online {
            format!("the cpuset of this process has only CPUs {online} of {}", topology.online)
        } else if topology.online.len() == 1 {
            format!("this machine has one CPU online, CPU {}", topology.online)
        } else {
            format!("the CPUs online, {}, share one core", topology.online)
        };
        Error::invalid("CPUs", what, "a second core for everything else")
    })
}

/// Whether the cpuset of this process has these CPUs, or a partition that it may join.
pub fn check_reachable(cpus: &Cpus, reachable: &Cpus) -> Result<(), Error> {
    let away = cpus.minus(reachable);
    if away.is_empty() {
        return Ok(());
    }
    let what = format!("the cpuset of this process, as that of a container, does not have CPU {away}");
    Err(Error::invalid(format!("--cpus {cpus}"), what, format!("CPUs among {reachable}")))
}

/// Whether these CPUs can be measured and something left for everything else: named, present,
/// online, and not all there are.
pub fn check_cpus(machine: &Machine, cpus: &Cpus) -> Result<(), Error> {
    check_online(machine, cpus)?;
    if machine.topology.online.is_subset(cpus) {
        let what = format!("{cpus} are all CPUs that are online");
        let place = format!("--cpus {cpus}");
        return Err(Error::invalid(place, what, "at least one left for everything else"));
    }
    Ok(())
}

/// Whether these CPUs are named, present and online.
pub fn check_online(machine: &Machine, cpus: &Cpus) -> Result<(), Error> {
    let Topology { online, present, .. } = &machine.topology;
    let (absent, offline) = (cpus.minus(&present.or(online)), cpus.minus(online));
    let bad = |what: String, expected: String| {
        Err(Error::invalid(format!("--cpus {cpus}").trim_end(), what, expected))
    };
    if cpus.is_empty() {
        bad("none are named".to_owned(), format!("a list such as {}", online.0.last().copied().unwrap_or(0)))
    } else if !absent.is_empty() {
        bad(format!("this machine has no CPU {absent}"), format!("CPUs among {online}"))
    } else if !offline.is_empty() {
        bad(format!("CPU {offline} is offline"), format!("CPUs among {online}"))
    } else {
        Ok(())
    }
}

/// The CPUs left for everything else: online, not measured, no SMT sibling of a measured one, and
/// not reserved by another owner. CPUs that are isolated for others are left alone as long as there
/// are CPUs that are not.
pub fn housekeeping(machine: &Machine, measured: &Cpus) -> Result<Cpus, Error> {
    let topology = &machine.topology;
    let siblings = siblings(topology, measured);
    let left = shared(topology, &topology.online.minus(measured).minus(&siblings));
    if left.is_empty() {
        let others = topology.owned.iter().map(|owned| format!("; {} belong to {}", owned.cpus, owned.owner));
        let what = format!(
            "measuring CPU {measured} with its SMT siblings idle leaves no CPU of {}{}",
            topology.online,
            others.collect::<String>()
        );
        return Err(Error::invalid("CPUs", what, "a core left for everything else"));
    }
    Ok(left)
}

/// Those of these CPUs that are for everybody.
pub fn shared(topology: &Topology, left: &Cpus) -> Cpus {
    let left = left.minus(&topology.others());
    let shared = left.minus(&topology.isolated).minus(&topology.nohz_full);
    if shared.is_empty() { left } else { shared }
}

/// These CPUs and all that share a core with them.
pub fn cores(machine: &Machine, cpus: &Cpus) -> Cpus {
    siblings(&machine.topology, cpus).or(cpus)
}

/// The CPUs that share a core with any of these, themselves included.
fn siblings(topology: &Topology, cpus: &Cpus) -> Cpus {
    let own = topology.cpus.iter().filter(|cpu| cpus.contains(cpu.cpu));
    own.fold(Cpus::default(), |all, cpu| all.or(&cpu.siblings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::machine::CpuTopology;
    use proptest::prelude::*;

    /// A machine whose CPU n shares its core with the CPUs of equal n modulo `cores`.
    fn machine(online: &str, isolated: &str, cpus: u32, cores: u32) -> Machine {
        let siblings = |cpu: u32| (0..cpus).filter(|other| other % cores == cpu % cores).collect();
        let topology = Topology {
            online: online.parse().unwrap(),
            present: (0..cpus).collect(),
            isolated: isolated.parse().unwrap(),
            cpus: (0..cpus)
                .map(|cpu| CpuTopology { cpu, siblings: siblings(cpu), ..CpuTopology::default() })
                .collect(),
            ..Topology::default()
        };
        Machine { topology, ..Machine::default() }
    }

    fn default_of(machine: &Machine) -> Result<Cpus, Error> {
        cpus_default(machine, &machine.topology.online)
    }

    /// As in a container that was given some CPUs.
    #[test]
    fn the_default_is_within_the_cpuset() {
        let of = |isolated: &str, reachable: &str| {
            cpus_default(&machine("0-7", isolated, 8, 8), &reachable.parse().unwrap())
        };
        assert_eq!(of("", "0-3").unwrap().to_string(), "3");
        assert_eq!(of("6-7", "0-3").unwrap().to_string(), "3", "the isolated ones are not to be had");
        assert_eq!(of("3,6-7", "0-3").unwrap().to_string(), "3");
        let none = of("", "5").unwrap_err().to_string();
        assert!(none.contains("the cpuset of this process has only CPUs 5 of 0-7"), "{none}");
        let named = check_reachable(&"2,5".parse().unwrap(), &"0-3".parse().unwrap()).unwrap_err();
        assert!(named.to_string().contains("does not have CPU 5"), "{named}");
    }

    #[test]
    fn isolated_cpus_come_first_then_the_highest_core() {
        assert_eq!(default_of(&machine("0-3", "2-3", 4, 4)).unwrap().to_string(), "2,3");
        assert_eq!(default_of(&machine("0-2", "2-3", 4, 4)).unwrap().to_string(), "2");
        assert_eq!(default_of(&machine("0-3", "", 4, 4)).unwrap().to_string(), "3");
        assert_eq!(default_of(&machine("0-1", "0-1", 2, 2)).unwrap().to_string(), "1");
    }

    #[test]
    fn siblings_keep_no_house() {
        let smt = machine("0-7", "", 8, 4);
        assert_eq!(default_of(&smt).unwrap().to_string(), "7");
        assert_eq!(housekeeping(&smt, &"7".parse().unwrap()).unwrap().to_string(), "0-2,4-6");
        assert_eq!(housekeeping(&smt, &"2,3".parse().unwrap()).unwrap().to_string(), "0,1,4,5");
    }

    #[test]
    fn cpus_isolated_for_others_are_housekeeping_only_where_no_others_can_be() {
        let isolated = machine("0-3", "2-3", 4, 4);
        assert_eq!(housekeeping(&isolated, &"2".parse().unwrap()).unwrap().to_string(), "0,1");
        let crowded = machine("0-3", "1-3", 4, 4);
        assert_eq!(housekeeping(&crowded, &"0".parse().unwrap()).unwrap().to_string(), "1-3");
    }

    #[test]
    fn a_machine_that_cannot_spare_a_core_says_so() {
        let one = default_of(&machine("0", "", 1, 1)).unwrap_err().to_string();
        assert!(one.contains("one CPU online, CPU 0"), "{one}");
        let core = default_of(&machine("0-1", "", 2, 1)).unwrap_err().to_string();
        assert!(core.contains("share one core"), "{core}");
    }

    #[test]
    fn each_bad_choice_has_its_own_sentence() {
        let machine = machine("0-2", "", 4, 4);
        for (cpus, part) in [
            ("", "none are named"),
            ("9", "no CPU 9"),
            ("1,3", "CPU 3 is offline"),
            ("0-2", "all CPUs that are online"),
        ] {
            let error = check_cpus(&machine, &cpus.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{cpus}: {error}");
        }
        check_cpus(&machine, &"1-2".parse().unwrap()).unwrap();
    }

    proptest! {
        #[test]
        fn the_default_can_always_be_measured(online in proptest::collection::btree_set(0u32..8, 1..8), isolated in proptest::collection::btree_set(0u32..8, 0..8), cores in 1u32..8) {
            let machine = machine(&Cpus(online).to_string(), &Cpus(isolated).to_string(), 8, cores);
            for reachable in [machine.topology.online.clone(), (0..3).collect(), Cpus::one(2)] {
                if let Ok(cpus) = cpus_default(&machine, &reachable) {
                    prop_assert!(check_cpus(&machine, &cpus).is_ok());
                    prop_assert!(cpus.is_subset(&reachable), "{cpus} of {reachable}");
                    let left = reachable.and(&machine.topology.online).minus(&cpus);
                    prop_assert!(!left.is_empty(), "{cpus} are all of {reachable}");
                }
            }
        }
    }
}
