//! What each kind of change may touch, whatever a journal or a plan says: nothing outside of the
//! kernel's own file systems and of what stillcore makes and names itself.

use super::undo::Transient;
use crate::error::Error;
use crate::machine::{Root, mounts};
use crate::record::kprobe;
use crate::sys::modules;
use model::plan::StepKind;
use std::path::{Component, Path};

/// Of these a value may be written.
const SETTINGS: [&str; 3] = ["/proc/sys", "/proc/irq", "/sys"];
/// Held open as long as a value is to hold.
const HELD: &str = "/dev/cpu_dma_latency";
/// Where kernel modules lie.
const MODULES: [&str; 2] = ["/lib/modules", "/usr/lib/modules"];
/// File systems of control groups, wherever they are mounted.
const GROUPS: [&str; 3] = ["cgroup", "cgroup2", "cpuset"];
/// What our own directories, instances and groups are called.
const OWN: &str = "stillcore-";
/// Our own mount points of tracefs, in a state directory.
const TRACEFS: &str = "tracefs-";
/// The groups of our own kernel probes.
const PROBES: [&str; 2] = ["stillcore/", "stillcore_stress/"];

/// Refuses a change that lasts as long as a run, of a target that is none of its kind.
pub(super) fn transient(kind: Transient, target: &str) -> Result<(), Error> {
    let path = Path::new(target);
    let may = match kind {
        Transient::Directory | Transient::TracefsMount => is_plain(path) && is_named(path, TRACEFS),
        Transient::TraceInstance => {
            let above = path.parent().and_then(Path::file_name);
            is_plain(path) && above.is_some_and(|above| above == "instances") && is_named(path, OWN)
        }
        Transient::Kprobe => kprobe::of_target(target).is_some_and(|(file, event)| {
            let file_is_one = file.file_name().is_some_and(|name| name == "kprobe_events");
            is_plain(file) && file_is_one && PROBES.iter().any(|group| event.starts_with(group))
        }),
        Transient::Cgroup => is_named(path, OWN) && in_groups(path),
        Transient::Value => is_setting(path),
        Transient::Module => {
            modules::of_target(target).is_some_and(|(_, file)| is_plain(file) && below(file, &MODULES))
        }
        // Of a process its number and start say whether it is the one; affinities name no path.
        Transient::Process | Transient::Affinities => true,
    };
    if may { Ok(()) } else { Err(refused(kind.id(), target)) }
}

/// Refuses a change that stands, of a target that is none of its kind.
pub(super) fn standing(kind: StepKind, target: &str) -> Result<(), Error> {
    let before = |mark: char| Path::new(target.rsplit_once(mark).map_or(target, |(path, _)| path));
    let may = match kind {
        StepKind::File | StepKind::Kept => is_setting(Path::new(target)),
        StepKind::Flag => is_setting(before('#')),
        StepKind::Group => in_groups(Path::new(target)),
        StepKind::Controller => in_groups(before('#')),
        StepKind::Held => before('=') == Path::new(HELD),
        StepKind::Service => !target.contains('/') && !target.starts_with('-'),
        StepKind::Swap => is_plain(Path::new(target)),
        StepKind::Task | StepKind::Process | StepKind::Member | StepKind::Affinities => true,
    };
    if may { Ok(()) } else { Err(refused("a change", target)) }
}

fn refused(what: &str, target: &str) -> Error {
    let expected = "a setting of the kernel, or what stillcore has made itself";
    model::Error::invalid("the journal", format!("{what} of {target:?}"), expected).into()
}

/// Whether a path is absolute and leads nowhere but down.
fn is_plain(path: &Path) -> bool {
    path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

fn is_named(path: &Path, beginning: &str) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(beginning))
}

fn below(path: &Path, places: &[&str]) -> bool {
    places.iter().any(|place| path.starts_with(place) && path != Path::new(place))
}

fn is_setting(path: &Path) -> bool {
    is_plain(path) && (below(path, &SETTINGS) || in_groups(path))
}

/// Whether it lies in a file system of control groups.
fn in_groups(path: &Path) -> bool {
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
        let kinds = [
            Transient::Directory,
            Transient::TracefsMount,
            Transient::TraceInstance,
            Transient::Kprobe,
            Transient::Cgroup,
            Transient::Value,
            Transient::Module,
        ];
        for kind in kinds {
            for target in [
                "/etc/shadow",
                "/etc/cron.d/x",
                "/sys/../etc/shadow",
                "/proc/sys/../../etc/shadow",
                "/proc/1/mem",
                "/sys",
                "etc/shadow",
                "",
                "/srv/x/stillcore-1",
                "x#/srv/x/evil.ko",
                "/srv/x/kprobe_events#other/x",
            ] {
                assert!(transient(kind, target).is_err(), "{kind:?} {target}");
            }
        }
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
                assert!(standing(kind, target).is_err(), "{kind:?} {target}");
            }
        }
    }

    #[test]
    fn what_stillcore_changes_is_not() {
        for (kind, target) in [
            (Transient::Directory, "/var/lib/stillcore/tracefs-12"),
            (Transient::TracefsMount, "/var/lib/stillcore/tracefs-12"),
            (Transient::TraceInstance, "/sys/kernel/tracing/instances/stillcore-12-sender"),
            (Transient::Value, "/proc/sys/vm/stat_interval"),
            (Transient::Value, "/sys/devices/system/cpu/cpu1/online"),
            (Transient::Process, "12-34"),
        ] {
            transient(kind, target).unwrap();
        }
        for (kind, target) in [
            (StepKind::File, "/proc/irq/12/smp_affinity_list"),
            (StepKind::Flag, "/sys/kernel/debug/sched/features#HRTICK"),
            (StepKind::Held, "/dev/cpu_dma_latency=0"),
            (StepKind::Service, "irqbalance.service"),
        ] {
            standing(kind, target).unwrap();
        }
        // Groups are where this machine has mounted them, if it has.
        let root = mounts(&Root::live()).into_iter().find(|mount| GROUPS.contains(&mount.kind.as_str()));
        if let Some(mount) = root {
            let target = Path::new(&mount.target).join("stillcore-1").display().to_string();
            transient(Transient::Cgroup, &target).unwrap();
            standing(StepKind::Group, &target).unwrap();
        }
    }
}
