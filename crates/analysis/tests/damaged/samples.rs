//! One execution of the fuzzer over stored samples and counters: damaged Parquet through every way
//! of reading it. Shared by the test of the corpus and the fuzzer (`examples/fuzz`).

use super::common::corpus::Corpus;
use super::common::execute::Outcome;
use model::growth::{self, Growth, GrowthWriter};
use model::sample::{Policy, ProbeKind, Sample, SampleMeta};
use model::samples_file::{self, SampleWriter};
use model::samples_stream::SampleStream;
use std::path::Path;
use tempfile::NamedTempFile;

/// Key of the sums, and what it becomes where damage is to come past them.
const SUMS: [&[u8]; 2] = [b"stillcore.crc32", b"without...crc32"];

/// Samples with a column of the probe's own, and counters; each as written, and as by a writer that
/// sums nothing.
pub(crate) fn seeds() -> Corpus {
    let dir = tempfile::tempdir().unwrap();
    let (samples, counters) = (dir.path().join("samples"), dir.path().join("counters"));
    write_samples(&samples);
    let mut writer = GrowthWriter::create(&counters).unwrap();
    for at in 0..200 {
        let smi = (at % 3 > 0).then_some(at as u64);
        writer.push(Growth { t0_ns: at, t1_ns: at * at, smi, ..Growth::default() }).unwrap();
    }
    writer.finish().unwrap();
    let whole = [samples, counters].map(|path| std::fs::read(path).unwrap());
    let seeds = whole.iter().cloned().chain(whole.iter().map(|bytes| without_sums(bytes))).collect();
    Corpus { seeds, words: vec![0, 1, 2, 8, 0x80, 0x7fff, 0xffff] }
}

fn write_samples(path: &Path) {
    let policy = Policy::fifo(80);
    let meta = SampleMeta {
        probe: ProbeKind::Taskset,
        cpu: 3,
        thread: 0,
        phase: "measured".into(),
        unit: "ns".into(),
        clock: "CLOCK_MONOTONIC".into(),
        counter: "CLOCK_MONOTONIC".into(),
        policy_asked: policy.clone(),
        policy_effective: policy,
        period_ns: Some(1_000_000),
        threshold_ns: None,
    };
    let mut writer = SampleWriter::with_columns(path, &["start_ns".to_owned()]).unwrap();
    for seq in 0..700u64 {
        let sample = Sample {
            t_ns: seq as i64 * 1_000_003,
            value_ns: (seq * 7919 % 300) as i64,
            seq,
            ..Sample::default()
        };
        writer.push_with(sample, &[-(seq as i64)]).unwrap();
    }
    writer.finish(&meta).unwrap();
}

fn without_sums(bytes: &[u8]) -> Vec<u8> {
    let [key, other] = SUMS;
    let at = bytes.windows(key.len()).position(|piece| piece == key).unwrap();
    let mut bytes = bytes.to_vec();
    bytes[at..at + key.len()].copy_from_slice(other);
    bytes
}

/// Every reader, on the file that these bytes are.
pub(crate) fn read(bytes: &[u8]) -> Outcome {
    thread_local! {
        static FILE: NamedTempFile = NamedTempFile::new().unwrap();
    }
    FILE.with(|file| {
        std::fs::write(file.path(), bytes).unwrap();
        read_file(file.path())
    })
}

fn read_file(path: &Path) -> Outcome {
    let counters = growth::read(path).is_ok();
    let (rows, columns) = (samples_file::read(path), samples_file::read_all_columns(path));
    if let (Ok((meta, rows)), Ok(columns)) = (&rows, &columns) {
        assert_eq!((meta, rows.len()), (&columns.meta, columns.t_ns.len()));
        for (row, at) in rows.iter().zip(0..) {
            assert_eq!(
                (row.t_ns, row.value_ns, row.seq),
                (columns.t_ns[at], columns.value_ns[at], columns.seq[at])
            );
        }
    }
    let streamed = stream(path);
    if let (Ok((_, rows)), Ok(streamed)) = (&rows, &streamed) {
        assert_eq!(rows, streamed);
    }
    if counters || (rows.is_ok() && columns.is_ok()) { Outcome::Whole } else { Outcome::Refused }
}

fn stream(path: &Path) -> Result<Vec<Sample>, model::Error> {
    let mut all = Vec::new();
    SampleStream::open(path)?.batches(|batch| -> Result<(), model::Error> {
        all.extend(batch.samples()?);
        Ok(())
    })?;
    Ok(all)
}
