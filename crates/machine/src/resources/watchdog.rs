//! Detectors of lockups that watch this CPU.
//!
//! Files: Linux `Documentation/admin-guide/lockup-watchdogs.rst`,
//! `Documentation/admin-guide/sysctl/kernel.rst`.

use super::id;
use super::scene::Scene;
use model::Cpus;
use model::resource::{Kind, Resource};

/// The soft and the hard detector, where the kernel has them.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let mask = scene.root.cpus("proc/sys/kernel/watchdog_cpumask");
    let all_on = scene.root.maybe("proc/sys/kernel/watchdog").is_none_or(|text| text != "0");
    let seconds = scene.root.number::<u64>("proc/sys/kernel/watchdog_thresh").unwrap_or(10);
    // `soft_watchdog` is from 4.2; the timer comes five times in twice the threshold
    // (`set_sample_period`).
    let soft = format!("a timer and a stopper thread every {} ms", seconds.saturating_mul(400));
    let hard = format!("an NMI every {seconds} s of busy time");
    let detectors = [
        ("soft_watchdog", "soft-lockup detector", soft, id::WATCHDOG),
        ("nmi_watchdog", "hard-lockup detector", hard, id::NMI_WATCHDOG),
    ];
    let rows = detectors.into_iter().filter_map(|(file, name, effect, mechanism)| {
        let on = scene.root.maybe(&format!("proc/sys/kernel/{file}"))? != "0" && all_on && seconds > 0;
        Some(Resource {
            owner: Some("watchdog".to_owned()),
            reason: Some(format!("watchdog_cpumask takes it away from this CPU; it is {effect}")),
            mechanism: Some(mechanism.to_owned()),
            ..row(scene, name, on, mask.as_ref())
        })
    });
    rows.collect()
}

fn row(scene: &Scene, name: &str, on: bool, mask: Option<&Cpus>) -> Resource {
    let here = mask.map(|mask| on && mask.contains(scene.cpu));
    // A kernel without the mask watches every CPU.
    let here = here.unwrap_or(on);
    Resource {
        asked: mask.map(|mask| if mask.is_empty() { "no CPU".to_owned() } else { mask.to_string() }),
        effective: Some(if on { "on" } else { "off" }.to_owned()),
        may_touch: Some(here),
        in_force: Some(here),
        movable: Some(true),
        ..Resource::new(Kind::Watchdog, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn here(mask: &str, all: &str, soft: &str) -> Option<bool> {
        let (_dir, root) = tree(&[
            ("proc/sys/kernel/watchdog_cpumask", mask),
            ("proc/sys/kernel/watchdog", all),
            ("proc/sys/kernel/soft_watchdog", soft),
        ]);
        super::rows(&Scene::new(&root, 3))[0].in_force
    }

    #[test]
    fn a_detector_is_here_when_it_is_on_and_the_mask_holds_the_cpu() {
        assert_eq!(here("0-3", "1", "1"), Some(true));
        assert_eq!(here("0-1", "1", "1"), Some(false));
        assert_eq!(here("0-3", "0", "1"), Some(false));
        assert_eq!(here("0-3", "1", "0"), Some(false));
        assert_eq!(here("", "1", "1"), Some(false), "an empty mask watches nobody");
    }

    #[test]
    fn a_kernel_without_detectors_has_no_rows() {
        let (_dir, root) = tree(&[("proc/x", "")]);
        assert!(super::rows(&Scene::new(&root, 3)).is_empty());
    }
}
