//! Releases that passed unserved, charged with the lateness they had.
//!
//! A probe that wakes late serves one release and swallows those that passed meanwhile; a figure that leaves them out
//! flatters the machine ("coordinated omission"). Release i due at t, served at t + L with period P: the k-th release after
//! it was due at t + k·P and had lateness L − k·P at that moment. Its own sample file says how many were swallowed, in the
//! sample that comes *after* them.

use model::Sample;

/// Lateness, ns, of every release that passed unserved, in no particular order.
///
/// `recorded` is the probe's own total: what it counts beyond the samples passed behind the last one.
pub fn lateness_ns(samples: &[Sample], period_ns: u64, recorded: u64) -> Vec<i64> {
    let period = period_ns.min(i64::MAX as u64) as i64;
    let mut charged = Vec::new();
    let mut before: Option<&Sample> = None;
    for sample in samples {
        if sample.missed > 0 && sample.counts() {
            let cause =
                before.filter(|cause| cause.seq.wrapping_add(1) == sample.seq).map(|cause| cause.value_ns);
            charge(&mut charged, cause, u64::from(sample.missed), period);
        }
        before = Some(sample);
    }
    let told: u64 = samples.iter().map(|sample| u64::from(sample.missed)).sum();
    if let Some(last) = before
        && recorded > told
    {
        charge(&mut charged, Some(last.value_ns), recorded - told, period);
    }
    charged
}

/// The most releases of a window charged one by one; a probe that was stopped for longer has other troubles.
const MOST: usize = 10_000_000;

fn charge(charged: &mut Vec<i64>, cause_ns: Option<i64>, missed: u64, period: i64) {
    let missed = missed.min(MOST.saturating_sub(charged.len()) as u64) as i64;
    for k in 1..=missed {
        // Release k had passed when the one behind the last missed had not: at least (missed - k) periods late. Where
        // the sample that swallowed them was itself lost, one period more is the bound from the other side.
        let least = (missed - k).saturating_mul(period);
        let lateness = match cause_ns {
            Some(value) => value.saturating_sub(k.saturating_mul(period)),
            None => least.saturating_add(period),
        };
        charged.push(lateness.max(least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(seq: u64, value_ns: i64, missed: u32) -> Sample {
        Sample { t_ns: seq as i64 * 1000, value_ns, seq, missed, flags: 0 }
    }

    #[test]
    fn a_late_sample_charges_what_it_swallowed() {
        let samples = [sample(0, 10, 0), sample(1, 3500, 0), sample(2, 20, 3)];
        assert_eq!(lateness_ns(&samples, 1000, 3), [2500, 1500, 500]);
    }

    #[test]
    fn behind_the_last_sample_too() {
        assert_eq!(lateness_ns(&[sample(0, 2100, 0)], 1000, 2), [1100, 100]);
    }

    #[test]
    fn a_cause_that_was_lost_is_bounded_from_above() {
        let samples = [sample(0, 10, 0), sample(5, 20, 2)];
        assert_eq!(lateness_ns(&samples, 1000, 2), [2000, 1000]);
    }

    #[test]
    fn warm_up_charges_nothing() {
        let warm = Sample { flags: model::sample::flag::WARM_UP, ..sample(1, 5, 1) };
        assert!(lateness_ns(&[sample(0, 1500, 0), warm], 1000, 1).is_empty());
    }

    proptest! {
        // A probe as the wake-up loop is written, served with arbitrary latencies.
        #[test]
        fn every_release_is_charged_its_true_lateness(late in proptest::collection::vec(0i64..5000, 1..50)) {
            let (mut release, mut missed, mut samples, mut truth) = (0i64, 0u32, Vec::new(), Vec::new());
            for (seq, &value_ns) in late.iter().enumerate() {
                samples.push(Sample { t_ns: release, value_ns, seq: seq as u64, missed, flags: 0 });
                let (now, due) = (release + value_ns, release);
                missed = (value_ns / 1000) as u32;
                truth.extend((1..=i64::from(missed)).map(|k| now - (due + k * 1000)));
                release += (1 + i64::from(missed)) * 1000;
            }
            let charged = lateness_ns(&samples, 1000, truth.len() as u64);
            prop_assert_eq!(charged, truth);
        }
    }
}
