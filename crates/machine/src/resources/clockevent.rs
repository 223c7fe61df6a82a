//! The hardware timer that interrupts the CPU.
//!
//! Files: Linux `Documentation/ABI/testing/sysfs-bus-clockevents`. Where a broadcast device is in
//! use, a CPU in deep idle loses its own timer and another CPU wakes it.

use super::id;
use super::scene::Scene;
use model::resource::{Kind, Resource};

const DIRECTORY: &str = "sys/devices/system/clockevents";

/// The CPU's own timer, and the broadcast timer where there is one.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let own = device(scene, &format!("clockevent{}", scene.cpu)).map(|device| Resource {
        effective: Some(device),
        owner: Some("processor".to_owned()),
        may_touch: Some(true),
        in_force: Some(true),
        movable: Some(false),
        reason: Some("each CPU needs a timer; what arms it are the tick and its timers".to_owned()),
        ..Resource::new(Kind::Clockevent, "timer of the CPU")
    });
    let broadcast = device(scene, "broadcast").map(|device| Resource {
        effective: Some(device),
        owner: Some("chipset".to_owned()),
        may_touch: Some(true),
        // The device takes over only while CPUs are in states that stop their timers.
        in_force: None,
        movable: Some(true),
        reason: Some(
            "it wakes CPUs from idle states that stop their timers; without such states it is not used"
                .to_owned(),
        ),
        mechanism: Some(id::BROADCAST.to_owned()),
        ..Resource::new(Kind::Clockevent, "broadcast timer")
    });
    own.into_iter().chain(broadcast).collect()
}

fn device(scene: &Scene, name: &str) -> Option<String> {
    scene.root.maybe(&format!("{DIRECTORY}/{name}/current_device")).filter(|device| !device.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn the_broadcast_device_counts_only_where_there_is_one() {
        let own = ("sys/devices/system/clockevents/clockevent3/current_device", "lapic-deadline");
        let (_dir, root) = tree(&[own, ("sys/devices/system/clockevents/broadcast/current_device", "")]);
        assert_eq!(super::rows(&Scene::new(&root, 3)).len(), 1);
        let (_dir, root) = tree(&[own, ("sys/devices/system/clockevents/broadcast/current_device", "hpet")]);
        let rows = super::rows(&Scene::new(&root, 3));
        assert_eq!((rows[1].effective.as_deref(), rows[1].in_force), (Some("hpet"), None));
    }
}
