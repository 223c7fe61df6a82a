//! Interference events that last longer than they may.

use super::worst::Names;
use crate::spans::Span;
use model::EventClass;

/// The most that are remembered between two calls.
const MOST: usize = 1024;

/// One.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongEvent {
    /// The CPU.
    pub cpu: u32,
    /// The class.
    pub class: EventClass,
    /// What ran.
    pub label: String,
    /// The task that was current.
    pub tid: i32,
    /// When it began, CLOCK_MONOTONIC, ns.
    pub t_ns: i64,
    /// How long it ran itself, without what interrupted it, ns.
    pub ns: u64,
}

/// The list.
#[derive(Debug)]
pub(super) struct Long {
    limit_ns: u64,
    all: Vec<LongEvent>,
}

impl Long {
    pub(super) fn new(limit_ns: u64) -> Self {
        Self { limit_ns, all: Vec::new() }
    }

    pub(super) fn span(&mut self, span: &Span, names: &Names<'_>) {
        // Tasks that run are no interrupts: whom they keep from running is late.
        let task = [EventClass::Switch, EventClass::SelfCaused].contains(&span.class);
        if task || !span.counts || span.net_ns <= self.limit_ns || self.all.len() >= MOST {
            return;
        }
        self.all.push(LongEvent {
            cpu: span.cpu,
            class: span.class,
            label: names.label(span.label),
            tid: span.task.pid,
            t_ns: span.t0_ns,
            ns: span.net_ns,
        });
    }

    pub(super) fn take(&mut self) -> Vec<LongEvent> {
        std::mem::take(&mut self.all)
    }
}
