//! Isolation on a machine where others are at work too, and where not everything can be restored: a
//! simulated kernel with the swap priorities of Linux `mm/swapfile.c` (`setup_swap_info`,
//! `swapoff`), partitions that it does not uphold, and files that vanish.

use crate::support::{plan_of, step};
use audit::{Catalogue, Request, plan};
use isolate::apply::{Applied, Observer, apply};
use isolate::head::Head;
use isolate::revert::{Reverted, forget, revert};
use isolate::standing::{Standing, exists, find};
use isolate::verify::verify;
use journal::settings::{Occupied, Settings};
use machine::Root;
use model::Cpus;
use model::plan::{Placement, Plan, StepKind};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use sys::Error;

/// A kernel: files and other settings by name, swap areas in the places it found for them.
#[derive(Debug, Clone, Default)]
struct Kernel {
    values: BTreeMap<String, String>,
    swaps: Vec<Option<(String, i32)>>,
    /// Partitions read back invalid.
    refuses_partitions: bool,
    /// Who needs a controller.
    user: Option<String>,
    /// Files that cannot be written nor, if `unreadable`, read.
    broken: BTreeSet<String>,
    unreadable: bool,
    /// How often a process has joined a group.
    joins: usize,
}

impl Kernel {
    fn of(values: &[(&str, &str)]) -> Self {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { values, ..Self::default() }
    }

    fn areas(&self) -> impl Iterator<Item = &(String, i32)> {
        self.swaps.iter().flatten()
    }

    fn swap_on(&mut self, area: &str, explicit: Option<i32>) {
        let lowest = self.areas().map(|area| area.1).filter(|priority| *priority < 0).min().unwrap_or(-1);
        let area = (area.to_owned(), explicit.unwrap_or(lowest - 1));
        match self.swaps.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(area),
            None => self.swaps.push(Some(area)),
        }
    }

    fn swap_off(&mut self, area: &str) {
        let place = self.swaps.iter_mut().find(|place| place.as_ref().is_some_and(|(name, _)| name == area));
        let Some((_, gone)) = place.and_then(Option::take) else { return };
        let below = |priority: i32| gone < 0 && priority < gone;
        self.swaps.iter_mut().flatten().filter(|area| below(area.1)).for_each(|area| area.1 += 1);
    }

    /// `/proc/swaps`.
    fn listed(&self) -> String {
        let lines = self.areas().map(|(area, priority)| format!("{area} partition 8 0 {priority}\n"));
        lines.fold("Filename Type Size Used Priority\n".to_owned(), |text, line| text + &line)
    }
}

impl Settings for Kernel {
    fn read(&mut self, kind: StepKind, target: &str) -> Result<Option<String>, Error> {
        if self.unreadable && self.broken.contains(target) {
            return Err(Error::failed("reading", "it is broken"));
        }
        if kind == StepKind::Swap {
            let priority = self.areas().find(|(area, _)| area == target).map(|(_, priority)| *priority);
            return Ok(Some(priority.map_or_else(|| "off".to_owned(), |priority| format!("on {priority}"))));
        }
        Ok(self.values.get(target).cloned())
    }

    fn write(&mut self, kind: StepKind, target: &str, value: &str) -> Result<(), Error> {
        if self.broken.contains(target) {
            return Err(Error::failed("writing", "it is broken"));
        }
        self.joins += usize::from(kind == StepKind::Member);
        match (kind, value.strip_prefix("on ")) {
            (StepKind::Swap, Some(priority)) => {
                let priority: i32 = priority.parse().unwrap();
                self.swap_on(target, Some(priority).filter(|priority| *priority >= 0));
            }
            (StepKind::Swap, None) => self.swap_off(target),
            _ if self.refuses_partitions && value == "isolated" => {
                self.values.insert(target.to_owned(), "isolated invalid (housekeeping conflict)".to_owned());
            }
            _ => drop(self.values.insert(target.to_owned(), value.to_owned())),
        }
        Ok(())
    }

    fn user(&mut self, kind: StepKind, _: &str) -> Option<String> {
        self.user.clone().filter(|_| kind == StepKind::Controller)
    }

    fn occupy(&mut self, _: &Cpus) -> Occupied {
        Occupied::default()
    }
}

/// A plan that isolates nothing, so that no task of this machine is looked for.
fn plan_with(steps: &[(&str, StepKind, &str, &str)]) -> Plan {
    let one =
        |(mechanism, kind, target, new): &(&str, StepKind, &str, &str)| step(mechanism, *kind, target, new);
    plan_of(steps.iter().map(one).collect())
}

fn applied(state: &Path, plan: &Plan, kernel: &mut Kernel) -> Applied {
    let mut standing = Standing::open(state).unwrap();
    let mut observer = Observer { stop: &mut || None, on_change: &mut |_| {} };
    apply(plan, &Head::of(plan, None), &mut standing, kernel, &mut observer).unwrap()
}

fn undone(state: &Path, kernel: &mut Kernel) -> Reverted {
    revert(Standing::open(state).unwrap(), kernel).unwrap()
}

const PARTITION: [(&str, StepKind, &str, &str); 4] = [
    ("cpuset-partition", StepKind::Controller, "/cg#cpuset", "on"),
    ("cpuset-partition", StepKind::Group, "/cg/ours", "present"),
    ("cpuset-partition", StepKind::File, "/cg/ours/cpuset.cpus", "2-3"),
    ("cpuset-partition", StepKind::File, "/cg/ours/cpuset.cpus.partition", "isolated"),
];
const UNTOUCHED: [(&str, &str); 4] = [
    ("/cg#cpuset", "off"),
    ("/cg/ours", "absent"),
    ("/cg/ours/cpuset.cpus", ""),
    ("/cg/ours/cpuset.cpus.partition", "member"),
];

/// The kernel takes the word and reads back that it does not uphold it: that is a refusal, and
/// nothing of the placement stays.
#[test]
fn a_partition_that_reads_back_invalid_is_refused() {
    let state = tempfile::tempdir().unwrap();
    let mut kernel = Kernel { refuses_partitions: true, ..Kernel::of(&UNTOUCHED) };
    let plan = Plan { placement: Placement::Partition, ..plan_with(&PARTITION) };
    let done = applied(state.path(), &plan, &mut kernel);
    assert_eq!((done.applied.len(), done.fallback.len()), (0, 1), "{done:?}");
    let reason = done.fallback[0].reason.as_deref().unwrap();
    assert!(reason.contains("isolated invalid (housekeeping conflict)"), "{reason}");
    assert_eq!(kernel.values, Kernel::of(&UNTOUCHED).values);
    assert_eq!(find(state.path()).unwrap().unwrap().placement(), Placement::Affinity);
    // One that is invalidated later is still undone.
    let mut kernel = Kernel::of(&UNTOUCHED);
    applied(state.path(), &plan, &mut kernel);
    let partition = "/cg/ours/cpuset.cpus.partition";
    kernel.values.insert(partition.to_owned(), "isolated invalid (overlap)".to_owned());
    let found = find(state.path()).unwrap().unwrap();
    assert_eq!(found.placement(), Placement::Partition);
    let root = Root::live();
    let seen = verify(&root, &Catalogue::embedded().unwrap(), &found, &mut kernel).unwrap();
    assert!(
        seen.drifted.iter().any(|drift| drift.contains("is isolated invalid (overlap), not isolated")),
        "{seen:?}"
    );
    let reverted = undone(state.path(), &mut kernel);
    assert!(reverted.left.is_empty() && reverted.failed.is_empty(), "{reverted:?}");
    assert_eq!(kernel.values, Kernel::of(&UNTOUCHED).values);
}

/// Joining a group for a moment gives a task all its CPUs before 6.2, and 5.10 has no isolated
/// partitions: who is kept does not join where none will be made.
#[test]
fn nobody_joins_a_group_that_this_kernel_makes_no_partition() {
    let partition = "/cg/ours/cpuset.cpus.partition";
    let member = ("cpuset-partition", StepKind::Member, "7/5/rtapp", "/cg/ours");
    let [controller, group, cpus, isolated] = PARTITION;
    let plan = plan_with(&[controller, group, cpus, member, isolated]);
    let features = "/sys/kernel/cgroup/features";
    let with_task = || {
        let mut kernel = Kernel::of(&UNTOUCHED);
        kernel.values.insert(member.2.to_owned(), "/cg".to_owned());
        kernel.values.insert(features.to_owned(), "nsdelegate\nmemory_recursiveprot".to_owned());
        kernel
    };
    let plan = Plan { placement: Placement::Partition, ..plan };
    let state = tempfile::tempdir().unwrap();
    let mut kernel = with_task();
    kernel.broken.insert(partition.to_owned());
    let done = applied(state.path(), &plan, &mut kernel);
    assert_eq!((done.applied.len(), done.fallback.len(), kernel.joins), (0, 1, 0), "{done:?}");
    assert!(done.fallback[0].target == partition && done.refused.is_empty(), "{done:?}");
    assert_eq!(kernel.values, with_task().values);
    let state = tempfile::tempdir().unwrap();
    let mut kernel = with_task();
    let done = applied(state.path(), &plan, &mut kernel);
    assert_eq!((done.applied.len(), done.fallback.len(), kernel.joins), (5, 0, 1), "{done:?}");
    // A kernel that may know them is not tried on the empty group: 6.1 gives everybody outside of
    // it all CPUs for that.
    let state = tempfile::tempdir().unwrap();
    let mut kernel = with_task();
    kernel.values.insert(features.to_owned(), "nsdelegate\nfavordynmods".to_owned());
    kernel.broken.insert(partition.to_owned());
    let done = applied(state.path(), &plan, &mut kernel);
    assert_eq!((done.fallback.len(), kernel.joins), (1, 2), "joined and back: {done:?}");
}

/// A controller that somebody else uses by now stays on; undoing reports it, and completes.
#[test]
fn a_controller_that_others_use_stays_on() {
    let state = tempfile::tempdir().unwrap();
    let mut kernel = Kernel::of(&UNTOUCHED);
    applied(state.path(), &plan_with(&PARTITION), &mut kernel);
    kernel.user = Some("/cg/machine.slice".to_owned());
    let reverted = undone(state.path(), &mut kernel);
    assert_eq!(reverted.left, ["cpuset-partition /cg#cpuset stays on, because /cg/machine.slice uses it"]);
    assert!(reverted.failed.is_empty() && !exists(state.path()));
    let mut expected = Kernel::of(&UNTOUCHED).values;
    expected.insert("/cg#cpuset".to_owned(), "on".to_owned());
    assert_eq!(kernel.values, expected);
}

/// A value that can never be restored does not block undoing for ever, if the user says so; the
/// journal stays readable.
#[test]
fn values_that_cannot_be_restored_can_be_given_up() {
    let state = tempfile::tempdir().unwrap();
    let steps = [("m", StepKind::File, "/gone", "1"), ("m", StepKind::File, "/there", "1")];
    let plan = plan_with(&steps);
    for round in 1..=2 {
        let mut kernel = Kernel::of(&[("/gone", "0"), ("/there", "0")]);
        applied(state.path(), &plan, &mut kernel);
        kernel.broken.insert("/gone".to_owned());
        for _ in 0..2 {
            let reverted = undone(state.path(), &mut kernel);
            assert!(reverted.failed[0].starts_with("m /gone") && exists(state.path()), "{reverted:?}");
        }
        let journal = fs::read(state.path().join("isolation.jsonl")).unwrap();
        let given_up = forget(Standing::open(state.path()).unwrap(), &mut kernel).unwrap();
        assert!(given_up.abandoned[0].starts_with("m /gone") && given_up.failed.is_empty(), "{given_up:?}");
        assert_eq!(kernel.values["/there"], "0", "what can be given back is");
        assert!(!exists(state.path()) && find(state.path()).unwrap().is_none());
        let kept = given_up.kept.unwrap();
        assert!(kept.ends_with(format!("isolation.forgotten-{round}.jsonl")), "{}", kept.display());
        assert!(fs::read(kept).unwrap().starts_with(&journal));
    }
    // Nor a journal whose head cannot be read; where all can be restored nothing is given up.
    let mut kernel = Kernel::of(&[("/gone", "0"), ("/there", "0")]);
    applied(state.path(), &plan, &mut kernel);
    let whole = fs::read_to_string(state.path().join("isolation.jsonl")).unwrap();
    let (_, headless) = whole.split_once('\n').unwrap();
    fs::write(state.path().join("isolation.jsonl"), headless).unwrap();
    let given_up = forget(Standing::open(state.path()).unwrap(), &mut kernel).unwrap();
    assert!(given_up.abandoned[0].contains("first line cannot be read") && given_up.kept.is_some());
    fs::write(state.path().join("isolation.jsonl"), whole).unwrap();
    let all = forget(Standing::open(state.path()).unwrap(), &mut kernel).unwrap();
    assert!(all.abandoned.is_empty() && all.kept.is_none() && !exists(state.path()), "{all:?}");
    assert_eq!(kernel.values, Kernel::of(&[("/gone", "0"), ("/there", "0")]).values);
}

/// A second call does not take for its own what somebody has set since the first.
#[test]
fn a_second_call_adopts_nothing_of_others() {
    let state = tempfile::tempdir().unwrap();
    let steps = [("thp", StepKind::Kept, "/min_free", "45012"), ("thp", StepKind::File, "/thp", "never")];
    let mut kernel = Kernel::of(&[("/min_free", "45012"), ("/thp", "always")]);
    applied(state.path(), &plan_with(&steps), &mut kernel);
    kernel.values.insert("/min_free".to_owned(), "90000".to_owned());
    applied(state.path(), &plan_with(&steps), &mut kernel);
    undone(state.path(), &mut kernel);
    assert_eq!(kernel.values, Kernel::of(&[("/min_free", "90000"), ("/thp", "always")]).values);
}

/// Something that cannot be read drifts; it is no end of verifying.
#[test]
fn what_cannot_be_read_is_said_and_the_rest_verified() {
    let state = tempfile::tempdir().unwrap();
    let steps = ["/a", "/b", "/c"].map(|file| ("m", StepKind::File, file, "1"));
    let mut kernel = Kernel::of(&[("/a", "0"), ("/b", "0"), ("/c", "0")]);
    applied(state.path(), &plan_with(&steps), &mut kernel);
    let found = find(state.path()).unwrap().unwrap();
    kernel.broken.insert("/a".to_owned());
    kernel.unreadable = true;
    kernel.values.remove("/b");
    let seen = verify(&Root::live(), &Catalogue::embedded().unwrap(), &found, &mut kernel).unwrap();
    assert_eq!((seen.holding, seen.gone, seen.vanished), (1, 1, vec!["/b".to_owned()]));
    assert!(seen.drifted.iter().any(|line| line.starts_with("m /a is not known: ")), "{:?}", seen.drifted);
}

/// The plan that the audit of a machine of these files makes.
fn planned(catalogue: &Catalogue, files: &[(&str, &str)], request: &Request) -> Result<Plan, String> {
    let tree = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let path = tree.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Root::open(tree.path()).unwrap();
    let machine = machine::read(&root).unwrap();
    plan(&root, &machine, catalogue, request).map_err(|error| error.to_string())
}

/// What it plans for swap areas.
fn swap_plan(catalogue: &Catalogue, listed: &str) -> Plan {
    let files = [("sys/devices/system/cpu/online", "0-3"), ("proc/swaps", listed)];
    let request = Request { cpus: Cpus::one(3), ..Request::default() };
    let steps = planned(catalogue, &files, &request).unwrap().steps;
    Plan { steps: steps.into_iter().filter(|step| step.kind == StepKind::Swap).collect(), ..plan_with(&[]) }
}

/// Areas with priorities of their own, with the kernel's, some of them switched off again before:
/// each has its own afterwards.
#[test]
fn every_swap_area_gets_its_priority_back() {
    let mut catalogue = Catalogue::embedded().unwrap();
    catalogue.mechanisms.retain(|mechanism| mechanism.id == "swap");
    let areas = proptest::collection::vec(prop_oneof![Just(None), (0i32..3).prop_map(Some)], 1..7);
    let off = proptest::collection::vec(0usize..7, 0..3);
    proptest!(ProptestConfig::with_cases(64), |(areas in areas, off in off, again in 0usize..3)| {
        let mut kernel = Kernel::default();
        areas.iter().enumerate().for_each(|(at, priority)| kernel.swap_on(&format!("/dev/area{at}"), *priority));
        off.iter().for_each(|at| kernel.swap_off(&format!("/dev/area{at}")));
        (0..again).for_each(|at| kernel.swap_on(&format!("/dev/again{at}"), None));
        let sorted = |kernel: &Kernel| kernel.areas().cloned().collect::<BTreeSet<_>>();
        let before = sorted(&kernel);
        let state = tempfile::tempdir().unwrap();
        let plan = swap_plan(&catalogue, &kernel.listed());
        prop_assert_eq!(plan.steps.len(), before.len());
        applied(state.path(), &plan, &mut kernel);
        prop_assert_eq!(kernel.areas().count(), 0);
        let reverted = undone(state.path(), &mut kernel);
        prop_assert!(reverted.failed.is_empty() && reverted.left.is_empty(), "{:?}", reverted);
        prop_assert_eq!(sorted(&kernel), before);
    });
}

/// An area that somebody switched on meanwhile has the kernel's highest priority; the others still
/// come back.
#[test]
fn another_area_meanwhile_is_no_failure() {
    let mut kernel = Kernel::default();
    kernel.swap_on("/dev/a", None);
    kernel.swap_on("/dev/b", None);
    let state = tempfile::tempdir().unwrap();
    applied(state.path(), &swap_plan(&Catalogue::embedded().unwrap(), &kernel.listed()), &mut kernel);
    kernel.swap_on("/dev/new", None);
    let reverted = undone(state.path(), &mut kernel);
    assert!(reverted.failed.is_empty() && reverted.left.is_empty(), "{reverted:?}");
    let order = |area: &str| kernel.areas().find(|(name, _)| name == area).unwrap().1;
    assert!(order("/dev/new") > order("/dev/a") && order("/dev/a") > order("/dev/b"));
}

/// Siblings go after everything else and come back before it; what is planned for the rest does not
/// reckon with them.
#[test]
fn smt_goes_last_and_comes_back_first() {
    let cpu = "sys/devices/system/cpu";
    let siblings = (0..8)
        .map(|n| (format!("{cpu}/cpu{n}/topology/thread_siblings_list"), format!("{},{}", n % 4, n % 4 + 4)));
    let files: Vec<_> = siblings
        .chain([(format!("{cpu}/online"), "0-7".to_owned()), (format!("{cpu}/smt/control"), "on".to_owned())])
        .collect();
    let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    let catalogue = Catalogue::embedded().unwrap();
    let planned = |cpus: &str| {
        let with = vec!["smt-control".to_owned()];
        planned(&catalogue, &files, &Request { cpus: cpus.parse().unwrap(), with, ..Request::default() })
    };
    let plan = planned("3,7").unwrap();
    assert_eq!(
        (plan.cpus.to_string(), plan.isolated.to_string(), plan.housekeeping.to_string()),
        ("3".to_owned(), "3".to_owned(), "0-2".to_owned())
    );
    let [.., remembered, last] = plan.steps.as_slice() else { panic!("{plan:?}") };
    assert_eq!((last.target.as_str(), last.new.as_str()), ("/sys/devices/system/cpu/smt/control", "off"));
    assert_eq!(remembered.kind, StepKind::Affinities);
    assert_eq!(plan.steps.iter().filter(|step| step.mechanism == "smt-control").count(), 1);
    assert_eq!(planned("3").unwrap().steps, plan.steps);
    let refused = planned("7").unwrap_err();
    assert!(refused.contains("7 would go offline as SMT siblings of 3"), "{refused}");
}
