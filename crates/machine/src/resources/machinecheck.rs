//! The timer that polls the CPU's machine-check banks.
//!
//! Files: Linux `Documentation/ABI/testing/sysfs-mce`; how often it came is the row `MCP` of
//! `/proc/interrupts`.

use super::id;
use super::scene::Scene;
use model::resource::{Kind, Resource};

/// The poll, on processors that have machine checks.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let at = format!("sys/devices/system/machinecheck/machinecheck{}", scene.cpu);
    let Some(seconds) = scene.root.maybe(&format!("{at}/check_interval")) else { return Vec::new() };
    // The kernel prints it in hex under 4.x and in decimal since; only zero and non-zero are
    // distinguished.
    let off = seconds.trim_start_matches("0x").chars().all(|c| c == '0');
    let ignored = scene.root.maybe(&format!("{at}/ignore_ce")).is_some_and(|text| text != "0");
    let on = !off && !ignored;
    let polls = scene
        .interrupts()
        .ok()
        .and_then(|rows| rows.iter().find(|row| row.name == "MCP"))
        .map(|row| row.count);
    let banks = scene.root.names(&at).iter().filter(|name| name.starts_with("bank")).count();
    let effective = match (ignored, off) {
        (true, _) => "off: corrected errors are ignored",
        (_, true) => "off",
        _ => "polls",
    };
    vec![Resource {
        asked: Some(format!("every {seconds} s")),
        effective: Some(if on { format!("{effective} {banks} banks") } else { effective.to_owned() }),
        observed: polls.map(|polls| format!("{polls} polls since boot")),
        count: polls,
        owner: Some("machine checks".to_owned()),
        may_touch: Some(on),
        in_force: Some(on),
        touched: polls.map(|polls| polls > 0),
        movable: Some(true),
        reason: Some("check_interval 0 ends it on all CPUs".to_owned()),
        mechanism: Some(id::MCE_CHECK.to_owned()),
        ..Resource::new(Kind::MachineCheck, "poll of the banks")
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn judged(interval: &str, ignore: &str) -> Resource {
        const AT: &str = "sys/devices/system/machinecheck/machinecheck3";
        let (_dir, root) = tree(&[
            (&format!("{AT}/check_interval"), interval),
            (&format!("{AT}/ignore_ce"), ignore),
            (&format!("{AT}/bank0"), "ffff"),
            (&format!("{AT}/bank1"), "ffff"),
            ("proc/interrupts", "  CPU3\nMCP: 17 Machine check polls\n"),
        ]);
        super::rows(&Scene::new(&root, 3)).remove(0)
    }

    #[test]
    fn the_poll_counts_while_it_is_on() {
        let on = judged("300", "0");
        assert_eq!(
            (on.may_touch, on.count, on.effective.as_deref()),
            (Some(true), Some(17), Some("polls 2 banks"))
        );
        assert_eq!(judged("0", "0").may_touch, Some(false));
        let ignored = judged("300", "1");
        assert_eq!((ignored.may_touch, ignored.touched), (Some(false), Some(true)), "it came before");
    }
}
