//! A measurement that its first sample over a limit has ended, in words.

use crate::{Document, format};
use model::run::StoppedAt;

/// Which sample ended it, and when.
pub fn sentence(at: &StoppedAt) -> String {
    format!(
        "stopped at the first sample of {} or more, warm-up aside: sample {} of thread {}, CPU {}: {}, at {} s, {} after the start of the measurement (planned: {})",
        format::ns(at.over_ns),
        format::count(at.sample),
        at.thread,
        at.cpu,
        format::ns(at.value_ns),
        format::instant(at.t_ns),
        format::ns(at.after_ns.saturating_sub(at.value_ns)),
        format::ns(at.planned_ns)
    )
}

/// What this means for the statistics of the run.
pub fn limit(at: &StoppedAt) -> String {
    format!(
        "{}; statistics are of the time until then, and the sample that ended the measurement is in them",
        sentence(at)
    )
}

/// That a measurement with a limit never reached it, and how near it came; none where it did, or
/// was ended before.
pub fn not_reached(document: &Document, limit_ns: i64) -> Option<String> {
    let run = &document.run;
    if run.stopped_at.is_some() {
        return None;
    }
    let windows = document.analysis.distributions.iter();
    let n = windows.clone().map(|window| window.n).fold(0, u64::saturating_add);
    let largest_ns = windows.filter_map(|window| window.observed_max_ns).max()?;
    let (limit, largest) = (format::ns(limit_ns), format::ns(largest_ns));
    let count = format::count(n);
    Some(format!("the limit of {limit} was not reached in {count} samples; the largest: {largest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::probe::ProbeKind;

    #[test]
    fn the_sentence_has_the_sample_and_both_lengths() {
        let at = StoppedAt {
            over_ns: 1_000_000,
            probe: ProbeKind::Wakeup,
            phase: "measured".to_owned(),
            thread: 0,
            cpu: 3,
            sample: 1_234,
            t_ns: 6_832_140_330,
            value_ns: 1_500_000,
            after_ns: 2_001_500_000,
            planned_ns: 10_000_000_000,
        };
        assert_eq!(
            sentence(&at),
            "stopped at the first sample of 1.000 ms or more, warm-up aside: sample 1,234 of thread 0, CPU 3: 1.500 ms, at 6.832140330 s, 2.000 s after the start of the measurement (planned: 10.00 s)"
        );
    }
}
