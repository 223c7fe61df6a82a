//! A samples file into a summary, batch by batch; missed releases are charged where they passed.

use super::{Builder, Summary};
use crate::samples::unbiased;
use crate::{Error, missed};
use model::run::{ProbeRecord, TRACED};
use model::sample::{ProbeKind, Sample, flag};
use model::samples_stream::{Batch, SampleStream};
use std::path::Path;

/// Every samples file of a run, in its order. `limits_ns`: further thresholds of the exceedances.
pub fn of_run(dir: &Path, limits_ns: &[i64]) -> Result<Vec<Summary>, Error> {
    let run = model::run::stored::read_run(dir)?;
    let records = run.probes.iter().filter(|record| record.phase != TRACED);
    records.map(|record| of_record(&dir.join(&record.file), Some(record), limits_ns)).collect()
}

/// One samples file by itself: what the probe lost is not known.
pub fn of_file(path: &Path, limits_ns: &[i64]) -> Result<Summary, Error> {
    of_record(path, None, limits_ns)
}

fn of_record(path: &Path, record: Option<&ProbeRecord>, limits_ns: &[i64]) -> Result<Summary, Error> {
    let stream = SampleStream::open(path)?;
    let meta = stream.meta().clone();
    let mut reading = Reading::new(&stream, record);
    stream.batches(|batch| reading.batch(batch))?;
    reading.end();
    let (n, excluded, missed) = (reading.builder.n, reading.builder.excluded, reading.builder.missed);
    let figures = reading.builder.finish(limits_ns, meta.threshold_ns);
    Ok(Summary {
        file: path.display().to_string(),
        probe: meta.probe,
        phase: meta.phase,
        cpu: meta.cpu,
        thread: meta.thread,
        period_ns: meta.period_ns,
        n,
        excluded,
        missed,
        ring_lost: record.and_then(ProbeRecord::known_ring_lost),
        span_ns: figures.span_ns,
        early: figures.early,
        min_ns: figures.min_ns,
        observed_max_ns: figures.max_ns,
        quantiles: figures.quantiles,
        exceedances: figures.exceedances,
        largest: figures.largest,
    })
}

/// The way through a file.
struct Reading<'r> {
    builder: Builder,
    period_ns: u64,
    /// Whether missed releases are charged here.
    charges: bool,
    record: Option<&'r ProbeRecord>,
    /// The row before the batch.
    last: Last,
    /// Rows read, and rows in the file.
    rows: [u64; 2],
    /// Releases that the rows count as missed.
    swallowed: u64,
    /// Releases before it are the warm-up's; known with the first row.
    counts_from_ns: Option<i64>,
}

/// The row before a batch.
#[derive(Clone, Copy)]
enum Last {
    None,
    Row(Sample),
    /// Of a batch whose times were not decoded.
    Value(i64),
}

impl Last {
    /// As the row before `next`. What is not known of it follows from the releases between them; a
    /// gap in the ring would have been flagged.
    fn before(self, next: &Sample, period_ns: u64) -> Option<Sample> {
        match self {
            Self::Row(row) => Some(Sample { missed: 0, ..row }),
            Self::Value(_) if next.flags & flag::RING_GAP != 0 => None,
            Self::Value(value_ns) => {
                let back = (i64::from(next.missed) + 1).saturating_mul(period_ns.min(i64::MAX as u64) as i64);
                let t_ns = next.t_ns.saturating_sub(back);
                Some(Sample { t_ns, value_ns, seq: next.seq.wrapping_sub(1), missed: 0, flags: 0 })
            }
            Self::None => None,
        }
    }
}

impl<'r> Reading<'r> {
    fn new(stream: &SampleStream, record: Option<&'r ProbeRecord>) -> Self {
        let meta = stream.meta();
        Self {
            builder: Builder::default(),
            period_ns: meta.period_ns.unwrap_or(0),
            charges: matches!(meta.probe, ProbeKind::Wakeup | ProbeKind::Periodic),
            record,
            last: Last::None,
            rows: [0, stream.rows()],
            swallowed: 0,
            counts_from_ns: None,
        }
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        self.rows[0] += batch.values.len() as u64;
        let [read, all] = self.rows;
        let ends = read == batch.values.len() as u64 || read >= all;
        let biased = self.record.is_some_and(|record| record.bias_ns() > 0);
        let plain = batch.flags.iter().all(|flags| *flags as u32 & (flag::NOT_COUNTED | flag::RING_GAP) == 0)
            && batch.missed.iter().all(|missed| *missed == 0);
        let largest = batch.values.iter().copied().max().unwrap_or(i64::MIN);
        // Whole rows are decoded at both ends of the file, times where the batch may hold one of
        // the largest.
        if plain && !ends && !biased {
            if self.builder.large(largest) {
                let rows = batch.times()?.into_iter().zip(batch.values);
                rows.for_each(|(t_ns, value_ns)| self.builder.offer(t_ns, *value_ns));
            }
            self.builder.n += batch.values.len() as u64;
            self.builder.add(batch.values);
            self.last = batch.values.last().map_or(self.last, |value| Last::Value(*value));
            return Ok(());
        }
        let mut samples = batch.samples()?;
        if let Some(record) = self.record {
            samples = unbiased(record, samples);
        }
        self.samples(&samples);
        Ok(())
    }

    fn samples(&mut self, samples: &[Sample]) {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return };
        let swallowed: u64 = samples.iter().map(|sample| u64::from(sample.missed)).sum();
        self.swallowed += swallowed;
        let from_ns = *self.counts_from_ns.get_or_insert_with(|| {
            let releases = self.record.and_then(|record| record.detail.releases());
            releases.map_or(i64::MIN, |releases| releases.behind_warm_up_ns(first.t_ns))
        });
        let mut charged = if self.charges && swallowed > 0 {
            let before = self.last.before(first, self.period_ns);
            let joined: Vec<Sample> = before.into_iter().chain(samples.iter().copied()).collect();
            missed::charged(&joined, self.period_ns, swallowed)
        } else {
            Vec::new()
        };
        charged.retain(|release| release.release_ns >= from_ns);
        let mut values = Vec::with_capacity(samples.len() + charged.len());
        let mut next = charged.iter().peekable();
        for sample in samples {
            while let Some(release) = next.next_if(|release| release.release_ns < sample.t_ns) {
                values.push(release.lateness_ns);
            }
            if !sample.counts() {
                self.builder.excluded += 1;
                continue;
            }
            self.builder.n += 1;
            values.push(sample.value_ns);
            self.builder.offer(sample.t_ns, sample.value_ns);
        }
        values.extend(next.map(|release| release.lateness_ns));
        self.builder.missed += charged.len() as u64;
        self.builder.add(&values);
        let from = self.builder.span.map_or(first.t_ns, |span| span[0]);
        self.builder.span = Some([from, last.t_ns]);
        self.last = Last::Row(*last);
    }

    /// What passed behind the last sample.
    fn end(&mut self) {
        let (Some(record), Last::Row(last)) = (self.record, self.last) else { return };
        let left = record.missed().saturating_sub(self.swallowed);
        if !self.charges || left == 0 {
            return;
        }
        let charged = missed::charged(&[Sample { missed: 0, ..last }], self.period_ns, left);
        let from_ns = self.counts_from_ns.unwrap_or(i64::MIN);
        let charged = charged.iter().filter(|release| release.release_ns >= from_ns);
        let values: Vec<i64> = charged.map(|release| release.lateness_ns).collect();
        self.builder.missed += values.len() as u64;
        self.builder.add(&values);
    }
}
