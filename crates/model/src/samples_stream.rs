//! A samples file read a batch at a time, however long it is: memory is that of a batch and of the pages it lies in.
//!
//! Most of what is asked of a long file needs values alone; times and numbers of samples are decoded for the batches in which somebody asks.

use crate::Error;
use crate::sample::{Sample, SampleMeta};
use crate::samples_file::{read_meta, refused};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Rows a batch at the most.
const BATCH: usize = 64 * 1024;

/// A samples file that is open.
pub struct SampleStream {
    reader: SerializedFileReader<File>,
    path: PathBuf,
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
    group: &'f dyn RowGroupReader,
    path: &'f Path,
    from: usize,
}

impl SampleStream {
    /// Opens a file and reads what it says of itself.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::io("read", path, source))?;
        let reader = SerializedFileReader::new(file).map_err(|error| refused(path, error))?;
        let meta = read_meta(&reader, path)?;
        Ok(Self { reader, path: path.to_owned(), meta })
    }

    /// What the file says of itself.
    pub fn meta(&self) -> &SampleMeta {
        &self.meta
    }

    /// Rows in the file.
    pub fn rows(&self) -> u64 {
        self.reader.metadata().file_metadata().num_rows().max(0) as u64
    }

    /// Calls with every batch, in order.
    pub fn batches<E: From<Error>>(
        &self,
        mut each: impl FnMut(&Batch<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let refused = |error| refused(&self.path, error);
        let (mut values, mut missed, mut flags) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..self.reader.num_row_groups() {
            let group = self.reader.get_row_group(index).map_err(refused)?;
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            let column = |at: usize| group.get_column_reader(at).map_err(refused);
            let mut value = get_typed_column_reader::<Int64Type>(column(1)?);
            let mut miss = get_typed_column_reader::<Int32Type>(column(3)?);
            let mut flag = get_typed_column_reader::<Int32Type>(column(4)?);
            let mut from = 0;
            while from < rows {
                let wanted = BATCH.min(rows - from);
                fill(&mut value, wanted, &mut values).map_err(refused)?;
                fill(&mut miss, wanted, &mut missed).map_err(refused)?;
                fill(&mut flag, wanted, &mut flags).map_err(refused)?;
                let batch = Batch {
                    values: &values,
                    missed: &missed,
                    flags: &flags,
                    group: group.as_ref(),
                    path: &self.path,
                    from,
                };
                each(&batch)?;
                from += wanted;
            }
        }
        Ok(())
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
        let read = || {
            let mut reader = get_typed_column_reader::<Int64Type>(self.group.get_column_reader(at)?);
            let mut left = self.from;
            while left > 0 {
                let skipped = reader.skip_records(left)?;
                left = left.checked_sub(skipped).filter(|_| skipped > 0).ok_or_else(short)?;
            }
            let mut values = Vec::with_capacity(self.values.len());
            fill(&mut reader, self.values.len(), &mut values)?;
            Ok(values)
        };
        read().map_err(|error| refused(self.path, error))
    }
}

fn fill<T: DataType>(
    reader: &mut parquet::column::reader::ColumnReaderImpl<T>,
    wanted: usize,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    values.clear();
    while values.len() < wanted && reader.read_records(wanted - values.len(), None, None, values)?.0 > 0 {}
    if values.len() == wanted { Ok(()) } else { Err(short()) }
}

fn short() -> ParquetError {
    ParquetError::EOF("a column is short".to_owned())
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
                assert!(batch.values.len() <= BATCH);
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
