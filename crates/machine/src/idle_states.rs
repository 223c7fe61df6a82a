//! The idle states of CPUs.
//!
//! Files: Linux `Documentation/admin-guide/pm/cpuidle.rst`.

use super::Root;
use model::Cpus;
use model::cpu_states::{IdleState, IdleStates};
use std::collections::BTreeMap;

/// One state of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuidleState {
    /// The CPU.
    pub cpu: u32,
    /// Its number, the shallowest 0.
    pub number: u32,
    /// Its directory below the root.
    pub folder: String,
    /// Its name, such as `C6`.
    pub name: String,
    /// How long it takes to leave at most, by the driver, us.
    pub exit_latency_us: Option<u64>,
    /// What `disable` holds: `0` where it may be entered.
    pub disable: Option<String>,
    /// How often it was entered.
    pub usage: Option<u64>,
}

/// The states of a CPU that have names, the shallowest first.
pub fn cpuidle_states(root: &Root, cpu: u32) -> Vec<CpuidleState> {
    let state = |folder: String| {
        let file = |name: &str| format!("{folder}/{name}");
        Some(CpuidleState {
            cpu,
            number: folder.rsplit("state").next()?.parse().ok()?,
            name: root.maybe(&file("name"))?,
            exit_latency_us: root.number(&file("latency")),
            disable: root.maybe(&file("disable")),
            usage: root.number(&file("usage")),
            folder,
        })
    };
    let folders = root.glob(&format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state*"));
    let mut states: Vec<_> = folders.into_iter().filter_map(state).collect();
    states.sort_by_key(|state| state.number);
    states
}

/// The states of these CPUs by number; a CPU without any is left out.
pub fn idle_states(root: &Root, cpus: &Cpus) -> IdleStates {
    let known = |state: CpuidleState| {
        let CpuidleState { number, name, exit_latency_us, .. } = state;
        Some((number, IdleState { name, exit_latency_us: exit_latency_us? }))
    };
    let of = |cpu: u32| cpuidle_states(root, cpu).into_iter().filter_map(known).collect::<BTreeMap<_, _>>();
    cpus.iter().map(|cpu| (cpu, of(cpu))).filter(|(_, states)| !states.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn states_are_known_by_their_numbers() {
        let folder = |cpu: u32, number: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}");
        let mut files = Vec::new();
        for (state, name, latency) in [(10, "C10", "890"), (2, "C1E", "10"), (1, "C1", "2"), (0, "POLL", "0")]
        {
            let at = folder(3, state);
            files.extend([(format!("{at}/name"), name), (format!("{at}/latency"), latency)]);
        }
        // One that does not say how long it takes is not known.
        files.push((format!("{}/name", folder(3, 4)), "C4"));
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let (_keep, root) = tree(&files);
        let states = idle_states(&root, &[2, 3].into_iter().collect());
        let listed: Vec<_> = states[&3]
            .iter()
            .map(|(number, one)| (*number, one.name.as_str(), one.exit_latency_us))
            .collect();
        assert_eq!(listed, [(0, "POLL", 0), (1, "C1", 2), (2, "C1E", 10), (10, "C10", 890)]);
        assert_eq!(states.len(), 1);
        let numbers: Vec<_> = cpuidle_states(&root, 3).iter().map(|state| state.number).collect();
        assert_eq!(numbers, [0, 1, 2, 4, 10], "as numbers, not as names");
    }
}
