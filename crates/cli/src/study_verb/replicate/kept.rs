//! What the directory of a replication says of itself: what was asked, and how much time it took.

use super::ReplicateArgs;
use model::{Error, store};
use serde::{Deserialize, Serialize};
use std::path::Path;

const SCHEMA: &str = "stillcore.study-replicate-plan/1";
const NAME: &str = "replicate-plan.json";

/// `replicate-plan.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    schema: String,
    paper: String,
    here: bool,
    kernels: Vec<String>,
    repetitions: Option<u32>,
    /// The experiments asked for; all where none are.
    #[serde(default)]
    only: Vec<String>,
    /// Over several boots of this machine.
    #[serde(default)]
    boots: bool,
    /// The scale that was chosen; 0 before.
    pub(super) scale: f64,
    /// Time that experiments have taken, over all calls.
    pub(super) spent_s: f64,
    /// What was not run in earlier boots, and why.
    #[serde(default)]
    pub(super) not_run: Vec<String>,
}

impl Kept {
    /// Of a new directory, or of one that the same call was made on.
    pub(super) fn of(out: &Path, args: &ReplicateArgs) -> anyhow::Result<Self> {
        let asked = Self {
            schema: SCHEMA.to_owned(),
            paper: args.paper.clone(),
            here: args.here,
            kernels: [args.lab.clone(), args.kernels.clone()].concat(),
            repetitions: args.repetitions,
            boots: args.boots,
            only: args.only.clone(),
            scale: args.scale.unwrap_or(0.0),
            spent_s: 0.0,
            not_run: Vec::new(),
        };
        let path = out.join(NAME);
        if !path.exists() {
            if std::fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) {
                let expected = "a new or empty directory, or that of a replication";
                return Err(Error::invalid(out.display(), "the directory is not empty", expected).into());
            }
            return Ok(asked);
        }
        let there: Self = store::read_json(&path)?;
        // The scale that was chosen holds for all calls; one that is given must be that.
        let scale = args.scale.unwrap_or(there.scale);
        match there.differing(&Self { scale, ..asked }) {
            Some(found) => {
                Err(Error::invalid(path.display(), found, "the same call, or another --out").into())
            }
            None => Ok(there),
        }
    }

    /// The first thing that was asked there and is not now.
    fn differing(&self, asked: &Self) -> Option<String> {
        let repetitions =
            |kept: &Self| kept.repetitions.map_or_else(|| "as declared".to_owned(), |n| n.to_string());
        let place = |kept: &Self| match (kept.here, kept.boots, kept.kernels.is_empty()) {
            (true, ..) => "this machine".to_owned(),
            (false, true, true) => "boots of all kernels of this machine".to_owned(),
            (false, true, false) => format!("boots of {}", kept.kernels.join(", ")),
            (false, false, true) => "the files' kernels".to_owned(),
            (false, false, false) => kept.kernels.join(", "),
        };
        let pairs = [
            ("schema", self.schema.clone(), asked.schema.clone()),
            ("paper", self.paper.clone(), asked.paper.clone()),
            ("on", place(self), place(asked)),
            ("repetitions", repetitions(self), repetitions(asked)),
            ("--only", self.only.join(","), asked.only.join(",")),
            ("scale", self.scale.to_string(), asked.scale.to_string()),
        ];
        let (what, there, here) = pairs.into_iter().find(|(_, there, here)| there != here)?;
        Some(format!("{what}: {there} there, and {here} now"))
    }

    pub(super) fn store(&self, out: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(out).map_err(|source| Error::io("make", out, source))?;
        Ok(store::write_json(&out.join(NAME), self)?)
    }
}

/// What a directory holds, in bytes of its files.
pub(super) fn bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}
