//! A samples file read a batch at a time, however long it is: memory is that of one row group's
//! columns.
//!
//! Most questions about a long file need values alone; times and numbers of samples are decoded
//! only for the batches in which they are read.

use crate::Error;
use crate::columns::{Table, Value};
use crate::sample::{Sample, SampleMeta};
use crate::samples_file::open;
use std::path::Path;

/// A samples file that is open.
pub struct SampleStream {
    table: Table,
    meta: SampleMeta,
}

/// Some consecutive rows.
pub struct Batch<'f> {
    /// Their values, ns.
    pub values: &'f [i64],
    /// Releases that passed just before each.
    pub missed: &'f [i32],
    /// What is to be known of each ([`crate::sample::flag`]).
    pub flags: &'f [i32],
    table: &'f Table,
    group: usize,
}

impl SampleStream {
    /// Opens a file and reads what it says of itself.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (table, meta) = open(path)?;
        Ok(Self { table, meta })
    }

    /// What the file says of itself.
    pub fn meta(&self) -> &SampleMeta {
        &self.meta
    }

    /// Rows in the file.
    pub fn rows(&self) -> u64 {
        self.table.footer.rows
    }

    /// Calls with every batch, in order.
    pub fn batches<E: From<Error>>(
        &self,
        mut each: impl FnMut(&Batch<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut values, mut missed, mut flags) = (Vec::new(), Vec::new(), Vec::new());
        for group in 0..self.table.footer.groups.len() {
            self.fill(group, 1, &mut values)?;
            self.fill(group, 3, &mut missed)?;
            self.fill(group, 4, &mut flags)?;
            each(&Batch { values: &values, missed: &missed, flags: &flags, table: &self.table, group })?;
        }
        Ok(())
    }

    fn fill<T: Value>(&self, group: usize, column: usize, values: &mut Vec<T>) -> Result<(), Error> {
        values.clear();
        self.table.column(group, column, values)
    }
}

impl Batch<'_> {
    /// The whole rows.
    pub fn samples(&self) -> Result<Vec<Sample>, Error> {
        let (times, numbers) = (self.column(0)?, self.column(2)?);
        let row = |at: usize| Sample {
            t_ns: times[at],
            value_ns: self.values[at],
            seq: numbers[at] as u64,
            missed: self.missed[at] as u32,
            flags: self.flags[at] as u32,
        };
        Ok((0..self.values.len()).map(row).collect())
    }

    /// Their times, ns.
    pub fn times(&self) -> Result<Vec<i64>, Error> {
        self.column(0)
    }

    fn column(&self, at: usize) -> Result<Vec<i64>, Error> {
        let mut values = Vec::with_capacity(self.values.len());
        self.table.column(self.group, at, &mut values)?;
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Policy, ProbeKind};
    use crate::samples_file::{self, SampleWriter};

    #[test]
    fn batches_are_the_file_and_times_come_with_their_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.parquet");
        let mut writer = SampleWriter::create(&path).unwrap();
        for seq in 0..150_000u64 {
            let value_ns = (seq * 7919 % 1000) as i64;
            writer.push(Sample { t_ns: seq as i64 * 10, value_ns, seq, missed: 1, flags: 2 }).unwrap();
        }
        let policy = Policy::fifo(80);
        let meta = SampleMeta {
            probe: ProbeKind::Wakeup,
            cpu: 3,
            thread: 0,
            phase: "measured".into(),
            unit: "ns".into(),
            clock: "CLOCK_MONOTONIC".into(),
            counter: "CLOCK_MONOTONIC".into(),
            policy_asked: policy.clone(),
            policy_effective: policy,
            period_ns: Some(10),
            threshold_ns: None,
        };
        writer.finish(&meta).unwrap();
        let stream = SampleStream::open(&path).unwrap();
        assert_eq!((stream.meta(), stream.rows()), (&meta, 150_000));
        let mut all = Vec::new();
        stream
            .batches(|batch| -> Result<(), Error> {
                assert!(batch.values.len() <= 64 * 1024);
                let samples = batch.samples()?;
                assert_eq!(batch.times()?, samples.iter().map(|sample| sample.t_ns).collect::<Vec<_>>());
                all.extend(samples);
                Ok(())
            })
            .unwrap();
        assert_eq!(all, samples_file::read(&path).unwrap().1);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(SampleStream::open(&path).is_err());
    }
}
