//! Calls that the function tracer recorded, by symbol and CPU; and the counts of a published grep
//! over the same trace.
//!
//! A call of a function is not an event: [`model::functions`] says of which functions it is one, on
//! which kernel, and what the tracer cannot show. Where a trace has the tracepoints of a list as
//! well, they are counted beside its functions. Source: Documentation/trace/ftrace.rst (the tracers
//! `function` and `function_graph`); kernel/trace/trace_entries.h for their entries.

mod call;
mod count;
mod grep;
mod tally;

#[cfg(test)]
mod tests;

pub use count::count;

use serde::Serialize;
use std::collections::BTreeMap;

/// Calls of the recorded functions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FunctionCounts {
    /// The traced system as uname(1) gives it, where the trace says.
    pub kernel: Option<String>,
    /// The kernel of the catalogue that it was read as.
    pub read_as: Option<String>,
    /// All calls.
    pub calls: u64,
    /// The replication's lists.
    pub lists: Vec<ListCounts>,
    /// Functions of no list, most calls first.
    pub others: Vec<SymbolCounts>,
    /// Places where the trace misses events.
    pub holes: u64,
    /// Events that the kernel says it overwrote there; where it does not say how many, there are
    /// more.
    pub lost: u64,
    /// What the replication's grep counts in the trace's text; only on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper_grep: Option<Vec<GrepCounts>>,
}

/// One list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ListCounts {
    /// Its id and title in the catalogue.
    pub id: String,
    /// Name for people.
    pub title: String,
    /// Calls of its functions.
    pub calls: u64,
    /// Calls that are events.
    pub events: u64,
    /// Whether any function that shows events was seen. If not, either none occurred or the
    /// recording left them out.
    pub events_seen: bool,
    /// Events by tracepoint, where the trace has any.
    pub by_tracepoint: Option<u64>,
    /// The same by CPU: calls, events, events by tracepoint.
    pub per_cpu: BTreeMap<u32, CpuCounts>,
    /// Its functions as they occur, most calls first.
    pub symbols: Vec<SymbolCounts>,
    /// Functions of the list that this kernel's tracer cannot show.
    pub hidden: Vec<HiddenFunction>,
    /// Events that no function shows.
    pub unseen: Option<String>,
}

/// One CPU's share of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CpuCounts {
    /// Calls.
    pub calls: u64,
    /// Calls that are events.
    pub events: u64,
    /// Events by tracepoint.
    pub by_tracepoint: u64,
}

/// One function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SymbolCounts {
    /// As the kernel calls it.
    pub symbol: String,
    /// Its entry in the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Calls.
    pub calls: u64,
    /// Calls that are events of its list.
    pub events: u64,
    /// Calls by CPU.
    pub per_cpu: BTreeMap<u32, u64>,
    /// What a call is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A function that cannot be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HiddenFunction {
    /// Its entry in the catalogue.
    pub function: String,
    /// Why.
    pub reason: model::functions::Hidden,
}

/// The lines of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GrepCounts {
    /// The list.
    pub list: String,
    /// Lines of tracefs' `trace`, which names callers (`<-caller`), and of
    /// `trace-cmd report -O parent`.
    pub lines: u64,
    /// Lines of `trace-cmd report`, which does not name callers.
    pub lines_without_callers: u64,
    /// Events: by tracepoint where the trace has those, else by function.
    pub events: u64,
    /// Pattern by pattern; a line that matches several counts in each.
    pub patterns: Vec<PatternCounts>,
}

/// The lines of a pattern: each is in exactly one of `called`, `longer_name`, `as_caller` and
/// `elsewhere`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PatternCounts {
    /// The pattern.
    pub pattern: String,
    /// Lines that match.
    pub lines: u64,
    /// The same where callers are not named.
    pub lines_without_callers: u64,
    /// The function of that name was entered.
    pub called: u64,
    /// A function was entered whose longer name has the pattern in it.
    pub longer_name: u64,
    /// Only the caller matches.
    pub as_caller: u64,
    /// Only a task's name or a field of another event matches.
    pub elsewhere: u64,
    /// Lines that are an event of the list.
    pub events: u64,
    /// Why the others are none.
    pub why: String,
}
