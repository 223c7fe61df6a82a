//! The control groups of a process: `/proc/PID/cgroup` (cgroups(7)).

use super::Root;

/// Its group in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// Controllers of the hierarchy, commas between them; empty for version 2.
    pub controllers: String,
    /// The group, from the root of the hierarchy.
    pub path: String,
}

impl Membership {
    /// Whether the group or one above it has this name.
    pub fn is_within(&self, name: &str) -> bool {
        self.path.split('/').any(|part| part == name)
    }
}

/// Its groups, one a hierarchy; `None` where the process has ended or may not be looked at.
pub fn memberships(root: &Root, pid: u32) -> Option<Vec<Membership>> {
    let text = root.maybe(&format!("proc/{pid}/cgroup"))?;
    let line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1).map(str::to_owned);
        Some(Membership { controllers: parts.next()?, path: parts.next()? })
    };
    Some(text.lines().filter_map(line).collect())
}

/// Its group of version 2.
pub fn group_of(root: &Root, pid: u32) -> Option<String> {
    let version2 = |one: &Membership| one.controllers.is_empty();
    memberships(root, pid)?.into_iter().find(version2).map(|one| one.path)
}
