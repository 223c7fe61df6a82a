//! The idle states of CPUs.
//!
//! Files: Linux `Documentation/admin-guide/pm/cpuidle.rst`.

use super::Root;
use model::Cpus;
use model::idle::{IdleState, IdleStates};

/// The states of these CPUs by number; a CPU without any is left out.
pub fn idle_states(root: &Root, cpus: &Cpus) -> IdleStates {
    let of = |cpu: u32| {
        let state = |number: u32| {
            let at = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}");
            let name = root.maybe(&format!("{at}/name"))?;
            Some(IdleState { name, exit_latency_us: root.number(&format!("{at}/latency"))? })
        };
        (0..).map_while(state).collect::<Vec<_>>()
    };
    cpus.iter().map(|cpu| (cpu, of(cpu))).filter(|(_, states)| !states.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tree::tree;

    #[test]
    fn states_are_in_the_order_of_their_numbers() {
        let mut files = Vec::new();
        for (state, name, latency) in [(10, "C10", "890"), (2, "C1E", "10"), (1, "C1", "2"), (0, "POLL", "0")]
        {
            let at = format!("sys/devices/system/cpu/cpu3/cpuidle/state{state}");
            files.extend([(format!("{at}/name"), name), (format!("{at}/latency"), latency)]);
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let (_keep, root) = tree(&files);
        let states = idle_states(&root, &[2, 3].into_iter().collect());
        let told: Vec<_> = states[&3].iter().map(|one| (one.name.as_str(), one.exit_latency_us)).collect();
        // Behind a hole in the numbers no state is known by its number.
        assert_eq!(told, [("POLL", 0), ("C1", 2), ("C1E", 10)]);
        assert_eq!(states.len(), 1);
    }
}
