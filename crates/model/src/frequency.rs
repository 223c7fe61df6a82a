//! Changes of a CPU's frequency, which the kernel requests and reports.

use crate::Cpus;
use crate::run::Run;
use std::collections::BTreeMap;

/// The event by which the kernel reports a CPU's new frequency, in kHz.
pub const EVENT: &str = "power:cpu_frequency";

/// How long a change takes at most, by the driver, ns, by CPU; CPUs without a value are missing
/// (Linux Documentation/admin-guide/pm/cpufreq.rst, `cpuinfo_transition_latency`).
pub type FrequencyChanges = BTreeMap<u32, u64>;

/// Whether it is known of all measured CPUs of a run.
pub fn are_known(run: &Run) -> bool {
    known_of(&run.frequency_change_ns, &run.measured_cpus)
}

fn known_of(changes: &FrequencyChanges, cpus: &Cpus) -> bool {
    !changes.is_empty() && cpus.iter().all(|cpu| changes.contains_key(&cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_of_which_nothing_is_known_is_enough_for_not_known() {
        let cpus: Cpus = [1, 2].into_iter().collect();
        assert!(known_of(&[(1, 20_000), (2, 20_000)].into(), &cpus));
        assert!(!known_of(&[(1, 20_000)].into(), &cpus) && !known_of(&BTreeMap::new(), &Cpus::default()));
    }
}
