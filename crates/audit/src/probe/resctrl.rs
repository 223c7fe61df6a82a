//! Cache and memory-bandwidth partitions for the measured CPUs.
//!
//! Source: Linux `Documentation/filesystems/resctrl.rst`. The default group is that of all CPUs
//! without one of their own.

use super::super::catalogue::Mechanism;
use super::remedy::propose;
use super::{Outcome, Scene, are, named};
use machine::{Resctrl, ResctrlGroup, resctrl};
use model::Cpus;

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let groups = match resctrl(scene.root) {
        Resctrl::Absent => return Outcome::absent(mechanism),
        Resctrl::Unmounted => {
            let reason =
                format!("resctrl is not mounted, so the caches are not partitioned: {}", mechanism.harm);
            return propose(scene, mechanism, &[], reason).having("not mounted");
        }
        Resctrl::Groups(groups) => groups,
    };
    let own = groups.iter().filter(|group| !group.name.is_empty());
    let held = own.clone().fold(Cpus::default(), |all, group| all.or(&group.cpus));
    let missing = scene.cpus.minus(&held);
    if !missing.is_empty() {
        let reason = format!("{} in the default group: {}", are(&missing), mechanism.harm);
        return propose(scene, mechanism, &[], reason).having("default group");
    }
    let schemata: Vec<_> = own
        .filter(|group| !group.cpus.and(scene.cpus).is_empty())
        .map(|group| format!("{} {}", group.name, shares(group)))
        .collect();
    Outcome::ok(format!("{} have groups of their own", named(scene.cpus))).having(schemata.join("; "))
}

/// Every group with its CPUs and partition.
pub(super) fn value(scene: &Scene) -> Option<String> {
    let Resctrl::Groups(groups) = resctrl(scene.root) else { return None };
    let text = |group: &ResctrlGroup| format!("{}:{} {}", group.name, group.cpus, shares(group));
    Some(groups.iter().map(text).collect::<Vec<_>>().join("; "))
}

fn shares(group: &ResctrlGroup) -> String {
    group.schemata.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    #[test]
    fn the_measured_cpus_need_a_group_of_their_own() {
        let mounted = ("proc/mounts", "r /r resctrl rw 0 0");
        let known = ("proc/filesystems", "nodev\tresctrl");
        let with = |cpus| {
            let files = [
                known,
                mounted,
                ("r/cpus_list", "0-3"),
                ("r/schemata", "L3:0=ff"),
                ("r/rt/cpus_list", cpus),
                ("r/rt/schemata", "L3:0=f0"),
            ];
            judged("resctrl", &with_cpus(&files))
        };
        assert_eq!(with("2-3").0, "ok");
        assert!(with("3").1.starts_with("CPU 2 is in the default group"), "{}", with("3").1);
        assert_eq!(
            judged("resctrl", &with_cpus(&[known])).1.split(',').next(),
            Some("resctrl is not mounted")
        );
        assert_eq!(judged("resctrl", &with_cpus(&[])).0, "not-applicable");
    }
}
