//! Verifying on a machine of a few files: what was right when its CPUs were isolated and is no
//! longer so, and what has come since.

use audit::{Catalogue, Purpose, Request, plan};
use isolate::head::Head;
use isolate::placed::{read, record};
use isolate::standing::{Standing, find};
use isolate::verify::{Verified, verify};
use isolate::watch;
use journal::settings::{Live, Occupied, Settings};
use machine::Root;
use model::Cpus;
use model::plan::{Placement, Step, StepKind};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use sys::Error;
use sys::process::Owner;

/// CPUs 2 and 3 of four, isolated at boot and with nothing left to change.
const FILES: &[(&str, &str)] = &[
    ("sys/devices/system/cpu/online", "0-3"),
    ("sys/devices/system/cpu/isolated", "2-3"),
    ("proc/sys/kernel/numa_balancing", "0"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"),
    ("proc/sys/vm/swappiness", "1"),
    ("proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0"),
    ("proc/2/status", "Cpus_allowed_list:\t0-1"),
    ("proc/irq/24/smp_affinity_list", "0-1"),
    ("proc/irq/24/effective_affinity_list", "2"),
    ("sys/kernel/irq/24/actions", "virtio0-config"),
    ("proc/irq/25/smp_affinity_list", "0-1"),
    ("proc/irq/25/effective_affinity_list", "1"),
    ("sys/kernel/irq/25/actions", "ttyS0"),
    ("proc/irq/26/smp_affinity_list", "3"),
    ("proc/irq/26/effective_affinity_list", "3"),
    ("sys/kernel/irq/26/actions", "nvme0q3"),
    ("proc/irq/27/smp_affinity_list", "2-3"),
];

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    /// The machine, right after isolating has ended.
    fn isolated() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        place.set(FILES);
        let mut standing = Standing::open(&place.state()).unwrap();
        let head = Head {
            cpus: "2-3".parse().unwrap(),
            isolated: "2-3".parse().unwrap(),
            housekeeping: "0-1".parse().unwrap(),
            placement: Placement::Boot,
            deployment: None,
            started_ticks: 0,
        };
        standing.begin(&head).unwrap();
        watch::begin(&place.root(), &Catalogue::embedded().unwrap(), &head, &mut standing).unwrap();
        place
    }

    fn set(&self, files: &[(&str, &str)]) {
        for (file, text) in files {
            let path = self.dir.path().join("machine").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn root(&self) -> Root {
        Root::open(&self.dir.path().join("machine")).unwrap()
    }

    fn state(&self) -> std::path::PathBuf {
        self.dir.path().join("state")
    }

    fn verify(&self) -> Verified {
        self.verify_with(&mut Live::below(Path::new("/none"), &std::env::temp_dir()))
    }

    fn verify_with(&self, settings: &mut dyn Settings) -> Verified {
        let found = find(&self.state()).unwrap().unwrap();
        verify(&self.root(), &Catalogue::embedded().unwrap(), &found, settings).unwrap()
    }
}

#[test]
fn nothing_drifts_by_itself() {
    let verified = Place::isolated().verify();
    assert!(verified.drifted.is_empty() && verified.choices.is_empty(), "{verified:?}");
    assert!(verified.right > 10, "{verified:?}");
    let late = "interrupt 24 virtio0-config is handled on 2, although it may only be on 0,1: it leaves when it comes next";
    assert_eq!(verified.pending, [late], "it was there when the CPUs were isolated");
}

/// What somebody does to the machine, and the start of the only sentence that reports it.
#[test]
fn what_was_right_and_is_not_now_is_reported() {
    let process = |name: &str| format!("9 ({name}) S 1 0 0 0 -1 4194560 0");
    let (irqbalance, cron) = (process("irqbalance"), process("cron"));
    let tail = format!("{}90 {}2 0", "0 ".repeat(12), "0 ".repeat(16));
    let web = format!("7 (web) S 1 7 7 0 -1 64 {tail}");
    let ksmd = format!("8 (ksmd) S 2 0 0 0 -1 2129984 {tail}");
    let wide = "Cpus_allowed_list:\t0-3";
    let cases: &[(&[(&str, &str)], &str)] = &[
        (
            &[("proc/sys/kernel/numa_balancing", "1")],
            "numa_balancing: was right when isolated, is not now: 1 is set",
        ),
        (
            &[("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")],
            "transparent_hugepage: was right when isolated, is not now: always is set",
        ),
        (
            &[("proc/9/stat", &irqbalance), ("proc/9/environ", "IRQBALANCE_BANNED_CPUS=0")],
            "irqbalance: was right when isolated, is not now: irqbalance runs and knows nothing of CPUs 2,3",
        ),
        (
            &[("proc/7/stat", &web), ("proc/7/task/7/stat", &web), ("proc/7/task/7/status", wide)],
            "task 7/90/web may run on 0-3",
        ),
        (&[("proc/8/stat", &ksmd), ("proc/8/status", wide)], "task 8/90/ksmd may run on 0-3"),
        (
            &[("proc/irq/30/smp_affinity_list", "0-3"), ("sys/kernel/irq/30/actions", "eth0")],
            "interrupt 30 eth0 may be handled on 2,3",
        ),
        (&[("sys/kernel/irq/26/actions", "eth1")], "interrupt 26 eth1 may be handled on 3"),
        (
            &[("proc/irq/25/effective_affinity_list", "2")],
            "interrupt 25 ttyS0 is handled on 2, although it may only be on 0,1",
        ),
    ];
    for (files, expected) in cases {
        let place = Place::isolated();
        place.set(files);
        let verified = place.verify();
        assert_eq!(verified.drifted.len(), 1, "{verified:?}");
        assert!(verified.drifted[0].starts_with(expected), "{verified:?} is not {expected}");
    }
    let place = Place::isolated();
    place.set(&[("proc/9/stat", &cron)]);
    let verified = place.verify();
    assert!(verified.drifted.is_empty(), "{verified:?}");
    assert!(verified.choices[0].starts_with("cron: was right when isolated"), "{verified:?}");
}

/// No task runs by accident on CPUs isolated at boot: a program that somebody has pinned there is
/// reported, unless it was there before.
#[test]
fn a_program_pinned_by_others_is_a_guest() {
    let tail = format!("{}90 {}2 0", "0 ".repeat(12), "0 ".repeat(16));
    let web = format!("70 (web) S 1 70 70 0 -1 64 {tail}");
    let status = "Tgid:\t70\nCpus_allowed_list:\t2";
    let place = Place::isolated();
    let files = [("proc/70/stat", web.as_str()), ("proc/70/status", status)];
    let thread = [("proc/70/task/70/stat", web.as_str()), ("proc/70/task/70/status", status)];
    place.set(&[files, thread].concat());
    let verified = place.verify();
    assert_eq!(verified.guests, ["task 70/90/web has been pinned there since"]);
    assert!(verified.drifted.is_empty(), "{verified:?}");
    record(&place.state(), Owner { pid: 70, start: 90 }).unwrap();
    assert!(place.verify().guests.is_empty(), "put there by isolate run");
}

/// Put there by `stillcore isolate run`, or started by what was: neither a stray nor to be moved by
/// a later call.
#[test]
fn what_was_put_there_stays() {
    let tail = format!("{}90 {}2 0", "0 ".repeat(12), "0 ".repeat(16));
    let process = |pid: u32, parent: u32| format!("{pid} (web) S {parent} {pid} {pid} 0 -1 64 {tail}");
    let status = |pid: u32| format!("Tgid:\t{pid}\nCpus_allowed_list:\t1-2");
    let (one, two) = (process(70, 1), process(71, 70));
    let (first, second) = (status(70), status(71));
    let place = Place::isolated();
    place.set(&[
        ("proc/70/stat", &one),
        ("proc/70/status", &first),
        ("proc/70/task/70/stat", &one),
        ("proc/70/task/70/status", &first),
        ("proc/71/stat", &two),
        ("proc/71/status", &second),
        ("proc/71/task/71/stat", &two),
        ("proc/71/task/71/status", &second),
    ]);
    let planned = || {
        let (root, catalogue) = (place.root(), Catalogue::embedded().unwrap());
        let machine = machine::read(&root).unwrap();
        let placed = read(&place.state());
        let purpose = Purpose { placed, ..Purpose::default() };
        let request = Request { cpus: "2-3".parse().unwrap(), purpose, ..Request::default() };
        let plan = plan(&root, &machine, &catalogue, &request).unwrap();
        plan.steps.into_iter().filter(|step| step.mechanism == "user-tasks").count()
    };
    assert_eq!((place.verify().drifted.len(), planned()), (2, 2));
    record(&place.state(), Owner { pid: 70, start: 90 }).unwrap();
    assert_eq!((place.verify().drifted.len(), planned()), (0, 0), "{:?}", place.verify());
}

/// Reads nothing, for want of a right or because of what is there.
struct Refusing(ErrorKind);

impl Settings for Refusing {
    fn read(&mut self, _: StepKind, target: &str) -> Result<Option<String>, Error> {
        Err(Error::Os { action: "read", object: target.to_owned(), source: self.0.into() })
    }

    fn write(&mut self, _: StepKind, _: &str, _: &str) -> Result<(), Error> {
        unreachable!("verifying writes nothing")
    }

    fn user(&mut self, _: StepKind, _: &str) -> Option<String> {
        None
    }

    fn occupy(&mut self, _: &Cpus) -> Occupied {
        Occupied::default()
    }
}

/// Without root: what may not be read is reported, and the rest is verified all the same.
#[test]
fn what_may_not_be_read_is_no_drift() {
    let place = Place::isolated();
    let step = Step {
        mechanism: "swappiness".to_owned(),
        kind: StepKind::File,
        target: "/proc/sys/vm/swappiness".to_owned(),
        old: None,
        new: "1".to_owned(),
        why: String::new(),
        cost: String::new(),
        risky: false,
        note: None,
    };
    Standing::open(&place.state()).unwrap().intend(&[(&step, None)]).unwrap();
    place.set(&[("proc/sys/kernel/numa_balancing", "1")]);
    let denied = place.verify_with(&mut Refusing(ErrorKind::PermissionDenied));
    assert_eq!((denied.unread.len(), denied.drifted.len()), (1, 1), "{denied:?}");
    let broken = place.verify_with(&mut Refusing(ErrorKind::InvalidData));
    assert_eq!((broken.unread.len(), broken.drifted.len()), (0, 2), "{broken:?}");
}

#[test]
fn an_incomplete_call_is_reported() {
    let place = Place::isolated();
    let journal = place.state().join("isolation.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let first = text.lines().next().unwrap();
    fs::write(&journal, format!("{first}\n")).unwrap();
    let verified = place.verify();
    assert!(verified.drifted.iter().any(|drift| drift.contains("not brought to its end")), "{verified:?}");
}
