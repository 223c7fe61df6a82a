//! Which CPUs the cpusets of control groups, version 1, have the scheduler balance. With balancing
//! off at the top only groups that ask for it make domains (Linux
//! `Documentation/admin-guide/cgroup-v1/cpusets.rst`, §1.7; `kernel/cgroup/cpuset.c`,
//! `generate_sched_domains`).

use super::{Root, mounts};
use model::Cpus;

/// The hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpusetsV1 {
    /// Where it is mounted.
    pub place: String,
    /// What file names begin with: nothing where it was mounted with `noprefix`, as the cpuset file
    /// system is.
    pub prefix: &'static str,
    /// Whether all CPUs are balanced together.
    pub top_balances: bool,
    /// The CPUs of groups below the top that are balanced if the top is not.
    pub below: Cpus,
}

/// `None` where it is not mounted.
pub fn cpusets_v1(root: &Root) -> Option<CpusetsV1> {
    let is_cpuset = |options: &str| options.split(',').any(|option| option == "cpuset");
    let mounts = mounts::mounts(root);
    let place = mounts.into_iter().find(|mount| mount.kind == "cgroup" && is_cpuset(&mount.options))?.target;
    let prefix = if root.has(&format!("{place}/cpuset.cpus")) { "cpuset." } else { "" };
    let balances =
        |group: &str| root.maybe(&format!("{group}/{prefix}sched_load_balance")).as_deref() == Some("1");
    let mut below = Cpus::default();
    let mut search = vec![place.clone()];
    while let Some(above) = search.pop() {
        for file in root.glob(&format!("{above}/*/{prefix}sched_load_balance")) {
            let Some((group, _)) = file.rsplit_once('/') else { continue };
            if balances(group) {
                below = below.or(&root.cpus(&format!("{group}/{prefix}cpus")).unwrap_or_default());
            } else {
                // What is below a balanced group is within it.
                search.push(group.to_owned());
            }
        }
    }
    let top_balances = balances(&place);
    Some(CpusetsV1 { place, prefix, top_balances, below })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn groups_below_count_however_deep() {
        let files = [
            ("proc/mounts", "none /c cgroup rw,cpuset 0 0"),
            ("c/cpuset.cpus", "0-7"),
            ("c/cpuset.sched_load_balance", "0"),
            ("c/house/cpuset.cpus", "0-1"),
            ("c/house/cpuset.sched_load_balance", "1"),
            ("c/jobs/cpuset.cpus", "2-7"),
            ("c/jobs/cpuset.sched_load_balance", "0"),
            ("c/jobs/web/cpuset.cpus", "4"),
            ("c/jobs/web/cpuset.sched_load_balance", "1"),
        ];
        let (_dir, root) = tree(&files);
        let found = cpusets_v1(&root).unwrap();
        assert_eq!((found.top_balances, found.below.to_string()), (false, "0,1,4".to_owned()));
        let (_dir, root) = tree(&files[1..]);
        assert_eq!(cpusets_v1(&root), None);
    }
}
