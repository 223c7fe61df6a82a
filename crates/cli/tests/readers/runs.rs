//! Run directories: their JSON files damaged, all read, concluded and rendered.

use super::{Outcome, Reader, bundle, fixture, in_scratch, text};
use model::events::EventCatalogue;
use model::store;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::LazyLock;

static CATALOGUE: LazyLock<EventCatalogue> = LazyLock::new(|| EventCatalogue::embedded().unwrap());

/// Runs without a trace, for speed: their JSON files, and the directory that has the rest.
const RUNS: [&str; 5] = ["clocks", "ipi", "overheads", "periodic", "taskset"];

pub(crate) fn reader() -> Reader {
    let seeds = RUNS.iter().map(|name| {
        let folder = format!("fixtures/runs/measure/{name}");
        let read = |file: &str| fixture(&format!("{folder}/{file}"));
        let (run, before) = (read(store::RUN), read(store::MACHINE_BEFORE));
        let mut findings: serde_json::Value = serde_json::from_slice(&read(store::FINDINGS)).unwrap();
        // A few findings are enough: damage is to fall on the run.
        findings.as_array_mut().unwrap().truncate(3);
        let findings = serde_json::to_vec_pretty(&findings).unwrap();
        let mut files: Vec<(&str, &[u8])> =
            vec![("of", name.as_bytes()), (store::RUN, &run), (store::FINDINGS, &findings)];
        files.push((store::MACHINE_BEFORE, &before));
        files.push((store::MACHINE_AFTER, &before));
        bundle::of(files)
    });
    Reader { name: "run", seeds: seeds.collect(), damage: text, read, short: 40 }
}

fn read(bytes: &[u8]) -> Outcome {
    in_scratch(|scratch| {
        let dir = scratch.path();
        bundle::clear(dir);
        bundle::lay(bytes, dir);
        let _ = symlink("/dev/zero", dir.join("zero"));
        conclude(dir)
    })
}

/// The samples of the run that this one is a damaged copy of, unless it has some of its own.
fn add_samples(dir: &Path) {
    let of = fs::read_to_string(dir.join("of")).unwrap_or_default();
    let of = RUNS.iter().find(|name| **name == of.trim()).unwrap_or(&RUNS[0]);
    let from = super::repository(&format!("fixtures/runs/measure/{of}/{}", store::SAMPLES));
    let to = dir.join(store::SAMPLES);
    if fs::create_dir(&to).is_err() {
        return;
    }
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn conclude(dir: &Path) -> Outcome {
    let Ok(run) = model::run::stored::read_run(dir) else { return Outcome::Refused };
    let Ok(machine) = store::read_json(&dir.join(&run.machine_before)) else { return Outcome::Refused };
    let Ok(findings) = store::read_json(&dir.join(store::FINDINGS)) else { return Outcome::Refused };
    // Most are refused before this, and it takes longer than all before it.
    add_samples(dir);
    let Ok(analysis) = analysis::analyse(dir) else { return Outcome::Refused };
    let document = report::Document::conclude("run", run, machine, findings, analysis, &CATALOGUE);
    let text = report::summary(&document, report::TextOptions::default());
    assert!(!text.is_empty());
    let _ = report::assess_json(&document).unwrap();
    let _ = report::page(&document).unwrap();
    Outcome::Whole
}
