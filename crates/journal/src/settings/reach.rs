//! What each kind of change may touch, whatever a journal or a plan says: nothing outside of the
//! kernel's own file systems and of what stillcore makes and names itself.

use machine::{Root, mounts};
use model::plan::StepKind;
use std::path::{Component, Path};
use sys::Error;

/// Of these a value may be written.
const SETTINGS: [&str; 3] = ["/proc/sys", "/proc/irq", "/sys"];
/// Held open as long as a value is to hold.
const HELD: &str = "/dev/cpu_dma_latency";
/// File systems of control groups, wherever they are mounted.
const GROUPS: [&str; 3] = ["cgroup", "cgroup2", "cpuset"];
/// What our own directories, instances and groups are called.
pub const OWN: &str = "stillcore-";

/// Refuses a setting that is none of its kind.
pub fn check(kind: StepKind, target: &str) -> Result<(), Error> {
    let before = |mark: char| Path::new(target.rsplit_once(mark).map_or(target, |(path, _)| path));
    let may = match kind {
        StepKind::File | StepKind::Kept => is_setting(Path::new(target)),
        StepKind::Flag => is_setting(before('#')),
        StepKind::Group => in_groups(Path::new(target)),
        StepKind::Controller => in_groups(before('#')),
        StepKind::Held => before('=') == Path::new(HELD),
        StepKind::Service => !target.contains('/') && !target.starts_with('-'),
        StepKind::Swap => is_plain(Path::new(target)),
        // Of a task its number and start say whether it is the one; affinities name no path.
        StepKind::Task | StepKind::Process | StepKind::Member | StepKind::Affinities => true,
    };
    allow(may, "a setting", target)
}

/// Refuses a value that names what no setting of its kind may touch: a process is moved to a group.
pub fn check_value(kind: StepKind, value: &str) -> Result<(), Error> {
    let may = kind != StepKind::Member || in_groups(Path::new(value));
    allow(may, "a value of a setting", value)
}

/// Refuses a change of `what` unless it may be made.
pub fn allow(may: bool, what: &str, target: &str) -> Result<(), Error> {
    let expected = "a setting of the kernel, or what stillcore has made itself";
    let refused = || model::Error::invalid("the journal", format!("{what} {target:?}"), expected);
    if may { Ok(()) } else { Err(refused().into()) }
}

/// Whether a path is absolute and leads nowhere but down.
pub fn is_plain(path: &Path) -> bool {
    path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

/// Whether the last name of a path begins so.
pub fn is_named(path: &Path, beginning: &str) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(beginning))
}

/// Whether a path lies in one of these places.
pub fn below(path: &Path, places: &[&str]) -> bool {
    places.iter().any(|place| path.starts_with(place) && path != Path::new(place))
}

/// Whether it is a file whose value is a setting of the kernel.
pub(crate) fn is_setting(path: &Path) -> bool {
    is_plain(path) && (below(path, &SETTINGS) || in_groups(path))
}

/// Whether it lies in a file system of control groups.
pub fn in_groups(path: &Path) -> bool {
    let all = mounts(&Root::live());
    let nearest = all.iter().filter(|mount| path.starts_with(&mount.target));
    let nearest = nearest.max_by_key(|mount| Path::new(&mount.target).components().count());
    is_plain(path) && nearest.is_some_and(|mount| GROUPS.contains(&mount.kind.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_target_is_refused_for_every_kind() {
        for kind in [
            StepKind::File,
            StepKind::Kept,
            StepKind::Flag,
            StepKind::Group,
            StepKind::Controller,
            StepKind::Held,
            StepKind::Service,
        ] {
            for target in ["/etc/shadow", "/sys/../etc/shadow#x", "/etc/x=1", "--now", "/proc/1/mem"] {
                assert!(check(kind, target).is_err(), "{kind:?} {target}");
            }
        }
    }

    /// `fs::write` makes the file that is not there, in each directory above in turn.
    #[test]
    fn a_process_is_moved_to_groups_alone() {
        for value in ["/srv/x", "/etc", "/", "", "relative", "/sys/fs/cgroup/../../../srv/x"] {
            assert!(check_value(StepKind::Member, value).is_err(), "{value}");
        }
        check_value(StepKind::File, "/srv/x").unwrap();
    }

    #[test]
    fn what_stillcore_sets_is_not() {
        for (kind, target) in [
            (StepKind::File, "/proc/irq/12/smp_affinity_list"),
            (StepKind::Flag, "/sys/kernel/debug/sched/features#HRTICK"),
            (StepKind::Held, "/dev/cpu_dma_latency=0"),
            (StepKind::Service, "irqbalance.service"),
        ] {
            check(kind, target).unwrap();
        }
        // Groups are where this machine has mounted them, if it has.
        let root = mounts(&Root::live()).into_iter().find(|mount| GROUPS.contains(&mount.kind.as_str()));
        if let Some(mount) = root {
            let target = Path::new(&mount.target).join("stillcore-1").display().to_string();
            check(StepKind::Group, &target).unwrap();
            check_value(StepKind::Member, &target).unwrap();
            check_value(StepKind::Member, &mount.target).unwrap();
        }
    }
}
