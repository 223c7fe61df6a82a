//! Plans that are refused, and the engine over files: applied, killed at any write, undone,
//! whatever somebody else does meanwhile.

use crate::support::{plan_of, step};
use audit::{Catalogue, Request, plan};
use isolate::apply::{Applied, Observer, apply};
use isolate::head::Head;
use isolate::revert::{Reverted, revert, revert_since};
use isolate::standing::{Standing, find, find_first, path};
use journal::settings::{Live, Occupied, Settings};
use machine::Root;
use model::Cpus;
use model::plan::{Placement, Plan, StepKind};
use proptest::prelude::*;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use sys::Error;

fn planned(machine: &str, request: &Request) -> Result<Plan, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines").join(machine);
    let root = Root::open(&root).unwrap();
    let machine = machine::read(&root).unwrap();
    plan(&root, &machine, &Catalogue::embedded().unwrap(), request).map_err(|error| error.to_string())
}

fn cpus(list: &str) -> Request {
    Request { cpus: list.parse().unwrap(), ..Request::default() }
}

#[test]
fn what_would_take_the_machine_away_is_refused_in_one_sentence() {
    for (machine, request, part) in [
        ("isolated-6.1", cpus("0-3"), "are all CPUs that are online"),
        ("isolated-6.1", cpus("0"), "CPU 0 is among them"),
        ("isolated-6.1", cpus("9"), "this machine has no CPU 9"),
        ("unplugged-6.1", cpus("3"), "CPU 3 is offline"),
        ("smt-i7-6.1", cpus("3"), "3 share cores with CPU 7"),
        ("isolated-6.1", Cpus::default().into_request(), "none are named"),
        (
            "isolated-6.1",
            Request { with: vec!["nothing".to_owned()], ..cpus("2") },
            "no mechanism is called \"nothing\"",
        ),
        ("isolated-6.1", Request { placement: Some(Placement::Cpuset), ..cpus("2") }, "placement cpuset"),
    ] {
        let error = planned(machine, &request).unwrap_err();
        assert!(error.contains(part) && error.lines().count() == 1, "{machine}: {error}");
    }
    assert!(planned("smt-i7-6.1", &Request { allow_split: true, ..cpus("3") }).is_ok());
    assert!(planned("isolated-6.1", &Request { force: true, ..cpus("0") }).is_ok());
}

trait IntoRequest {
    fn into_request(self) -> Request;
}

impl IntoRequest for Cpus {
    fn into_request(self) -> Request {
        Request { cpus: self, ..Request::default() }
    }
}

#[test]
fn masks_are_spelled_as_their_files_want_them_and_risks_are_left() {
    let plan = planned("vm-6.18", &cpus("3")).unwrap();
    let step = |id: &str| plan.steps.iter().find(|step| step.mechanism == id);
    let mask = step("workqueue-cpumask").unwrap();
    assert_eq!((mask.old.as_deref(), mask.new.as_str()), (Some("f"), "7"));
    assert!(
        plan.steps
            .iter()
            .all(|step| !step.risky && (step.old != Some(step.new.clone()) || step.kind == StepKind::Kept)),
        "{plan:#?}"
    );
    assert!(plan.left.iter().any(|left| left.mechanism == "sched_rt_runtime"));
    let asked =
        planned("vm-6.18", &Request { with: vec!["sched_rt_runtime".to_owned()], ..cpus("3") }).unwrap();
    assert!(asked.steps.iter().any(|step| step.mechanism == "sched_rt_runtime" && step.new == "-1"));
    // 1 and 0 are both argued for: only who names it has it changed.
    let contested = |plan: &Plan| plan.steps.iter().any(|s| s.mechanism == "timer_migration" && s.new == "0");
    assert!(!contested(&plan));
    let named = Request { with: vec!["timer_migration".to_owned()], ..cpus("3") };
    assert!(contested(&planned("vm-6.18", &named).unwrap()));
    let without = Request { without: vec!["workqueue-cpumask".to_owned()], ..cpus("3") };
    assert!(!planned("vm-6.18", &without).unwrap().steps.iter().any(|s| s.mechanism == "workqueue-cpumask"));
}

#[test]
fn steps_come_in_their_order_and_none_twice() {
    let catalogue = Catalogue::embedded().unwrap();
    for machine in ["vm-6.18", "isolcpus-dropped-6.1", "cgroup-v1-5.10"] {
        let plan = planned(machine, &cpus("3")).unwrap();
        let order = |id: &str| catalogue.get(id).map_or(40, audit::Mechanism::order);
        let orders: Vec<_> = plan.steps.iter().map(|step| order(&step.mechanism)).collect();
        assert!(orders.is_sorted(), "{machine}: {orders:?}");
        let mut targets: Vec<_> = plan.steps.iter().map(|step| (step.kind, &step.target)).collect();
        targets.sort();
        let all = targets.len();
        targets.dedup();
        assert_eq!(targets.len(), all, "{machine}");
    }
}

/// Files that stand for settings, and a state directory.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    pub(crate) files: Vec<PathBuf>,
}

impl Place {
    pub(crate) fn new(values: &[String]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files: Vec<_> = (0..values.len()).map(|n| dir.path().join(format!("setting{n}"))).collect();
        for (file, value) in files.iter().zip(values) {
            fs::write(file, value).unwrap();
        }
        Self { dir, files }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    fn values(&self) -> Vec<String> {
        self.files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
    }

    /// A plan that isolates nothing, so that no task of this machine is looked for.
    pub(crate) fn plan(&self, new: &[String]) -> Plan {
        let one = |(file, new): (&PathBuf, &String)| {
            let file = file.display().to_string();
            step(&format!("m{}", file.len() % 2), StepKind::File, &file, new)
        };
        plan_of(self.files.iter().zip(new).map(one).collect())
    }

    pub(crate) fn apply(&self, plan: &Plan, settings: &mut dyn Settings) -> Result<Applied, Error> {
        let mut standing = Standing::open(&self.state())?;
        let mut observer = Observer { stop: &mut || None, on_change: &mut |_| {} };
        apply(plan, &Head::of(plan, None), &mut standing, settings, &mut observer)
    }

    pub(crate) fn undo(&self, settings: &mut dyn Settings) -> Reverted {
        revert(Standing::open(&self.state()).unwrap(), settings).unwrap()
    }
}

/// Ends as a killed process does, at a moment: 2k before the k-th write, 2k+1 after it.
struct Killed {
    live: Live,
    at: u64,
    moment: u64,
}

impl Killed {
    fn at(at: u64) -> Self {
        Self { live: Live::below(Path::new("/none"), &std::env::temp_dir()), at, moment: 0 }
    }

    fn pass(&mut self) {
        if self.moment == self.at {
            // Unlike a panic, this prints nothing.
            resume_unwind(Box::new("killed"));
        }
        self.moment += 1;
    }
}

impl Settings for Killed {
    fn read(&mut self, kind: StepKind, target: &str) -> Result<Option<String>, Error> {
        self.live.read(kind, target)
    }

    fn write(&mut self, kind: StepKind, target: &str, value: &str) -> Result<(), Error> {
        self.pass();
        let written = self.live.write(kind, target, value);
        self.pass();
        written
    }

    fn user(&mut self, kind: StepKind, target: &str) -> Option<String> {
        self.live.user(kind, target)
    }

    fn occupy(&mut self, cpus: &Cpus) -> Occupied {
        self.live.occupy(cpus)
    }
}

pub(crate) fn live() -> Live {
    Live::below(Path::new("/none"), &std::env::temp_dir())
}

/// Whether the call was killed: at a moment behind its last write it ends by itself.
fn killed(at: u64, call: impl FnOnce(&mut Killed)) -> bool {
    catch_unwind(AssertUnwindSafe(|| call(&mut Killed::at(at)))).is_err()
}

#[test]
fn killed_at_each_write_of_apply_and_of_undo_everything_is_as_before() {
    let words = |words: [&str; 6]| words.map(str::to_owned).to_vec();
    let old = words(["0", "1", "f", "0-3", "always", "60"]);
    let new = words(["1", "1", "3", "0-1", "never", "3600"]);
    let mut points = 0;
    for apply_at in 0.. {
        let mut was_killed = false;
        for undo_at in 0.. {
            let place = Place::new(&old);
            let plan = place.plan(&new);
            was_killed = killed(apply_at, |settings| drop(place.apply(&plan, settings)));
            let undo_was_killed = killed(undo_at, |settings| drop(place.undo(settings)));
            let last = place.undo(&mut live());
            assert!(last.failed.is_empty() && last.left.is_empty(), "{apply_at} {undo_at}: {last:?}");
            assert_eq!(place.values(), old, "killed at {apply_at} and {undo_at}");
            assert!(find(&place.state()).unwrap().is_none(), "killed at {apply_at} and {undo_at}");
            points += 1;
            if !undo_was_killed {
                break;
            }
        }
        if !was_killed {
            break;
        }
    }
    // Five of the six values differ: before and after each write of apply, and of what is to be
    // undone then.
    assert!(points > 50, "{points} pairs of moments");
}

fn settings() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    let value =
        || prop_oneof![Just("0"), Just("1"), Just("f"), Just("0-3"), Just("never")].prop_map(str::to_owned);
    proptest::collection::vec((value(), value()), 1..6).prop_map(|pairs| pairs.into_iter().unzip())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Applied whole or killed anywhere, undone whole or killed anywhere and undone again: every
    /// value is as before.
    #[test]
    fn undoing_is_the_inverse_of_applying((old, new) in settings(), apply_at in 0u64..14, undo_at in 0u64..14) {
        let place = Place::new(&old);
        let plan = place.plan(&new);
        killed(apply_at, |settings| drop(place.apply(&plan, settings)));
        killed(undo_at, |settings| drop(place.undo(settings)));
        let last = place.undo(&mut live());
        prop_assert!(last.failed.is_empty() && last.left.is_empty(), "{:?}", last);
        prop_assert_eq!(place.values(), old);
        prop_assert!(find(&place.state()).unwrap().is_none());
    }

    /// A second call completes a first one that was killed, and one undo reverts both.
    #[test]
    fn applying_again_goes_on((old, new) in settings(), at in 0u64..14) {
        let place = Place::new(&old);
        let plan = place.plan(&new);
        killed(at, |settings| drop(place.apply(&plan, settings)));
        let applied = place.apply(&plan, &mut live()).unwrap();
        prop_assert!(applied.refused.is_empty(), "{:?}", applied.refused);
        prop_assert_eq!(place.values(), new);
        place.undo(&mut live());
        prop_assert_eq!(place.values(), old);
    }

    /// What somebody else has set meanwhile stays, and only that.
    #[test]
    fn what_others_set_is_left_alone((old, new) in settings(), whose in 0usize..6) {
        let place = Place::new(&old);
        place.apply(&place.plan(&new), &mut live()).unwrap();
        let whose = whose % old.len();
        fs::write(&place.files[whose], "somebody").unwrap();
        let reverted = place.undo(&mut live());
        let mut expected = old.clone();
        expected[whose] = "somebody".to_owned();
        prop_assert_eq!(place.values(), expected);
        prop_assert_eq!(reverted.left.len(), usize::from(old[whose] != new[whose]));
        let changed = old.iter().zip(&new).filter(|(old, new)| old != new).count();
        prop_assert_eq!(reverted.as_before, changed - reverted.left.len());
        prop_assert!(reverted.differ.is_empty(), "{:?}", reverted.differ);
    }
}

/// A kernel that computes its second file anew whenever the first is written.
struct Recomputing {
    settings: Killed,
    disturbing: String,
    disturbed: PathBuf,
    times: u32,
}

impl Settings for Recomputing {
    fn read(&mut self, kind: StepKind, target: &str) -> Result<Option<String>, Error> {
        self.settings.read(kind, target)
    }

    fn write(&mut self, kind: StepKind, target: &str, value: &str) -> Result<(), Error> {
        self.settings.write(kind, target, value)?;
        if target == self.disturbing {
            self.times += 1;
            fs::write(&self.disturbed, format!("computed {}", self.times)).unwrap();
        }
        Ok(())
    }

    fn user(&mut self, kind: StepKind, target: &str) -> Option<String> {
        self.settings.user(kind, target)
    }

    fn occupy(&mut self, cpus: &Cpus) -> Occupied {
        self.settings.occupy(cpus)
    }
}

#[test]
fn values_that_the_kernel_recomputes_are_restored_unless_somebody_else_set_them() {
    let old = ["always".to_owned(), "45012".to_owned()];
    for (apply_at, undo_at) in (0..8).flat_map(|one| (0..10).map(move |other| (one, other))) {
        let place = Place::new(&old);
        let kernel = |at| Recomputing {
            settings: Killed::at(at),
            disturbing: place.files[0].display().to_string(),
            disturbed: place.files[1].clone(),
            times: 0,
        };
        let mut plan = place.plan(&["never".to_owned(), "45012".to_owned()]);
        plan.steps.iter_mut().for_each(|step| step.mechanism = "thp".to_owned());
        plan.steps[1].kind = StepKind::Kept;
        plan.steps.swap(0, 1);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(place.apply(&plan, &mut kernel(apply_at)))));
        let _ = catch_unwind(AssertUnwindSafe(|| drop(place.undo(&mut kernel(undo_at)))));
        let last = place.undo(&mut kernel(u64::MAX));
        assert_eq!(place.values(), old, "killed at {apply_at} and {undo_at}: {last:?}");
    }
    let place = Place::new(&old);
    let mut plan = place.plan(&["never".to_owned(), "45012".to_owned()]);
    plan.steps[1].kind = StepKind::Kept;
    plan.steps.swap(0, 1);
    place.apply(&plan, &mut live()).unwrap();
    fs::write(&place.files[1], "90000").unwrap();
    place.undo(&mut live());
    assert_eq!(place.values(), ["always", "90000"]);
}

/// Undone first, then computed anew while the other is undone: no success is claimed.
#[test]
fn what_is_computed_anew_while_undoing_is_found_by_reading_back() {
    let place = Place::new(&["always".to_owned(), "67584".to_owned()]);
    let plan = place.plan(&["never".to_owned(), "5".to_owned()]);
    place.apply(&plan, &mut live()).unwrap();
    let mut kernel = Recomputing {
        settings: Killed::at(u64::MAX),
        disturbing: place.files[0].display().to_string(),
        disturbed: place.files[1].clone(),
        times: 0,
    };
    let reverted = place.undo(&mut kernel);
    assert_eq!((reverted.as_before, reverted.undone.len()), (1, 2), "{reverted:?}");
    assert_eq!(reverted.differ.len(), 1);
    assert!(reverted.differ[0].ends_with(" is computed 1; it was 67584"), "{:?}", reverted.differ);
}

#[test]
fn a_torn_last_line_is_a_change_that_was_never_made() {
    let old = ["0".to_owned(), "1".to_owned()];
    let place = Place::new(&old);
    place.apply(&place.plan(&["5".to_owned(), "6".to_owned()]), &mut live()).unwrap();
    let journal = place.state().join("isolation.jsonl");
    let mut text = fs::read_to_string(&journal).unwrap();
    text.push_str("{\"seq\":77,\"boot_id\":\"x\",\"id\":\"m\",\"targ");
    fs::write(&journal, text).unwrap();
    let reverted = place.undo(&mut live());
    assert_eq!((reverted.undone.len(), reverted.failed.len()), (2, 0));
    assert_eq!(place.values(), old);
}

#[test]
fn a_damaged_journal_is_kept_and_reported() {
    let old = ["0".to_owned(), "1".to_owned()];
    let place = Place::new(&old);
    place.apply(&place.plan(&["5".to_owned(), "6".to_owned()]), &mut live()).unwrap();
    let journal = place.state().join("isolation.jsonl");
    let whole = fs::read_to_string(&journal).unwrap();
    let of_first: Vec<_> = whole.lines().filter(|line| line.contains("setting0")).collect();
    let damaged = whole.replace("setting0", "settingO");
    assert!(!of_first.is_empty() && damaged != whole);
    fs::write(&journal, &damaged).unwrap();
    let reverted = place.undo(&mut live());
    let lost = &reverted.failed[0];
    assert!(lost.contains("cannot be trusted") && lost.contains("settingO\", from \"0\" to \"5\""), "{lost}");
    assert_eq!(place.values(), ["5", "1"], "what can be read is undone");
    assert!(journal.exists());
    let headless = whole.lines().skip(1).collect::<Vec<_>>().join("\n");
    fs::write(&journal, headless).unwrap();
    let error = revert(Standing::open(&place.state()).unwrap(), &mut live()).unwrap_err().to_string();
    assert!(error.contains("first line cannot be read"), "{error}");
    fs::write(&journal, whole).unwrap();
    place.undo(&mut live());
    assert_eq!(place.values(), old);
}

/// A second call that stops undoes its own changes and leaves those of the first.
#[test]
fn a_call_that_stops_leaves_what_stood_before_it() {
    let old = ["0".to_owned(), "1".to_owned()];
    let place = Place::new(&old);
    let whole = place.plan(&["5".to_owned(), "6".to_owned()]);
    let first = Plan { steps: whole.steps[..1].to_vec(), ..whole.clone() };
    place.apply(&first, &mut live()).unwrap();
    let standing = Standing::open(&place.state()).unwrap();
    let since = standing.next();
    drop(standing);
    place.apply(&whole, &mut live()).unwrap();
    let reverted = revert_since(Standing::open(&place.state()).unwrap(), &mut live(), since).unwrap();
    assert_eq!((reverted.undone.len(), place.values()), (1, vec!["5".to_owned(), "1".to_owned()]));
    assert!(find(&place.state()).unwrap().is_some());
    place.undo(&mut live());
    assert_eq!(place.values(), old);
}

/// Of a placement whose first step is refused nothing is made, whatever follows.
#[test]
fn a_refused_placement_leaves_nothing_of_itself() {
    let old = ["0".to_owned(), "1".to_owned()];
    let place = Place::new(&old);
    let mut plan = place.plan(&["5".to_owned(), "0".to_owned()]);
    plan.steps.iter_mut().for_each(|step| step.mechanism = "cpuset-v1".to_owned());
    plan.steps[0].target = place.dir.path().join("absent").display().to_string();
    let applied = place.apply(&plan, &mut live()).unwrap();
    assert_eq!((applied.fallback.len(), applied.applied.len()), (1, 0), "{applied:?}");
    assert_eq!(place.values(), old);
}

/// Without root: the system's journal before one's own, and an unreadable one is no absent one.
#[test]
fn what_stands_is_looked_for_in_order() {
    let (first, second) = (Place::new(&["0".to_owned()]), Place::new(&["0".to_owned()]));
    let states = [first.state(), second.state()];
    let where_found = || find_first(&states).unwrap().map(|(state, _)| state);
    assert_eq!(where_found(), None);
    second.apply(&second.plan(&["1".to_owned()]), &mut live()).unwrap();
    assert_eq!(where_found().as_ref(), Some(&states[1]));
    first.apply(&first.plan(&["1".to_owned()]), &mut live()).unwrap();
    assert_eq!(where_found().as_ref(), Some(&states[0]));
    fs::remove_file(path(&states[0])).unwrap();
    // Nobody can read a directory as a file, root included.
    fs::create_dir(path(&states[0])).unwrap();
    let error = find_first(&states).unwrap_err().to_string();
    assert!(error.contains("no regular file"), "{error}");
}

#[test]
fn two_calls_at_once_are_refused() {
    let place = Place::new(&["0".to_owned()]);
    let held = Standing::open(&place.state()).unwrap();
    let error = Standing::open(&place.state()).unwrap_err().to_string();
    assert!(error.contains("another stillcore is at work"), "{error}");
    drop(held);
    Standing::open(&place.state()).unwrap();
}

#[test]
fn a_stop_between_batches_changes_no_more() {
    let old = ["0".to_owned(), "1".to_owned()];
    let place = Place::new(&old);
    let plan = place.plan(&["5".to_owned(), "6".to_owned()]);
    let mut standing = Standing::open(&place.state()).unwrap();
    let mut observer = Observer { stop: &mut || Some("SIGINT".to_owned()), on_change: &mut |_| {} };
    let error = apply(&plan, &Head::of(&plan, None), &mut standing, &mut live(), &mut observer).unwrap_err();
    assert!(error.to_string().contains("stopped by SIGINT"));
    assert_eq!(place.values(), old);
}
