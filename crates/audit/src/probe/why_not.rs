//! Why a boot parameter that isolates CPUs is not in force for all that were wanted: as `boot`
//! reads the command line for this kernel.

use super::{Scene, named};
use boot::Kernel;
use machine::same_name;
use model::Cpus;

/// A clause. `value`: of the last word of this name.
pub(super) fn why_not(scene: &Scene, parameter: &str, value: &str, wanted: &Cpus) -> String {
    let kernel = Kernel::running(scene.root, scene.machine);
    let made = boot::effects(&kernel, &scene.machine.cmdline);
    let name = |word: &str| word.split('=').next().is_some_and(|name| same_name(name, parameter));
    if let Some(dropped) = made.dropped.iter().rfind(|dropped| name(&dropped.word)) {
        let given = dropped.word.split_once('=').map(|(_, value)| value.trim_matches('"'));
        let what = if given == Some(value) { "the whole parameter" } else { &dropped.word };
        return format!("the kernel drops {what}: {}", dropped.reason);
    }
    let asked = match parameter {
        "isolcpus" => made.domain,
        "nohz_full" => made.nohz_full,
        _ => made.rcu_nocbs,
    };
    if parameter == "isolcpus" && asked.is_empty() {
        let (flags, _) = boot::list::flagged(value);
        return format!(
            "its flags ({}) leave out domain, so the scheduler still balances tasks there",
            flags.join(",")
        );
    }
    let missing = wanted.minus(&asked);
    if !missing.is_empty() {
        let asked = if asked.is_empty() { "no CPU".to_owned() } else { named(&asked) };
        return format!("it names {asked}, not {}", named(&missing));
    }
    "the kernel did not take it; its log of this boot may say why".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;
    use proptest::prelude::*;

    fn why(parameter: &str, line: &str) -> String {
        let (_dir, root) = tree(&[
            ("sys/devices/system/cpu/online", "0-3"),
            ("sys/devices/system/cpu/possible", "0-3"),
            ("proc/sys/kernel/osrelease", "6.1.0"),
            ("proc/cmdline", line),
        ]);
        let machine = machine::read(&root).unwrap();
        let scene = Scene::new(&root, &machine, &machine.topology.online);
        let value = super::super::parameter::value(&scene, parameter).unwrap_or_default();
        why_not(&scene, parameter, value, &"2-3".parse().unwrap())
    }

    #[test]
    fn each_way_to_lose_a_parameter_has_its_sentence() {
        for (parameter, line, part) in [
            ("isolcpus", "isolcpus=2-9", "CPU 9 on a machine whose last CPU is 3"),
            ("isolcpus", "isolcpus=managed_irq,2-3", "leave out domain"),
            ("isolcpus", "isolcpus=all", "it has no CPU list"),
            ("isolcpus", "isolcpus=1 isolcpus=2-3", "whole parameter: an earlier word has isolated 1"),
            ("isolcpus", "isolcpus=2-9 isolcpus=1", "drops isolcpus=2-9: it names CPU 9"),
            ("isolcpus", "isolcpus=2", "names CPU 2, not CPU 3"),
            ("nohz_full", "nohz_full=0xc", "no CPU list"),
            ("nohz_full", "nohz_full=", "it names no CPU"),
            ("nohz_full", "isolcpus=nohz,domain,1 nohz_full=2-3", "an earlier word has isolated 1"),
            ("nohz_full", "isolcpus=1 nohz_full=2-3", "did not take it"),
            ("rcu_nocbs", "rcu_nocbs=0-1", "names CPUs 0,1, not CPUs 2,3"),
            ("rcu_nocbs", "rcu_nocbs=", "names no CPU, not CPUs 2,3"),
        ] {
            let reason = why(parameter, line);
            assert!(reason.contains(part), "{parameter}: {line}: {reason}");
        }
    }

    proptest! {
        #[test]
        fn no_value_panics(value in "[^\0]{0,30}") {
            let _ = why("isolcpus", &format!("isolcpus={value}"));
        }
    }
}
