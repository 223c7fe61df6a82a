//! Idle states of the CPU: the deeper, the longer the way back.

use super::id;
use super::scene::Scene;
use crate::{CpuidleState, cpuidle_states};
use model::resource::{Kind, Resource};

/// A row for each state.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    cpuidle_states(scene.root, scene.cpu).into_iter().map(row).collect()
}

fn row(state: CpuidleState) -> Resource {
    let CpuidleState { number, name, exit_latency_us, disable, usage, .. } = state;
    let disabled = disable.map(|text| text != "0");
    // Polling and states without exit latency delay nothing.
    let costs = exit_latency_us != Some(0);
    Resource {
        asked: disabled.map(|disabled| if disabled { "disabled" } else { "allowed" }.to_owned()),
        effective: exit_latency_us.map(|us| format!("{us} us to leave")),
        observed: usage.map(|usage| format!("entered {usage} times")),
        count: usage,
        owner: Some("cpuidle".to_owned()),
        may_touch: disabled.map(|disabled| !disabled && costs),
        in_force: disabled.map(|disabled| !disabled),
        touched: usage.map(|usage| usage > 0 && costs),
        movable: Some(true),
        reason: Some(
            if costs {
                "it can be disabled for this CPU, or kept out by a latency limit"
            } else {
                "leaving it takes no time"
            }
            .to_owned(),
        ),
        mechanism: Some(id::IDLE_STATES.to_owned()),
        ..Resource::new(Kind::Cpuidle, format!("state{number} {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn states_with_a_way_back_count_while_they_are_allowed() {
        const AT: &str = "sys/devices/system/cpu/cpu3/cpuidle";
        let files = [
            ("state0/name", "POLL"),
            ("state0/disable", "0"),
            ("state0/latency", "0"),
            ("state0/usage", "9"),
            ("state1/name", "C1"),
            ("state1/disable", "0"),
            ("state1/latency", "2"),
            ("state1/usage", "815"),
            ("state2/name", "C6"),
            ("state2/disable", "1"),
            ("state2/latency", "133"),
            ("state2/usage", "junk"),
            ("state3/usage", "4"),
        ];
        let files: Vec<_> = files.iter().map(|(file, text)| (format!("{AT}/{file}"), *text)).collect();
        let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), *text)).collect();
        let (_dir, root) = tree(&files);
        let rows = super::rows(&Scene::new(&root, 3));
        let seen: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.may_touch, row.touched)).collect();
        assert_eq!(
            seen,
            [
                ("state0 POLL", Some(false), Some(false)),
                ("state1 C1", Some(true), Some(true)),
                ("state2 C6", Some(false), None),
            ]
        );
        assert_eq!(rows[1].observed.as_deref(), Some("entered 815 times"));
    }
}
