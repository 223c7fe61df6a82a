//! Where a trace is not whole.

/// A stretch of time in which events of a CPU are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// The CPU.
    pub cpu: u32,
    /// Time of the last event before it, ns; 0 if there was none.
    pub t0_ns: i64,
    /// By when events are recorded again, ns; `i64::MAX` if never.
    pub t1_ns: i64,
}

impl Hole {
    /// From the timestamps of a stream.
    pub fn new(cpu: u32, after_ts_ns: u64, before_ts_ns: u64) -> Self {
        let ns = |ts_ns: u64| i64::try_from(ts_ns).unwrap_or(i64::MAX);
        Self { cpu, t0_ns: ns(after_ts_ns), t1_ns: ns(before_ts_ns) }
    }

    /// Whether it shares time with a stretch.
    pub fn touches(&self, [t0_ns, t1_ns]: [i64; 2]) -> bool {
        self.t0_ns <= t1_ns && t0_ns <= self.t1_ns
    }
}
