//! The run of a task on a CPU.

use crate::attribute::{Cause, Causes};
use crate::labels::LabelId;
use crate::spans::Span;
use crate::view::{Level, Task};
use model::EventClass;

/// How a task's run is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    /// Whether its name is from a switch to it.
    pub(crate) named: bool,
    pub(crate) counts: bool,
    pub(crate) class: EventClass,
}

/// The run of a task that is neither the probe nor idle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub t0_ns: i64,
    /// Time inside that belongs to other spans.
    pub(crate) nested_ns: u64,
    pub label: LabelId,
    pub counted: Counted,
    /// Its source.
    pub cause: Option<Cause>,
}

impl Run {
    #[inline(always)]
    pub(crate) fn new(t0_ns: i64, who: Task, counted: Counted, cause: Option<Cause>) -> Self {
        Self { t0_ns, nested_ns: 0, label: who.comm, counted, cause }
    }

    /// Its span until `t1_ns`, without `inside_ns` of what has not ended.
    #[inline(always)]
    pub(super) fn span(&self, cpu: u32, task: Task, t1_ns: i64, inside_ns: u64) -> Span {
        let Self { t0_ns, nested_ns, label, counted, cause } = *self;
        let length_ns = t1_ns.saturating_sub(t0_ns).max(0) as u64;
        Span {
            cpu,
            class: counted.class,
            t0_ns,
            t1_ns: t0_ns.max(t1_ns),
            net_ns: length_ns.saturating_sub(nested_ns).saturating_sub(inside_ns),
            label,
            level: Level::Task,
            task,
            counts: counted.counts,
            causes: Causes::of(cause),
        }
    }
}
