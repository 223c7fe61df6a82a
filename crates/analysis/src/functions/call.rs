//! Calls as counted by one pass over a trace.

use ftrace::{Endian, Field};
use rustc_hash::FxHashMap;

/// A function that was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) cpu: u32,
    pub(crate) ip: u64,
    /// The return address; 0 where it was not recorded (`function_graph`).
    pub(crate) caller: u64,
    /// The patterns that the task's name matches.
    pub(crate) by_task: u64,
}

/// What the pass has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) calls: FxHashMap<Call, u64>,
    /// Events of the lists' tracepoints, by list and CPU.
    pub(crate) events: FxHashMap<(usize, u32), u64>,
    pub(crate) holes: u64,
    pub(crate) lost: u64,
}

impl Seen {
    pub(super) fn listed(&mut self, plan: &Plan, cpu: u32, data: &[u8], endian: Endian) {
        let Plan::Listed(lists) = plan else { return };
        for (list, only) in lists {
            if only.as_ref().is_none_or(|(field, value)| field.uint(data, endian) == Some(*value)) {
                *self.events.entry((*list, cpu)).or_default() += 1;
            }
        }
    }
}

/// What to read of an event.
pub(super) enum Plan {
    Function {
        ip: Field,
        caller: Option<Field>,
    },
    /// An event of the lists at these places, if the field has the value.
    Listed(Vec<(usize, Option<(Field, u64)>)>),
    Other,
}
