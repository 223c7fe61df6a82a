//! Control groups whose CPU set holds the CPU, in both versions, with the state of partitions.
//!
//! Files: Linux `Documentation/admin-guide/cgroup-v1/cpusets.rst`,
//! `Documentation/admin-guide/cgroup-v2.rst`. In version 2 only groups with a set or a partition of
//! their own get a row; those that inherit are counted. A partition is what it reads back: a write
//! of `isolated` may succeed and leave `isolated invalid (reason)`.

use super::groups::{GROUPS, members, walk};
use super::id;
use super::scene::{Scene, unknown};
use model::Cpus;
use model::resource::{Kind, Resource};
use std::collections::BTreeSet;

/// Names of one version's files.
struct Files {
    asked: &'static str,
    effective: &'static str,
    mechanism: &'static str,
    /// Whether every group has a set of its own.
    own_sets: bool,
}

const V1: Files = Files {
    asked: "cpuset.cpus",
    effective: "cpuset.effective_cpus",
    mechanism: id::CPUSET_V1,
    own_sets: true,
};
const V2: Files = Files {
    asked: "cpuset.cpus",
    effective: "cpuset.cpus.effective",
    mechanism: id::CPUSET_PARTITION,
    own_sets: false,
};

/// A row for each group, in each hierarchy that has CPU sets.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let mut rows = Vec::new();
    let mut seen = BTreeSet::new();
    for mount in scene.mounts() {
        let files = match mount.kind.as_str() {
            "cgroup" if mount.options.split(',').any(|option| option == "cpuset") => &V1,
            "cgroup2" => &V2,
            _ => continue,
        };
        if seen.insert((mount.kind.clone(), mount.target.clone())) {
            rows.extend(hierarchy(scene, &mount.target, files));
        }
    }
    rows
}

fn hierarchy(scene: &Scene, top: &str, files: &Files) -> Vec<Resource> {
    let (mut rows, mut heirs) = (Vec::new(), 0usize);
    let complete = walk(scene, top, |at, group| {
        // Where the controller is not enabled, it is in no group below either.
        let enabled =
            [files.effective, files.asked].iter().any(|file| scene.root.has(&format!("{at}/{file}")));
        if enabled {
            match one(scene, at, group, files) {
                Reach::Own(row) => rows.push(*row),
                Reach::Heir => heirs += 1,
                Reach::None => {}
            }
        }
        enabled
    });
    if !complete {
        let why = format!("only the first {GROUPS} groups under {top} were read");
        rows.push(unknown(Kind::Cgroup, format!("{top} ..."), why));
    }
    if heirs > 0 {
        rows.push(Resource {
            effective: Some("inherited".to_owned()),
            may_touch: Some(true),
            in_force: Some(true),
            movable: Some(true),
            reason: Some("they have no set of their own and follow the group above".to_owned()),
            mechanism: Some(files.mechanism.to_owned()),
            ..Resource::new(Kind::Cgroup, format!("groups under {top} that inherit: {heirs}"))
        });
    }
    rows
}

/// How a group comes to hold the CPU.
enum Reach {
    /// It does not.
    None,
    /// It has no set of its own and follows the group above.
    Heir,
    /// Its own set says so.
    Own(Box<Resource>),
}

fn one(scene: &Scene, at: &str, group: &str, files: &Files) -> Reach {
    let read = |name: &str| scene.root.maybe(&format!("{at}/{name}"));
    let cpus = |name: &str| Cpus::parse_list(&read(name)?).ok();
    let asked = cpus(files.asked).filter(|cpus| !cpus.is_empty());
    let effective = cpus(files.effective).or_else(|| asked.clone());
    let here = scene.within(effective.as_ref());
    if here != Some(true) && scene.within(asked.as_ref()) != Some(true) {
        return Reach::None;
    }
    let partition = read("cpuset.cpus.partition").filter(|state| state != "member");
    if !files.own_sets && !group.is_empty() && asked.is_none() && partition.is_none() {
        return Reach::Heir;
    }
    let state = state(partition.as_deref(), read("cpuset.sched_load_balance"), read("cpuset.cpus.isolated"));
    let members = members(scene, at);
    let seen = members.as_ref().map(|members| {
        let last = scene.threads().iter().filter(|thread| thread.last == scene.cpu);
        last.filter(|thread| members.contains(&thread.pid))
            .map(|thread| thread.pid)
            .collect::<BTreeSet<_>>()
            .len()
    });
    let observed = members
        .as_ref()
        .zip(seen)
        .map(|(members, seen)| format!("processes {}, of which {seen} last ran here", members.len()));
    let top = group.is_empty();
    let reason = if top { "the root group holds every CPU" } else { "its set of CPUs can be changed" };
    Reach::Own(Box::new(Resource {
        asked: asked.map(|cpus| cpus.to_string()),
        effective: effective.map(|cpus| format!("{cpus}{state}")),
        observed,
        owner: Some("cgroup".to_owned()),
        may_touch: Some(true),
        in_force: here,
        touched: seen.map(|seen| seen > 0),
        movable: Some(!top),
        reason: Some(reason.to_owned()),
        mechanism: Some(files.mechanism.to_owned()),
        ..Resource::new(Kind::Cgroup, if top { at.to_owned() } else { group.to_owned() })
    }))
}

fn state(partition: Option<&str>, balance: Option<String>, isolated: Option<String>) -> String {
    let partition = partition.map(|state| format!("partition {state}"));
    let balance = balance.filter(|value| value == "0").map(|_| "not balanced".to_owned());
    let isolated = isolated.filter(|cpus| !cpus.is_empty()).map(|cpus| format!("isolated {cpus}"));
    [partition, balance, isolated]
        .into_iter()
        .flatten()
        .fold(String::new(), |text, part| format!("{text}, {part}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn partitions_read_back_and_heirs_are_counted() {
        let (_dir, root) = tree(&[
            ("proc/mounts", "none /cg cgroup2 rw 0 0\nnone /cg cgroup2 rw 0 0"),
            ("cg/cpuset.cpus.effective", "0-3"),
            ("cg/cpuset.cpus.isolated", "2"),
            ("cg/cgroup.procs", "1\n"),
            ("cg/rt/cpuset.cpus", "2-3"),
            ("cg/rt/cpuset.cpus.effective", "2-3"),
            ("cg/rt/cpuset.cpus.partition", "isolated invalid (Cpu list in cpuset.cpus not exclusive)"),
            ("cg/rt/cgroup.procs", "7\n8\nx\n"),
            ("cg/system.slice/cpuset.cpus", ""),
            ("cg/system.slice/cpuset.cpus.effective", "0-3"),
            ("cg/system.slice/cpuset.cpus.partition", "member"),
            ("cg/house/cpuset.cpus", "0-1"),
            ("cg/house/cpuset.cpus.effective", "0-1"),
            ("cg/without/cgroup.procs", "9"),
            ("proc/7/stat", &format!("7 (a) S 1 7 7 0 -1 64 {}3 0", "0 ".repeat(29))),
            ("proc/7/task/7/stat", &format!("7 (a) S 1 7 7 0 -1 64 {}3 0", "0 ".repeat(29))),
            ("proc/7/task/7/status", "Cpus_allowed_list:\t2-3"),
        ]);
        let rows = rows(&Scene::new(&root, 3));
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.effective.as_deref().unwrap(), row.observed.as_deref()))
            .collect();
        assert_eq!(
            seen,
            [
                ("/cg", "0-3, isolated 2", Some("processes 1, of which 0 last ran here")),
                (
                    "/rt",
                    "2,3, partition isolated invalid (Cpu list in cpuset.cpus not exclusive)",
                    Some("processes 2, of which 1 last ran here")
                ),
                ("groups under /cg that inherit: 1", "inherited", None),
            ]
        );
        assert_eq!((rows[1].movable, rows[1].touched), (Some(true), Some(true)));
        assert_eq!(rows[0].movable, Some(false));
    }

    #[test]
    fn sets_of_version_1() {
        let (_dir, root) = tree(&[
            ("proc/mounts", "none /c cgroup rw,relatime,cpuset 0 0\nnone /m cgroup rw,memory 0 0"),
            ("c/cpuset.cpus", "0-3"),
            ("c/cpuset.sched_load_balance", "1"),
            ("c/shield/cpuset.cpus", "3"),
            ("c/shield/cpuset.effective_cpus", "3"),
            ("c/shield/cpuset.sched_load_balance", "0"),
            ("m/cpuset.cpus", "0-3"),
        ]);
        let rows = rows(&Scene::new(&root, 3));
        let seen: Vec<_> =
            rows.iter().map(|row| (row.name.as_str(), row.effective.as_deref().unwrap())).collect();
        assert_eq!(seen, [("/c", "0-3"), ("/shield", "3, not balanced")]);
        assert_eq!(rows[1].mechanism.as_deref(), Some("cpuset-v1"));
    }

    #[test]
    fn links_and_depth_do_not_lead_astray() {
        let (dir, root) = tree(&[
            ("proc/mounts", "none /c cgroup rw,cpuset 0 0"),
            ("c/cpuset.cpus", "0-3"),
            ("c/a/cpuset.cpus", "\u{0}\u{1}"),
        ]);
        std::os::unix::fs::symlink("..", dir.path().join("c/a/again")).unwrap();
        assert_eq!(rows(&Scene::new(&root, 3)).len(), 1);
    }
}
