//! Healing over files: what somebody changes is set again, nothing else is written, and undoing
//! gives back what was before the isolation, wherever the one who heals was killed.

use crate::support::{plan_of, step};
use isolate::apply::{Observer, apply};
use isolate::head::Head;
use isolate::heal::{Key, drifts, heal, key};
use isolate::pace::{Answer, Pace};
use isolate::revert::revert;
use isolate::standing::{Standing, find, path};
use journal::settings::{Live, Occupied, Settings};
use model::Cpus;
use model::plan::StepKind;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::Error;

/// Files below a temporary directory, and how often they were written.
struct Counting {
    live: Live,
    writes: usize,
    /// The write before which the process is killed.
    killed_at: Option<usize>,
}

impl Counting {
    fn new(tree: &Path) -> Self {
        Self { live: Live::below(Path::new("/none"), tree), writes: 0, killed_at: None }
    }
}

impl Settings for Counting {
    fn read(&mut self, kind: StepKind, target: &str) -> Result<Option<String>, Error> {
        self.live.read(kind, target)
    }

    fn write(&mut self, kind: StepKind, target: &str, value: &str) -> Result<(), Error> {
        if self.killed_at == Some(self.writes) {
            return Err(Error::failed("this process", "it was killed"));
        }
        self.writes += 1;
        self.live.write(kind, target, value)
    }

    fn user(&mut self, _: StepKind, _: &str) -> Option<String> {
        None
    }

    fn occupy(&mut self, _: &Cpus) -> Occupied {
        Occupied::default()
    }
}

/// Twenty settings, isolated: each was `before N` and is `N`.
struct Place {
    dir: tempfile::TempDir,
    files: Vec<PathBuf>,
}

impl Place {
    fn isolated() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files: Vec<_> = (0..20).map(|number| dir.path().join(format!("setting{number}"))).collect();
        let target = |file: &PathBuf| file.display().to_string();
        let steps = files.iter().enumerate().map(|(number, file)| {
            fs::write(file, format!("before {number}\n")).unwrap();
            step("m", StepKind::File, &target(file), &number.to_string())
        });
        let plan = plan_of(steps.collect());
        let place = Self { dir, files };
        let mut standing = Standing::open(&place.state()).unwrap();
        let mut observer = Observer { stop: &mut || None, on_change: &mut |_| {} };
        apply(&plan, &Head::of(&plan, None), &mut standing, &mut place.settings(), &mut observer).unwrap();
        place
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    fn settings(&self) -> Counting {
        Counting::new(self.dir.path())
    }

    fn plant(&self, number: usize, value: &str) {
        fs::write(&self.files[number], value).unwrap();
    }

    fn values(&self) -> Vec<String> {
        self.files.iter().map(|file| fs::read_to_string(file).unwrap().trim().to_owned()).collect()
    }

    fn right(&self) -> Vec<String> {
        (0..self.files.len()).map(|number| number.to_string()).collect()
    }

    fn before(&self) -> Vec<String> {
        (0..self.files.len()).map(|number| format!("before {number}")).collect()
    }

    /// One check as holding makes it: what has drifted, set again.
    fn check(&self, settings: &mut Counting) -> usize {
        let found = find(&self.state()).unwrap().unwrap();
        let drifted: BTreeSet<Key> =
            drifts(found.in_force(), settings).iter().map(|drift| key(&drift.setting)).collect();
        if drifted.is_empty() {
            return 0;
        }
        let standing = Standing::open(&self.state()).unwrap();
        let healed = heal(&standing, &drifted, settings);
        healed.iter().filter(|healed| healed.refused.is_none()).count()
    }

    fn undo(&self) {
        revert(Standing::open(&self.state()).unwrap(), &mut self.settings()).unwrap();
    }
}

#[test]
fn each_planted_change_is_healed_once_and_undoing_gives_back_what_was_before() {
    let place = Place::isolated();
    let journal = fs::read(path(&place.state())).unwrap();
    let mut settings = place.settings();
    for planted in 0..100 {
        place.plant(planted % 20, &format!("planted {planted}"));
        assert_eq!(place.check(&mut settings), 1);
        assert_eq!(place.check(&mut settings), 0, "it is healed");
        assert_eq!(settings.writes, planted + 1, "and nothing else is written");
    }
    assert_eq!(place.values(), place.right());
    assert_eq!(fs::read(path(&place.state())).unwrap(), journal, "however long it is held");
    place.undo();
    assert_eq!(place.values(), place.before());
}

#[test]
fn nothing_is_written_in_a_quiet_time() {
    let place = Place::isolated();
    let mut settings = place.settings();
    let stamp = || fs::metadata(path(&place.state())).unwrap().modified().unwrap();
    let before = stamp();
    // A day at a check a minute.
    for _ in 0..1440 {
        assert_eq!(place.check(&mut settings), 0);
    }
    assert_eq!((settings.writes, stamp()), (0, before));
}

#[test]
fn whoever_is_killed_while_healing_leaves_a_journal_that_gives_everything_back() {
    for moment in 0..20 {
        let place = Place::isolated();
        (0..20).for_each(|number| place.plant(number, "planted"));
        let mut settings = place.settings();
        settings.killed_at = Some(moment);
        assert_eq!(place.check(&mut settings), moment);
        // The next one goes on.
        assert_eq!(place.check(&mut place.settings()), 20 - moment);
        place.undo();
        assert_eq!(place.values(), place.before(), "killed at {moment}");
    }
}

#[test]
fn a_value_that_was_planted_and_not_healed_is_left_by_undo() {
    let place = Place::isolated();
    place.plant(3, "theirs");
    let reverted = revert(Standing::open(&place.state()).unwrap(), &mut place.settings()).unwrap();
    let mut expected = place.before();
    expected[3] = "theirs".to_owned();
    assert_eq!((place.values(), reverted.left.len()), (expected, 1));
}

#[test]
fn a_second_healer_is_not_fought_and_the_rest_is_healed() {
    let place = Place::isolated();
    let mut settings = place.settings();
    let mut pace = Pace::new(3, Duration::from_secs(60));
    let found = find(&place.state()).unwrap().unwrap();
    for second in 0..100u64 {
        place.plant(5, "tuned");
        if second % 30 == 0 {
            place.plant(6, "now and then");
        }
        let now = Duration::from_secs(second);
        let drifted = drifts(found.in_force(), &mut settings);
        let may = |target: &str, pace: &mut Pace| pace.ask(target, now) == Answer::Heal;
        let asked = drifted.iter().filter(|drift| may(&drift.setting.target, &mut pace));
        let asked: BTreeSet<Key> = asked.map(|drift| key(&drift.setting)).collect();
        heal(&Standing::open(&place.state()).unwrap(), &asked, &mut settings);
    }
    assert_eq!(settings.writes, 3 + 4, "three against tuned, four for the other");
    let mut expected = place.right();
    expected[5] = "tuned".to_owned();
    assert_eq!(place.values(), expected);
}

#[test]
fn what_the_kernel_does_not_take_is_said() {
    let place = Place::isolated();
    place.plant(2, "planted");
    let found = find(&place.state()).unwrap().unwrap();
    let mut settings = place.settings();
    let asked: BTreeSet<Key> =
        drifts(found.in_force(), &mut settings).iter().map(|drift| key(&drift.setting)).collect();
    settings.killed_at = Some(0);
    let healed = heal(&Standing::open(&place.state()).unwrap(), &asked, &mut settings);
    assert_eq!(healed.len(), 1);
    assert!(healed[0].refused.as_deref().unwrap().contains("it was killed"), "{healed:?}");
}

#[test]
fn of_two_calls_that_set_the_same_the_last_one_counts() {
    let place = Place::isolated();
    let target = place.files[4].display().to_string();
    let plan = plan_of(vec![step("m", StepKind::File, &target, "anew")]);
    let mut standing = Standing::open(&place.state()).unwrap();
    let head = standing.found().unwrap().unwrap().head;
    let mut observer = Observer { stop: &mut || None, on_change: &mut |_| {} };
    apply(&plan, &head, &mut standing, &mut place.settings(), &mut observer).unwrap();
    drop(standing);
    assert_eq!(place.check(&mut place.settings()), 0, "it is as the last call left it");
    place.undo();
    assert_eq!(place.values(), place.before());
}
