//! The decoded events of a trace, which one thread hands to another.

use crate::holes::Hole;
use crate::view::{At, KernelEvent, Switch, Wake};
use model::Cpus;

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// The most frequent events.
    Switch(At, Switch),
    Wake(At, Wake),
    /// The next of the other ones.
    Other,
    /// Events are missing.
    Lost(Hole),
    /// A thread whose wake-ups are not known in advance is to run from then on, ns.
    Released(i32, i64),
    /// The CPU where it runs, and since when, ns; or it does not run.
    Ran(i32, Option<(u32, i64)>),
}

/// Some steps, in order.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) all: Vec<Step>,
    /// The events of [`Step::Other`]: they are large and rare.
    pub(super) events: Vec<KernelEvent>,
    /// The sets of CPUs that these events name first.
    pub(super) sets: Vec<Cpus>,
}
