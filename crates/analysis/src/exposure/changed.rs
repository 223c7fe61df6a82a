//! Settings that differ after a cell from those before it: the next cell measures another machine.
//!
//! Seen on real kernels: writing a cpuset partition left `rcu_preempt` on the isolated core for the
//! rest of the boot, and every later cell counted its switches.

use model::Cpus;
use model::machine::MachineState;
use std::collections::BTreeMap;
use std::fmt::Display;

/// One sentence a difference. A thread that has ended changes nothing for a measured CPU, and one
/// that is new only where it may run there.
pub fn changed(before: &MachineState, after: &MachineState, measured: &Cpus) -> Vec<String> {
    let mut found = Vec::new();
    values("mechanism", &before.mechanisms, &after.mechanisms, &mut found);
    values("affinity of interrupt", &before.irq_affinity, &after.irq_affinity, &mut found);
    let tables = [
        ("affinity of kernel thread", &before.kthread_affinity, &after.kthread_affinity),
        ("affinity of threads", &before.thread_affinity, &after.thread_affinity),
    ];
    for (what, before, after) in tables {
        threads(what, before, after, measured, &mut found);
    }
    let lists = [
        ("mount", &before.mounts, &after.mounts),
        ("tracing instance", &before.instances, &after.instances),
        ("control group", &before.cgroups, &after.cgroups),
    ];
    for (what, before, after) in lists {
        let gone =
            before.iter().filter(|one| !after.contains(one)).map(|one| format!("{what} {one} is gone"));
        found.extend(gone);
        found.extend(
            after.iter().filter(|one| !before.contains(one)).map(|one| format!("{what} {one} is new")),
        );
    }
    found
}

/// Values that differ, or are on one side only.
fn values<K: Ord + Display>(
    what: &str,
    before: &BTreeMap<K, String>,
    after: &BTreeMap<K, String>,
    found: &mut Vec<String>,
) {
    for (key, was) in before {
        match after.get(key) {
            Some(is) if is == was => {}
            Some(is) => found.push(format!("{what} {key}: {was:?} before, {is:?} after")),
            None => found.push(format!("{what} {key} is gone")),
        }
    }
    let new = after.iter().filter(|(key, _)| !before.contains_key(key));
    found.extend(new.map(|(key, is)| format!("{what} {key} is new: {is:?}")));
}

/// Lists that differ, or that are new and reach a measured CPU.
fn threads(
    what: &str,
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
    measured: &Cpus,
    found: &mut Vec<String>,
) {
    for (name, is) in after {
        match before.get(name) {
            Some(was) if was == is => {}
            Some(was) => found.push(format!("{what} {name}: {was} before, {is} after")),
            None if reaches(is, measured) => found.push(format!("{what} {name} is new: {is}")),
            None => {}
        }
    }
}

/// What of the difference decides what the measured CPUs meet: settings, and who may run or
/// interrupt there. Mounts and groups come and go on any machine, as do threads; those are not
/// asked about that are on one side only.
pub fn shifted(before: &MachineState, after: &MachineState, measured: &Cpus) -> Vec<String> {
    let mut found = Vec::new();
    values("mechanism", &before.mechanisms, &after.mechanisms, &mut found);
    let irqs = before
        .irq_affinity
        .iter()
        .map(|(irq, was)| ("affinity of interrupt", irq.to_string(), was, after.irq_affinity.get(irq)));
    let kthreads = before.kthread_affinity.iter().map(|(name, was)| {
        ("affinity of kernel thread", name.clone(), was, after.kthread_affinity.get(name))
    });
    let threads = before
        .thread_affinity
        .iter()
        .map(|(name, was)| ("affinity of threads", name.clone(), was, after.thread_affinity.get(name)));
    for (what, name, was, is) in irqs.chain(kthreads).chain(threads) {
        if let Some(is) = is.filter(|is| reaches(is, measured) != reaches(was, measured)) {
            found.push(format!("{what} {name}: {was} before, {is} after"));
        }
    }
    found
}

/// Whether one of the lists, written as `0-1; 3`, holds a measured CPU. What is no list is taken to
/// reach it.
fn reaches(lists: &str, measured: &Cpus) -> bool {
    lists.split("; ").any(|list| list.parse::<Cpus>().map_or(true, |cpus| !cpus.and(measured).is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(kthreads: &[(&str, &str)], mounts: &[&str]) -> MachineState {
        MachineState {
            kthread_affinity: kthreads.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            mounts: mounts.iter().map(|mount| (*mount).to_owned()).collect(),
            mechanisms: BTreeMap::from([("schedstats".to_owned(), "0".to_owned())]),
            ..MachineState::default()
        }
    }

    #[test]
    fn a_moved_thread_shows_and_one_that_came_or_went_elsewhere_does_not() {
        let before = state(&[("rcu_preempt/0", "0-1"), ("jbd2/0", "0-1")], &["/ ext4"]);
        assert_eq!(changed(&before, &before, &Cpus::one(2)), Vec::<String>::new());
        let after = state(&[("rcu_preempt/0", "0-3"), ("wg/0", "0,1")], &["/ ext4"]);
        let moved = "affinity of kernel thread rcu_preempt/0: 0-1 before, 0-3 after";
        assert_eq!(changed(&before, &after, &Cpus::one(2)), [moved]);
        assert_eq!(changed(&before, &after, &Cpus::one(1)).len(), 2, "wg may run there");
    }

    #[test]
    fn the_ground_has_shifted_only_where_it_bears_on_the_measured_cpus() {
        let before = state(&[("rcu_preempt/0", "0-1"), ("wg/0", "0")], &["/ ext4"]);
        let mut after =
            state(&[("rcu_preempt/0", "0-2"), ("wg/0", "0-1"), ("new/0", "0-3")], &["/ ext4", "/b tmpfs"]);
        let moved = "affinity of kernel thread rcu_preempt/0: 0-1 before, 0-2 after";
        assert_eq!(shifted(&before, &after, &Cpus::one(2)), [moved]);
        assert_eq!(shifted(&before, &after, &Cpus::one(3)), Vec::<String>::new());
        after.mechanisms.insert("schedstats".to_owned(), "1".to_owned());
        assert_eq!(
            shifted(&before, &after, &Cpus::one(3)),
            ["mechanism schedstats: \"0\" before, \"1\" after"]
        );
    }

    #[test]
    fn what_was_left_behind_and_what_was_taken_away_show() {
        let (before, mut after) = (state(&[], &["/ ext4", "/a tmpfs"]), state(&[], &["/ ext4", "/b tmpfs"]));
        after.mechanisms.insert("schedstats".to_owned(), "1".to_owned());
        let found = changed(&before, &after, &Cpus::one(2));
        let expected = [
            "mechanism schedstats: \"0\" before, \"1\" after",
            "mount /a tmpfs is gone",
            "mount /b tmpfs is new",
        ];
        assert_eq!(found, expected);
    }
}
