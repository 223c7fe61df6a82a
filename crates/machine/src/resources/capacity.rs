//! How much a core gets done beside others: machines with cores of several kinds (big.LITTLE, P and
//! E cores).
//!
//! Files: Linux `Documentation/ABI/testing/sysfs-devices-system-cpu` (`cpu_capacity`, 1024 the
//! largest: arm64, RISC-V, and x86 from 6.12 on with asymmetric capacities),
//! `/sys/devices/cpu_core` and `cpu_atom` (the performance monitors of hybrid processors).

use super::scene::Scene;
use model::resource::{Kind, Resource};
use std::collections::BTreeMap;

const REASON: &str = "cores differ: what was measured on another kind does not hold here, and a load that fits there may not fit here";

/// A row where cores differ.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    by_capacity(scene).or_else(|| by_monitor(scene)).into_iter().collect()
}

fn row(name: &str, effective: String, observed: String) -> Resource {
    Resource {
        effective: Some(effective),
        observed: Some(observed),
        may_touch: Some(false),
        movable: Some(false),
        reason: Some(REASON.to_owned()),
        ..Resource::new(Kind::Capacity, name)
    }
}

fn by_capacity(scene: &Scene) -> Option<Resource> {
    let mut cpus = BTreeMap::<u64, usize>::new();
    for file in scene.root.glob("sys/devices/system/cpu/cpu*/cpu_capacity") {
        *cpus.entry(scene.root.number(&file)?).or_default() += 1;
    }
    if cpus.len() < 2 {
        return None;
    }
    let own: u64 = scene.root.number(&scene.own("cpu_capacity"))?;
    let largest = cpus.keys().next_back()?;
    let all: Vec<_> = cpus.iter().map(|(capacity, count)| format!("{count} of {capacity}")).collect();
    Some(row("capacity", format!("{own} of {largest}"), format!("CPUs: {}", all.join(", "))))
}

fn by_monitor(scene: &Scene) -> Option<Resource> {
    let kinds = [("cpu_core", "performance core"), ("cpu_atom", "efficiency core")];
    let of = |kind: &str| scene.root.cpus(&format!("sys/devices/{kind}/cpus"));
    let (performance, efficiency) = (of(kinds[0].0)?, of(kinds[1].0)?);
    let own = if performance.contains(scene.cpu) { kinds[0].1 } else { kinds[1].1 };
    Some(row("kind of core", own.to_owned(), format!("performance {performance}, efficiency {efficiency}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn cores_that_differ_say_so() {
        let at = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
        let (_dir, root) = tree(&[(&at(0), "446"), (&at(1), "446"), (&at(2), "1024")]);
        let seen = |root, cpu| {
            rows(&Scene::new(root, cpu)).into_iter().map(|row| row.effective.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(seen(&root, 1), ["446 of 1024"]);
        let (_dir, root) = tree(&[(&at(0), "1024"), (&at(1), "1024")]);
        assert!(seen(&root, 1).is_empty());
        let (_dir, root) =
            tree(&[("sys/devices/cpu_core/cpus", "0-3"), ("sys/devices/cpu_atom/cpus", "4-7")]);
        assert_eq!(seen(&root, 5), ["efficiency core"]);
    }
}
