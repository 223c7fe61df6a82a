//! Swap areas in use: `/proc/swaps`.

use super::super::catalogue::Mechanism;
use super::remedy::{Off, propose};
use super::{Outcome, Scene, some_of};
use model::plan::StepKind;

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let text = match scene.root.text("proc/swaps") {
        Ok(Some(text)) => text,
        Ok(None) => return Outcome::absent(mechanism),
        Err(error) => return Outcome::unknown(error.to_string()),
    };
    let off = areas(&text).map(|area| Off {
        kind: StepKind::Swap,
        target: area[0].to_owned(),
        old: format!("on {}", area[4]),
    });
    let off: Vec<_> = off.collect();
    let areas: Vec<_> = off.iter().map(|off| off.target.clone()).collect();
    if areas.is_empty() {
        return Outcome::ok("no swap is in use").having("none");
    }
    let reason = format!("swap is on: {}", mechanism.harm);
    propose(scene, mechanism, &off, reason).having(some_of(&areas))
}

/// Name, type, size and priority of each area; never how much is used, which is a counter.
pub(super) fn value(scene: &Scene) -> Option<String> {
    let text = scene.root.maybe("proc/swaps")?;
    let setting = |area: Vec<&str>| [area[0], area[1], area[2], area[4]].join(" ");
    let areas: Vec<_> = areas(&text).map(setting).collect();
    Some(if areas.is_empty() { "none".to_owned() } else { areas.join("; ") })
}

fn areas(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|area| area.len() == 5)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};
    use super::*;
    use crate::machine::{self, tree::tree};

    const HEAD: &str = "Filename\tType\tSize\tUsed\tPriority\n";

    #[test]
    fn areas_are_named_and_their_use_is_no_setting() {
        assert_eq!(judged("swap", &with_cpus(&[("proc/swaps", HEAD)])).0, "ok");
        assert_eq!(judged("swap", &with_cpus(&[])).0, "not-applicable");
        let value_at = |used: &str| {
            let text = format!("{HEAD}/dev/sda2 partition 998396 {used} -2\n");
            let (_dir, root) = tree(&with_cpus(&[("proc/swaps", &text)]));
            let machine = machine::read(&root).unwrap();
            value(&Scene::new(&root, &machine, &machine.topology.online))
        };
        assert_eq!(value_at("0").as_deref(), Some("/dev/sda2 partition 998396 -2"));
        assert_eq!(value_at("0"), value_at("4096"));
    }
}
