//! Control groups for disturbances: planned first, so that they can be journalled, then created,
//! and removed with all they hold.
//!
//! Version 1 and 2 are used as they are mounted; nothing is mounted, no controller is enabled and
//! no partition is made, because each of these changes the machine under measurement. Creating the
//! first cpuset patches kernel text on every CPU, so groups are made before the first window and
//! removed after the last. Kernel documents: `admin-guide/cgroup-v2.rst`,
//! `admin-guide/cgroup-v1/{cpusets,memory,pids}.rst`; proc(5), `mountinfo`.

use super::{Error, Order, StressorSpec, catalogue};
use crate::cgroup::{PREFIX, members, remove};
use crate::protocol::Group;
use model::Cpus;
use rustix::fs::{Access, access};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What all disturbances together may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u64,
}

impl Room {
    /// What these orders need together. Small stressors share a floor of 256 MiB.
    pub fn of(orders: &[Order]) -> Result<Self, Error> {
        let specs = orders.iter().map(|order| Ok((order, catalogue::find(&order.name)?)));
        let specs = specs.collect::<Result<Vec<_>, Error>>()?;
        let memory = |(order, spec): &(&Order, &StressorSpec)| {
            let asked = order.bytes.is_some() || order.workers.is_some();
            spec.memory_bytes.saturating_add(if asked { (spec.fills)(order) } else { 0 })
        };
        Ok(Self {
            memory_bytes: specs.iter().map(memory).fold(0, u64::saturating_add).max(LEAST_MEMORY),
            processes: specs.iter().map(|(_, spec)| spec.processes).sum(),
        })
    }
}

const LEAST_MEMORY: u64 = 256 << 20;
/// What confines a disturbance, in the order of records.
const CONTROLLERS: [&str; 3] = ["cpuset", "memory", "pids"];

/// The groups to be created, and what will be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// One directory each, none of which exists yet.
    pub groups: Vec<Planned>,
    /// Controllers that will not confine, with the reason.
    pub lacking: Vec<String>,
}

/// One group to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Its directory, named `stillcore-PID`.
    pub dir: PathBuf,
    /// What it confines.
    pub controllers: Vec<String>,
    /// In the order in which they must be written.
    pub settings: Vec<Setting>,
}

/// A file of a group, and what to write to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub file: String,
    /// The value.
    pub value: String,
}

impl Plan {
    /// The directories that [`create`] will make.
    pub fn directories(&self) -> Vec<PathBuf> {
        self.groups.iter().map(|group| group.dir.clone()).collect()
    }
}

/// Plans the groups of the process `pid` for stressors on `cpus`, from what is mounted under `root`
/// and writable by the caller.
pub fn plan(root: &Path, pid: u32, cpus: &Cpus, room: Room) -> Plan {
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let (mounts, own) = (text("proc/self/mountinfo"), text("proc/self/cgroup"));
    let name = format!("{PREFIX}{pid}");
    let mut plan = Plan::default();
    for mount in mounts.lines().filter_map(parse_mount) {
        let Some(parent) = parent_of(root, &mount, &own) else { continue };
        let controllers = controllers_in(&mount, &parent);
        let taken =
            |name: &str| plan.groups.iter().any(|group| group.controllers.iter().any(|one| one == name));
        let controllers: Vec<String> = controllers.into_iter().filter(|name| !taken(name)).collect();
        // A version 2 group without controllers is still worth having: it holds the members
        // together, for cgroup.kill.
        let useful = mount.version == 2 || !controllers.is_empty();
        if useful && access(&parent, Access::WRITE_OK | Access::EXEC_OK).is_ok() {
            let settings = settings(&mount, &parent, &controllers, cpus, room);
            plan.groups.push(Planned { dir: parent.join(&name), controllers, settings });
        }
    }
    let has = |name: &&str| plan.groups.iter().any(|group| group.controllers.iter().any(|one| one == name));
    plan.lacking = CONTROLLERS
        .iter()
        .filter(|name| !has(name))
        .map(|name| format!("{name}: no writable group"))
        .collect();
    plan
}

/// The directories in which the caller may make groups of its own, one a hierarchy that has a
/// controller that confines, or is of version 2.
pub fn parents(root: &Path) -> Vec<PathBuf> {
    let planned = plan(root, 0, &Cpus::default(), Room { memory_bytes: 0, processes: 0 });
    planned.groups.iter().filter_map(|group| group.dir.parent().map(Path::to_owned)).collect()
}

/// One mounted hierarchy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) version: u8,
    /// The part of the hierarchy that is visible here.
    visible: String,
    pub(super) target: String,
    /// Version 1: its controllers.
    options: Vec<String>,
}

/// A line of mountinfo: id, parent, device, visible root, target, options, any number of fields,
/// `-`, type, source, super options.
pub(super) fn parse_mount(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut kind = kind.split_whitespace();
    let version = match kind.next()? {
        "cgroup" => 1,
        "cgroup2" => 2,
        _ => return None,
    };
    let options = kind.nth(1)?.split(',').map(str::to_owned).collect();
    let mut place = place.split_whitespace().skip(3).map(str::to_owned);
    Some(Mount { version, visible: place.next()?, target: place.next()?, options })
}

/// The directory in which a group may be made: our own group in version 1, and in version 2 its
/// parent, because there a group that has processes may not have groups with controllers below it.
/// Limits that we are under stay in force.
fn parent_of(root: &Path, mount: &Mount, own: &str) -> Option<PathBuf> {
    let ours = own_directory(root, mount, own)?;
    let top = root.join(mount.target.trim_start_matches('/'));
    let above = ours.parent().filter(|above| mount.version == 2 && above.starts_with(top));
    Some(above.unwrap_or(&ours).to_owned())
}

/// The directory of our own group; `own` is the text of `/proc/self/cgroup`.
pub(super) fn own_directory(root: &Path, mount: &Mount, own: &str) -> Option<PathBuf> {
    let mine = own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let ours = match mount.version {
            2 => controllers.is_empty(),
            _ => controllers
                .split(',')
                .any(|name| !name.is_empty() && mount.options.iter().any(|option| option == name)),
        };
        ours.then_some(path)
    })?;
    let below = Path::new(mine).strip_prefix(&mount.visible).ok()?;
    // A path that climbs out of the cgroup namespace is not to be seen from here.
    if below.components().any(|part| matches!(part, std::path::Component::ParentDir)) {
        return None;
    }
    Some(root.join(mount.target.trim_start_matches('/')).join(below))
}

fn controllers_in(mount: &Mount, parent: &Path) -> Vec<String> {
    let enabled = fs::read_to_string(parent.join("cgroup.subtree_control")).unwrap_or_default();
    let usable = |name: &str| match mount.version {
        2 => enabled.split_whitespace().any(|word| word == name),
        _ => mount.options.iter().any(|option| option == name),
    };
    CONTROLLERS.iter().filter(|name| usable(name)).map(|name| (*name).to_owned()).collect()
}

fn settings(mount: &Mount, parent: &Path, controllers: &[String], cpus: &Cpus, room: Room) -> Vec<Setting> {
    let set = |file: &str, value: String| Setting { file: file.to_owned(), value };
    let mut settings = Vec::new();
    for controller in controllers {
        match (controller.as_str(), mount.version) {
            ("cpuset", 1) => {
                let mems = fs::read_to_string(parent.join("cpuset.mems")).unwrap_or_default();
                // Balancing is left to the parent, and switched off while the set is empty: the
                // other order rebuilds the scheduling domains of the whole machine.
                settings.push(set("cpuset.sched_load_balance", "0".to_owned()));
                settings.push(set("cpuset.mems", mems.trim().to_owned()));
                settings.push(set("cpuset.cpus", cpus.to_string()));
            }
            ("cpuset", _) => {
                settings.extend(shared_here(parent, cpus).map(|cpus| set("cpuset.cpus", cpus.to_string())));
            }
            ("memory", 1) => settings.push(set("memory.limit_in_bytes", room.memory_bytes.to_string())),
            ("memory", _) => settings.push(set("memory.max", room.memory_bytes.to_string())),
            _ => settings.push(set("pids.max", room.processes.to_string())),
        }
    }
    settings
}

/// Those of the CPUs that no partition has taken out of the parent group; nothing where none is
/// left. A group that named a CPU of a partition's would make that invalid, and the machine would
/// be isolated no longer. A stressor that has to have a process there sends it into the partition.
fn shared_here(parent: &Path, cpus: &Cpus) -> Option<Cpus> {
    // A kernel without this file has no partitions.
    let Ok(effective) = fs::read_to_string(parent.join("cpuset.cpus.effective")) else {
        return Some(cpus.clone());
    };
    let shared = effective.trim().parse::<Cpus>().unwrap_or_default().and(cpus);
    (!shared.is_empty()).then_some(shared)
}

/// The groups that were created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// To be passed on to the stressors, which enter them.
    pub groups: Vec<Group>,
    /// What does not confine, with the reason.
    pub lacking: Vec<String>,
}

impl Confinement {
    /// Removes all groups and whatever they still hold; returns what could not be removed.
    pub fn remove(&self) -> Vec<Error> {
        self.groups.iter().filter_map(|group| remove(&group.dir).err()).collect()
    }
}

/// Creates all that was planned, [one by one](create_one). A group that cannot be made or set is
/// left out, with the reason: stressors are confined by their affinity and limits in any case.
pub fn create(plan: &Plan) -> Confinement {
    let mut made = Confinement { groups: Vec::new(), lacking: plan.lacking.clone() };
    for planned in &plan.groups {
        match create_one(planned) {
            Ok(group) => made.groups.push(group),
            Err(error) => made.lacking.push(format!("{}: {error}", planned.controllers.join(","))),
        }
    }
    made
}

/// Creates one planned group. When this is an error, nothing was left behind.
pub fn create_one(planned: &Planned) -> Result<Group, Error> {
    match fs::create_dir(&planned.dir) {
        Ok(()) => {}
        // Left by a process that had this id before.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && members(&planned.dir).is_empty() => {}
        Err(error) => return Err(Error::io("create", &planned.dir, error)),
    }
    let write = |setting: &Setting| {
        let path = planned.dir.join(&setting.file);
        fs::write(&path, &setting.value).map_err(|error| Error::io("write", &path, error))
    };
    let set = planned.settings.iter().try_for_each(write).inspect_err(|_| {
        let _ = fs::remove_dir(&planned.dir);
    });
    set.map(|()| Group { dir: planned.dir.clone(), controllers: planned.controllers.clone() })
}
#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { memory_bytes: 1 << 28, processes: 99 };
    const V2: &str = "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "33 22 0:29 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n\
        34 22 0:30 /box /cg/memory rw - cgroup cgroup rw,memory\n\
        35 22 0:31 / /cg/unified rw - cgroup2 cgroup2 rw\n\
        36 22 0:32 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";

    fn tree(mounts: &str, own: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let all = [("proc/self/mountinfo", mounts), ("proc/self/cgroup", own)];
        for (path, text) in all.iter().chain(files) {
            fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            fs::write(root.path().join(path), text).unwrap();
        }
        root
    }

    #[test]
    fn version_2_makes_a_sibling_with_what_its_parent_has_enabled() {
        let control = ("sys/fs/cgroup/user.slice/cgroup.subtree_control", "memory pids\n");
        let root = tree(V2, "0::/user.slice/session-1.scope\n", &[control]);
        let plan = plan(root.path(), 42, &Cpus::from_iter([0, 1]), ROOM);
        assert_eq!(plan.directories(), [root.path().join("sys/fs/cgroup/user.slice/stillcore-42")]);
        assert_eq!(plan.groups[0].controllers, ["memory", "pids"]);
        let value = ROOM.memory_bytes.to_string();
        assert_eq!(plan.groups[0].settings[0], Setting { file: "memory.max".into(), value });
        assert_eq!(plan.lacking, ["cpuset: no writable group"]);
    }

    #[test]
    fn a_group_never_names_a_cpu_of_a_partition() {
        let control = ("sys/fs/cgroup/cgroup.subtree_control", "cpuset\n");
        for (effective, expected) in [("0-1,3\n", Some("0,1")), ("3\n", None), ("", None)] {
            let effective = ("sys/fs/cgroup/cpuset.cpus.effective", effective);
            let root = tree(V2, "0::/\n", &[control, effective]);
            let plan = plan(root.path(), 42, &Cpus::from_iter([0, 1, 2]), ROOM);
            let named = plan.groups[0].settings.iter().find(|one| one.file == "cpuset.cpus");
            assert_eq!(named.map(|one| one.value.as_str()), expected);
        }
        let root = tree(V2, "0::/\n", &[control]);
        let plan = plan(root.path(), 42, &Cpus::from_iter([0, 1, 2]), ROOM);
        let expected = Setting { file: "cpuset.cpus".to_owned(), value: "0-2".to_owned() };
        assert_eq!(plan.groups[0].settings, [expected]);
    }

    #[test]
    fn version_1_makes_one_below_our_own_in_each_hierarchy_that_confines() {
        let own = "5:memory:/box/inner\n4:cpuset:/\n3:cpu,cpuacct:/\n0::/\n";
        let files = [
            ("cg/memory/inner/x", ""),
            ("cg/cpuset/cpuset.mems", "0-1\n"),
            ("cg/unified/x", ""),
            ("cg/cpu/x", ""),
        ];
        let root = tree(V1, own, &files);
        let plan = plan(root.path(), 42, &Cpus::from_iter([0, 1, 2]), ROOM);
        let dirs = ["cg/cpuset/stillcore-42", "cg/memory/inner/stillcore-42", "cg/unified/stillcore-42"];
        assert_eq!(plan.directories(), dirs.map(|dir| root.path().join(dir)));
        let cpuset: Vec<_> =
            plan.groups[0].settings.iter().map(|one| format!("{}={}", one.file, one.value)).collect();
        assert_eq!(cpuset, ["cpuset.sched_load_balance=0", "cpuset.mems=0-1", "cpuset.cpus=0-2"]);
        assert_eq!(plan.lacking, ["pids: no writable group"]);
    }

    #[test]
    fn what_cannot_be_seen_or_is_not_mounted_confines_nothing() {
        for (mounts, own) in [(V2, "0::/../other\n"), ("", ""), ("1 2 garbage\n- - -\n", "0\n::\n")] {
            let root = tree(mounts, own, &[("sys/fs/cgroup/cgroup.subtree_control", "cpuset memory pids")]);
            let plan = plan(root.path(), 42, &Cpus::one(0), ROOM);
            assert!(plan.groups.is_empty(), "{plan:?}");
            assert_eq!(plan.lacking.len(), CONTROLLERS.len());
        }
    }

    #[test]
    fn only_our_names_are_removed_and_removing_twice_is_fine() {
        let root = tempfile::tempdir().unwrap();
        for name in ["system.slice", "stillcore-", "stillcore-4x", "stillcore-4-", "stillcore", ".."] {
            let dir = root.path().join(name);
            let _ = fs::create_dir(&dir);
            assert!(matches!(remove(&dir), Err(Error::NotOurs { .. })), "{name}");
            assert!(dir.exists());
        }
        let ours = root.path().join("stillcore-42-3");
        fs::create_dir_all(ours.join("a/b")).unwrap();
        remove(&ours).unwrap();
        assert!(!ours.exists());
        remove(&ours).unwrap();
        std::os::unix::fs::symlink("/", &ours).unwrap();
        assert!(matches!(remove(&ours), Err(Error::NotOurs { .. })));
    }

    #[test]
    fn a_group_that_cannot_be_set_is_left_out_and_taken_away_again() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("stillcore-42");
        let planned = Planned {
            dir: dir.clone(),
            controllers: vec!["pids".into()],
            settings: vec![Setting { file: "no/such/file".into(), value: "1".into() }],
        };
        let made = create(&Plan { groups: vec![planned], lacking: vec![] });
        assert!(
            made.groups.is_empty() && made.lacking[0].contains("no/such/file") && !dir.exists(),
            "{made:?}"
        );
    }
}
