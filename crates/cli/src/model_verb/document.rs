//! `model.json`: the model, what it guarantees, and what came of holding that against jobs.

use analysis::task_model::chain::ChainTimes;
use analysis::task_model::change::Change;
use analysis::task_model::check::Checked;
use analysis::task_model::compare::Compared;
use analysis::task_model::lock_check::LockWaits;
use analysis::task_model::machine::Replaced;
use analysis::task_model::optimise::Optimised;
use analysis::task_model::shape::{FILE, SCHEMA, TaskModel};
use analysis::task_model::verdict::Guarantee;
use model::{Cpus, store};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Document {
    /// The run or trace.
    pub(super) source: PathBuf,
    #[serde(flatten)]
    pub(super) model: TaskModel,
    /// `None` where no thread can be analysed.
    pub(super) guarantee: Option<Guarantee>,
    /// The same with something changed, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) what_if: Option<WhatIf>,
    /// The best CPUs and priorities that were found, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) optimised: Option<Optimised>,
    /// `None` where there was no bound.
    pub(super) checked: Option<Checked>,
    /// Waits for locks, and what the bounds count for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) lock_waits: Vec<LockWaits>,
    /// From end to end: bounds and what was observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) chain_times: Vec<ChainTimes>,
    /// The same check while the program ran, where it was recorded meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) checked_live: Option<Checked>,
    /// Whose bounds were checked, where these are not those above.
    pub(super) checked_model: Option<PathBuf>,
    /// How it differs from another model, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) compared: Option<Compared>,
    /// Which model that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) compared_model: Option<PathBuf>,
}

/// What would be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct WhatIf {
    /// With these changes.
    pub(super) changes: Vec<Change>,
    /// On another machine, of which there is a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) machine: Option<OtherMachine>,
    /// What that rests on, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) assumed: Vec<String>,
    /// `None` where no thread can be analysed.
    pub(super) guarantee: Option<Guarantee>,
}

/// A machine that was recorded, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MachineFacts {
    /// Release and version of its kernel.
    pub(super) kernel: String,
    /// Whether it is PREEMPT_RT.
    pub(super) realtime: bool,
    /// Its boot line.
    pub(super) boot_line: String,
    /// The CPUs that are isolated.
    pub(super) isolated: Cpus,
    /// Those without a tick while one task runs.
    pub(super) nohz_full: Cpus,
    /// Its processor.
    pub(super) processor: Option<String>,
}

/// Another machine in place of this recording's.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OtherMachine {
    /// As `--what-if` took it.
    pub(super) asked: String,
    /// Its recording.
    pub(super) run: PathBuf,
    /// This recording's machine.
    pub(super) now: MachineFacts,
    /// The other.
    pub(super) then: MachineFacts,
    /// What was replaced, CPU by CPU.
    pub(super) cpus: Vec<Replaced>,
}

impl Document {
    /// Reads a model.json, or that of a run directory.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let path = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
        let document: Self = store::read_json(&path)?;
        if document.model.schema != SCHEMA {
            let found = format!("schema {:?}", document.model.schema);
            return Err(model::Error::invalid(path.display(), found, SCHEMA).into());
        }
        Ok(document)
    }

    /// The model of such a file, and its bounds; refuses one without any.
    pub(super) fn read_bounds(path: &Path) -> anyhow::Result<(TaskModel, Guarantee)> {
        let Self { model, guarantee, .. } = Self::read(path)?;
        let expected = "a model with a thread that could be analysed";
        let none = || model::Error::invalid(path.display(), "it has no bounds", expected);
        let guarantee = guarantee.ok_or_else(none)?;
        Ok((model, guarantee))
    }

    /// A model with something changed, by itself.
    pub(super) fn of_changed(source: &Path, mut model: TaskModel, what_if: &WhatIf) -> Self {
        let mut changes: Vec<String> = what_if.changes.iter().map(ToString::to_string).collect();
        changes.extend(what_if.machine.iter().map(|machine| machine.asked.clone()));
        model.statements.insert(0, format!("changed by --what-if: {}", changes.join(" ")));
        model.statements.extend(what_if.assumed.iter().cloned());
        Self {
            source: source.to_owned(),
            model,
            guarantee: what_if.guarantee.clone(),
            what_if: None,
            optimised: None,
            checked: None,
            lock_waits: Vec::new(),
            checked_live: None,
            chain_times: Vec::new(),
            checked_model: None,
            compared: None,
            compared_model: None,
        }
    }

    pub(super) fn write(&self, dir: &Path) -> anyhow::Result<()> {
        self.write_to(&dir.join(FILE))
    }

    pub(super) fn write_to(&self, file: &Path) -> anyhow::Result<()> {
        Ok(store::write_json(file, self)?)
    }

    /// Whether a deadline may be missed, or a job or chain took longer than its bound.
    pub(super) fn is_bad(&self) -> bool {
        let late = self.guarantee.as_ref().is_some_and(|one| one.schedulable == Some(false));
        let refuted = self.checked.as_ref().is_some_and(|one| one.refuted > 0);
        let blocked = self.lock_waits.iter().any(|one| one.refuted > 0);
        late || refuted || blocked || self.chain_times.iter().any(|one| one.refuted > 0)
    }
}
