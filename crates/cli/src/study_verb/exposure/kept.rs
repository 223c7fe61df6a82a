//! What the directory of a study says of itself, so that resuming it cannot mix results of
//! different conditions.

use super::super::RunArgs;
use crate::run::place::Place;
use model::{Cpus, Error, Machine, store};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use study::Study;

const SCHEMA: &str = "stillcore.study-run/1";
const FILE: &str = "study.json";

/// `study.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    schema: String,
    /// What was declared, and chosen from it.
    pub(super) study: Study,
    /// The conditions of each cell.
    under: Under,
    /// The machine when the study began.
    pub(super) machine: Machine,
}

/// The conditions of all cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Under {
    tool_version: String,
    kernel: String,
    cmdline: String,
    measured: Cpus,
    housekeeping: Cpus,
    window_ns: u64,
    priority: u32,
    kprobes: bool,
}

/// Reads the directory's own account, or makes it; refuses a directory of something else.
pub(super) fn open(out: &Path, study: &Study, args: &RunArgs, place: &Place) -> anyhow::Result<Kept> {
    let kernel = &place.machine.kernel;
    let new = Kept {
        schema: SCHEMA.to_owned(),
        study: study.clone(),
        under: Under {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: format!("{} {} {}", kernel.release, kernel.version, kernel.arch),
            cmdline: place.machine.cmdline.clone(),
            measured: place.measured.clone(),
            housekeeping: place.housekeeping.clone(),
            window_ns: args.window().as_nanos() as u64,
            priority: args.priority,
            kprobes: args.kprobes,
        },
        machine: place.machine.clone(),
    };
    let path = out.join(FILE);
    if path.exists() {
        let old: Kept = store::read_json(&path)?;
        let same = (&old.schema, &old.study, &old.under) == (&new.schema, &new.study, &new.under);
        let expected = "the same study under the same conditions, or another --out";
        return if same {
            Ok(old)
        } else {
            Err(Error::invalid(path.display(), differing(&old, &new), expected).into())
        };
    }
    fs::create_dir_all(out).map_err(|source| Error::io("create", out, source))?;
    if fs::read_dir(out).map_err(|source| Error::io("read", out, source))?.next().is_some() {
        let expected = "a new or empty directory, or that of a study";
        return Err(Error::invalid(out.display(), "the directory is not empty", expected).into());
    }
    store::write_json(&path, &new)?;
    Ok(new)
}

/// The first thing that differs.
fn differing(old: &Kept, new: &Kept) -> String {
    let text = |kept: &Kept| -> Vec<(String, serde_json::Value)> {
        let parts = [serde_json::to_value(&kept.study), serde_json::to_value(&kept.under)];
        let objects = parts.into_iter().flatten().filter_map(|value| value.as_object().cloned());
        objects.flatten().collect()
    };
    let (old, new) = (text(old), text(new));
    let found = new.iter().find(|one| !old.contains(one));
    found.map_or_else(
        || "it is of another study".to_owned(),
        |(key, value)| {
            let was =
                old.iter().find(|one| one.0 == *key).map_or("nothing".to_owned(), |one| one.1.to_string());
            format!("{key} was {was} there and is {value} now")
        },
    )
}

impl Kept {
    /// The conditions in words, as pairs.
    pub(super) fn conditions(&self) -> Vec<(String, String)> {
        let Under { tool_version, kernel, cmdline, measured, housekeeping, window_ns, priority, .. } =
            &self.under;
        let policy = if *priority == 0 { "SCHED_OTHER".to_owned() } else { format!("SCHED_FIFO {priority}") };
        let pairs = [
            ("kernel", kernel.clone()),
            ("command line", cmdline.clone()),
            ("measured CPUs", format!("{measured}, each kept busy in user space under {policy}")),
            ("stressors on CPUs", housekeeping.to_string()),
            ("idle before, disturbed, idle after", format!("{} s each", *window_ns as f64 / 1e9)),
            ("repetitions", self.study.repetitions.to_string()),
            ("seed of the order", self.study.seed.to_string()),
            ("stillcore", tool_version.clone()),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).into()
    }
}
