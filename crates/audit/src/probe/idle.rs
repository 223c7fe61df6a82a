//! Idle states that the measured CPUs may enter, and the driver that enters them.
//!
//! `intel_idle.max_cstate=0` only takes intel_idle away: acpi_idle steps in with the states that
//! firmware names, so the IEEE Access 2020 paper (§IV-B) still saw C-states with it. The driver in
//! force and the states it offers decide.
//! Source: Linux `Documentation/admin-guide/pm/cpuidle.rst`, `drivers/idle/intel_idle.c`.

use super::super::catalogue::Mechanism;
use super::remedy::{Off, propose};
use super::{Outcome, Scene, named};
use machine::{CpuidleState, cpuidle_states};
use model::Cpus;

const DRIVER: &str = "sys/devices/system/cpu/cpuidle/current_driver";

/// The longest exit latency, in microseconds, that still counts as awake: C1 has 1 or 2.
const AWAKE_US: u64 = 2;

struct State {
    cpu: u32,
    number: u32,
    folder: String,
    name: String,
    latency_us: u64,
    closed: String,
}

pub(super) fn judge_states(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let states = states(scene, scene.cpus);
    if states.is_empty() {
        return Outcome::absent(mechanism);
    }
    let deep: Vec<_> =
        states.iter().filter(|state| state.latency_us > AWAKE_US && state.closed == "0").collect();
    let Some(deepest) = deep.iter().max_by_key(|state| state.latency_us) else {
        return Outcome::ok(format!("{} enter no state deeper than {AWAKE_US} us", named(scene.cpus)));
    };
    let reason = format!(
        "{} may enter {}, which takes {} us to leave: {}",
        named(&deep.iter().map(|state| state.cpu).collect::<Cpus>()),
        deepest.name,
        deepest.latency_us,
        mechanism.harm
    );
    let off: Vec<_> =
        deep.iter().map(|state| Off::file(&format!("{}/disable", state.folder), &state.closed)).collect();
    propose(scene, mechanism, &off, reason).having(format!("{} states open", deep.len()))
}

/// Which states are closed, `cpu/state=0|1`.
pub(super) fn value(scene: &Scene) -> Option<String> {
    let all = states(scene, &scene.machine.topology.online);
    let text = |state: &State| format!("{}/{}={}", state.cpu, state.number, state.closed);
    Some(all.iter().map(text).collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty())
}

fn states(scene: &Scene, cpus: &Cpus) -> Vec<State> {
    let known = |state: CpuidleState| {
        let CpuidleState { cpu, number, folder, name, exit_latency_us, disable, .. } = state;
        Some(State { cpu, number, folder, name, latency_us: exit_latency_us?, closed: disable? })
    };
    cpus.iter().flat_map(|cpu| cpuidle_states(scene.root, cpu)).filter_map(known).collect()
}

pub(super) fn judge_driver(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let Some(driver) = driver(scene) else { return Outcome::absent(mechanism) };
    let asked = crate::probe::parameter::value(scene, "intel_idle.max_cstate");
    let deep = states(scene, scene.cpus).iter().any(|state| state.latency_us > AWAKE_US);
    match (asked, driver.as_str()) {
        (Some("0"), "acpi_idle") if deep => {
            let reason = format!(
                "intel_idle.max_cstate=0 is given, but {driver} has taken over with states of its own: {}",
                mechanism.harm
            );
            propose(scene, mechanism, &[], reason)
        }
        (Some("0"), _) => Outcome::ok(format!(
            "intel_idle.max_cstate=0 is given, the driver is {driver}, and no state is deeper than {AWAKE_US} us"
        )),
        (_, driver) => Outcome::ok(format!("the driver is {driver}; idle-states judges the states it offers")),
    }
    .having(driver)
}

/// The cpuidle driver in force.
pub(super) fn driver(scene: &Scene) -> Option<String> {
    scene.root.maybe(DRIVER)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    const C6: [(&str, &str); 3] = [
        ("sys/devices/system/cpu/cpu2/cpuidle/state3/name", "C6"),
        ("sys/devices/system/cpu/cpu2/cpuidle/state3/latency", "133"),
        ("sys/devices/system/cpu/cpuidle/current_driver", "acpi_idle"),
    ];

    #[test]
    fn deep_states_are_closed_where_they_are_open() {
        let with = |closed| {
            let disable = ("sys/devices/system/cpu/cpu2/cpuidle/state3/disable", closed);
            judged("idle-states", &with_cpus(&[&C6[..], &[disable]].concat()))
        };
        let (state, reason, remedy) = with("0");
        assert_eq!(state, "fixable");
        assert!(reason.contains("may enter C6, which takes 133 us to leave"), "{reason}");
        assert_eq!(remedy, "echo 1 > /sys/devices/system/cpu/cpu2/cpuidle/state3/disable");
        assert_eq!(with("1").0, "ok");
        assert_eq!(judged("idle-states", &with_cpus(&[])).0, "not-applicable");
    }

    #[test]
    fn a_parameter_that_another_driver_bypasses_is_reported() {
        let files = [
            &C6[..],
            &[
                ("sys/devices/system/cpu/cpu2/cpuidle/state3/disable", "0"),
                ("proc/cmdline", "quiet intel_idle.max_cstate=0"),
            ],
        ]
        .concat();
        let (state, reason, _) = judged("intel_idle-max_cstate", &with_cpus(&files));
        assert_eq!(state, "boot", "{reason}");
        assert!(reason.contains("acpi_idle has taken over"), "{reason}");
    }
}
