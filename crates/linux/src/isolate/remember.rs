//! Every task's and interrupt's affinity, kept as text: undoing a cpuset partition or an offline CPU resets affinities that others had
//! set (seen on Linux 6.1: all kernel threads go back to all CPUs).

use super::change::{Settings, value};
use crate::machine::{Root, irqs, processes, user_threads};
use model::plan::StepKind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One affinity.
#[derive(Debug, Serialize, Deserialize)]
struct Kept(StepKind, String, String);

/// All affinities, as JSON.
pub(super) fn affinities() -> String {
    let root = Root::live();
    let all = processes(&root);
    let mut kept = Vec::new();
    for irq in irqs(&root).into_iter().filter(|irq| irq.movable != Some(false)) {
        let file = format!("/proc/irq/{}/smp_affinity_list", irq.number);
        kept.push(Kept(StepKind::File, file, irq.allowed.to_string()));
    }
    for thread in all.kernel.iter().filter(|thread| thread.movable && !thread.name.starts_with("kworker/")) {
        let target = format!("{}/{}/{}", thread.pid, thread.start, thread.name);
        kept.push(Kept(StepKind::Task, target, thread.allowed.to_string()));
    }
    for thread in user_threads(&root, &all.user) {
        let target = format!("{}/{}/{}", thread.tid, thread.start, thread.name);
        kept.push(Kept(StepKind::Task, target, thread.allowed.to_string()));
    }
    serde_json::to_string(&kept).unwrap_or_default()
}

/// Which of them somebody has set since the changes were made: neither as before these nor as right after. Asked before anything is
/// undone, which widens them again.
pub(super) fn foreign(before: &str, after: &str, settings: &mut dyn Settings) -> BTreeMap<String, String> {
    let parse = |text| serde_json::from_str::<Vec<Kept>>(text).unwrap_or_default();
    let before: BTreeMap<_, _> = parse(before).into_iter().map(|kept| (kept.1, kept.2)).collect();
    let mut foreign = BTreeMap::new();
    for Kept(kind, target, after) in parse(after) {
        let Some(now) = settings.read(kind, &target).ok().flatten() else { continue };
        let was = before.get(&target);
        if !value::same(&now, &after) && was.is_some_and(|was| !value::same(&now, was)) {
            foreign.insert(target, now);
        }
    }
    foreign
}

/// Gives them back where they differ, but for those that somebody else has set meanwhile. What cannot be set is left: the kernel
/// would not have let it be set before either.
pub(super) fn restore(text: &str, settings: &mut dyn Settings, others: &BTreeSet<String>) {
    let kept: Vec<Kept> = serde_json::from_str(text).unwrap_or_default();
    for Kept(kind, target, old) in kept.into_iter().filter(|kept| !others.contains(&kept.1)) {
        let now = settings.read(kind, &target).ok().flatten();
        if now.is_some_and(|now| !value::same(&now, &old)) {
            let _ = settings.write(kind, &target, &old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::isolate::change::Occupied;
    use model::Cpus;

    struct Fixed(BTreeMap<String, String>);

    impl Settings for Fixed {
        fn read(&mut self, _: StepKind, target: &str) -> Result<Option<String>, Error> {
            Ok(self.0.get(target).cloned())
        }

        fn write(&mut self, _: StepKind, target: &str, value: &str) -> Result<(), Error> {
            self.0.insert(target.to_owned(), value.to_owned());
            Ok(())
        }

        fn occupy(&mut self, _: &Cpus) -> Occupied {
            Occupied::default()
        }
    }

    #[test]
    fn what_somebody_has_moved_since_stays_where_it_is() {
        let list = |values: [&str; 3]| {
            let kept = ["a", "b", "c"].iter().zip(values);
            let kept: Vec<_> =
                kept.map(|(name, cpus)| Kept(StepKind::Task, (*name).to_owned(), cpus.to_owned())).collect();
            serde_json::to_string(&kept).unwrap()
        };
        // Applying moved all three away from 2 and 3; somebody has moved b since, and c has ended.
        let (before, after) = (list(["0-3", "0-3", "0-3"]), list(["0-1", "0-1", "0-1"]));
        let now = [("a", "0-1"), ("b", "1")].map(|(name, cpus)| (name.to_owned(), cpus.to_owned()));
        let mut settings = Fixed(now.into());
        let foreign = foreign(&before, &after, &mut settings);
        assert_eq!(foreign, BTreeMap::from([("b".to_owned(), "1".to_owned())]));
        restore(&before, &mut settings, &foreign.into_keys().collect());
        assert_eq!((settings.0["a"].as_str(), settings.0["b"].as_str()), ("0-3", "1"));
    }
}
