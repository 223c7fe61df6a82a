//! Files under `/proc` and `/sys` that hold one value: a word, a number, a CPU list or a hex mask.

use super::super::catalogue::{Effective, Mechanism, Probe, Want};
use super::effective::server;
use super::remedy::{Wrong, propose};
use super::{Outcome, Scene, always, named};
use crate::machine::bracketed;
use model::Cpus;

/// One file and what it holds, in the value's own spelling.
struct Held {
    file: String,
    text: String,
}

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism, paths: &[String]) -> Outcome {
    let held = match read(scene, mechanism, paths) {
        Ok(held) if held.is_empty() => return Outcome::absent(mechanism),
        Ok(held) => held,
        Err(reason) => return Outcome::unknown(reason),
    };
    let have = shown(&held);
    match verdicts(scene, mechanism, &held) {
        Err(reason) => Outcome::unknown(reason),
        Ok(wrong) if wrong.is_empty() => in_effect(scene, mechanism, good(mechanism, &have)),
        Ok(wrong) => {
            let reason = format!("{}: {}", wrong[0].1, mechanism.harm);
            let files: Vec<_> = wrong.into_iter().map(|(file, _)| file).collect();
            propose(scene, mechanism, &Wrong { files: &files, ..Wrong::default() }, reason)
        }
    }
    .having(have)
}

pub(super) fn value(scene: &Scene, mechanism: &Mechanism, paths: &[String]) -> Option<String> {
    let held = read(scene, mechanism, paths).ok()?;
    (!held.is_empty()).then(|| shown(&held))
}

fn shown(held: &[Held]) -> String {
    held.iter().map(|held| held.text.as_str()).collect::<Vec<_>>().join(" ")
}

fn read(scene: &Scene, mechanism: &Mechanism, paths: &[String]) -> Result<Vec<Held>, String> {
    let mut all = Vec::new();
    for file in paths.iter().flat_map(|path| scene.root.glob(path)) {
        let Some(text) = scene.root.text(&file).map_err(|error| error.to_string())? else { continue };
        let word = match mechanism.probe {
            Probe::FileBracketedWord { .. } => bracketed(&text).map(str::to_owned),
            _ => Some(text.clone()),
        };
        let text = word.ok_or_else(|| format!("/{file} holds {text:?}, no choice in brackets"))?;
        all.push(Held { file, text });
    }
    Ok(all)
}

/// The files that do not hold what is wanted, each with a clause that says so.
fn verdicts(scene: &Scene, mechanism: &Mechanism, held: &[Held]) -> Result<Vec<(String, String)>, String> {
    let mut wrong = Vec::new();
    for one in held {
        if let Some(clause) = miss(scene, mechanism, one)? {
            wrong.push((one.file.clone(), clause));
        }
    }
    Ok(wrong)
}

/// How a value misses what is wanted.
fn miss(scene: &Scene, mechanism: &Mechanism, held: &Held) -> Result<Option<String>, String> {
    let text = held.text.as_str();
    let other = |wanted: &str| Some(format!("{text} is set, isolation wants {wanted}"));
    Ok(match &mechanism.want {
        Want::Any { .. } | Want::None {} => None,
        Want::Literal { value } if same(mechanism, text, value)? => None,
        Want::Literal { value } => other(value),
        Want::Contested { values, .. } if values.iter().any(|value| value == text) => None,
        Want::Contested { values, .. } => other(&values.join(" or ")),
        Want::Avoids {} => {
            let hit = set(mechanism, held)?.and(scene.cpus);
            (!hit.is_empty()).then(|| format!("{text} includes {}", named(&hit)))
        }
        Want::Covers {} => {
            let missing = scene.cpus.minus(&set(mechanism, held)?);
            (!missing.is_empty()).then(|| format!("{text} leaves out {}", named(&missing)))
        }
    })
}

/// Numbers are compared as numbers: some files pad them.
fn same(mechanism: &Mechanism, text: &str, wanted: &str) -> Result<bool, String> {
    if !matches!(mechanism.probe, Probe::FileInteger { .. }) {
        return Ok(text == wanted);
    }
    let found: i64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    Ok(wanted.parse() == Ok(found))
}

fn set(mechanism: &Mechanism, held: &Held) -> Result<Cpus, String> {
    let parse = match mechanism.probe {
        Probe::HexmaskFile { .. } => Cpus::parse_hex,
        _ => Cpus::parse_list,
    };
    parse(&held.text).map_err(|error| format!("/{}: {error}", held.file))
}

fn good(mechanism: &Mechanism, have: &str) -> String {
    match &mechanism.want {
        Want::Contested { note, .. } => note.clone(),
        Want::Avoids {} => format!("{have} leaves them out"),
        Want::Covers {} => format!("{have} covers them"),
        _ => always(mechanism).map_or_else(|| format!("{have}, as isolation wants"), str::to_owned),
    }
}

/// Throttling that is off still leaves the fair server, which takes the same share on kernels from 6.12 on.
fn in_effect(scene: &Scene, mechanism: &Mechanism, reason: String) -> Outcome {
    if mechanism.effective != Some(Effective::FairServer {}) {
        return Outcome::ok(reason);
    }
    if crate::machine::debugfs(scene.root).is_none() {
        return Outcome::ok(format!(
            "{reason}; a fair server (6.12) that takes time would show in debugfs only"
        ));
    }
    let served: Cpus = scene.cpus.iter().filter(|cpu| server(scene, *cpu)).collect();
    if served.is_empty() {
        return Outcome::ok(reason);
    }
    let command = |cpu| format!("echo 0 > /sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    let commands: Vec<_> = served.iter().map(command).collect();
    Outcome::new(
        model::FindingState::Fixable,
        format!(
            "throttling is off, but the fair server still takes time from real-time tasks on {}",
            named(&served)
        ),
    )
    .in_effect(format!("fair server on {}", named(&served)))
    .cured_by(commands.join(" && "))
}
