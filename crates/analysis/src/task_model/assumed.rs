//! What is assumed beside a model, and who tasks are that are made of it.

use super::shape::{ReleaseKind, ThreadModel};
use sched::MAX_NS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is added to everything observed, and how late each thread may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assumed {
    /// Added to costs, jitters, suspensions, dispatch times and demand, parts per million.
    pub margin_ppm: u64,
    /// By name of the thread: its relative deadline, ns. Others that have a period have it for
    /// their deadline.
    pub deadlines_ns: BTreeMap<String, u64>,
}

impl Assumed {
    /// A time that was observed, and the margin.
    pub fn more(&self, ns: u64) -> u64 {
        let ns = u128::from(ns) * (1_000_000 + u128::from(self.margin_ppm));
        u64::try_from(ns.div_ceil(1_000_000)).unwrap_or(u64::MAX).min(MAX_NS)
    }

    /// The deadline of a thread, and whether it is only assumed to be the period; `None` where it
    /// has none.
    pub fn deadline_ns(&self, thread: &ThreadModel) -> Option<(u64, bool)> {
        let asked = self.deadlines_ns.get(&thread.comm).map(|ns| (*ns, false));
        let periodic = thread.release.kind == ReleaseKind::Periodic;
        asked.or_else(|| periodic.then_some((thread.release.period_ns, true)))
    }
}

/// Who a task of the system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// A thread, by place in the model.
    Thread(usize),
    /// Interference, by place in the model.
    Interference(usize),
    /// Sections of a thread that has no model, by its number.
    Holder(i32),
}
