//! The CPUs whose frequency is set together with this one's.
//!
//! Files: Linux `Documentation/admin-guide/pm/cpufreq.rst`. The current frequency is not read: that
//! sends an IPI to the CPU on x86.

use super::id;
use super::scene::Scene;
use crate::cpufreq_file;
use model::resource::{Kind, Resource};

/// The CPU's frequency domain, where there is one.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let read = |name: &str| scene.root.maybe(&cpufreq_file(scene.cpu, name));
    let Some(governor) = read("scaling_governor") else { return Vec::new() };
    let affected = scene.spaced(&cpufreq_file(scene.cpu, "affected_cpus"));
    let alone = affected.as_ref().is_none_or(|cpus| cpus.len() <= 1);
    let limits = read("scaling_min_freq").zip(read("scaling_max_freq"));
    let fixed = limits.as_ref().is_some_and(|(low, high)| low == high) || governor == "performance";
    let limits = limits.map_or(String::new(), |(low, high)| format!(", {low} to {high} kHz"));
    let domain = affected.map_or(String::new(), |cpus| format!(", set for CPUs {cpus}"));
    vec![Resource {
        asked: Some(format!("governor {governor}{limits}")),
        effective: read("scaling_driver").map(|driver| format!("{driver}{domain}")),
        owner: Some("cpufreq".to_owned()),
        may_touch: Some(!alone || !fixed),
        in_force: Some(!alone || !fixed),
        movable: Some(alone),
        reason: Some(
            if alone {
                "the governor can be set for this CPU"
            } else {
                "the hardware sets these CPUs together"
            }
            .to_owned(),
        ),
        mechanism: Some(id::CPUFREQ.to_owned()),
        ..Resource::new(Kind::Cpufreq, "frequency domain")
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_domain_of_several_cpus_cannot_be_left() {
        const AT: &str = "sys/devices/system/cpu/cpu3/cpufreq";
        let row = |affected: &str| {
            let files = [
                ("scaling_governor", "performance"),
                ("scaling_driver", "acpi-cpufreq"),
                ("affected_cpus", affected),
            ];
            let files: Vec<_> = files.iter().map(|(file, text)| (format!("{AT}/{file}"), *text)).collect();
            let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), *text)).collect();
            let (_dir, root) = tree(&files);
            super::rows(&Scene::new(&root, 3)).remove(0)
        };
        let shared = row("2 3");
        assert_eq!(shared.effective.as_deref(), Some("acpi-cpufreq, set for CPUs 2,3"));
        assert_eq!((shared.may_touch, shared.movable), (Some(true), Some(false)));
        assert_eq!((row("3").may_touch, row("3").movable), (Some(false), Some(true)));
        assert_eq!(row("three").may_touch, Some(false));
    }
}
