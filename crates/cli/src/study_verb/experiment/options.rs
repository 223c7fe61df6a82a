//! Where an answer goes, and in which form.

use std::path::PathBuf;

/// `lab matrix --onto`.
#[derive(Debug, Clone)]
pub(crate) struct Onto {
    /// A `matrix.json`.
    pub(crate) file: PathBuf,
    /// The stressors whose rows are replaced.
    pub(crate) stressors: Vec<String>,
}

/// The options of the answer.
pub(crate) struct AnswerOptions {
    /// The scale of the plan.
    pub(crate) scale: f64,
    /// As JSON.
    pub(crate) json: bool,
    /// Stored and not printed.
    pub(crate) quiet: bool,
    /// Cells of the whole plan.
    pub(crate) cells: usize,
    /// The table whose rows are replaced, and the stressors of those rows.
    pub(crate) onto: Option<Onto>,
}
