//! Journals of versions before their schema had a number, as real calls have left them
//! (`fixtures/journals`): a machine may be updated while something is applied.

use isolate::revert::revert;
use isolate::standing::{Standing, exists, find};
use journal::Contents;
use journal::settings::{Occupied, Settings};
use model::Cpus;
use model::plan::{Placement, StepKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use sys::Error;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/journals").join(name)
}

/// A copy of a captured journal, of this boot, with the sums that the program of then would give.
fn of_this_boot(name: &str, to: &Path) -> Vec<Value> {
    let boot = journal::boot_id().unwrap();
    let text = fs::read_to_string(fixture(name)).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &mut lines {
        line["boot_id"] = boot.clone().into();
        line["crc"] = sum(line).into();
    }
    fs::write(to, lines.iter().fold(String::new(), |all, line| all + &line.to_string() + "\n")).unwrap();
    lines
}

/// `old` and the like as Rust prints an `Option<String>`.
fn sum(line: &Value) -> u32 {
    let word = |key: &str| line[key].as_str().unwrap().to_owned();
    let option = |key: &str| format!("{:?}", line[key].as_str().map(str::to_owned));
    let name = |text: &str| text[..1].to_uppercase() + &text[1..];
    let mut text = format!(
        "{}\0{}\0{}\0{}\0{}\0{}\0{}",
        line["seq"],
        word("boot_id"),
        word("id"),
        word("target"),
        option("old"),
        option("new"),
        name(&word("phase"))
    );
    if line["kind"].is_string() || line["read_back"].is_string() {
        let kind = line["kind"].as_str().map_or("None".to_owned(), |kind| format!("Some({})", name(kind)));
        text += &format!("\0{kind}\0{}", option("read_back"));
    }
    crc32fast::hash(text.as_bytes())
}

/// A machine whose settings are what they are called.
#[derive(Default)]
struct Kernel(BTreeMap<String, String>);

impl Settings for Kernel {
    fn read(&mut self, _: StepKind, target: &str) -> Result<Option<String>, Error> {
        Ok(self.0.get(target).cloned())
    }

    fn write(&mut self, _: StepKind, target: &str, value: &str) -> Result<(), Error> {
        self.0.insert(target.to_owned(), value.to_owned());
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
fn the_sums_of_then_are_those_in_the_captured_files() {
    for name in ["isolated.jsonl", "deployed.jsonl"] {
        let text = fs::read_to_string(fixture(name)).unwrap();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["crc"], sum(&line), "{name} {line}");
        }
        let Contents { open, refused, .. } = journal::read(&fixture(name), isolate::owners()).unwrap();
        assert!(refused.is_empty() && !open.is_empty(), "{name}: {refused:?}");
    }
}

#[test]
fn an_isolation_of_before_is_read_and_undone() {
    for (name, isolated, placement) in
        [("isolated.jsonl", "3", Placement::Affinity), ("deployed.jsonl", "1-7", Placement::Partition)]
    {
        let state = tempfile::tempdir().unwrap();
        let lines = of_this_boot(name, &state.path().join("isolation.jsonl"));
        // The machine as the changes have left it, and as it was.
        let (mut kernel, mut before) = (Kernel::default(), BTreeMap::new());
        let mut kinds = BTreeSet::new();
        for line in lines.iter().filter(|line| line["kind"].is_string()) {
            let text = |key: &str| line[key].as_str().map(str::to_owned);
            let (kind, target) = (text("kind").unwrap(), text("target").unwrap());
            let now = text("read_back").or(text("new")).unwrap();
            if kind == "affinities" {
                let list = |key: &str| {
                    let text = text(key).unwrap_or_else(|| "[]".to_owned());
                    serde_json::from_str::<Vec<(String, String, String)>>(&text).unwrap()
                };
                let three = |(_, target, cpus): (String, String, String)| (target, cpus);
                kernel.0.extend(list("read_back").into_iter().map(three));
                before.extend(list("old").into_iter().map(three));
            } else {
                kernel.0.insert(target.clone(), now);
                before.entry(target).or_insert(text("old").unwrap());
            }
            kinds.insert(kind);
        }
        let found = find(state.path()).unwrap().unwrap();
        assert_eq!((found.head.isolated.to_string().as_str(), found.placement()), (isolated, placement));
        assert!(found.this_boot && found.refused.is_empty() && found.watched.is_some(), "{name}");
        let stand = found.settings.len() + found.affinities.len();
        assert!(stand > 10, "{name}: {stand}");
        let reverted = revert(Standing::open(state.path()).unwrap(), &mut kernel).unwrap();
        assert!(reverted.failed.is_empty() && reverted.left.is_empty(), "{name}: {reverted:?}");
        assert!(!exists(state.path()), "{name}");
        let cpus = |text: &str| text.parse::<Cpus>().map_or(text.to_owned(), |cpus| cpus.to_string());
        // Tasks that had ended by then are none of it.
        before.retain(|target, _| kernel.0.contains_key(target));
        for (target, old) in &before {
            assert_eq!(cpus(&kernel.0[target]), cpus(old), "{name} {target} {kinds:?}");
        }
        assert!(before.len() > 30, "{name}: {}", before.len());
    }
}

/// Affinities that cannot be read are named, and the journal is kept: they would stay widened.
#[test]
fn affinities_that_cannot_be_read_are_refused() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("isolation.jsonl");
    let mut lines = of_this_boot("deployed.jsonl", &path);
    let at = lines.iter().position(|line| line["kind"] == "affinities").unwrap();
    for line in lines.iter_mut().filter(|line| line["kind"] == "affinities") {
        line["old"] = "[[\"moon\",\"1/2/x\",\"0\"]]".into();
        line["crc"] = sum(line).into();
    }
    fs::write(&path, lines.iter().fold(String::new(), |all, line| all + &line.to_string() + "\n")).unwrap();
    let found = find(state.path()).unwrap().unwrap();
    assert!(found.refused[0].starts_with(&format!("line {} (a change", at + 1)), "{:?}", found.refused);
    let reverted = revert(Standing::open(state.path()).unwrap(), &mut Kernel::default()).unwrap();
    let failed = reverted.failed.last().unwrap();
    let named = format!("{} cannot be trusted and is not undone: line {} (", path.display(), at + 1);
    assert!(failed.contains(&named) && failed.contains("moon"), "{failed}");
    assert!(exists(state.path()));
}
