//! Files that list what is active, one a line: probes in the kernel's text, events that are
//! recorded.
//!
//! Sources: Linux `Documentation/trace/kprobes.rst` (`kprobes/list`),
//! `Documentation/trace/events.rst` (`set_event`). What stillcore itself has switched on for a run
//! is none of it.

use super::super::catalogue::Mechanism;
use super::file::unmounted;
use super::remedy::propose;
use super::{Outcome, Scene, some_of};

/// Tracing instances of stillcore's own.
const OURS: &str = "/stillcore";

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism, paths: &[String]) -> Outcome {
    let files: Vec<_> = paths.iter().flat_map(|path| scene.expand(path)).collect();
    if files.is_empty() {
        return unmounted(scene, mechanism, paths);
    }
    let mut active = Vec::new();
    for file in files.iter().filter(|file| !file.contains(OURS)) {
        match scene.root.text(file) {
            Ok(text) => active.extend(lines(&text.unwrap_or_default())),
            Err(error) => return Outcome::unknown(error),
        }
    }
    match active.len() {
        0 => Outcome::ok("there is none").having("none"),
        count => {
            let reason = format!("{count} active ({}): {}", some_of(&active), mechanism.harm);
            propose(scene, mechanism, &[], reason).having(active.join(" "))
        }
    }
}

pub(super) fn value(scene: &Scene, paths: &[String]) -> Option<String> {
    let files = paths.iter().flat_map(|path| scene.expand(path)).filter(|file| !file.contains(OURS));
    let texts: Vec<_> = files.filter_map(|file| scene.root.maybe(&file)).collect();
    (!texts.is_empty()).then(|| texts.iter().flat_map(|text| lines(text)).collect::<Vec<_>>().join(" "))
}

/// What each line names. A kprobe's line is `ADDRESS TYPE SYMBOL+OFFSET`, with what it is at the
/// end: those disabled do nothing.
fn lines(text: &str) -> Vec<String> {
    let active = text.lines().filter(|line| !line.contains("[DISABLED]") && !line.starts_with('#'));
    let named = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.get(2).or(words.first()).map(|word| (*word).to_owned())
    };
    active.filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    const MOUNTS: (&str, &str) =
        ("proc/mounts", "d /sys/kernel/debug debugfs rw 0 0\nt /sys/kernel/tracing tracefs rw 0 0");

    #[test]
    fn what_is_armed_counts_and_what_is_disabled_does_not() {
        let with = |text| judged("kprobes", &with_cpus(&[MOUNTS, ("sys/kernel/debug/kprobes/list", text)]));
        assert_eq!(with("").0, "ok");
        assert_eq!(with("0000000000000000  k  vfs_read+0x0    [DISABLED]").0, "ok");
        let (state, reason, _) = with("ffffffff81 k do_nanosleep+0x0 [FTRACE]\nffffffff82 r vfs_read+0x0");
        assert_eq!(state, "fixable", "{reason}");
        assert!(reason.starts_with("2 active (do_nanosleep+0x0, vfs_read+0x0): "), "{reason}");
    }

    #[test]
    fn events_of_others_are_reported_and_not_our_own() {
        let top = ("sys/kernel/tracing/set_event", "");
        let with = |instance| {
            let file = format!("sys/kernel/tracing/instances/{instance}/set_event");
            judged("trace-events", &with_cpus(&[MOUNTS, top, (&file, "sched:sched_switch")])).0
        };
        assert_eq!(with("theirs"), "fixable");
        assert_eq!(with("stillcore-7"), "ok");
    }
}
