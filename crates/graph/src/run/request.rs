//! A graph to be run, as its caller asks for it.

use crate::results::tracker::Bounds;
use crate::run::plan::Plan;
use measure::job::files::JobFiles;
use std::path::Path;

/// Where and what to run.
pub struct Order<'a> {
    /// The run directory.
    pub run: &'a Path,
    /// Name of the phase.
    pub phase: &'a str,
    /// The plan.
    pub plan: &'a Plan,
    /// Inputs and expected outputs, where the graph has any.
    pub files: Option<&'a JobFiles>,
    /// When a message is late.
    pub bounds: Bounds,
    /// The first message with this latency or more ends the run, ns.
    pub stop_over_ns: Option<i64>,
    /// CPUs of the machine.
    pub cpus: usize,
}
