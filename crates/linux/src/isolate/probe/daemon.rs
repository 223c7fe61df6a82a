//! Daemons that work against isolation, above all irqbalance.
//!
//! irqbalance(1): from 1.0 on it reads the kernel's isolated and nohz_full CPUs itself and leaves them alone; further CPUs are
//! named in its environment, as a hex mask without `0x` or, from 1.8 on, as a list.

use super::super::catalogue::Mechanism;
use super::{Outcome, Scene, named};
use crate::machine::Process;
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
    let running = &scene.processes();
    if running.user.is_empty() && running.kernel.is_empty() {
        return Outcome::unknown("no processes could be read");
    }
    let Some(daemon) = find(scene, process) else {
        return Outcome::ok(format!("{process} does not run")).having("not running");
    };
    let topology = &scene.machine.topology;
    let known = topology.isolated.or(&topology.nohz_full).or(&told(scene, daemon, spared));
    let exposed = scene.cpus.minus(&known);
    if exposed.is_empty() {
        let reason = format!("{process} runs and leaves {} alone", named(scene.cpus));
        return Outcome::ok(reason).having("running").in_effect(format!("spares {}", named(&known)));
    }
    let reason = format!("{process} runs and knows nothing of {}: {}", named(&exposed), mechanism.harm);
    Outcome::new(FindingState::Fixable, reason).having("running").cured_by(stop(scene, unit, daemon))
}

pub(super) fn value(scene: &Scene, process: &str) -> String {
    if find(scene, process).is_some() { "running".to_owned() } else { "not running".to_owned() }
}

fn find<'a>(scene: &'a Scene, process: &str) -> Option<&'a Process> {
    scene.processes().user.iter().find(|candidate| candidate.name == process)
}

/// The CPUs its environment tells it to spare. Without root the environment of another user cannot be read: then none.
fn told(scene: &Scene, daemon: &Process, spared: &Spared) -> Cpus {
    let environment = scene.root.maybe(&format!("proc/{}/environ", daemon.pid)).unwrap_or_default();
    let value = |name: Option<&str>| {
        let name = name?;
        environment.split('\0').find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
    };
    let list = value(spared.list).and_then(|text| Cpus::parse_list(text).ok());
    let hex = value(spared.hex).and_then(|text| Cpus::parse_hex(text).ok());
    list.or(hex).unwrap_or_default()
}

/// systemd would start a killed service again.
fn stop(scene: &Scene, unit: &str, daemon: &Process) -> String {
    if scene.root.has("run/systemd/system") || scene.root.has("etc/systemd/system") {
        format!("systemctl disable --now {unit}")
    } else {
        format!("kill {}", daemon.pid)
    }
}
