//! Sentences about clocks, the same in text and page; ASCII.

use crate::format;
use crate::precision::{Precision, Quantity};
use analysis::clocks::{Clocks, CounterRate, Scheduler};
use analysis::drift::{Drift, Frequency};
use model::clocks::{ClocksRecord, CoreOffset, NtpState};

/// Everything there is to say below the table of rates.
pub(crate) fn remarks(clocks: &Clocks, facts: &ClocksRecord) -> Vec<String> {
    let mut sentences = scheduler(&clocks.scheduler);
    sentences.extend(clocks.counter.as_ref().map(counter));
    // The one that may be furthest off.
    let reach = |offset: &CoreOffset| offset.ns.abs() + offset.bound_ns;
    let furthest = facts.core_offsets.iter().max_by(|a, b| reach(a).total_cmp(&reach(b)));
    sentences.extend(furthest.map(|one| {
        format!(
            "counters of {} CPUs against CPU {}: at most {:.0} +- {:.0} ns apart (CPU {})",
            facts.core_offsets.len(),
            one.from,
            one.ns.abs(),
            one.bound_ns,
            one.to
        )
    }));
    let reads = ["CLOCK_MONOTONIC", "tsc", "cntvct", "rdtscp"];
    let costs = reads.iter().filter_map(|name| facts.costs.iter().find(|cost| cost.read == *name));
    let costs = costs.map(|cost| {
        let trap = if cost.ns > 1000.0 { " (it traps)" } else { "" };
        format!("{} {:.0} ns{trap}", cost.read, cost.ns)
    });
    sentences.push(format!("a read costs: {}", costs.collect::<Vec<_>>().join(", ")));
    let source = facts.source.as_deref().unwrap_or("unknown");
    let sources = if facts.sources.is_empty() { "unknown".to_owned() } else { facts.sources.join(" ") };
    sentences.push(format!("clock source {source}, of {sources}"));
    sentences.extend(facts.ntp.as_ref().map(|ntp| time_keeping(&ntp.before, &ntp.after)));
    sentences
}

fn scheduler(scheduler: &Scheduler) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(drift) = &scheduler.measured {
        let sooner = if drift.ppb > 0.0 { "earlier" } else { "later" };
        // Two standard errors: what is within them is no drift that was seen.
        sentences.push(if drift.ppb.abs() <= 2.0 * drift.ppb_error {
            format!(
                "SCHED_DEADLINE tasks: no drift against CLOCK_MONOTONIC seen; at most {} us an hour",
                format::bound((drift.ppb.abs() + 2.0 * drift.ppb_error) * 3.6)
            )
        } else {
            let error = 2.0 * drift.ppb_error * 3.6;
            let say = |us: f64| Precision::within(error).text(us, Quantity::Number);
            format!(
                "SCHED_DEADLINE tasks drift: every hour they are released {} +- {} us {sooner}, by CLOCK_MONOTONIC",
                say(drift.us_per_hour.abs()),
                say(error)
            )
        });
    }
    if let (Some(ppb), Some(from)) = (scheduler.predicted_ppb, &scheduler.predicted_from) {
        let ntp = scheduler.ntp_ppb.filter(|ppb| ppb.abs() > 0.0);
        let ntp = ntp.map_or_else(String::new, |ntp| format!(", and {:+.2} ppb from NTP", -ntp));
        sentences.push(format!("predicted: {ppb:+.2} ppb by rounding{ntp} (from {from})"));
    }
    sentences
}

fn counter(counter: &CounterRate) -> String {
    let known = match counter.kernel {
        Some(Frequency::Khz(khz)) => format!("; the kernel takes it for {khz} kHz"),
        Some(Frequency::Hz(hz)) => format!("; it is said to run at {hz} Hz"),
        None => String::new(),
    };
    let say = |hz: f64| Precision::within(counter.hz_error).text(hz, Quantity::Number);
    format!("{}: {} +- {} Hz{known}", counter.name, say(counter.hz), say(counter.hz_error))
}

fn time_keeping(before: &NtpState, after: &NtpState) -> String {
    let kept = if before.synchronised { "kept in step by NTP or PTP" } else { "kept in step by nobody" };
    let changed = if (after.frequency_ppb - before.frequency_ppb).abs() > 0.0 {
        format!(", {:+.3} ppm at the end", after.frequency_ppb / 1000.0)
    } else {
        String::new()
    };
    format!(
        "time keeping: {kept}; rate corrected by {:+.3} ppm{changed}; {} to slew; TAI - UTC {} s",
        before.frequency_ppb / 1000.0,
        format::ns(before.offset_ns),
        before.tai_s
    )
}

/// How much faster a clock is in ppb, the standard error of that, and us an hour; each with the
/// digits that the error leaves certain.
pub(crate) fn rate(drift: &Drift) -> [String; 3] {
    let precision = Precision::within(drift.ppb_error);
    let hourly = Precision::within(drift.ppb_error * 3.6);
    [
        precision.signed(drift.ppb, Quantity::Number),
        precision.text(drift.ppb_error, Quantity::Number),
        hourly.signed(drift.us_per_hour, Quantity::Number),
    ]
}

/// What reading a clock costs, ns.
pub(crate) fn cost(facts: &ClocksRecord, clock: &str) -> Option<f64> {
    facts.costs.iter().find(|cost| cost.read == clock).map(|cost| cost.ns)
}
