//! Records for the tests of this crate.

use model::run::ProbeRecord;
use model::sample::{Policy, ProbeKind};

/// A record of a window from 0 to 1 s on CPU 1, nothing measured.
pub(crate) fn record(probe: ProbeKind) -> ProbeRecord {
    ProbeRecord {
        phase: "disturbed".into(),
        pid: 100,
        tid: 101,
        t1_ns: 1_000_000_000,
        counter: "CLOCK_MONOTONIC".into(),
        timer_slack_ns: 50_000,
        period_ns: Some(1_000_000),
        ..ProbeRecord::of(probe, 1, Policy::fifo(80))
    }
}
