//! Isolated cpuset partitions: isolation from the scheduler at run time.
//!
//! Source: Linux `Documentation/admin-guide/cgroup-v2.rst` (Cpuset). The kernel takes the word and
//! may still hold the partition invalid: only what reads back counts.

use super::super::catalogue::Mechanism;
use super::remedy::propose;
use super::{Outcome, Scene, are, named};
use machine::{Partition, Root, cpusets_v1, partition_mount, partitions};
use model::{Cpus, FindingState};

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let isolated = &scene.machine.topology.isolated;
    let partitions = isolated_partitions(scene.root);
    let valid: Vec<_> = partitions.iter().filter(|partition| partition.is_isolated()).collect();
    let held = valid.iter().fold(Cpus::default(), |all, partition| all.or(&partition.cpus));
    if scene.cpus.is_subset(&held) {
        let here = valid.iter().filter(|one| !one.cpus.and(scene.cpus).is_empty());
        let groups = here.map(|one| one.group.as_str()).collect::<Vec<_>>().join(", ");
        let reason = format!("{} in an isolated partition ({groups})", are(scene.cpus));
        return Outcome::ok(reason).having("isolated");
    }
    if scene.cpus.is_subset(isolated) {
        let reason =
            format!("the kernel already holds {} isolated; a partition would add nothing", named(scene.cpus));
        return Outcome::ok(reason).in_effect(isolated.to_string());
    }
    if let Some(broken) =
        partitions.iter().find(|p| p.state.contains("invalid") && !p.cpus.and(scene.cpus).is_empty())
    {
        let reason = format!("{} reads back {:?}: {}", broken.group, broken.state, mechanism.harm);
        let remedy = format!(
            "remove what the brackets name, then echo isolated > {}/cpuset.cpus.partition",
            broken.group
        );
        return Outcome::new(FindingState::Fixable, reason).having(&broken.state).cured_by(remedy);
    }
    if partition_mount(scene.root).is_some() {
        let reason =
            format!("{} in no isolated partition: {}", are(&scene.cpus.minus(&held)), mechanism.harm);
        return propose(scene, mechanism, &[], reason).having("none");
    }
    match cpusets_v1(scene.root) {
        Some(groups) => Outcome::new(
            FindingState::NotApplicable,
            format!(
                "the cpuset controller is mounted as version 1 at {}, which has no partitions",
                groups.place
            ),
        ),
        None => Outcome::absent(mechanism),
    }
}

/// The partitions there are, with their state.
pub(super) fn value(scene: &Scene) -> Option<String> {
    partition_mount(scene.root)?;
    let all = isolated_partitions(scene.root);
    Some(all.iter().map(|p| format!("{} {} {}", p.group, p.cpus, p.state)).collect::<Vec<_>>().join("; "))
}

fn isolated_partitions(root: &Root) -> Vec<Partition> {
    partitions(root).into_iter().filter(|partition| partition.state.starts_with("isolated")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    const MOUNT: (&str, &str) = ("proc/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0");
    const CONTROLLERS: (&str, &str) = ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu");

    fn with_partition(cpus: &str, state: &str) -> (String, String, String) {
        let files = [
            MOUNT,
            CONTROLLERS,
            ("sys/fs/cgroup/a/cpuset.cpus.partition", "member"),
            ("sys/fs/cgroup/a/rt/cpuset.cpus", cpus),
            ("sys/fs/cgroup/a/rt/cpuset.cpus.partition", state),
        ];
        judged("cpuset-partition", &with_cpus(&files))
    }

    #[test]
    fn only_what_reads_back_counts() {
        assert_eq!(with_partition("2-3", "isolated").0, "ok");
        assert_eq!(with_partition("2", "isolated").0, "fixable");
        assert_eq!(with_partition("2-3", "root").0, "fixable");
        let (state, reason, remedy) = with_partition("2-3", "isolated invalid (no reason)");
        assert!(state == "fixable" && reason.contains("/sys/fs/cgroup/a/rt reads back"), "{reason}");
        assert!(remedy.contains("/sys/fs/cgroup/a/rt/cpuset.cpus.partition"), "{remedy}");
    }

    #[test]
    fn partitions_of_the_root_count_as_isolated() {
        let files = [MOUNT, CONTROLLERS, ("sys/fs/cgroup/cpuset.cpus.isolated", "2-3")];
        assert_eq!(judged("cpuset-partition", &with_cpus(&files)).0, "ok");
        assert_eq!(judged("isolcpus", &with_cpus(&files)).0, "ok");
    }

    #[test]
    fn without_the_controller_there_are_none() {
        assert_eq!(judged("cpuset-partition", &with_cpus(&[MOUNT])).0, "not-applicable");
    }
}
