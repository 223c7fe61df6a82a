//! Cache and memory-bandwidth partitions for the measured CPUs.
//!
//! Source: Linux `Documentation/filesystems/resctrl.rst`. A group's `cpus_list` names the CPUs that use its partition; `schemata` says
//! which. The default group is the mount point itself.

use super::super::catalogue::Mechanism;
use super::remedy::propose;
use super::{Outcome, Scene, are, named};
use machine::mounts;
use model::Cpus;

struct Group {
    name: String,
    cpus: Cpus,
    schemata: String,
}

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let known = scene.root.maybe("proc/filesystems").unwrap_or_default();
    if !known.split_whitespace().any(|word| word == "resctrl") {
        return Outcome::absent(mechanism);
    }
    if place(scene).is_none() {
        let reason = format!("resctrl is not mounted, so the caches are not partitioned: {}", mechanism.harm);
        return propose(scene, mechanism, &[], reason).having("not mounted");
    }
    let groups = groups(scene);
    let own = groups.iter().filter(|group| !group.name.is_empty());
    let held = own.clone().fold(Cpus::default(), |all, group| all.or(&group.cpus));
    let missing = scene.cpus.minus(&held);
    if !missing.is_empty() {
        let reason = format!("{} in the default group: {}", are(&missing), mechanism.harm);
        return propose(scene, mechanism, &[], reason).having("default group");
    }
    let schemata: Vec<_> = own
        .filter(|group| !group.cpus.and(scene.cpus).is_empty())
        .map(|group| format!("{} {}", group.name, group.schemata))
        .collect();
    Outcome::ok(format!("{} have groups of their own", named(scene.cpus))).having(schemata.join("; "))
}

/// Every group with its CPUs and partition.
pub(super) fn value(scene: &Scene) -> Option<String> {
    place(scene)?;
    let text = |group: &Group| format!("{}:{} {}", group.name, group.cpus, group.schemata);
    Some(groups(scene).iter().map(text).collect::<Vec<_>>().join("; "))
}

fn place(scene: &Scene) -> Option<String> {
    mounts(scene.root).into_iter().find(|mount| mount.kind == "resctrl").map(|mount| mount.target)
}

fn groups(scene: &Scene) -> Vec<Group> {
    let Some(place) = place(scene) else { return Vec::new() };
    let directories = std::iter::once((String::new(), place.clone()))
        .chain(scene.root.names(&place).into_iter().map(|name| (name.clone(), format!("{place}/{name}"))));
    directories
        .filter_map(|(name, directory)| {
            Some(Group {
                name,
                cpus: scene.root.cpus(&format!("{directory}/cpus_list"))?,
                schemata: scene
                    .root
                    .maybe(&format!("{directory}/schemata"))?
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" "),
            })
        })
        .collect()
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
