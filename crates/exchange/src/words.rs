//! What several formats have in common: the head of a file, settings by kind, strings as data.

use audit::{Desired, Means};
use std::fmt::Write;

/// The first line of a further file.
pub(crate) const MARK: &str = "# Made by stillcore isolate export.\n";

/// The comment before the first file.
pub(crate) fn head(format: &str, desired: &Desired, left: &[String]) -> String {
    let mut head = format!(
        "# Made by stillcore isolate export {format}: CPUs {} still, {} for everything else.\n",
        desired.plan.isolated, desired.plan.housekeeping
    );
    if !left.is_empty() {
        head.push_str("# Not in it, since the tool has no words for it:\n");
    }
    for line in left {
        let _ = writeln!(head, "# - {line}");
    }
    head
}

/// What a format takes of that which is no file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Takes {
    pub(crate) tasks: bool,
    pub(crate) interrupts: bool,
    pub(crate) placement: bool,
    pub(crate) services: bool,
    pub(crate) latency: bool,
}

/// What a format leaves: the rest of the steps, parameters that this kernel does not take.
pub(crate) fn left(desired: &Desired, takes: Takes) -> Vec<String> {
    let moved = [
        (desired.tasks && !takes.tasks, "tasks that may run there are not moved"),
        (desired.interrupts && !takes.interrupts, "interrupts that are handled there are not moved"),
    ];
    let mut left: Vec<String> =
        moved.iter().filter(|(is_left, _)| *is_left).map(|(_, what)| (*what).to_owned()).collect();
    for (mechanism, means) in desired.rest() {
        let what = match means {
            Means::Placement if !takes.placement => "no group keeps the scheduler off".to_owned(),
            Means::Service(unit) if !takes.services => format!("{unit} is to be stopped and disabled"),
            Means::Latency(us) if !takes.latency => {
                format!("nothing keeps /dev/cpu_dma_latency open with {us} us")
            }
            Means::Other(what) => what.to_owned(),
            Means::Placement | Means::Service(_) | Means::Latency(_) => continue,
        };
        left.push(format!("{mechanism}: {what}"));
    }
    left.extend(desired.omitted.iter().map(|one| format!("{}: {}", one.mechanism, one.reason)));
    left
}

/// What stays where it is, for tools that have no words for it.
pub(crate) fn kept(desired: &Desired) -> impl Iterator<Item = String> {
    desired.plan.keep.iter().map(|what| format!("keep {what}: it would be moved too"))
}

/// Settings of `/proc/sys`, as sysctl spells them, and their values. A name that has dots of its
/// own keeps them, with slashes between the parts (sysctl.d(5)).
pub(crate) fn sysctls(desired: &Desired) -> Vec<(String, &str)> {
    let named = |path: &str| {
        let name = path.strip_prefix("/proc/sys/")?;
        Some(if name.contains('.') { name.to_owned() } else { name.replace('/', ".") })
    };
    let files = desired.files.iter();
    files.filter_map(|(path, setting)| Some((named(path)?, setting.value.as_str()))).collect()
}

/// Files of `/sys` and their values.
pub(crate) fn sysfs(desired: &Desired) -> Vec<(&str, &str)> {
    let files = desired.files.iter().filter(|(path, _)| path.starts_with("/sys/"));
    files.map(|(path, setting)| (path.as_str(), setting.value.as_str())).collect()
}

/// Units to stop.
pub(crate) fn services(desired: &Desired) -> Vec<&str> {
    let rest = desired.rest().into_iter();
    rest.filter_map(|(_, means)| match means {
        Means::Service(unit) => Some(unit),
        _ => None,
    })
    .collect()
}

/// The latency that is to be held, microseconds.
pub(crate) fn latency(desired: &Desired) -> Option<&str> {
    desired.rest().into_iter().find_map(|(_, means)| match means {
        Means::Latency(us) => Some(us),
        _ => None,
    })
}

/// A string of YAML, in double quotes; also a string of JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
