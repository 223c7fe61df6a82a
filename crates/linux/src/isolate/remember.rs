//! Every task's and interrupt's affinity, kept as text: undoing a cpuset partition or an offline CPU resets affinities that others had
//! set (seen on Linux 6.1: all kernel threads go back to all CPUs).

use super::change::{Settings, value};
use crate::machine::{Root, irqs, processes, user_threads};
use model::Cpus;
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

/// Gives them back where they differ; those that somebody else has set meanwhile get what he had set, should undoing have widened them.
/// What cannot be set is left: the kernel would not have let it be set before either. Answers which of them lack CPUs now that are offline: the kernel sets an affinity without
/// these, though one that was set before they went keeps them (Linux `kernel/sched`, `cpuset_cpus_allowed`).
pub(super) fn restore(
    text: &str,
    settings: &mut dyn Settings,
    others: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let kept: Vec<Kept> = serde_json::from_str(text).unwrap_or_default();
    let online = settings.read(StepKind::File, "/sys/devices/system/cpu/online").ok().flatten();
    let online = online.and_then(|list| Cpus::parse_list(&list).ok()).unwrap_or_default();
    let mut lacking = BTreeSet::new();
    for Kept(kind, target, before) in kept {
        let old = others.get(&target).unwrap_or(&before);
        if settings.read(kind, &target).ok().flatten().is_some_and(|now| !value::same(&now, old)) {
            let _ = settings.write(kind, &target, old);
            let now = settings.read(kind, &target).ok().flatten();
            let lacks = |now: &str| {
                let away = Cpus::parse_list(old).ok()?.minus(&Cpus::parse_list(now).ok()?);
                Some(!away.is_empty() && away.and(&online).is_empty())
            };
            if now.and_then(|now| lacks(&now)) == Some(true) {
                lacking.insert(target);
            }
        }
    }
    lacking
}

/// Gives back those that have been widened since, which is what the kernel does; any other change is somebody's own.
pub(super) fn narrow(text: &str, settings: &mut dyn Settings) {
    for Kept(kind, target, before) in serde_json::from_str::<Vec<Kept>>(text).unwrap_or_default() {
        let now = settings.read(kind, &target).ok().flatten().and_then(|now| Cpus::parse_list(&now).ok());
        let Some((now, was)) = now.zip(Cpus::parse_list(&before).ok()) else { continue };
        if now != was && was.minus(&now).is_empty() {
            let _ = settings.write(kind, &target, &before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::isolate::change::Occupied;

    struct Fixed(BTreeMap<String, String>);

    impl Settings for Fixed {
        fn read(&mut self, _: StepKind, target: &str) -> Result<Option<String>, Error> {
            Ok(self.0.get(target).cloned())
        }

        fn write(&mut self, kind: StepKind, target: &str, value: &str) -> Result<(), Error> {
            let mut cpus = Cpus::parse_list(value)?;
            if let Some(online) = self.read(kind, "/sys/devices/system/cpu/online")? {
                cpus = cpus.and(&Cpus::parse_list(&online)?);
            }
            self.0.insert(target.to_owned(), cpus.to_string());
            Ok(())
        }

        fn user(&mut self, _: StepKind, _: &str) -> Option<String> {
            None
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
        // Dissolving a partition has widened both since that was asked.
        settings
            .0
            .extend([("a", "0-7"), ("b", "0-7")].map(|(name, cpus)| (name.to_owned(), cpus.to_owned())));
        restore(&before, &mut settings, &foreign);
        assert_eq!((settings.0["a"].as_str(), settings.0["b"].as_str()), ("0-3", "1"));
    }

    #[test]
    fn only_what_was_widened_is_narrowed() {
        let kept = |name: &str, cpus: &str| Kept(StepKind::Task, name.to_owned(), cpus.to_owned());
        let before = ["a", "b", "c", "d", "gone"].map(|name| kept(name, "0-1"));
        let now = [("a", "0-3"), ("b", "0"), ("c", "1-2"), ("d", "0,1")];
        let mut settings = Fixed(now.map(|(name, cpus)| (name.to_owned(), cpus.to_owned())).into());
        narrow(&serde_json::to_string(&before).unwrap(), &mut settings);
        assert_eq!(["a", "b", "c", "d"].map(|name| settings.0[name].as_str()), ["0,1", "0", "1-2", "0,1"]);
        assert!(!settings.0.contains_key("gone"));
    }

    #[test]
    fn an_affinity_comes_back_without_cpus_that_are_offline() {
        let kept = |name: &str, cpus: &str| Kept(StepKind::Task, name.to_owned(), cpus.to_owned());
        let before = serde_json::to_string(&[kept("a", "0-3"), kept("b", "0-1"), kept("c", "0-3")]).unwrap();
        let now = [("/sys/devices/system/cpu/online", "0-2"), ("a", "0"), ("b", "0"), ("c", "0-3")];
        let mut settings = Fixed(now.map(|(name, cpus)| (name.to_owned(), cpus.to_owned())).into());
        let lacking = restore(&before, &mut settings, &BTreeMap::new());
        assert_eq!(lacking, BTreeSet::from(["a".to_owned()]));
        assert_eq!(["a", "b", "c"].map(|name| settings.0[name].as_str()), ["0-2", "0,1", "0-3"]);
    }
}
