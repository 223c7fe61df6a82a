//! The running kernel's boot as facts, for whoever asks whether a boot line is in force.
//!
//! Files: Linux `Documentation/core-api/irq/irq-affinity.rst` (`default_smp_affinity`),
//! `perf_event_open(2)` (`event_source`).

use super::probe::{Scene, rcu_offload};
use boot::{Kernel, list};
use machine::{Root, parameters, same_name};
use model::Machine;
use model::booted::{Booted, Parameter};

/// Where the kernel lists what counts events.
const COUNTERS: &str = "sys/bus/event_source/devices";

/// Reads it below a root; what cannot be read is not known there.
pub fn booted(root: &Root, machine: &Machine) -> Booted {
    let scene = Scene::new(root, machine, &machine.topology.online);
    let kernel = Kernel::running(root, machine);
    let parameter = |(name, value): (&str, &str)| {
        let (flags, cpus) = if same_name(name, "isolcpus") {
            let listed = list::isolcpus(&kernel, value).and_then(|(_, list)| list::cpus(&kernel, list));
            (list::flagged(value).0, listed)
        } else {
            (Vec::new(), list::cpus(&kernel, value))
        };
        Parameter {
            name: name.to_owned(),
            value: value.to_owned(),
            flags: flags.into_iter().map(str::to_owned).collect(),
            cpus: cpus.ok(),
        }
    };
    let parameters: Vec<Parameter> = parameters(&machine.cmdline).map(parameter).collect();
    Booted {
        ignored: ignored(root, &scene, &parameters),
        parameters,
        offloaded: rcu_offload(&scene).map_err(|error| error.to_string()),
        irq_default: root.mask("proc/irq/default_smp_affinity"),
        pmu: root.names(COUNTERS).into_iter().find(|name| is_of_cores(name)),
    }
}

/// Parameters of isolation that need a build option, and the option.
const BUILT: [(&str, &str); 2] = [("nohz_full", "CONFIG_NO_HZ_FULL"), ("rcu_nocbs", "CONFIG_RCU_NOCB_CPU")];

/// Those that this kernel is built without. Where its build options are not known, before 6.1 the
/// file of `nohz_full` is there only with the option, and a kernel that offloads callbacks of any
/// CPU has threads for them.
fn ignored(root: &Root, scene: &Scene, parameters: &[Parameter]) -> Vec<String> {
    let kernel = &scene.machine.kernel;
    let lacks = |(name, option): &(&str, &str)| match (&kernel.config_source, *name) {
        (Some(_), _) => !kernel.config.contains_key(*option),
        (None, "nohz_full") => !root.has("sys/devices/system/cpu/nohz_full"),
        (None, _) => {
            let valid = |one: &Parameter| same_name(&one.name, name) && one.cpus.is_some();
            let none = rcu_offload(scene).is_ok_and(|cpus| cpus.is_empty());
            none && parameters.iter().any(valid)
        }
    };
    BUILT.iter().filter(|one| lacks(one)).map(|(name, _)| (*name).to_owned()).collect()
}

/// `cpu`, or one a kind of core: `cpu_core`, `armv8_pmuv3_0`, `armv8_cortex_a72`.
fn is_of_cores(name: &str) -> bool {
    name == "cpu" || name == "cpu_core" || name == "cpu_atom" || name.starts_with("armv")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;

    #[test]
    fn parameters_have_their_cpus_and_the_kernels_answers_stand_beside_them() {
        let (_dir, root) = tree(&[
            ("sys/devices/system/cpu/online", "0-3"),
            ("sys/devices/system/cpu/possible", "0-3"),
            ("proc/cmdline", "quiet isolcpus=managed_irq,domain,2-N nohz_full=2-9 -- init"),
            ("proc/irq/default_smp_affinity", "3"),
            ("sys/bus/event_source/devices/software/type", "1"),
            ("sys/bus/event_source/devices/cpu/type", "4"),
        ]);
        let booted = booted(&root, &machine::read(&root).unwrap());
        let [quiet, isolcpus, nohz] = <[Parameter; 3]>::try_from(booted.parameters).unwrap();
        assert_eq!((quiet.name.as_str(), quiet.cpus), ("quiet", None));
        assert_eq!(isolcpus.flags, ["managed_irq", "domain"]);
        assert_eq!(isolcpus.cpus, Some("2-3".parse().unwrap()));
        // The kernel drops a list with a CPU that is not there.
        assert_eq!(nohz.cpus, None);
        assert_eq!(booted.irq_default, Some("0-1".parse().unwrap()));
        assert_eq!(booted.pmu.as_deref(), Some("cpu"));
        // No file, no option.
        assert_eq!(booted.ignored, ["nohz_full"]);
        // A tree without processes: nothing says whose callbacks are offloaded.
        assert!(booted.offloaded.is_err());
    }

    #[test]
    fn what_counts_other_things_is_no_counter_of_a_core() {
        assert!(is_of_cores("cpu") && is_of_cores("armv8_pmuv3_0") && is_of_cores("cpu_atom"));
        assert!(!is_of_cores("software") && !is_of_cores("uncore_imc_0") && !is_of_cores("tracepoint"));
    }
}
