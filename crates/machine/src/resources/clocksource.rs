//! The clock, and the watchdog that visits every CPU to check it.
//!
//! Source: Linux `kernel/time/clocksource.c`, `arch/x86/kernel/tsc.c`: the watchdog checks the TSC
//! unless it is taken for reliable, which the command line can say, and which kernels since 5.17
//! find themselves on many machines, without showing it.

use super::id;
use super::scene::Scene;
use crate::clocksource;
use model::machine::Clocksource;
use model::resource::{Kind, Resource};

/// The clock in use, and its watchdog on machines with a TSC.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let Clocksource { current: Some(current), available } = clocksource(scene.root) else {
        return Vec::new();
    };
    let clock = Resource {
        effective: Some(current.clone()),
        asked: (!available.is_empty()).then(|| format!("of {}", available.join(" "))),
        owner: Some("timekeeping".to_owned()),
        may_touch: Some(false),
        reason: Some("reading it stays on the CPU; a clock that is a device is shared by all".to_owned()),
        mechanism: Some(id::CLOCKSOURCE.to_owned()),
        ..Resource::new(Kind::Clocksource, "clock")
    };
    std::iter::once(clock).chain(watchdog(scene, &current, &available)).collect()
}

fn watchdog(scene: &Scene, current: &str, available: &[String]) -> Option<Resource> {
    let offered = available.iter().any(|name| name == "tsc") || current == "tsc";
    // `/proc/cpuinfo` would show it too, but reading it can interrupt every CPU for its frequency.
    let x86 = scene.interrupts().is_ok_and(|rows| rows.iter().any(|row| row.name == "LOC"));
    if !offered && !x86 {
        return None;
    }
    let cmdline = scene.root.maybe("proc/cmdline").unwrap_or_default();
    let asked = cmdline
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("tsc="))
        .next_back()
        .map(str::to_owned);
    let trusted = asked.as_deref().is_some_and(|word| word == "reliable" || word == "nowatchdog");
    let (may, reason) = if trusted {
        (Some(false), "the command line has the TSC taken for reliable".to_owned())
    } else if !offered {
        (
            None,
            format!(
                "the TSC is not offered as a clock: it was found unstable, or switched off; {current} is used"
            ),
        )
    } else {
        (None, "whether this kernel takes the TSC for reliable by itself no file shows; trace timer:timer_expire_entry for clocksource_watchdog".to_owned())
    };
    Some(Resource {
        asked: asked.map(|word| format!("tsc={word}")),
        owner: Some("timekeeping".to_owned()),
        may_touch: may,
        in_force: may,
        movable: Some(false),
        reason: Some(reason),
        mechanism: Some(id::TSC.to_owned()),
        ..Resource::new(Kind::Clocksource, "clocksource watchdog")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn watched(cmdline: &str, current: &str, available: &str, row: &str) -> Option<(Option<bool>, String)> {
        let (_dir, root) = tree(&[
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", current),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", available),
            ("proc/cmdline", cmdline),
            ("proc/interrupts", &format!("  CPU3\n{row}: 5 x\n")),
        ]);
        let rows = super::rows(&Scene::new(&root, 3));
        rows.get(1).map(|row| (row.may_touch, row.reason.clone().unwrap()))
    }

    #[test]
    fn only_the_command_line_says_that_nobody_watches() {
        assert_eq!(watched("quiet tsc=reliable", "tsc", "tsc hpet", "LOC").unwrap().0, Some(false));
        let last = watched("tsc=reliable tsc=recalibrate", "tsc", "tsc", "LOC");
        assert_eq!(last.unwrap().0, None, "the last one counts");
        assert!(watched("", "hpet", "hpet acpi_pm", "LOC").unwrap().1.contains("unstable"));
        assert!(watched("", "tsc", "tsc hpet", "LOC").unwrap().1.contains("no file shows"));
        assert_eq!(watched("", "arch_sys_counter", "arch_sys_counter", "IPI0"), None);
    }
}
