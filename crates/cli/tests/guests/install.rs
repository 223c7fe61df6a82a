//! Installed, every verb that changes something used, uninstalled: the file tree and the kernel's
//! settings are as before, byte for byte.

use crate::machine::Guest;
use crate::state::the_same;
use std::collections::{BTreeMap, BTreeSet};

/// Upper limit of changes without any action: counters of the kernel among its settings.
const RESTLESS: usize = 40;
/// Settings that record past events for good, whatever caused them.
const ONCE: [&str; 2] = [
    // Taint flags of the kernel; unsigned modules are one of them.
    "/proc/sys/kernel/tainted",
    // The highest number of threads so far, on some kernels.
    "/sys/fs/cgroup/pids.peak",
];

/// First word → the rest, of each line.
fn table(text: &str) -> BTreeMap<&str, &str> {
    text.lines().map(|line| line.split_once(' ').unwrap_or((line, ""))).collect()
}

/// The keys whose values differ, with both.
fn differences<'t>(before: &'t str, after: &'t str) -> BTreeMap<&'t str, [Option<&'t str>; 2]> {
    let (before, after) = (table(before), table(after));
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
    let both = |key: &'t str| (key, [before.get(key).copied(), after.get(key).copied()]);
    keys.into_iter().map(both).filter(|(_, [was, is])| was != is).collect()
}

/// All checks.
pub(crate) fn nothing_is_left(guest: &Guest) {
    let read = |name: &str| guest.read(name);
    let codes: BTreeMap<String, String> =
        table(&read("codes")).into_iter().map(|(name, code)| (name.to_owned(), code.to_owned())).collect();
    assert!(codes.len() >= 17, "{codes:?}");
    for (name, code) in &codes {
        // 2 is a finding: of an isolation that drifts, a measurement that judges, a stressor.
        assert!(["0", "2"].contains(&code.as_str()), "{name} {code}: {}", read(&format!("{name}.log")));
    }
    let persisted = read("persisted");
    assert!(persisted.contains("stillcore"), "{persisted}");
    // The lists are not empty.
    for (picture, least) in [("tree", 50), ("settings", 800), ("rest", 5)] {
        let lines = read(&format!("before.{picture}")).lines().count();
        assert!(lines >= least, "{picture}: {lines} lines");
    }
    for picture in ["tree", "rest"] {
        let (before, after) = (read(&format!("before.{picture}")), read(&format!("after.{picture}")));
        let found = differences(&before, &after);
        assert!(found.is_empty(), "{picture}: {found:?}");
    }
    let [before, again, after] =
        ["before", "again", "after"].map(|picture| read(&format!("{picture}.settings")));
    let restless = differences(&before, &again);
    assert!(restless.len() <= RESTLESS, "{:?}", restless.keys());
    let mut found = differences(&again, &after);
    found.retain(|file, _| !restless.contains_key(file) && !ONCE.contains(file));
    assert!(found.is_empty(), "settings: {found:?}");
    let state = |picture: &str| serde_json::from_str(&read(&format!("{picture}.state.json"))).unwrap();
    the_same(&state("again"), &state("after"), "the machine");
}
