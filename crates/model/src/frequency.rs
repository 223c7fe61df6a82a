//! Whether it is known how long the CPUs of a run took to change their frequency.

use crate::Cpus;
use crate::cpu_states::FrequencyChanges;
use crate::run::Run;

/// The event by which the kernel reports a CPU's new frequency, in kHz.
pub const EVENT: &str = "power:cpu_frequency";

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
    use std::collections::BTreeMap;

    #[test]
    fn one_cpu_of_which_nothing_is_known_is_enough_for_not_known() {
        let cpus: Cpus = [1, 2].into_iter().collect();
        assert!(known_of(&[(1, 20_000), (2, 20_000)].into(), &cpus));
        assert!(!known_of(&[(1, 20_000)].into(), &cpus) && !known_of(&BTreeMap::new(), &Cpus::default()));
    }
}
