//! Whose CPUs are: somebody's cpuset partition, containers that the kubelet has given CPUs of their
//! own, the profile that tuned has in force. What is taken there is neither housekeeping nor free
//! to be isolated.
//!
//! Sources: Linux `Documentation/admin-guide/cgroup-v2.rst` (Cpuset); Kubernetes
//! `pkg/kubelet/cm/cpumanager/state/checkpoint.go` (the checkpoint `cpu_manager_state`: `entries`
//! are pods, containers and their exclusive CPUs); tuned.conf(5) and the profiles realtime and
//! cpu-partitioning (`isolated_cores`, `tuned.non_isolcpus=`).

use super::partitions::{OURS, partitions};
use super::{Root, cmdline};
use model::Cpus;
use model::machine::Owned;
use std::collections::BTreeSet;

/// The kubelet's checkpoint, below its root directory.
pub const KUBELET: &str = "var/lib/kubelet/cpu_manager_state";

/// Where tuned has its profiles, those of the administrator first.
const PROFILES: [&str; 4] = ["etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"];

/// Everybody who owns CPUs; stillcore's own isolation is not among them.
pub(super) fn owned(root: &Root, online: &Cpus) -> Vec<Owned> {
    let theirs = partitions(root).into_iter().filter(|one| one.is_valid() && !one.group.ends_with(OURS));
    let mut all: Vec<_> = theirs
        .map(|one| Owned { cpus: one.left, owner: format!("the cpuset partition {}", one.group) })
        .collect();
    all.extend(kubelet(root));
    all.extend(tuned(root, online));
    all.retain(|owned| !owned.cpus.is_empty());
    all
}

/// With the static policy a container may own CPUs.
fn kubelet(root: &Root) -> Option<Owned> {
    let state: serde_json::Value = serde_json::from_str(&root.maybe(KUBELET)?).ok()?;
    let pods = state["entries"].as_object()?.values();
    let sets = pods.filter_map(|pod| pod.as_object()).flat_map(|pod| pod.values());
    let cpus = sets.filter_map(|set| Cpus::parse_list(set.as_str()?).ok());
    let cpus = cpus.fold(Cpus::default(), |all, cpus| all.or(&cpus));
    Some(Owned { cpus, owner: format!("containers of the kubelet (/{KUBELET})") })
}

/// The isolated cores of the active profile. Where a function computes them, they are read from the
/// command line that tuned has made.
fn tuned(root: &Root, online: &Cpus) -> Option<Owned> {
    let active = root.maybe("etc/tuned/active_profile")?;
    let mut seen = BTreeSet::new();
    for profile in active.split_whitespace() {
        if let Some((file, cpus)) = isolated_cores(root, profile, &mut seen) {
            let owner = format!("tuned's profile {profile} (isolated_cores in /{file})");
            return Some(Owned { cpus, owner });
        }
    }
    let line = root.maybe("proc/cmdline")?;
    let mut parameters = cmdline::parameters(&line);
    let (_, spared) = parameters.find(|(name, _)| super::same_name(name, "tuned.non_isolcpus"))?;
    let cpus = online.minus(&Cpus::parse_hex(spared).ok()?);
    Some(Owned { cpus, owner: "tuned (tuned.non_isolcpus= on the kernel command line)".to_owned() })
}

/// The variable as the profile, its own file of variables, or a profile that it includes sets it,
/// with the file.
fn isolated_cores(root: &Root, profile: &str, seen: &mut BTreeSet<String>) -> Option<(String, Cpus)> {
    // A name is no path.
    if profile.contains('/') || profile.starts_with('.') || !seen.insert(profile.to_owned()) {
        return None;
    }
    let own = PROFILES.iter().map(|place| format!("{place}/{profile}/tuned.conf"));
    let own = own.into_iter().find(|file| root.has(file));
    let settings = own.as_ref().map(|file| settings(root, file)).unwrap_or_default();
    let includes = settings.iter().filter(|(name, _)| name == "include").map(|(_, value)| value);
    let mut files = vec![format!("etc/tuned/{profile}-variables.conf")];
    files.extend(own);
    files.extend(includes.clone().filter_map(|value| value.strip_prefix('/')).map(str::to_owned));
    let set = files.into_iter().find_map(|file| Some((variable(root, &file)?, file)));
    if let Some((cpus, file)) = set {
        return Some((file, cpus));
    }
    let profiles: Vec<_> = includes.flat_map(|value| value.split([',', ' '])).map(str::to_owned).collect();
    profiles.iter().find_map(|profile| isolated_cores(root, profile, seen))
}

/// A list of CPUs; none where the file does not set it, or sets it to what tuned itself computes.
fn variable(root: &Root, file: &str) -> Option<Cpus> {
    let settings = settings(root, file);
    let value = settings.iter().rev().find(|(name, _)| name == "isolated_cores")?;
    Cpus::parse_list(&value.1).ok().filter(|cpus| !cpus.is_empty())
}

/// `name = value` lines, without comments and sections.
fn settings(root: &Root, file: &str) -> Vec<(String, String)> {
    let text = root.maybe(file).unwrap_or_default();
    let lines = text.lines().map(|line| line.split(['#', ';']).next().unwrap_or_default());
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn owners(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let (_dir, root) = tree(files);
        let all = owned(&root, &"0-7".parse().unwrap());
        all.into_iter().map(|one| (one.cpus.to_string(), one.owner)).collect()
    }

    #[test]
    fn exclusive_cpus_of_containers_belong_to_the_kubelet() {
        let pods = r#"{"policyName":"static","defaultCpuSet":"0-3",
            "entries":{"p1":{"a":"4-5","b":"6"},"p2":{"c":"7"}},"checksum":1}"#;
        let found = owners(&[(KUBELET, pods)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0 == "4-7" && found[0].1.contains("kubelet"), "{found:?}");
        assert!(owners(&[(KUBELET, r#"{"policyName":"none","defaultCpuSet":""}"#)]).is_empty());
        assert!(owners(&[(KUBELET, "{")]).is_empty());
    }

    #[test]
    fn isolated_cores_of_the_active_profile_belong_to_tuned() {
        let active = ("etc/tuned/active_profile", "mine\n");
        let variables = ("etc/tuned/realtime-variables.conf", "# isolated_cores=1\nisolated_cores=2,4-5\n");
        let other = ("etc/tuned/realtime-virtual-host-variables.conf", "isolated_cores=7\n");
        assert!(owners(&[active, variables, other]).is_empty(), "another profile's");
        let includes = ("etc/tuned/mine/tuned.conf", "[main]\nsummary=x\ninclude=network-latency,realtime\n");
        let found = owners(&[active, variables, other, includes]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "2,4,5");
        assert!(found[0].1.contains("profile mine (isolated_cores in /etc/tuned/realtime-variables.conf)"));
        let circle = ("etc/tuned/mine/tuned.conf", "include=mine\n");
        assert!(owners(&[active, circle]).is_empty());
        assert!(owners(&[variables]).is_empty(), "no profile is active");
    }

    #[test]
    fn what_tuned_computes_is_read_where_it_wrote_it() {
        let active = ("etc/tuned/active_profile", "cpu-partitioning");
        let computed =
            ("etc/tuned/cpu-partitioning-variables.conf", "isolated_cores=${f:calc_isolated_cores:2}");
        assert!(owners(&[active, computed]).is_empty());
        let line = ("proc/cmdline", "quiet tuned.non_isolcpus=00000003");
        let found = owners(&[active, computed, line]);
        assert!(found[0].0 == "2-7" && found[0].1.contains("tuned.non_isolcpus="), "{found:?}");
    }

    #[test]
    fn partitions_belong_to_whoever_made_them_but_for_our_own() {
        let files = [
            ("proc/mounts", "none /cg cgroup2 rw 0 0"),
            ("cg/cgroup.controllers", "cpuset"),
            ("cg/x/cpuset.cpus.partition", "root"),
            ("cg/x/cpuset.cpus", "4-7"),
            ("cg/x/cpuset.cpus.effective", "4-5"),
            ("cg/bad/cpuset.cpus.partition", "isolated invalid (x)"),
            ("cg/bad/cpuset.cpus", "1"),
            ("cg/stillcore-isolated/cpuset.cpus.partition", "isolated"),
            ("cg/stillcore-isolated/cpuset.cpus", "2-3"),
        ];
        assert_eq!(owners(&files), [("4,5".to_owned(), "the cpuset partition /cg/x".to_owned())]);
    }
}
