//! The cpuset partitions of control groups, version 2, however deep they lie: a local one is a
//! child of another, but since 6.7 a remote one needs none above it.
//!
//! Source: Linux `Documentation/admin-guide/cgroup-v2.rst` (Cpuset). A group has cpuset files only
//! where all groups above it do, so a branch without them is not searched.

use super::{Root, mounts};
use model::Cpus;

/// The group that an isolation of stillcore's own makes.
pub const OURS: &str = "stillcore-isolated";

const PARTITION: &str = "cpuset.cpus.partition";

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its directory, as a path of the machine.
    pub group: String,
    /// What it was given; what it has where it was given exclusive CPUs alone.
    pub cpus: Cpus,
    /// What it has and has handed to no partition below.
    pub left: Cpus,
    /// `isolated` or `root`, each with ` invalid (why)` behind it where the kernel does not uphold
    /// it.
    pub state: String,
}

impl Partition {
    /// Whether the kernel upholds it.
    pub fn is_valid(&self) -> bool {
        self.is_isolated() || self.state == "root"
    }

    /// Whether the kernel upholds it, without load balancing.
    pub fn is_isolated(&self) -> bool {
        self.state == "isolated"
    }
}

/// Where version 2 is mounted with the cpuset controller.
pub fn partition_mount(root: &Root) -> Option<String> {
    let mounts = mounts::mounts(root).into_iter();
    let mut places = mounts.filter(|mount| mount.kind == "cgroup2").map(|mount| mount.target);
    places.find(|place| {
        let controllers = root.maybe(&format!("{place}/cgroup.controllers")).unwrap_or_default();
        controllers.split_whitespace().any(|controller| controller == "cpuset")
    })
}

/// All partitions, those above before those below.
pub fn partitions(root: &Root) -> Vec<Partition> {
    groups(root).iter().filter_map(|group| read(root, group)).collect()
}

/// The group whose partition owns all these CPUs, balanced (`root`) or not: what it has and has
/// handed to no partition below.
pub fn partition_of(root: &Root, cpus: &Cpus) -> Option<String> {
    let own = |partition: &Partition| partition.is_valid() && cpus.is_subset(&partition.left);
    partitions(root).into_iter().find(own).map(|partition| partition.group)
}

/// The groups below the root that have cpusets.
pub(super) fn groups(root: &Root) -> Vec<String> {
    let mut found = Vec::new();
    let mut search: Vec<_> = partition_mount(root).into_iter().collect();
    while let Some(above) = search.pop() {
        let below = root.glob(&format!("{above}/*/{PARTITION}"));
        let below = below.iter().filter_map(|file| Some(file.rsplit_once('/')?.0.to_owned()));
        let below: Vec<_> = below.collect();
        search.extend(below.iter().rev().cloned());
        found.extend(below);
    }
    found
}

/// `None` for a group that is none.
fn read(root: &Root, group: &str) -> Option<Partition> {
    let state = root.maybe(&format!("{group}/{PARTITION}")).filter(|state| state != "member")?;
    let list = |name: &str| root.cpus(&format!("{group}/cpuset.cpus{name}"));
    let given = list("").filter(|cpus| !cpus.is_empty());
    let left = list(".effective");
    let cpus = given.or_else(|| left.clone())?;
    let left = left.unwrap_or_else(|| cpus.clone());
    Some(Partition { group: format!("/{}", group.trim_start_matches('/')), cpus, left, state })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn partitions_are_found_however_deep_and_only_where_groups_have_cpusets() {
        let files = [
            ("proc/mounts", "none /cg cgroup2 rw 0 0"),
            ("cg/cgroup.controllers", "cpuset cpu"),
            ("cg/x/cpuset.cpus.partition", "member"),
            ("cg/x/y/cpuset.cpus.partition", "member"),
            ("cg/x/y/z/cpuset.cpus.partition", "isolated"),
            ("cg/x/y/z/cpuset.cpus", ""),
            ("cg/x/y/z/cpuset.cpus.effective", "2-3"),
            ("cg/b/cpuset.cpus.partition", "root"),
            ("cg/b/cpuset.cpus", "4-7"),
            ("cg/b/cpuset.cpus.effective", "4"),
            // No files of the controller in between, as no kernel shows it.
            ("cg/n/o/cpuset.cpus.partition", "root"),
        ];
        let (_dir, root) = tree(&files);
        let found: Vec<_> = partitions(&root)
            .into_iter()
            .map(|one| (one.group.clone(), one.cpus.to_string(), one.left.to_string(), one.is_isolated()))
            .collect();
        let expected = [("/cg/b", "4-7", "4", false), ("/cg/x/y/z", "2,3", "2,3", true)];
        let expected: Vec<_> = expected
            .map(|(group, cpus, left, isolated)| {
                (group.to_owned(), cpus.to_owned(), left.to_owned(), isolated)
            })
            .into();
        assert_eq!(found, expected);
    }

    /// A group that owns CPUs is the one that has them in force, whichever kind of partition it is.
    #[test]
    fn cpus_belong_to_the_partition_that_has_not_handed_them_on() {
        let group = |path: &str, cpus: &str, effective: &str, state: &str| {
            ["", ".effective", ".partition"]
                .iter()
                .zip([cpus, effective, state])
                .map(|(file, text)| (format!("sys/fs/cgroup/{path}/cpuset.cpus{file}"), text.to_owned()))
                .collect::<Vec<_>>()
        };
        let files = [
            vec![
                ("proc/mounts".to_owned(), "none /sys/fs/cgroup cgroup2 rw 0 0".to_owned()),
                ("sys/fs/cgroup/cgroup.controllers".to_owned(), "cpuset cpu".to_owned()),
            ],
            group("a", "1-3", "1", "root"),
            group("a/rt", "2-3", "2-3", "isolated"),
            group("b", "4-5", "4-5", "root"),
            group("c", "6", "0", "root invalid (no reason)"),
            group("d", "7", "7", "member"),
        ]
        .concat();
        let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        let (_dir, root) = tree(&files);
        for (cpus, expected) in [
            ("1", Some("/sys/fs/cgroup/a")),
            ("2,3", Some("/sys/fs/cgroup/a/rt")),
            ("4,5", Some("/sys/fs/cgroup/b")),
            ("6", None),
            ("7", None),
            ("1,2", None),
        ] {
            assert_eq!(partition_of(&root, &cpus.parse().unwrap()).as_deref(), expected, "{cpus}");
        }
    }
}
