//! Daemons that work against isolation, above all irqbalance.
//!
//! irqbalance(1): where its environment names CPUs to spare, as a hex mask without `0x` or (from 1.8 on) as a list, it spares those
//! alone; the mask wins over the list (`cputree.c`, setup_banned_cpus). Otherwise it reads `isolated` and `nohz_full` under
//! `/sys/devices/system/cpu`. CPUs of a cpuset partition are in neither before 6.18, so the file is read here, not the topology.

use super::super::catalogue::Mechanism;
use super::remedy::{Off, propose};
use super::{Outcome, Scene, named};
use crate::machine::Process;
use model::plan::StepKind;
use model::{Cpus, FindingState};

/// The environment variables by which the daemon is told to spare CPUs.
pub(super) struct Spared<'a> {
    pub(super) list: Option<&'a str>,
    pub(super) hex: Option<&'a str>,
}

pub(super) fn judge(
    scene: &Scene,
    mechanism: &Mechanism,
    unit: &str,
    process: &str,
    spared: &Spared,
) -> Outcome {
    let running = scene.processes();
    let Some(daemon) = find(scene, process) else {
        if running.kernel.is_empty() {
            // A container or hidepid= shows own processes only.
            return Outcome::unknown(format!(
                "not all processes are to be seen from here, {process} might run"
            ));
        }
        return Outcome::ok(format!("{process} does not run")).having("not running");
    };
    let topology = &scene.machine.topology;
    let spares = spared.list.is_some() || spared.hex.is_some();
    let told = match told(scene, daemon, spared) {
        Ok(told) => told,
        Err(_) if !spares => None,
        Err(error) => {
            return Outcome::unknown(format!(
                "{process} runs, and which CPUs it spares is not to be seen: {error}"
            ));
        }
    };
    let booted = || scene.root.cpus("sys/devices/system/cpu/isolated").unwrap_or_default();
    let known = told.unwrap_or_else(|| booted().or(&topology.nohz_full));
    let exposed = scene.cpus.minus(&known);
    if spares && exposed.is_empty() {
        let reason = format!("{process} runs and leaves {} alone", named(scene.cpus));
        return Outcome::ok(reason).having("running").in_effect(format!("spares {}", named(&known)));
    }
    let reason = if spares {
        format!("{process} runs and knows nothing of {}: {}", named(&exposed), mechanism.harm)
    } else {
        format!("{process} runs: {}", mechanism.harm)
    };
    let outcome = propose(scene, mechanism, &[off(scene, unit, daemon)], reason).having("running");
    if outcome.state == FindingState::Fixable { outcome.cured_by(stop(scene, unit, daemon)) } else { outcome }
}

pub(super) fn value(scene: &Scene, process: &str) -> String {
    if find(scene, process).is_some() { "running".to_owned() } else { "not running".to_owned() }
}

fn find<'a>(scene: &'a Scene, process: &str) -> Option<&'a Process> {
    scene.processes().user.iter().find(|candidate| candidate.name == process)
}

/// The CPUs its environment tells it to spare, if it names any or none in so many words. Only root may read the environment of another user's process, and a capture made
/// without root lacks it.
fn told(scene: &Scene, daemon: &Process, spared: &Spared) -> Result<Option<Cpus>, String> {
    let file = format!("proc/{}/environ", daemon.pid);
    let text = scene.root.text(&file).map_err(|error| error.to_string())?;
    let environment = text.ok_or_else(|| format!("there is no /{file}"))?;
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

/// A service is stopped; a process that nobody would start again is only held, so that undoing gives the very same one back.
fn off(scene: &Scene, unit: &str, daemon: &Process) -> Off {
    if systemd(scene) {
        Off { kind: StepKind::Service, target: unit.to_owned(), old: "active".to_owned() }
    } else {
        let target = format!("{}/{}/{}", daemon.pid, daemon.start, daemon.name);
        Off { kind: StepKind::Process, target, old: "running".to_owned() }
    }
}

pub(super) fn systemd(scene: &Scene) -> bool {
    scene.root.has("run/systemd/system") || (!scene.root.is_live() && scene.root.has("etc/systemd/system"))
}

/// systemd would start a killed service again.
fn stop(scene: &Scene, unit: &str, daemon: &Process) -> String {
    if systemd(scene) { format!("systemctl disable --now {unit}") } else { format!("kill {}", daemon.pid) }
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
    fn what_it_is_told_replaces_what_it_reads() {
        let isolated = |environment| {
            let boot = ("sys/devices/system/cpu/isolated", "2-3");
            let files = [KTHREADD[0], KTHREADD[1], IRQBALANCE, boot, ("proc/9/environ", environment)];
            judged("irqbalance", &with_cpus(&files)).0
        };
        assert_eq!(isolated("A=b"), "ok");
        assert_eq!(isolated("IRQBALANCE_BANNED_CPUS=00000000"), "fixable");
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
            "what it is told is not known"
        );
        assert_eq!(judged("irqbalance", &with_cpus(&KTHREADD)).0, "ok");
    }
}
