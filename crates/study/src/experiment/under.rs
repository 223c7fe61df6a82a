//! The conditions of a cell: kernel, boot line, machine, CPUs. Results of different ones are kept
//! apart: where a study has several, each is a level of a factor of its own, `setting`, so that no
//! median, pair or set of mechanisms mixes two.

use super::boot_word::same;
use super::declared::Experiment;
use super::needs::kernel_name;
use super::result::{CellResult, CellState};
use crate::cell::Cell;
use crate::experiment::factors::{KERNEL, SETTING};
use crate::experiment::ground::Ground;
use crate::experiment::result::Under;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Parameters that locate the system, or say what follows a panic, and do not change how the kernel
/// works.
const PLACES: [&str; 12] = [
    "BOOT_IMAGE",
    "root",
    "rootflags",
    "rootfstype",
    "ro",
    "rw",
    "initrd",
    "resume",
    "init",
    "ip",
    "BOOTIF",
    "panic",
];

impl Under {
    /// Of a machine as it stands.
    pub fn of(ground: &Ground) -> Self {
        let machine = &ground.machine;
        Self {
            kernel: kernel_name(machine),
            release: machine.kernel.release.clone(),
            version: machine.kernel.version.clone(),
            cmdline: machine.cmdline.trim().to_owned(),
            ignored: ignored(ground),
            processor: machine.cpu_model.clone().unwrap_or_default(),
            online: machine.topology.online.to_string(),
            measured: ground.cpus.to_string(),
            housekeeping: ground.housekeeping.to_string(),
            memory_mib: machine.memory_kib.map(|kib| kib / 1024),
        }
    }

    /// The first condition that another result was measured under and this is not: what it was
    /// there and is here.
    pub fn differing(&self, there: &Self) -> Option<String> {
        let pairs = [
            ("kernel", &there.release, &self.release),
            ("build of the kernel", &there.version, &self.version),
            ("boot line", &there.cmdline, &self.cmdline),
            ("processor", &there.processor, &self.processor),
            ("measured CPUs", &there.measured, &self.measured),
            ("other CPUs", &there.housekeeping, &self.housekeeping),
        ];
        let (what, there, here) = pairs.into_iter().find(|(_, there, here)| there != here)?;
        Some(format!("{what}: {there} there, and {here} now"))
    }

    /// The boot line in one order, without parameters that locate the system and those that
    /// `left_out` names.
    fn line(&self, left_out: &BTreeSet<String>) -> String {
        let name = |word: &&str| word.split('=').next().unwrap_or_default().to_owned();
        let counts = |word: &&str| {
            let name = name(word);
            !PLACES.iter().any(|place| same(place, &name)) && !left_out.iter().any(|one| same(one, &name))
        };
        let words: BTreeSet<&str> = self.cmdline.split_whitespace().filter(counts).collect();
        words.into_iter().collect::<Vec<_>>().join(" ")
    }

    /// In words, without parameters that levels name.
    fn in_words(&self, left_out: &BTreeSet<String>) -> String {
        format!(
            "{} {}, {}, CPUs {} measured of {}, booted with \"{}\"",
            self.release,
            self.version,
            self.processor,
            self.measured,
            self.online,
            self.line(left_out)
        )
    }
}

/// Parameters that are on the line, and that the kernel is built without.
fn ignored(ground: &Ground) -> Vec<String> {
    let given = |name: &&String| ground.booted.parameters.iter().any(|one| same(&one.name, name));
    ground.booted.ignored.iter().filter(given).cloned().collect()
}

/// Results with their settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Apart {
    /// Every result; its cell has the kernel that it ran on, and its setting where there are
    /// several.
    pub results: Vec<(Cell, CellResult)>,
    /// Settings by kernel and label, where there are several: what each is.
    pub settings: Vec<String>,
    /// What else a reader must know: machines or boot lines that are combined.
    pub notes: Vec<String>,
}

/// Keeps results of different settings apart.
pub fn apart(experiment: &Experiment, results: &[(Cell, CellResult)]) -> Apart {
    let named = named(experiment);
    let mut results: Vec<(Cell, CellResult)> = results.to_vec();
    if !experiment.machine.kernels.is_empty() {
        results.iter_mut().for_each(|(cell, result)| {
            if let Some(under) = &result.under {
                cell.factors.entry(KERNEL.to_owned()).or_insert_with(|| json!(under.kernel));
            }
        });
    }
    let notes = notes(&results);
    let key = |result: &CellResult| {
        result.under.as_ref().map_or_else(|| NOT_RECORDED.to_owned(), |one| one.in_words(&named))
    };
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (cell, result) in results.iter().filter(|(_, result)| result.state == CellState::Ok) {
        let (known, key) = (keys.entry(kernel(cell)).or_default(), key(result));
        if !known.contains(&key) {
            known.push(key);
        }
    }
    let mut settings = Vec::new();
    if keys.values().any(|known| known.len() > 1) {
        for (cell, result) in &mut results {
            let known =
                keys.get(&kernel(cell)).and_then(|known| known.iter().position(|one| *one == key(result)));
            let label = known.map_or_else(|| "none".to_owned(), label);
            cell.factors.insert(SETTING.to_owned(), Value::String(label));
        }
        for (kernel, known) in &keys {
            let named = |(at, key): (usize, &String)| {
                let kernel = if kernel.is_empty() { String::new() } else { format!("kernel {kernel}, ") };
                format!("{kernel}setting {}: {key}", label(at))
            };
            settings.extend(known.iter().enumerate().map(named));
        }
    }
    Apart { results, settings, notes }
}

/// What stands for the conditions of results of older versions.
const NOT_RECORDED: &str = "kernel, boot line and machine were not recorded";

/// Names of the parameters that levels set: they differ between cells as declared.
fn named(experiment: &Experiment) -> BTreeSet<String> {
    let levels = experiment.factors.iter().flat_map(|factor| factor.levels.get_ref());
    let words = levels.filter_map(|level| level.boot.as_deref()).flat_map(str::split_whitespace);
    words.filter_map(|word| Some(word.split('=').next()?.to_owned())).collect()
}

fn kernel(cell: &Cell) -> String {
    super::words::text(cell.factors.get(KERNEL)).to_owned()
}

fn label(at: usize) -> String {
    char::from_u32('A' as u32 + at as u32)
        .filter(char::is_ascii_uppercase)
        .map_or_else(|| at.to_string(), String::from)
}

/// Machines whose results are combined, and combinations whose repetitions ran under boot lines
/// that differ in words which the level leaves open.
fn notes(results: &[(Cell, CellResult)]) -> Vec<String> {
    let ok = || results.iter().filter(|(_, result)| result.state == CellState::Ok);
    let mut notes = Vec::new();
    let hosts: BTreeSet<&str> =
        ok().filter_map(|(_, result)| Some(result.place.split_once(", ")?.0)).collect();
    if hosts.len() > 1 {
        let hosts: Vec<&str> = hosts.into_iter().collect();
        notes.push(format!(
            "cells ran on {} machines, whose repetitions are put together where processor, kernel and boot line are the same: {}",
            hosts.len(),
            hosts.join(", ")
        ));
    }
    let mut ignored: BTreeMap<String, BTreeSet<&String>> = BTreeMap::new();
    for under in ok().filter_map(|(_, result)| result.under.as_ref()) {
        ignored.entry(under.ignored.join(" and ")).or_default().insert(&under.release);
    }
    ignored.remove("");
    notes.extend(ignored.into_iter().map(|(names, kernels)| {
        let kernels = kernels.into_iter().cloned().collect::<Vec<_>>().join(", ");
        format!("{names} on the boot line of {kernels}: these kernels are built without, and ignore it")
    }));
    let mut lines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (cell, result) in ok() {
        let Some(under) = &result.under else { continue };
        let levels: Vec<&str> = cell.factors.values().filter_map(Value::as_str).collect();
        lines.entry(levels.join(" ")).or_default().insert(under.line(&BTreeSet::new()));
    }
    let several = lines.into_iter().filter(|(_, lines)| lines.len() > 1);
    notes.extend(several.map(|(levels, lines)| {
        let lines: Vec<String> = lines.into_iter().map(|line| format!("\"{line}\"")).collect();
        format!("{levels}: repetitions ran under different boot lines: {}", lines.join(" and "))
    }));
    notes
}
