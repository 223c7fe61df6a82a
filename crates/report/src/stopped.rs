//! A measurement that its first sample over a limit has ended, in words.

use crate::format;
use model::run::StoppedAt;

/// Which sample ended it, and when.
pub fn sentence(at: &StoppedAt) -> String {
    format!(
        "stopped at the first sample of {} or more, warm-up aside: sample {} of thread {}, CPU {}: {}, {} into the planned {}",
        format::ns(at.over_ns),
        format::count(at.sample),
        at.thread,
        at.cpu,
        format::ns(at.value_ns),
        format::ns(at.after_ns),
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
            t_ns: 0,
            value_ns: 1_500_000,
            after_ns: 2_000_000_000,
            planned_ns: 10_000_000_000,
        };
        assert_eq!(
            sentence(&at),
            "stopped at the first sample of 1.000 ms or more, warm-up aside: sample 1,234 of thread 0, CPU 3: 1.500 ms, 2.000 s into the planned 10.00 s"
        );
    }
}
