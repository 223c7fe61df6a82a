//! The files of CPU frequencies, and how long a change takes.
//!
//! Files: Linux `Documentation/admin-guide/pm/cpufreq.rst`. The current frequency is not read: that
//! sends an IPI to the CPU on x86.

use super::Root;
use model::Cpus;
use model::cpu_states::FrequencyChanges;

/// `CPUFREQ_ETERNAL` (include/linux/cpufreq.h): the driver does not say.
const ETERNAL: u64 = u32::MAX as u64;

/// A file of the CPU's frequency.
pub fn cpufreq_file(cpu: u32, name: &str) -> String {
    format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}")
}

/// The longest duration of a change on these CPUs, as reported by their driver, ns.
pub fn frequency_changes(root: &Root, cpus: &Cpus) -> FrequencyChanges {
    let file = |cpu| cpufreq_file(cpu, "cpuinfo_transition_latency");
    let known = |cpu: u32| root.number(&file(cpu)).filter(|ns| (1..ETERNAL).contains(ns));
    cpus.iter().filter_map(|cpu| Some((cpu, known(cpu)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_driver_that_does_not_say_is_not_taken_for_one_that_takes_no_time() {
        let file = |cpu| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_transition_latency");
        let files: Vec<(String, &str)> =
            [(1, "20000"), (2, "4294967295"), (3, "0")].map(|(cpu, ns)| (file(cpu), ns)).into();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let (_keep, root) = tree(&files);
        assert_eq!(frequency_changes(&root, &(1..5).collect()), [(1, 20_000)].into());
    }
}
