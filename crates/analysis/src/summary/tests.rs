//! The statistics of a stream are those of the whole run, and memory does not grow with it.

use super::{LARGEST, Large, of_file, of_run};
use crate::distribution::distribution;
use crate::testing::{record, releases};
use fixture::Ar1;
use model::run::ProbeRecord;
use model::sample::{ProbeKind, Sample, SampleMeta, flag};
use model::samples_file::SampleWriter;
use std::path::Path;

fn write(path: &Path, samples: &[Sample]) {
    let of = record(ProbeKind::Wakeup);
    let period_ns = of.period_ns();
    let mut writer = SampleWriter::create(path).unwrap();
    samples.iter().for_each(|&sample| writer.push(sample).unwrap());
    let meta = SampleMeta {
        probe: of.probe(),
        cpu: of.cpu,
        thread: 0,
        phase: of.phase,
        unit: "ns".into(),
        clock: "CLOCK_MONOTONIC".into(),
        counter: "CLOCK_MONOTONIC".into(),
        policy_asked: of.policy_asked,
        policy_effective: of.policy_effective,
        period_ns,
        threshold_ns: None,
    };
    writer.finish(&meta).unwrap();
}

/// Releases every ms; one in twenty thousand is 3.5 ms late and swallows three. More than one
/// batch, and a first that does not count.
fn samples(n: usize) -> Vec<Sample> {
    let mut release = 0;
    let mut late = false;
    let values = Ar1::new(0.8, 31).values(n);
    let mut at = |(seq, value): (usize, i64)| {
        let missed = if late { 3 } else { 0 };
        release += i64::from(missed) + 1;
        late = seq % 20_000 == 65_535 % 20_000;
        let value_ns = if late { 3_500_000 + seq as i64 } else { value };
        let flags = if seq == 0 { flag::FIRST } else { 0 };
        Sample { t_ns: release * 1_000_000, value_ns, seq: seq as u64, missed, flags }
    };
    values.into_iter().enumerate().map(&mut at).collect()
}

#[test]
fn a_stream_says_what_the_whole_says() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.parquet");
    let samples = samples(200_000);
    write(&path, &samples);
    let summary = of_file(&path, &[2_000_000]).unwrap();
    let missed: u64 = samples.iter().map(|sample| u64::from(sample.missed)).sum();
    let end = samples.last().unwrap().t_ns + 1_000_000;
    let whole =
        ProbeRecord { detail: releases(1_000_000, 0, missed), t1_ns: end, ..record(ProbeKind::Wakeup) };
    let whole = distribution(&whole, &samples);
    assert_eq!((summary.n, summary.excluded, summary.missed), (199_999, 1, missed));
    let levels = |list: &[stats::sampled::Quantile]| list.iter().filter(|one| one.value_ns.is_some()).count();
    assert!(levels(&summary.quantiles) >= 4 && levels(&whole.corrected_quantiles) >= 4);
    assert_eq!((summary.min_ns, summary.observed_max_ns), (whole.min_ns, whole.corrected_max_ns));
    let (t_ns, value_ns) = (whole.observed_max_at_ns.unwrap(), whole.observed_max_ns.unwrap());
    assert_eq!(summary.largest[0], Large { t_ns, value_ns });
    assert_eq!(summary.largest.len(), LARGEST);
    for (one, other) in summary.quantiles.iter().zip(&whole.corrected_quantiles) {
        let (Some(ours), Some(theirs)) = (one.value_ns, other.value_ns) else {
            // Both know the autocorrelation time from other cells: at the edge one may give what
            // the other does not.
            let near = one.effective_above.unwrap() / other.effective_above.unwrap();
            assert!(one.value_ns == other.value_ns || (0.7..1.4).contains(&near), "{one:?} {other:?}");
            continue;
        };
        assert!(ours <= theirs && theirs - ours <= theirs / 2_000, "{one:?} {other:?}");
        assert!(ours > 1_000_000 || ours == theirs, "{one:?} {other:?}");
        let (Some([a, b]), Some([c, d])) = (one.interval_ns, other.interval_ns) else { continue };
        let (ours, theirs) = ((b - a) as f64, (d - c) as f64);
        assert!((0.5..2.0).contains(&(ours / theirs)), "{one:?} {other:?}");
    }
    let at =
        |list: &[stats::sampled::Exceedance], ns| list.iter().find(|e| e.threshold_ns == ns).unwrap().count;
    assert_eq!(at(&summary.exceedances, 1_000_000), at(&whole.exceedances, 1_000_000));
    assert!(at(&summary.exceedances, 2_000_000) >= 20);
}

#[test]
fn the_largest_have_their_times_wherever_they_lie() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.parquet");
    let row = |seq: u64| {
        let value_ns = (seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as i64;
        Sample { t_ns: seq as i64 * 1_000 + 7, value_ns, seq, missed: 0, flags: 0 }
    };
    let samples: Vec<Sample> = (0..300_000).map(row).collect();
    write(&path, &samples);
    let large = |one: &Sample| Large { t_ns: one.t_ns, value_ns: one.value_ns };
    let mut expected: Vec<Large> = samples.iter().map(large).collect();
    expected.sort_by_key(|one| (std::cmp::Reverse(one.value_ns), one.t_ns));
    expected.truncate(LARGEST);
    let summary = of_file(&path, &[]).unwrap();
    assert_eq!(summary.largest, expected);
    assert_eq!((summary.n, summary.span_ns), (300_000, 299_999_000));
}

#[test]
fn what_passed_behind_the_last_sample_counts() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("samples")).unwrap();
    let late = |seq: u64| Sample { t_ns: seq as i64 * 1_000_000, value_ns: 10, seq, missed: 0, flags: 0 };
    let mut samples: Vec<Sample> = (0..50).map(late).collect();
    samples[49].value_ns = 4_200_000;
    write(&dir.path().join("samples/s.parquet"), &samples);
    let mut run = crate::testing::run();
    let (file, detail) = ("samples/s.parquet".into(), releases(1_000_000, 54, 4));
    let of = ProbeRecord { file, detail, ..record(ProbeKind::Wakeup) };
    run.probes = vec![of];
    model::store::write_json(&dir.path().join(model::store::RUN), &run).unwrap();
    let summary = &of_run(dir.path(), &[]).unwrap()[0];
    assert_eq!((summary.n, summary.missed, summary.ring_lost), (50, 4, Some(0)));
    let from_1ms = summary.exceedances.iter().find(|one| one.threshold_ns == 1_000_000).unwrap();
    assert_eq!(from_1ms.count, 4, "4.2, 3.2, 2.2 and 1.2 ms");
}

#[test]
fn an_empty_file_says_nothing_and_a_damaged_one_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.parquet");
    write(&path, &[]);
    let summary = of_file(&path, &[]).unwrap();
    assert_eq!((summary.n, summary.observed_max_ns, summary.span_ns), (0, None, 0));
    assert!(summary.quantiles.iter().all(|quantile| quantile.value_ns.is_none()));
    std::fs::write(&path, b"PAR1 nothing PAR1").unwrap();
    assert!(of_file(&path, &[]).is_err());
}
