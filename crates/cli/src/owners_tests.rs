//! Every kind of change: written and read back, refused where it is not known or aims elsewhere.

use crate::owners::all;
use disturb::changes::{Cgroup, Module};
use disturb::swap_file::SwapFile;
use isolate::setting::Setting;
use journal::affinities::Shaken;
use journal::recover::undo;
use journal::session::changes::{Child, Directory, TracefsMount, Value};
use journal::settings::Live;
use journal::{Change, Entry, Journal, Phase, SCHEMA, Why, encode, guardian, read};
use model::plan::StepKind;
use record::changes::{Kprobe, TraceInstance};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn setting(kind: StepKind, target: &str, old: &str, new: &str) -> Arc<dyn Change> {
    let [target, new] = [target, new].map(str::to_owned);
    let (old, read_back) = (Some(old.to_owned()), Some(new.clone()));
    Arc::new(Setting { mechanism: "m".to_owned(), kind, target, old, new, read_back })
}

/// One of each kind, but for the notes.
fn samples() -> Vec<Arc<dyn Change>> {
    let path = || Path::new("/a \"b\"/c").to_owned();
    vec![
        Arc::new(Directory { path: path() }),
        Arc::new(TracefsMount { path: path() }),
        Arc::new(TraceInstance { path: path() }),
        Arc::new(Kprobe { file: path(), event: "stillcore/x".to_owned() }),
        Arc::new(Cgroup { path: path() }),
        Arc::new(SwapFile { path: path() }),
        Arc::new(Child { pid: 3, start: u64::MAX }),
        Arc::new(Value { path: path(), old: "1\t2".to_owned() }),
        Arc::new(Module { name: "x".to_owned(), file: path(), was_loaded: false }),
        Arc::new(Shaken::now(&"2-3".parse().unwrap())),
        setting(StepKind::File, "/a", "x,\"crc\":1}", ""),
        setting(StepKind::Flag, "/a#b#C", "on", "off"),
        setting(StepKind::Task, "7/9/a/b c", "0-3,8", "0"),
        setting(StepKind::Service, "x.service", "active", "inactive"),
        setting(StepKind::Process, "7/9/x", "running", "stopped"),
        setting(StepKind::Swap, "/swap\\040file", "on -2", "off"),
        setting(StepKind::Group, "/g", "absent", "present"),
        setting(StepKind::Member, "7/9/x", "/g", "/g/h"),
        setting(StepKind::Controller, "/g#cpuset", "off", "on"),
        setting(StepKind::Held, "/dev/x=0", "not held", "held"),
        setting(StepKind::Kept, "/a", "1", "1"),
    ]
}

fn directory(path: &Path) -> Arc<dyn Change> {
    Arc::new(Directory { path: path.to_owned() })
}

fn entry(change: &Arc<dyn Change>) -> Entry {
    Entry { seq: 1, boot_id: "b".to_owned(), phase: Phase::Done, change: Arc::clone(change) }
}

fn written(text: &str) -> journal::Contents {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    fs::write(&path, text).unwrap();
    read(&path, all()).unwrap()
}

#[test]
fn every_kind_has_one_row_and_reads_what_it_writes() {
    let forms: BTreeSet<_> = all().iter().map(|owner| (owner.form.kind, owner.form.version)).collect();
    assert_eq!(forms.len(), all().len(), "no kind and version twice");
    let samples = samples();
    let seen: BTreeSet<_> = samples.iter().map(|change| change.form().kind).collect();
    let rest: Vec<_> = forms.iter().map(|form| form.0).filter(|kind| !seen.contains(kind)).collect();
    assert_eq!(rest, ["affinities", "desired", "immovable", "isolation", "keep", "watch"], "seen by others");
    for change in &samples {
        let text = encode(&entry(change)).unwrap();
        let contents = written(&text);
        assert!(contents.refused.is_empty() && contents.open.len() == 1, "{text}{contents:?}");
        assert_eq!(format!("{:?}", contents.open[0].change), format!("{change:?}"), "{text}");
    }
}

#[test]
fn what_is_no_setting_is_not_written_as_another() {
    assert!(encode(&entry(&setting(StepKind::Affinities, "all", "0", "1"))).is_err());
}

/// Down to the last field: no value of a line is a text that is itself JSON.
#[test]
fn no_field_has_json_in_a_string() {
    fn strings(value: &serde_json::Value, all: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) => all.push(text.clone()),
            serde_json::Value::Array(list) => list.iter().for_each(|value| strings(value, all)),
            serde_json::Value::Object(map) => map.values().for_each(|value| strings(value, all)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    for change in samples() {
        strings(&serde_json::from_str(&encode(&entry(&change)).unwrap()).unwrap(), &mut all);
    }
    assert!(all.len() > 50);
    for text in all {
        let nested = serde_json::from_str::<serde_json::Value>(&text);
        assert!(!nested.is_ok_and(|value| value.is_array() || value.is_object()), "{text}");
    }
}

#[test]
fn what_is_not_known_is_refused_by_line() {
    let change: Arc<dyn Change> = Arc::new(Directory { path: "/d".into() });
    let whole = encode(&entry(&change)).unwrap();
    // With the sum that a later version would give it.
    let signed = |text: &str| {
        let body = text.split(",\"crc\"").next().unwrap();
        format!("{body},\"crc\":{}}}\n", crc32fast::hash(body.as_bytes()))
    };
    let why = |line: &str| {
        let mut refused = written(&format!("{whole}{line}")).refused;
        assert_eq!((refused.len(), refused[0].line), (1, 2), "{line}");
        refused.remove(0).why
    };
    let other = |from: &str, to: &str| {
        let text = whole.replace(from, to);
        assert_ne!(text, whole);
        text
    };
    assert_eq!(signed(&whole), whole);
    let schema = signed(&other(SCHEMA, "stillcore.journal/3"));
    assert_eq!(why(&schema), Why::Schema("stillcore.journal/3".to_owned()));
    let kind = signed(&other("\"directory\"", "\"moon\""));
    assert_eq!(why(&kind), Why::Kind("moon".to_owned(), 1));
    let version = signed(&other("\"version\":1", "\"version\":2"));
    assert_eq!(why(&version), Why::Kind("directory".to_owned(), 2));
    let more = signed(&other("{\"path\":\"/d\"}", "{\"path\":\"/d\",\"mode\":7}"));
    assert!(matches!(why(&more), Why::Fields(kind, what) if kind == "directory" && what.contains("mode")));
    let fewer = signed(&other("{\"path\":\"/d\"}", "{}"));
    assert!(matches!(why(&fewer), Why::Fields(..)));
    assert_eq!(why(&other("/d", "/e")), Why::Changed(Some("directory /e".to_owned())));
    assert_eq!(why(&signed(&other("\"boot_id\"", "\"boots\""))), Why::Unreadable);
    assert_eq!(why("garbage\n"), Why::Unreadable);
}

#[test]
fn an_intent_that_led_to_nothing_is_no_failure() {
    let changes: [Arc<dyn Change>; 5] = [
        directory(Path::new("/proc/self/no/tracefs-1")),
        Arc::new(TraceInstance { path: "/proc/self/instances/stillcore-1".into() }),
        Arc::new(TracefsMount { path: "/proc/self/no/tracefs-1".into() }),
        Arc::new(Kprobe { file: "/proc/self/no/kprobe_events".into(), event: "stillcore/x".to_owned() }),
        Arc::new(Child { pid: i32::MAX, start: 1 }),
    ];
    for change in changes {
        undo(&*change, &mut Live::new(Path::new("/"))).unwrap();
        change.undo(&mut Live::new(Path::new("/"))).unwrap();
    }
}

#[test]
fn a_planted_target_is_refused_for_every_kind() {
    for target in [
        "/etc/shadow",
        "/etc/cron.d/x",
        "/sys/../etc/shadow",
        "/proc/sys/../../etc/shadow",
        "/proc/1/mem",
        "/sys",
        "etc/shadow",
        "",
        "/srv/x/stillcore-1",
        "/srv/x/evil.ko",
        "/srv/x/kprobe_events",
    ] {
        let path = PathBuf::from(target);
        let changes: [Arc<dyn Change>; 7] = [
            directory(&path),
            Arc::new(TracefsMount { path: path.clone() }),
            Arc::new(TraceInstance { path: path.clone() }),
            Arc::new(Kprobe { file: path.clone(), event: "other/x".to_owned() }),
            Arc::new(Cgroup { path: path.clone() }),
            Arc::new(Value { path: path.clone(), old: "PWNED".to_owned() }),
            Arc::new(Module { name: "x".to_owned(), file: path, was_loaded: true }),
        ];
        for change in changes {
            assert!(change.bounds().is_err(), "{change:?}");
            assert!(undo(&*change, &mut Live::new(Path::new("/"))).is_err(), "{change:?}");
        }
    }
}

#[test]
fn what_stillcore_changes_is_not_refused() {
    let point = PathBuf::from("/var/lib/stillcore/tracefs-12");
    let changes: [Arc<dyn Change>; 6] = [
        directory(&point),
        Arc::new(TracefsMount { path: point }),
        Arc::new(TraceInstance { path: "/sys/kernel/tracing/instances/stillcore-12-sender".into() }),
        Arc::new(Value { path: "/proc/sys/vm/stat_interval".into(), old: String::new() }),
        Arc::new(Value { path: "/sys/devices/system/cpu/cpu1/online".into(), old: String::new() }),
        Arc::new(Child { pid: 12, start: 34 }),
    ];
    changes.iter().for_each(|change| change.bounds().unwrap());
}

/// A journal of a version before their schema had a number, as a real run has left it.
#[test]
fn what_a_run_of_before_has_left_goes_with_its_boot() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/journals/run.jsonl");
    let contents = read(&fixture, all()).unwrap();
    assert!(contents.refused.is_empty() && !contents.open.is_empty(), "{:?}", contents.refused);
    let state = tempfile::tempdir().unwrap();
    let dir = state.path().join("journal");
    fs::create_dir(&dir).unwrap();
    fs::copy(fixture, dir.join("99999999-1.jsonl")).unwrap();
    let restored = guardian::recover(state.path(), all()).unwrap();
    assert_eq!((restored.undone.len(), restored.failed.len()), (19, 0), "{restored:?}");
    for kind in [
        "cgroup",
        "directory",
        "tracefs-mount",
        "shaken-affinities",
        "value",
        "trace-instance",
        "kprobe",
        "module",
        "child",
    ] {
        assert!(restored.undone.iter().any(|undone| undone.starts_with(kind)), "{kind} {restored:?}");
    }
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
}

#[test]
fn a_planted_journal_changes_nothing() {
    let state = tempfile::tempdir().unwrap();
    let victim = state.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let mut journal = Journal::create(state.path()).unwrap();
    let changes: [Arc<dyn Change>; 3] = [
        Arc::new(Value { path: victim.clone(), old: "PWNED".to_owned() }),
        directory(&victim),
        Arc::new(Module { name: "x".to_owned(), file: victim.clone(), was_loaded: true }),
    ];
    for change in changes {
        journal.intent(change).unwrap();
    }
    // As the journal of a process that is dead: its number is beyond every kernel's limit.
    let dead = journal.path().with_file_name("99999999-1.jsonl");
    fs::rename(journal.path(), &dead).unwrap();
    let restored = guardian::recover(state.path(), all()).unwrap();
    assert_eq!((restored.undone.len(), restored.failed.len()), (0, 3), "{restored:?}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(dead.exists(), "what cannot be undone is reported again");
}
