//! The stored result of a cell: its values, or why there are none. A failure is a result.

use super::load::Load;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Schema of a stored result.
pub const RESULT_SCHEMA: &str = "stillcore.experiment-cell/1";

/// How a cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellState {
    /// Its steps ended; what a value found is another question.
    Ok,
    /// The machine, its kernel or its boot line is not what the cell needs: it was not run.
    Needs,
    /// This machine or kernel cannot do it.
    NotApplicable,
    /// A step failed.
    Failed,
}

/// What is stored of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellResult {
    /// [`RESULT_SCHEMA`].
    pub schema: String,
    /// How it ended.
    pub state: CellState,
    /// Why, where it is not ok.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Values by name, in the unit of the file; null where the verb's answer had none.
    pub values: BTreeMap<String, Option<f64>>,
    /// Values by list and name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lists: BTreeMap<String, BTreeMap<String, f64>>,
    /// Lists for figures, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Series>,
    /// Why a value is null, in the verb's own words, if it gave a reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
    /// The first step's whole answer, where something is concluded from all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// What disturbed it, by the steps' own records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<Load>,
    /// Where it ran: kernel release, and `emulated` or `this machine` or a host's name.
    pub place: String,
    /// What it was measured under; results of older versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<Under>,
    /// Times are those of an emulated guest.
    pub emulated: bool,
    /// `stillcore --version` of the program that ran it.
    pub tool_version: String,
    /// The calls, without the program's name.
    pub commands: Vec<Vec<String>>,
    /// From beginning to end, s: no result.
    pub wall_s: f64,
}

/// A list of a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Its rows.
    pub rows: Vec<Row>,
    /// Rows that lack a number, or are more than are kept.
    #[serde(default)]
    pub left_out: u64,
}

/// A row of a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its numbers, in the unit of the verb.
    pub at: Vec<f64>,
    /// Its lane; empty where the list has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lane: String,
    /// What it is called; empty where nothing is said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
}

impl CellResult {
    /// A cell without values.
    pub fn without(
        state: CellState,
        reason: String,
        place: &str,
        emulated: bool,
        tool_version: &str,
    ) -> Self {
        Self {
            schema: RESULT_SCHEMA.to_owned(),
            state,
            reason: Some(reason),
            values: BTreeMap::new(),
            absent: BTreeMap::new(),
            lists: BTreeMap::new(),
            series: BTreeMap::new(),
            answer: None,
            loads: Vec::new(),
            place: place.to_owned(),
            under: None,
            emulated,
            tool_version: tool_version.to_owned(),
            commands: Vec::new(),
            wall_s: 0.0,
        }
    }
}

/// What a cell was measured under. Its load stands in its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Under {
    /// The kernel by the lab's name, such as `6.1-rt`.
    pub kernel: String,
    /// `uname -r` and `uname -v`.
    pub release: String,
    /// The build.
    pub version: String,
    /// `/proc/cmdline`.
    pub cmdline: String,
    /// Parameters on it that the kernel is built without, and ignores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// CPU model; empty where the machine does not say.
    pub processor: String,
    /// CPUs online.
    pub online: String,
    /// CPUs that were measured.
    pub measured: String,
    /// The others.
    pub housekeeping: String,
    /// Memory, MiB.
    pub memory_mib: Option<u64>,
}
