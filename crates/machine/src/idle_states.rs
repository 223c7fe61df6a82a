//! The idle states of CPUs.
//!
//! Files: Linux `Documentation/admin-guide/pm/cpuidle.rst`.

use super::Root;
use model::Cpus;
use model::cpu_states::{IdleState, IdleStates};
use std::collections::BTreeMap;

/// The folder of one state.
pub fn folder(cpu: u32, number: u32) -> String {
    format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}")
}

/// The states of these CPUs by number; a CPU without any is left out.
pub fn idle_states(root: &Root, cpus: &Cpus) -> IdleStates {
    let of = |cpu: u32| {
        let folders = root.glob(&format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state*"));
        let numbers = folders.iter().filter_map(|folder| folder.rsplit("state").next()?.parse().ok());
        let state = |number: u32| {
            let folder = folder(cpu, number);
            let name = root.maybe(&format!("{folder}/name"))?;
            let exit_latency_us = root.number(&format!("{folder}/latency"))?;
            Some((number, IdleState { name, exit_latency_us }))
        };
        numbers.filter_map(state).collect::<BTreeMap<_, _>>()
    };
    cpus.iter().map(|cpu| (cpu, of(cpu))).filter(|(_, states)| !states.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn states_are_known_by_their_numbers() {
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
    }
}
