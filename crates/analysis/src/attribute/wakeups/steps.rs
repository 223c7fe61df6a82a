//! What happens in a trace, decoded: what is made of one thread's work for another's.

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
    /// A thread whose wake-ups were not known before is to run from then on, ns.
    Released(i32, i64),
    /// It runs there, and since then, ns; or it does not run.
    Ran(i32, Option<(u32, i64)>),
}

/// Some steps, in order.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) all: Vec<Step>,
    /// The events behind [`Step::Other`]: they are large, and seldom.
    pub(super) events: Vec<KernelEvent>,
    /// The sets of CPUs that these events are the first to name.
    pub(super) sets: Vec<Cpus>,
}
