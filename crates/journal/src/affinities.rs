//! Every task's and interrupt's affinity, written down: undoing a cpuset partition or an offline
//! CPU resets affinities that others had set (seen on Linux 6.1: all kernel threads go back to all
//! CPUs).

use crate::settings::{Settings, Task, value};
use crate::{Change, Earlier, Form, Kind, Owner, Present, earlier, earlier_entry};
use machine::{Root, irqs, processes, user_threads};
use model::Cpus;
use model::plan::StepKind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use sys::Error;

/// How they are read from a journal.
pub const OWNERS: &[Owner] = &[Owner::of::<Affinities>(), Owner::of::<Shaken>()];

/// What the affinities of all are called where a target has a name.
pub const ALL_TASKS: &str = "all";

/// Where something may run, or be handled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Affinity {
    of: Bearer,
    cpus: Cpus,
}

/// What has an affinity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Bearer {
    Interrupt(u32),
    Task(Task),
}

impl Affinity {
    /// As [`Settings`] takes it.
    fn setting(&self) -> (StepKind, String) {
        match &self.of {
            Bearer::Interrupt(irq) => (StepKind::File, format!("/proc/irq/{irq}/smp_affinity_list")),
            Bearer::Task(task) => (StepKind::Task, task.target()),
        }
    }

    fn text(&self) -> String {
        self.cpus.to_string()
    }
}

/// What they were, as [`Settings`] takes targets and values.
pub fn texts(affinities: &[Affinity]) -> impl Iterator<Item = (String, String)> + '_ {
    affinities.iter().map(|one| (one.setting().1, one.text()))
}

/// All affinities of now.
pub fn affinities() -> Vec<Affinity> {
    let root = Root::live();
    let all = processes(&root);
    let mut kept = Vec::new();
    for irq in irqs(&root).into_iter().filter(|irq| irq.movable != Some(false)) {
        kept.push(Affinity { of: Bearer::Interrupt(irq.number), cpus: irq.allowed });
    }
    let of_task = |id, start, name, cpus| Affinity { of: Bearer::Task(Task { id, start, name }), cpus };
    for thread in all.kernel.iter().filter(|thread| thread.movable && !thread.name.starts_with("kworker/")) {
        kept.push(of_task(thread.pid, thread.start, thread.name.clone(), thread.allowed.clone()));
    }
    for thread in user_threads(&root, &all.user) {
        kept.push(of_task(thread.tid, thread.start, thread.name, thread.allowed));
    }
    kept
}

/// Affinities that undoing later steps of an isolation widens, and that are restored when these are
/// undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Affinities {
    /// The mechanism whose steps widen them.
    pub mechanism: String,
    /// Those of before.
    pub before: Vec<Affinity>,
    /// Those that the changes had led to; `None` where that is not known (any more).
    pub after: Option<Vec<Affinity>>,
}

impl Kind for Affinities {
    const FORM: Form = Form { kind: "affinities", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        let read = || {
            let mechanism = entry.id.clone();
            let before =
                of_earlier(entry.old.as_deref().ok_or_else(|| earlier::wrong("it has no affinities"))?)?;
            let after = entry.read_back.as_deref().map(of_earlier).transpose()?;
            Ok(Self { mechanism, before, after })
        };
        (entry.kind == Some(earlier::Kind::Affinities)).then(read)
    }
}

impl Change for Affinities {
    fn target(&self) -> String {
        ALL_TASKS.to_owned()
    }

    fn describe(&self) -> String {
        format!("{} {ALL_TASKS}", self.mechanism)
    }

    /// They name no path.
    fn bounds(&self) -> Result<(), Error> {
        Ok(())
    }

    fn check(&self, _: &mut dyn Settings) -> Result<Present, Error> {
        Ok(Present::Made)
    }

    fn undo(&self, settings: &mut dyn Settings) -> Result<(), Error> {
        restore(&self.before, settings, &BTreeMap::new());
        Ok(())
    }
}

/// Affinities that the kernel changes when CPUs come and go: it widens them when a partition or an
/// offline CPU ends, and cuts a CPU out of those of all tasks of the root group where a partition
/// changes while that CPU is offline, for good (`update_tasks_cpumask` gives them the effective
/// CPUs, and `cpuset_hotplug_workfn` does not "mess with cpumasks of tasks in top_cpuset"; Linux
/// 6.1 `kernel/cgroup/cpuset.c`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shaken {
    before: Vec<Affinity>,
    /// The CPUs that come and go.
    cpus: Cpus,
}

impl Kind for Shaken {
    const FORM: Form = Form { kind: "shaken-affinities", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        let read = || {
            let before =
                of_earlier(entry.old.as_deref().ok_or_else(|| earlier::wrong("it has no affinities"))?)?;
            Ok(Self { before, cpus: Cpus::default() })
        };
        earlier::transient(entry, "affinities").then(read)
    }
}

impl Shaken {
    /// Those of now, and the CPUs that will come and go.
    pub fn now(cpus: &Cpus) -> Self {
        Self { before: affinities(), cpus: cpus.clone() }
    }
}

impl Change for Shaken {
    fn target(&self) -> String {
        ALL_TASKS.to_owned()
    }

    /// They name no path.
    fn bounds(&self) -> Result<(), Error> {
        Ok(())
    }

    fn check(&self, _: &mut dyn Settings) -> Result<Present, Error> {
        Ok(Present::Made)
    }

    fn undo(&self, settings: &mut dyn Settings) -> Result<(), Error> {
        settle(&self.before, &self.cpus, settings);
        Ok(())
    }
}

/// Affinities as journals had them before kinds had versions: `[["file" or "task", TARGET, CPUS],
/// …]` in a string.
fn of_earlier(text: &str) -> Result<Vec<Affinity>, serde_json::Error> {
    let all: Vec<(String, String, Cpus)> = serde_json::from_str(text)?;
    let one = |(kind, target, cpus): (String, String, Cpus)| {
        let interrupt =
            || target.strip_prefix("/proc/irq/")?.strip_suffix("/smp_affinity_list")?.parse().ok();
        let of = match kind.as_str() {
            "file" => interrupt().map(Bearer::Interrupt),
            "task" => Task::of(&target).map(Bearer::Task),
            _ => None,
        };
        of.map(|of| Affinity { of, cpus })
            .ok_or_else(|| earlier::wrong(format_args!("{kind} {target:?} has no affinity")))
    };
    all.into_iter().map(one).collect()
}

/// Which of them somebody has set since the changes were made: neither as before these nor as right
/// after. Asked before anything is undone, which widens them again.
pub fn foreign(
    before: &[Affinity],
    after: &[Affinity],
    settings: &mut dyn Settings,
) -> BTreeMap<String, String> {
    let before: BTreeMap<_, _> = before.iter().map(|kept| (kept.setting().1, kept.text())).collect();
    let mut foreign = BTreeMap::new();
    for kept in after {
        let (kind, target) = kept.setting();
        let Some(now) = settings.read(kind, &target).ok().flatten() else { continue };
        let was = before.get(&target);
        if !value::same(&now, &kept.text()) && was.is_some_and(|was| !value::same(&now, was)) {
            foreign.insert(target, now);
        }
    }
    foreign
}

/// Gives them back where they differ; those that somebody else has set meanwhile get what he had
/// set, should undoing have widened them. What cannot be set is left: the kernel would not have let
/// it be set before either. Answers which of them lack CPUs now that are offline: the kernel sets
/// an affinity without these, though one that was set before they went keeps them (Linux
/// `kernel/sched`, `cpuset_cpus_allowed`).
pub fn restore(
    kept: &[Affinity],
    settings: &mut dyn Settings,
    others: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let online = settings.read(StepKind::File, "/sys/devices/system/cpu/online").ok().flatten();
    let online = online.and_then(|list| Cpus::parse_list(&list).ok()).unwrap_or_default();
    let mut lacking = BTreeSet::new();
    for one in kept {
        let (kind, target) = one.setting();
        let old = others.get(&target).cloned().unwrap_or_else(|| one.text());
        if settings.read(kind, &target).ok().flatten().is_some_and(|now| !value::same(&now, &old)) {
            let _ = settings.write(kind, &target, &old);
            let now = settings.read(kind, &target).ok().flatten();
            let lacks = |now: &str| {
                let away = Cpus::parse_list(&old).ok()?.minus(&Cpus::parse_list(now).ok()?);
                Some(!away.is_empty() && away.and(&online).is_empty())
            };
            if now.and_then(|now| lacks(&now)) == Some(true) {
                lacking.insert(target);
            }
        }
    }
    lacking
}

/// Restores those that have been widened since, as the kernel does it; any other change was made by
/// somebody else.
pub fn narrow(before: &[Affinity], settings: &mut dyn Settings) {
    settle(before, &Cpus::default(), settings);
}

/// The same, and those that nothing but some of these CPUs has been cut out of.
fn settle(before: &[Affinity], cut: &Cpus, settings: &mut dyn Settings) {
    for one in before {
        let (kind, target) = one.setting();
        let now = settings.read(kind, &target).ok().flatten().and_then(|now| Cpus::parse_list(&now).ok());
        let Some(now) = now else { continue };
        let lost = one.cpus.minus(&now);
        let widened = lost.is_empty() && now != one.cpus;
        let is_cut = !lost.is_empty() && now.is_subset(&one.cpus) && lost.is_subset(cut);
        if widened || is_cut {
            let _ = settings.write(kind, &target, &one.text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Occupied;
    use sys::Error;

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

    /// The affinity of a task of this name, the target of which is [`of`].
    fn kept_of(name: &str, cpus: &str) -> Affinity {
        let task = Task { id: 7, start: 1, name: name.to_owned() };
        Affinity { of: Bearer::Task(task), cpus: cpus.parse().unwrap() }
    }

    fn of(name: &str) -> String {
        format!("7/1/{name}")
    }

    #[test]
    fn what_somebody_has_moved_since_stays_where_it_is() {
        let list = |values: [&str; 3]| {
            let kept = ["a", "b", "c"].iter().zip(values);
            kept.map(|(name, cpus)| kept_of(name, cpus)).collect::<Vec<_>>()
        };
        // Applying moved all three away from 2 and 3; somebody has moved b since, and c has ended.
        let (before, after) = (list(["0-3", "0-3", "0-3"]), list(["0-1", "0-1", "0-1"]));
        let now = [("a", "0-1"), ("b", "1")].map(|(name, cpus)| (of(name), cpus.to_owned()));
        let mut settings = Fixed(now.into());
        let foreign = foreign(&before, &after, &mut settings);
        assert_eq!(foreign, BTreeMap::from([(of("b"), "1".to_owned())]));
        // Dissolving a partition has widened both since that was asked.
        settings.0.extend([("a", "0-7"), ("b", "0-7")].map(|(name, cpus)| (of(name), cpus.to_owned())));
        restore(&before, &mut settings, &foreign);
        assert_eq!((settings.0[&of("a")].as_str(), settings.0[&of("b")].as_str()), ("0-3", "1"));
    }

    #[test]
    fn only_what_was_widened_is_narrowed() {
        let before = ["a", "b", "c", "d", "gone"].map(|name| kept_of(name, "0-1"));
        let now = [("a", "0-3"), ("b", "0"), ("c", "1-2"), ("d", "0,1")];
        let mut settings = Fixed(now.map(|(name, cpus)| (of(name), cpus.to_owned())).into());
        narrow(&before, &mut settings);
        assert_eq!(
            ["a", "b", "c", "d"].map(|name| settings.0[&of(name)].as_str()),
            ["0,1", "0", "1-2", "0,1"]
        );
        assert!(!settings.0.contains_key(&of("gone")));
    }

    /// As Linux 6.1 leaves them where a partition changes while a CPU is offline.
    #[test]
    fn masks_that_lost_a_cpu_are_restored() {
        let before = ["a", "b", "c", "d"].map(|name| kept_of(name, "0-3"));
        let now = [("a", "0-1,3"), ("b", "0-1"), ("c", "0,1,3-5"), ("d", "3")];
        let mut settings = Fixed(now.map(|(name, cpus)| (of(name), cpus.to_owned())).into());
        Shaken { before: before.into(), cpus: Cpus::one(2) }.undo(&mut settings).unwrap();
        let after = ["a", "b", "c", "d"].map(|name| settings.0[&of(name)].as_str());
        assert_eq!(after, ["0-3", "0-1", "0,1,3-5", "3"], "what others have set stays");
    }

    #[test]
    fn an_affinity_comes_back_without_cpus_that_are_offline() {
        let before = [kept_of("a", "0-3"), kept_of("b", "0-1"), kept_of("c", "0-3")];
        let now = [("a", "0"), ("b", "0"), ("c", "0-3")];
        let mut settings = Fixed(now.map(|(name, cpus)| (of(name), cpus.to_owned())).into());
        settings.0.insert("/sys/devices/system/cpu/online".to_owned(), "0-2".to_owned());
        let lacking = restore(&before, &mut settings, &BTreeMap::new());
        assert_eq!(lacking, BTreeSet::from([of("a")]));
        assert_eq!(["a", "b", "c"].map(|name| settings.0[&of(name)].as_str()), ["0-2", "0,1", "0-3"]);
    }
}
