//! The list of owners: every kind of change that a journal may hold, with its version and its
//! reader.
//!
//! A new kind is a type that implements [`Change`](crate::journal::Change) beside what makes the
//! change, and a row here. A field that comes, goes or means something else is a new version: the
//! old one keeps its row as long as its journals may still be about.

use crate::disturb::changes::{Cgroup, Module};
use crate::isolate::remember::{Affinities, Shaken};
use crate::isolate::{notes, setting};
use crate::journal::Owner;
use crate::record::changes::{Kprobe, TraceInstance};
use crate::session::changes::{Child, Directory, TracefsMount, Value};
use std::sync::LazyLock;

/// Of what lasts as long as a call.
const RUN: [Owner; 9] = [
    Owner::of::<Directory>(),
    Owner::of::<TracefsMount>(),
    Owner::of::<Child>(),
    Owner::of::<Value>(),
    Owner::of::<TraceInstance>(),
    Owner::of::<Kprobe>(),
    Owner::of::<Cgroup>(),
    Owner::of::<Module>(),
    Owner::of::<Shaken>(),
];

/// Every owner, one row a kind and version.
pub fn all() -> &'static [Owner] {
    static ALL: LazyLock<Vec<Owner>> =
        LazyLock::new(|| [&RUN[..], notes::OWNERS, &[Owner::of::<Affinities>()], setting::OWNERS].concat());
    &ALL
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolate::setting::Setting;
    use crate::journal::{Change, Entry, Phase, SCHEMA, Why, encode, read};
    use model::plan::StepKind;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;
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

    fn entry(change: &Arc<dyn Change>) -> Entry {
        Entry { seq: 1, boot_id: "b".to_owned(), phase: Phase::Done, change: Arc::clone(change) }
    }

    fn written(text: &str) -> crate::journal::Contents {
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
        assert_eq!(rest, ["affinities", "immovable", "isolation", "keep", "watch"], "seen by others");
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
        assert!(
            matches!(why(&more), Why::Fields(kind, what) if kind == "directory" && what.contains("mode"))
        );
        let fewer = signed(&other("{\"path\":\"/d\"}", "{}"));
        assert!(matches!(why(&fewer), Why::Fields(..)));
        assert_eq!(why(&other("/d", "/e")), Why::Changed(Some("directory /e".to_owned())));
        assert_eq!(why(&signed(&other("\"boot_id\"", "\"boots\""))), Why::Unreadable);
        assert_eq!(why("garbage\n"), Why::Unreadable);
    }
}
