//! Readings of a machine's clocks against CLOCK_MONOTONIC.

use serde::{Deserialize, Serialize};

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

/// What time keeping says of itself (`adjtimex(2)`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NtpState {
    /// Whether somebody keeps the clock in step with another.
    pub synchronised: bool,
    /// The status bits (`STA_*`).
    pub status: u32,
    /// Correction of the rate of CLOCK_MONOTONIC, CLOCK_REALTIME, …; not of CLOCK_MONOTONIC_RAW, nor of the scheduler's clock.
    pub frequency_ppb: f64,
    /// Remaining offset that is being slewed away, ns.
    pub offset_ns: i64,
    /// µs between ticks as time keeping counts them; 10000 unless somebody changed it.
    pub tick_us: i64,
    /// TAI minus UTC, s.
    pub tai_s: i64,
    /// Largest error as estimated by whoever sets it, µs.
    pub max_error_us: i64,
    /// Estimated error, µs.
    pub est_error_us: i64,
}
