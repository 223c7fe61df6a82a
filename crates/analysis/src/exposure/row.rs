//! One stressor of a study: its coefficients, class by class.

use crate::exposure::coefficient::Coefficient;
use crate::exposure::facts::{Count, SourceCount, Stretch};
use model::EventClass;
use model::stressor::StressorRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether a stressor has coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowState {
    /// It has.
    Ok,
    /// It was run, and its counts are void.
    Void,
    /// This kernel or machine lacks what it needs.
    Absent,
}

/// One stressor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name, and its options other than the defaults.
    pub stressor: String,
    /// Whether there are coefficients.
    pub state: RowState,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Cells that it is made of.
    pub cells: u64,
    /// Operations that were asked for; none where it was to go as fast as it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// Operations that succeeded.
    pub operations: u64,
    /// Operations that failed, by errno name; what they did to the measured CPUs is in the counts
    /// too.
    pub failed: BTreeMap<String, u64>,
    /// Time of the operations, s.
    pub disturbed_s: f64,
    /// Time of the idle controls, s.
    pub idle_s: f64,
    /// Of all classes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<Coefficient>,
    /// By class that this kernel records, in the order of reports.
    pub classes: Vec<ClassCoefficient>,
    /// Events per operation of each cell by itself, to see whether they repeat.
    pub each: Vec<f64>,
    /// Who caused most events, the background's included.
    pub sources: Vec<SourceCount>,
    /// Classes whose idle rates before and after disagree: their background is unknown.
    pub idle_apart: Vec<String>,
    /// Settings that changed during the cell: later cells measured another machine.
    pub contaminated: Vec<String>,
    /// Of some cells only: why they were left out.
    pub left_out: Vec<String>,
    /// Limits of the measurement.
    pub limits: Vec<String>,
}

impl Row {
    /// Whether less than half of what was asked for was done.
    pub fn is_weak(&self) -> bool {
        self.state == RowState::Ok && StressorRecord::is_below_half(self.asked, self.operations)
    }
}

/// The coefficient of one class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClassCoefficient {
    /// The class.
    pub class: EventClass,
    /// Its coefficient.
    #[serde(flatten)]
    pub coefficient: Coefficient,
}

pub(super) fn of_class(stretch: &Stretch, class: EventClass) -> Count {
    stretch.classes.get(&class).cloned().unwrap_or_default()
}
