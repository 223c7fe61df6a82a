//! Swap areas in use.
//!
//! Priorities below zero are the kernel's own (Linux `mm/swapfile.c`): an area gets the lowest when
//! it is switched on, and those below one that is switched off move up. So the lowest goes first,
//! and when the last that went is switched on first each has its own again.

use super::super::catalogue::Mechanism;
use super::remedy::{Off, propose};
use super::{Outcome, Scene, some_of};
use machine::{SwapArea, swaps};
use model::plan::StepKind;

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let areas = match swaps(scene.root) {
        Ok(Some(areas)) => areas,
        Ok(None) => return Outcome::absent(mechanism),
        Err(error) => return Outcome::unknown(error),
    };
    let off = |area: SwapArea| Off {
        kind: StepKind::Swap,
        target: area.path,
        old: format!("on {}", area.priority),
    };
    let off: Vec<_> = first_off(areas).into_iter().map(off).collect();
    let areas: Vec<_> = off.iter().map(|off| off.target.clone()).collect();
    if areas.is_empty() {
        return Outcome::ok("no swap is in use").having("none");
    }
    let reason = format!("swap is on: {}", mechanism.harm);
    propose(scene, mechanism, &off, reason).having(some_of(&areas))
}

/// Areas with their priorities in the order to switch them off: backwards as they are listed, which
/// is where the kernel had room for them, but those of its own priorities from the lowest up.
fn first_off(areas: Vec<SwapArea>) -> Vec<SwapArea> {
    let mut off = areas;
    off.reverse();
    let own = |area: &SwapArea| area.priority < 0;
    let mut ascending: Vec<_> = off.iter().filter(|area| own(area)).cloned().collect();
    ascending.sort_by_key(|area| area.priority);
    for (place, area) in off.iter_mut().filter(|area| own(area)).zip(ascending) {
        *place = area;
    }
    off
}

/// Name, type, size and priority of each area; neither how much is used, which is a counter, nor
/// the place in the list, which is chance.
pub(super) fn value(scene: &Scene) -> Option<String> {
    let areas = swaps(scene.root).ok()??.into_iter();
    let setting = |area: SwapArea| format!("{} {} {} {}", area.path, area.kind, area.size_kib, area.priority);
    let mut areas: Vec<_> = areas.map(setting).collect();
    areas.sort();
    Some(if areas.is_empty() { "none".to_owned() } else { areas.join("; ") })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};
    use super::*;
    use fixture::tree;

    const HEAD: &str = "Filename\tType\tSize\tUsed\tPriority\n";

    #[test]
    fn areas_go_in_the_order_that_brings_their_priorities_back() {
        let listed = |areas: &[(&str, i32)]| {
            let area = |&(path, priority): &(&str, i32)| SwapArea {
                path: path.to_owned(),
                kind: "partition".to_owned(),
                size_kib: 8,
                priority,
            };
            let off = first_off(areas.iter().map(area).collect());
            off.into_iter().map(|area| area.path).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(listed(&[("a", -2), ("b", -3)]), "b a");
        // The place of one that was switched off was used again.
        assert_eq!(listed(&[("a", -3), ("b", -2)]), "a b");
        assert_eq!(listed(&[("a", 5), ("b", -4), ("c", 5), ("d", -2), ("e", -3)]), "b e c d a");
    }

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
