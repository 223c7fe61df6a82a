//! The cpufreq governor of the measured CPUs.
//!
//! Source: Linux `Documentation/admin-guide/pm/cpufreq.rst`.

use super::super::catalogue::{Mechanism, Want};
use super::remedy::{Off, at_boot, propose};
use super::{Outcome, Scene, are, named};
use machine::cpufreq_file;
use model::Cpus;

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let Want::Literal { value: wanted } = &mechanism.want else { return Outcome::absent(mechanism) };
    let governors: Vec<_> =
        governors(scene).into_iter().filter(|(cpu, _)| scene.cpus.contains(*cpu)).collect();
    if governors.is_empty() {
        return Outcome::absent(mechanism);
    }
    let wrong: Vec<_> =
        governors.iter().filter(|(_, governor)| governor != wanted).map(|(cpu, _)| *cpu).collect();
    let have = spelled(&governors);
    if wrong.is_empty() {
        return Outcome::ok(format!("{wanted} on {}", named(scene.cpus))).having(have);
    }
    let offered = |cpu: &u32| {
        let offered = scene.root.maybe(&cpufreq_file(*cpu, "scaling_available_governors"));
        offered.is_none_or(|offered| offered.split_whitespace().any(|governor| governor == wanted))
    };
    let reason =
        format!("{} not set to {wanted}: {}", are(&wrong.iter().copied().collect::<Cpus>()), mechanism.harm);
    if wrong.iter().all(offered) {
        let off =
            |(cpu, governor): &(u32, String)| Off::file(&cpufreq_file(*cpu, "scaling_governor"), governor);
        let off: Vec<_> = governors.iter().filter(|(_, governor)| governor != wanted).map(off).collect();
        propose(scene, mechanism, &off, reason)
    } else {
        at_boot(scene, mechanism, format!("{reason}; this kernel offers no such governor"))
    }
    .having(have)
}

/// The governor of every CPU that has one.
pub(super) fn value(scene: &Scene) -> Option<String> {
    Some(spelled(&governors(scene))).filter(|text| !text.is_empty())
}

fn governors(scene: &Scene) -> Vec<(u32, String)> {
    let cpus = &scene.machine.topology.cpus;
    cpus.iter().filter_map(|cpu| Some((cpu.cpu, cpu.governor.clone()?))).collect()
}

fn spelled(governors: &[(u32, String)]) -> String {
    governors.iter().map(|(cpu, governor)| format!("{cpu}={governor}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    #[test]
    fn a_governor_that_the_kernel_lacks_cannot_be_set() {
        let set = ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave");
        let offers = |text| ("sys/devices/system/cpu/cpu2/cpufreq/scaling_available_governors", text);
        let (state, _, remedy) =
            judged("cpufreq-governor", &with_cpus(&[set, offers("performance powersave")]));
        assert_eq!(state, "fixable");
        assert_eq!(remedy, "echo performance > /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor");
        assert_eq!(judged("cpufreq-governor", &with_cpus(&[set, offers("powersave")])).0, "boot");
        assert_eq!(judged("cpufreq-governor", &with_cpus(&[])).0, "not-applicable");
    }
}
