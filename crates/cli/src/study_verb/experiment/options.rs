//! Where an answer goes, and in which form.

/// The options of the answer.
pub(crate) struct AnswerOptions {
    /// The scale of the plan.
    pub(crate) scale: f64,
    /// As JSON.
    pub(crate) json: bool,
    /// Cells of the whole plan.
    pub(crate) cells: usize,
}
