//! Daemons that work against isolation, above all irqbalance.
//!
//! irqbalance(1): where its environment names CPUs to spare, as a hex mask without `0x` or (from
//! 1.8 on) as a list, it spares those alone; the mask wins over the list (`cputree.c`,
//! setup_banned_cpus). Otherwise it reads `isolated` and `nohz_full` under
//! `/sys/devices/system/cpu`. CPUs of a cpuset partition are in neither before 6.18, so the file is
//! read here, not the topology.

use super::super::catalogue::{Daemon, Mechanism};
use super::remedy::{Off, propose};
use super::unread::Unread;
use super::{Outcome, Scene, named, some_of};
use machine::{Process, isolated_at_boot, memberships};
use model::plan::StepKind;
use model::{Cpus, FindingState};

/// The environment variables that name the CPUs the daemon is to spare.
pub(super) struct Spared<'a> {
    pub(super) list: Option<&'a str>,
    pub(super) hex: Option<&'a str>,
}

/// A daemon that was found, and the unit it would be of.
struct Found<'a> {
    process: &'a Process,
    unit: &'a str,
}

/// The daemon and the others that do the same.
pub(super) fn names(unit: &str, process: &str, others: &[Daemon]) -> Vec<Daemon> {
    let own = Daemon { unit: unit.to_owned(), process: process.to_owned() };
    std::iter::once(own).chain(others.iter().cloned()).collect()
}

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism, daemons: &[Daemon], spared: &Spared) -> Outcome {
    let found = find(scene, daemons);
    let (stopped, awake): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| found.process.stopped);
    if awake.is_empty() {
        return asleep(scene, daemons, &stopped);
    }
    let mut exposed = Vec::new();
    for daemon in &awake {
        match spares(scene, daemon.process, spared) {
            Ok(known) => exposed.push((daemon, scene.cpus.minus(&known))),
            Err(error) => {
                return Outcome::unknown(format!(
                    "{} runs, and which CPUs it spares is not to be seen: {error}",
                    daemon.process.name
                ));
            }
        }
    }
    exposed.retain(|(_, cpus)| !cpus.is_empty());
    let Some((first, cpus)) = exposed.first() else {
        let names = running(&awake);
        return Outcome::ok(format!("{names} runs and leaves {} alone", named(scene.cpus)))
            .having("running")
            .in_effect(format!("spares {}", named(scene.cpus)));
    };
    let reason = if spared.list.is_some() || spared.hex.is_some() {
        format!("{} runs and knows nothing of {}: {}", first.process.name, named(cpus), mechanism.harm)
    } else {
        let all: Vec<_> = exposed.iter().map(|(daemon, _)| Found { ..**daemon }).collect();
        format!("{} runs: {}", running(&all), mechanism.harm)
    };
    let mut off: Vec<_> = exposed.iter().map(|(daemon, _)| off(scene, daemon)).collect();
    off.dedup();
    let outcome = propose(scene, mechanism, &off, reason).having("running");
    if outcome.state == FindingState::Fixable { outcome.cured_by(stop(&off)) } else { outcome }
}

/// None of them does anything.
fn asleep(scene: &Scene, daemons: &[Daemon], stopped: &[Found]) -> Outcome {
    let names = some_of(&daemons.iter().map(|daemon| daemon.process.clone()).collect::<Vec<_>>());
    if let [first, ..] = stopped {
        let process = first.process;
        let reason = format!("{} is stopped, and does nothing until it is resumed", process.name);
        return Outcome::ok(reason).having("stopped");
    }
    if scene.processes().kernel.is_empty() {
        // A container or hidepid= shows own processes only.
        return Outcome::unknown(format!("not all processes are to be seen from here, {names} might run"));
    }
    let verb = if daemons.len() == 1 { "does" } else { "do" };
    Outcome::ok(format!("{names} {verb} not run")).having("not running")
}

fn running(found: &[Found]) -> String {
    let mut names: Vec<_> = found.iter().map(|found| found.process.name.clone()).collect();
    names.dedup();
    some_of(&names)
}

/// What was there before and is there after: `running`, `stopped` or `not running`.
pub(super) fn value(scene: &Scene, daemons: &[Daemon]) -> String {
    let found = find(scene, daemons);
    match found.iter().find(|found| !found.process.stopped) {
        Some(_) => "running",
        None if found.is_empty() => "not running",
        None => "stopped",
    }
    .to_owned()
}

fn find<'a>(scene: &'a Scene, daemons: &'a [Daemon]) -> Vec<Found<'a>> {
    let named = |process: &'a Process| {
        let daemon = daemons.iter().find(|daemon| daemon.process == process.name)?;
        Some(Found { process, unit: &daemon.unit })
    };
    scene.processes().user.iter().filter_map(named).collect()
}

/// The CPUs that a daemon leaves alone: those of its environment, or those it reads where that
/// names none. No CPUs for a daemon without such a variable.
fn spares(scene: &Scene, daemon: &Process, spared: &Spared) -> Result<Cpus, Unread> {
    if spared.list.is_none() && spared.hex.is_none() {
        return Ok(Cpus::default());
    }
    let read = || isolated_at_boot(scene.root).or(&scene.machine.topology.nohz_full);
    Ok(cpus_in_environment(scene, daemon, spared)?.unwrap_or_else(read))
}

/// The CPUs to spare by its environment, if it names any, or explicitly none. Only root may read
/// the environment of another user's process, and a capture made without root lacks it.
fn cpus_in_environment(scene: &Scene, daemon: &Process, spared: &Spared) -> Result<Option<Cpus>, Unread> {
    let file = format!("proc/{}/environ", daemon.pid);
    let environment = scene.root.text(&file)?.ok_or(Unread::Absent(file))?;
    let value = |name: Option<&str>| {
        let name = name?;
        let set = environment.split('\0').find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='));
        set.filter(|text| !text.is_empty())
    };
    // What it cannot read it takes for none.
    let hex = value(spared.hex).map(|text| Cpus::parse_hex(text).unwrap_or_default());
    let list = || value(spared.list).map(|text| Cpus::parse_list(text).unwrap_or_default());
    Ok(hex.or_else(list))
}

/// A service is stopped. A process without a unit, which nobody would start again, is only paused
/// (SIGSTOP), so that undoing resumes the very same one. systemd knows nothing of a daemon that
/// somebody has started by hand, whatever the name of its unit.
fn off(scene: &Scene, daemon: &Found) -> Off {
    let Found { process, unit } = daemon;
    if systemd(scene) && is_of(scene, process, unit) {
        Off { kind: StepKind::Service, target: (*unit).to_owned(), old: "active".to_owned() }
    } else {
        let target = format!("{}/{}/{}", process.pid, process.start, process.name);
        Off { kind: StepKind::Process, target, old: "running".to_owned() }
    }
}

/// Whether a process is in the unit's control group; one whose group is not to be seen is taken to
/// be.
fn is_of(scene: &Scene, process: &Process, unit: &str) -> bool {
    let groups = memberships(scene.root, process.pid);
    groups.is_none_or(|groups| groups.iter().any(|group| group.is_within(unit)))
}

pub(super) fn systemd(scene: &Scene) -> bool {
    scene.root.has("run/systemd/system") || (!scene.root.is_live() && scene.root.has("etc/systemd/system"))
}

/// systemd would start a killed service again.
fn stop(off: &[Off]) -> String {
    let one = |off: &Off| match off.kind {
        StepKind::Service => format!("systemctl disable --now {}", off.target),
        _ => format!("kill {}", off.target.split('/').next().unwrap_or_default()),
    };
    off.iter().map(one).collect::<Vec<_>>().join(" && ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    const IRQBALANCE: (&str, &str) = ("proc/9/stat", "9 (irqbalance) S 1 0 0 0 -1 4194560 0");
    const KTHREADD: [(&str, &str); 2] = [
        ("proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0"),
        ("proc/2/status", "Cpus_allowed_list:\t0-3"),
    ];

    fn with_environment(environment: &str) -> String {
        let files = [KTHREADD[0], KTHREADD[1], IRQBALANCE, ("proc/9/environ", environment)];
        judged("irqbalance", &with_cpus(&files)).0
    }

    #[test]
    fn cpus_named_in_either_spelling_are_spared() {
        assert_eq!(with_environment("IRQBALANCE_BANNED_CPULIST=2-3"), "ok");
        assert_eq!(with_environment("A=b\0IRQBALANCE_BANNED_CPUS=0000000c\0"), "ok");
        assert_eq!(with_environment("IRQBALANCE_BANNED_CPULIST=1-2"), "fixable");
        assert_eq!(with_environment("IRQBALANCE_BANNED_CPUS=0xc"), "fixable", "it refuses 0x too");
        assert_eq!(with_environment("IRQBALANCE_BANNED_CPUS=0\0IRQBALANCE_BANNED_CPULIST=2-3"), "fixable");
    }

    #[test]
    fn its_environment_replaces_what_it_reads() {
        let isolated = |environment| {
            let boot = ("sys/devices/system/cpu/isolated", "2-3");
            let files = [KTHREADD[0], KTHREADD[1], IRQBALANCE, boot, ("proc/9/environ", environment)];
            judged("irqbalance", &with_cpus(&files)).0
        };
        assert_eq!(isolated("A=b"), "ok");
        assert_eq!(isolated("IRQBALANCE_BANNED_CPUS=00000000"), "fixable");
    }

    #[test]
    fn what_is_stopped_does_nothing() {
        let stopped = ("proc/9/stat", "9 (irqbalance) T 1 0 0 0 -1 4194560 0");
        let (state, reason, _) = judged("irqbalance", &with_cpus(&[KTHREADD[0], KTHREADD[1], stopped]));
        assert!(state == "ok" && reason.contains("is stopped"), "{state}: {reason}");
        let second = ("proc/10/stat", "10 (irqbalance) S 1 0 0 0 -1 4194560 0");
        let files = [KTHREADD[0], KTHREADD[1], stopped, second, ("proc/10/environ", "A=b")];
        assert_eq!(judged("irqbalance", &with_cpus(&files)).0, "fixable", "another one runs");
    }

    /// The unit may be there and somebody may have started another by hand, or only that one.
    #[test]
    fn only_what_the_unit_holds_is_stopped_with_it() {
        let under_systemd = |group: &str| {
            let unit = ("etc/systemd/system/multi-user.target.wants/irqbalance.service", "");
            let files = [
                KTHREADD[0],
                KTHREADD[1],
                IRQBALANCE,
                unit,
                ("proc/9/environ", "A=b"),
                ("proc/9/cgroup", group),
                ("proc/20/stat", "20 (irqbalance) S 1 0 0 0 -1 4194560 0"),
                ("proc/20/environ", "A=b"),
                ("proc/20/cgroup", "0::/user.slice/user-0.slice/session-1.scope"),
            ];
            judged("irqbalance", &with_cpus(&files)).2
        };
        let of_unit = under_systemd("0::/system.slice/irqbalance.service");
        assert_eq!(of_unit, "systemctl disable --now irqbalance.service && kill 20");
        let of_version_1 = under_systemd("3:cpu:/\n1:name=systemd:/system.slice/irqbalance.service");
        assert_eq!(of_version_1, of_unit);
        assert_eq!(under_systemd("0::/system.slice/ssh.service"), "kill 9 && kill 20");
    }

    #[test]
    fn a_view_without_kernel_threads_proves_nothing() {
        let (state, reason, _) = judged("irqbalance", &with_cpus(&[]));
        assert!(state == "unknown" && reason.contains("might run"), "{reason}");
        let (state, _, remedy) = judged("irqbalance", &with_cpus(&[IRQBALANCE, ("proc/9/environ", "")]));
        assert_eq!((state.as_str(), remedy.as_str()), ("fixable", "kill 9"), "no systemd here");
        assert_eq!(
            judged("irqbalance", &with_cpus(&[IRQBALANCE])).0,
            "unknown",
            "its environment is not known"
        );
        assert_eq!(judged("irqbalance", &with_cpus(&KTHREADD)).0, "ok");
    }
}
