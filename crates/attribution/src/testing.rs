//! Spans for the tests of this crate.

use crate::attribute::Causes;
use crate::spans::{Known, Span};
use crate::view::{Level, Task};
use model::EventClass;

/// A kernel without PREEMPT_RT, all of whose interrupts are recorded.
pub(crate) const KNOWN: Known = Known {
    sleeper: None,
    unnamed: 99,
    remote_wake: 94,
    unseen: 98,
    out_of_budget: 97,
    system_call: 96,
    outside: 95,
    interrupts: true,
    rt: false,
};

/// What ran in an interrupt, and counts.
pub(crate) fn span(cpu: u32, class: EventClass, [t0_ns, t1_ns]: [i64; 2]) -> Span {
    let (net_ns, label, task) = (t0_ns.abs_diff(t1_ns), 0, Task::unnamed(0, 0));
    let (level, causes) = (Level::Hard, Causes::default());
    Span { cpu, class, t0_ns, t1_ns, net_ns, label, level, task, counts: true, causes }
}
