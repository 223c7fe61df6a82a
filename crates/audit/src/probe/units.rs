//! systemd units that start by themselves, as enabled: timers and services whose bursts nobody
//! expects on a real-time machine.
//!
//! Source: systemd.unit(5): enabling a unit links it into a `.wants` directory.

use super::super::catalogue::Mechanism;
use super::remedy::{Off, propose};
use super::{Outcome, Scene, daemon, some_of};
use machine::wildcard;
use model::plan::StepKind;

/// Where links of enabled units are.
const WANTS: [&str; 2] = ["etc/systemd/system/*.wants", "usr/lib/systemd/system/*.wants"];

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism, units: &[String]) -> Outcome {
    if !daemon::systemd(scene) && !scene.root.has("etc/systemd/system") {
        return Outcome::absent(mechanism);
    }
    let enabled = enabled(scene, units);
    if enabled.is_empty() {
        return Outcome::ok("none is enabled").having("none");
    }
    let off: Vec<_> = enabled
        .iter()
        .map(|unit| Off { kind: StepKind::Service, target: unit.clone(), old: "active".to_owned() })
        .collect();
    let reason = format!("{} enabled: {}", some_of(&enabled), mechanism.harm);
    propose(scene, mechanism, &off, reason).having(enabled.join(" "))
}

pub(super) fn value(scene: &Scene, units: &[String]) -> String {
    enabled(scene, units).join(" ")
}

fn enabled(scene: &Scene, units: &[String]) -> Vec<String> {
    let directories = WANTS.iter().flat_map(|pattern| scene.root.glob(pattern));
    let names = directories.flat_map(|directory| scene.root.names(&directory));
    let mut found: Vec<_> = names.filter(|name| units.iter().any(|unit| wildcard(unit, name))).collect();
    found.sort();
    found.dedup();
    found
}
