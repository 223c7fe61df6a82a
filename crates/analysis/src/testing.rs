//! Records for the tests of this crate.

use model::run::ProbeRecord;
use model::sample::{Policy, ProbeKind};

/// A record of a window from 0 to 1 s on CPU 1, nothing measured.
pub(crate) fn record(probe: ProbeKind) -> ProbeRecord {
    let policy = Policy::fifo(80);
    ProbeRecord {
        probe,
        phase: "disturbed".into(),
        cpu: 1,
        thread: 0,
        cpus: None,
        pid: 100,
        tid: 101,
        file: String::new(),
        t0_ns: 0,
        t1_ns: 1_000_000_000,
        counter: "CLOCK_MONOTONIC".into(),
        release_clock: None,
        timer_slack_ns: 50_000,
        policy_asked: policy.clone(),
        policy_effective: policy,
        period_ns: Some(1_000_000),
        threshold_ns: None,
        samples: 0,
        released: 0,
        missed: 0,
        ring_lost: 0,
        iterations: 0,
        spin_ns: 0,
        slices: Vec::new(),
        faults: [0; 2],
        switches: [0; 2],
        cpu_time_ns: 0,
        rss_kib: 0,
        clock_error_ns: None,
        jobs: None,
        task: None,
        wake_ups: None,
        clocks: None,
        noise: None,
        counters_file: None,
        over_threshold: None,
        taken_ns: None,
    }
}
