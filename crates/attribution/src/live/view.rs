//! How things stand: plain data, with texts for numbers. Texts are as the kernel gives them;
//! whoever prints them makes them harmless.

use crate::attribute::Confidence;
use crate::attribute::section::SourceText;
use model::EventClass;

/// Seconds that are kept of each row.
pub const SECONDS: usize = 60;

/// Everything, at the end of a second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveView {
    /// The moment, CLOCK_MONOTONIC, ns.
    pub t_ns: i64,
    /// When looking began.
    pub began_ns: i64,
    /// How long the second that has just ended was, ns: longer where its end came late.
    pub second_ns: i64,
    /// The CPUs.
    pub cpus: Vec<CpuView>,
    /// What ran there, by source; in no order.
    pub rows: Vec<RowView>,
    /// The longest first.
    pub worst: Vec<WorstView>,
    /// What is missing.
    pub losses: Losses,
    /// Events decoded so far.
    pub events: u64,
    /// Time of the followed threads' own timers and switches, ns.
    pub self_ns: u64,
}

/// A CPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuView {
    /// Its number.
    pub cpu: u32,
    /// What runs now; `None` until an event shows it.
    pub running: Option<Running>,
    /// Of the thread that is followed there.
    pub latency: Option<Latency>,
    /// Longest latency of each of the last seconds, newest last, ns; without a thread, the longest
    /// interference event.
    pub maxima_ns: Vec<u64>,
}

/// A task on a CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Running {
    /// Its number; 0 is idle.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// `F80`: real-time priority 80; `N0`: nice 0; `D`: deadline.
    pub policy: String,
    /// Since when, CLOCK_MONOTONIC, ns.
    pub since_ns: i64,
}

/// Wake-ups of one thread: from the request until it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latency {
    /// The thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Wake-ups.
    pub n: u64,
    /// The last one, ns.
    pub last_ns: Option<u64>,
    /// 99.9 % are at most so long.
    pub p999_ns: u64,
    /// Observed maximum.
    pub max_ns: u64,
}

/// A row: class, what ran, and who caused it, on one CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct RowView {
    /// The CPU.
    pub cpu: u32,
    /// The class.
    pub class: EventClass,
    /// What ran.
    pub label: String,
    /// The task that ran, where the row is about one.
    pub pid: Option<i32>,
    /// Who caused it.
    pub source: Option<SourceText>,
    /// How that is known.
    pub confidence: Option<Confidence>,
    /// Events in the second that has just ended.
    pub count: u64,
    /// Their time, ns.
    pub ns: u64,
    /// Events of the last minute, and their time.
    pub minute_count: u64,
    /// As above.
    pub minute_ns: u64,
    /// Events in all, and their time.
    pub total_count: u64,
    /// As above.
    pub total_ns: u64,
    /// The longest observed, ns.
    pub max_ns: u64,
}

/// What one row had in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ran<'a> {
    /// The CPU.
    pub cpu: u32,
    /// The class.
    pub class: EventClass,
    /// What ran.
    pub label: &'a str,
    /// Who caused it.
    pub source: Option<&'a SourceText>,
    /// How that is known; where it was not always the same, the least of it.
    pub confidence: Option<Confidence>,
    /// Events.
    pub count: u64,
    /// Their time, ns.
    pub ns: u64,
}

/// A long wake-up or interference event, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct WorstView {
    /// The CPU.
    pub cpu: u32,
    /// When it began, CLOCK_MONOTONIC, ns.
    pub t_ns: i64,
    /// How long, ns.
    pub ns: u64,
    /// Whether it is the latency of a wake-up; else one interference event.
    pub is_wakeup: bool,
    /// Whose, or what.
    pub what: String,
    /// In order of time; they add up to its length.
    pub parts: Vec<PartView>,
}

/// A part of it.
#[derive(Debug, Clone, PartialEq)]
pub struct PartView {
    /// The step of a wake-up, else the class of what ran.
    pub step: String,
    /// On which CPU.
    pub cpu: u32,
    /// What took the time, where something else than the step itself did.
    pub taken: Option<String>,
    /// The class of that, where it is an event's.
    pub class: Option<EventClass>,
    /// Who caused that.
    pub source: Option<SourceText>,
    /// How that is known.
    pub confidence: Option<Confidence>,
    /// How long, ns.
    pub ns: u64,
}

/// What the view lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Places where events of a CPU are missing.
    pub holes: u64,
    /// Events of no known format.
    pub unreadable: u64,
    /// Times that spans were cut to go on with empty tables of names.
    pub renewals: u64,
    /// Rows that were summed with others because there were too many.
    pub folded: u64,
}
