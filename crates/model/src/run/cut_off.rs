//! What an interrupted run has measured anyway: samples files that no record of the run names.

use super::{Phase, ProbeDetail, ProbeRecord, Run, Served};
use crate::samples_stream::SampleStream;
use crate::store::SAMPLES;
use crate::{Error, samples_tail};
use std::fs;
use std::path::Path;

/// Names in `samples/` that are looked at, of those a hostile run may have.
const MOST_NAMES: usize = 65_536;

impl ProbeRecord {
    /// Samples that found the ring full; none where that is not known, because its window was cut
    /// off.
    pub fn known_ring_lost(&self) -> Option<u64> {
        (!self.cut_off).then_some(self.ring_lost)
    }
}

/// Adds a record for each of them to an incomplete run, and says so among its limits.
pub(crate) fn add_records(dir: &Path, run: &mut Run) {
    let Ok(entries) = fs::read_dir(dir.join(SAMPLES)) else { return };
    let names = entries.take(MOST_NAMES).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut files: Vec<String> = names
        .filter(|name| name.ends_with(".parquet"))
        .map(|name| format!("{SAMPLES}/{name}"))
        .filter(|file| run.probes.iter().all(|probe| probe.file != *file))
        .filter(|file| fs::symlink_metadata(dir.join(file)).is_ok_and(|meta| meta.is_file()))
        .collect();
    files.sort();
    for file in files {
        match record(dir, &file) {
            Ok(record) => {
                run.limits.push(format!(
                    "the {} window on CPU {} was cut off: the {} samples that had reached {file} were read; those behind them, and \
                     how many were lost, are not known",
                    record.probe().name(),
                    record.cpu,
                    record.samples
                ));
                if run.phases.iter().all(|phase| phase.name != record.phase) {
                    run.phases.push(phase(&record));
                }
                run.probes.push(record);
            }
            Err(error) => run.limits.push(format!("samples are missing: {error}")),
        }
    }
    run.phases.sort_by_key(|phase| phase.t0_ns);
}

/// What the file itself says of the samples in it.
fn record(dir: &Path, file: &str) -> Result<ProbeRecord, Error> {
    let path = dir.join(file);
    let stream = SampleStream::open(&path)?;
    let meta = stream.meta();
    let tail = samples_tail::read(&path);
    let known = tail.as_ref().map(|tail| tail.opening.record.clone());
    let mut record = known.unwrap_or_else(|| {
        let mut record = ProbeRecord::of(meta.probe, meta.cpu, meta.policy_asked.clone());
        record.policy_effective = meta.policy_effective.clone();
        (record.thread, record.counter) = (meta.thread, meta.counter.clone());
        match &mut record.detail {
            ProbeDetail::Noise(noise) => noise.threshold_ns = meta.threshold_ns.unwrap_or(0),
            detail => {
                if let Some(releases) = detail.releases_mut() {
                    releases.period_ns = meta.period_ns.unwrap_or(0);
                }
            }
        }
        record
    });
    (record.file, record.phase, record.cut_off) = (file.to_owned(), meta.phase.clone(), true);
    // A foreign tail names no other files.
    (record.counters_file, record.over_threshold) = (None, None);
    if let ProbeDetail::Noise(noise) = &mut record.detail {
        noise.clock_error_ns = None;
        noise.slices.extend(tail.into_iter().flat_map(|tail| tail.rows.slices));
        // Of a tail that somebody has made the sum may be any.
        let lengths = noise.slices.iter().map(|one| one.t1_ns.saturating_sub(one.t0_ns).max(0) as u64);
        noise.spin_ns = lengths.fold(0, u64::saturating_add);
    }
    let (mut missed, mut next, mut from, mut to) = (0u64, 0, i64::MAX, i64::MIN);
    stream.batches(|batch| -> Result<(), Error> {
        for sample in batch.samples()? {
            missed = missed.saturating_add(sample.missed.into());
            next = sample.seq.saturating_add(1);
            (from, to) = (from.min(sample.t_ns), to.max(sample.t_ns.saturating_add(sample.value_ns.max(0))));
        }
        Ok(())
    })?;
    for [t0, t1] in record.slices() {
        (from, to) = (from.min(t0), to.max(t1));
    }
    if from <= to {
        (record.t0_ns, record.t1_ns) = (from, to);
    }
    record.samples = stream.rows();
    // A lost sample leaves a hole in the numbers of the others.
    record.ring_lost = next.saturating_sub(record.samples);
    if let Some(releases) = record.detail.releases_mut() {
        let released = record.samples.saturating_add(missed).saturating_add(record.ring_lost);
        (releases.served, releases.clock_error_ns) = (Served { released, missed }, None);
    }
    Ok(record)
}

/// The phase that was cut off, as far as its first window says.
fn phase(record: &ProbeRecord) -> Phase {
    let (t0_ns, t1_ns) = (record.t0_ns, record.t1_ns);
    Phase { name: record.phase.clone(), t0_ns, t1_ns, disturbed: record.phase == "disturbed" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{ProbeKind, Sample};
    use crate::samples_store::SampleStore;
    use crate::samples_tail::Opening;
    use crate::store::{self, RUN};

    /// A run whose wake-up window was cut off after 50,000 samples, of which two were lost.
    fn cut_off() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small");
        let mut run: Run = store::read_json(&from.join(RUN)).unwrap();
        let old = run.probes.iter().find(|probe| probe.probe() == ProbeKind::Wakeup).unwrap().clone();
        let (meta, _) = crate::samples_file::read(&from.join(&old.file)).unwrap();
        (run.complete, run.incomplete_reason) = (false, Some(crate::run::CUT_OFF.to_owned()));
        (run.probes, run.phases) = (Vec::new(), Vec::new());
        store::write_json(&dir.path().join(RUN), &run).unwrap();
        fs::create_dir(dir.path().join(SAMPLES)).unwrap();
        let record = ProbeRecord { detail: ProbeKind::Wakeup.detail(), samples: 0, ring_lost: 0, ..old };
        let opening = Opening { meta, record, columns: Vec::new(), last: 0, rows: 0 };
        let path = dir.path().join(SAMPLES).join("wakeup-cpu1-0.parquet");
        let mut store = SampleStore::create(&path, opening).unwrap();
        for seq in (0..10).chain(12..50_002) {
            let missed = u32::from(seq % 1000 == 999);
            store.push_with(Sample { t_ns: seq as i64, value_ns: 5, seq, missed, flags: 0 }, &[]);
        }
        dir
    }

    #[test]
    fn what_was_measured_is_a_window_of_a_run_that_knows_no_losses() {
        let dir = cut_off();
        let run = crate::run::stored::read_run(dir.path()).unwrap();
        let [record] = &run.probes[..] else { panic!("{:?}", run.probes) };
        assert!(record.cut_off && !run.has_ended());
        assert_eq!((record.samples, record.missed(), record.ring_lost), (50_000, 50, 2));
        assert_eq!((record.released(), record.t0_ns, record.t1_ns), (50_052, 0, 50_006));
        assert_eq!((run.phases.len(), &run.phases[0].name), (1, &record.phase));
        assert!(run.limits.iter().any(|limit| limit.contains("50000 samples")), "{:?}", run.limits);
        // A reason that could be written does not make its losses known.
        let mut other = run.clone();
        other.incomplete_reason = Some("cannot write samples: no space left".to_owned());
        assert!(!other.has_ended());
    }

    #[test]
    fn what_cannot_be_read_is_said_and_a_complete_run_is_left_alone() {
        let dir = cut_off();
        let samples = dir.path().join(SAMPLES);
        for name in samples_tail::names(&samples.join("wakeup-cpu1-0.parquet")) {
            let _ = fs::remove_file(name);
        }
        let run = crate::run::stored::read_run(dir.path()).unwrap();
        assert!(run.probes.is_empty() && run.limits.iter().any(|limit| limit.contains("are missing")));
        let mut run: Run = store::read_json(&dir.path().join(RUN)).unwrap();
        (run.complete, run.schema) = (true, crate::run::SCHEMA.to_owned());
        store::write_json(&dir.path().join(RUN), &run).unwrap();
        assert_eq!(crate::run::stored::read_run(dir.path()).unwrap(), run);
    }
}
