//! Readings of a machine's clocks against CLOCK_MONOTONIC.

use serde::{Deserialize, Serialize};

/// The name of the scheduler's clock in what is read.
pub const SCHEDULER: &str = "scheduler";

/// What a run says of the clocks besides the pairs, which are its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClocksRecord {
    /// The clocks, in the order of their codes in the column `clock`.
    pub names: Vec<String>,
    /// Requested interval between two readings, ns.
    pub step_ns: u64,
    /// mult of the scheduler's clock (ns = ticks · mult / 2^shift), where the kernel reports it.
    pub mult: Option<u32>,
    /// Its shift.
    pub shift: Option<u16>,
    /// Why the scheduler's clock could not be read.
    pub scheduler_unread: Option<String>,
    /// The counter's frequency where the CPU reports it (arm64), Hz.
    #[serde(rename = "told_hz")]
    pub nominal_hz: Option<u64>,
    /// Clock source in use.
    pub source: Option<String>,
    /// Those there are.
    pub sources: Vec<String>,
    /// Time keeping.
    pub ntp: Option<NtpStates>,
    /// What a read costs.
    pub costs: Vec<Cost>,
    /// How far the counters of the CPUs are apart.
    pub core_offsets: Vec<CoreOffset>,
    /// Why they could not be compared.
    pub core_offsets_unread: Option<String>,
}

/// Another clock and CLOCK_MONOTONIC at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// CLOCK_MONOTONIC, ns.
    pub mono_ns: i64,
    /// The other clock: ns, or ticks of a counter.
    pub value: i64,
    /// The two lie at most this far apart, ns.
    pub error_ns: i64,
}

/// All pairs of one clock, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// `CLOCK_REALTIME`, `scheduler`, `tsc`, …
    pub clock: String,
    /// The pairs.
    pub pairs: Vec<Pair>,
}

/// How far the counter of a CPU is ahead of another's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CoreOffset {
    /// The one it is compared with.
    pub from: u32,
    /// The CPU.
    pub to: u32,
    /// Its counter minus the other's, ns.
    pub ns: f64,
    /// At most so much more or less, ns.
    pub bound_ns: f64,
}

/// What reading a clock costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The clock or instruction.
    pub read: String,
    /// Minimum over batches, ns.
    pub ns: f64,
}

/// What time keeping says of itself around a measurement. Runs of schema 1 hold an array of both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NtpStates {
    /// Before.
    pub before: NtpState,
    /// After.
    pub after: NtpState,
}

/// What time keeping says of itself (`adjtimex(2)`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NtpState {
    /// Whether NTP or the like keeps the clock in step with another.
    pub synchronised: bool,
    /// The status bits (`STA_*`).
    pub status: u32,
    /// Correction of the rate of CLOCK_MONOTONIC, CLOCK_REALTIME, …; not of CLOCK_MONOTONIC_RAW,
    /// nor of the scheduler's clock.
    pub frequency_ppb: f64,
    /// Remaining offset that is being slewed away, ns.
    pub offset_ns: i64,
    /// µs between ticks as time keeping counts them; 10000 unless changed.
    pub tick_us: i64,
    /// TAI minus UTC, s.
    pub tai_s: i64,
    /// Largest error as estimated by whoever sets it, µs.
    pub max_error_us: i64,
    /// Estimated error, µs.
    pub est_error_us: i64,
}
