//! How counters grew while a probe ran, one row an interval: those of the measuring thread, and
//! those of its CPU.
//!
//! On disk it is Parquet, `counters/<probe>-cpu<N>-<k>.parquet`, with one i64 column a field of
//! [`Growth`]. A counter that was not read is null there.

use crate::Error;
use crate::columns::{Table, damage, sums};
use parquet::basic::Compression;
use parquet::data_type::Int64Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Who read the counters at both ends of an interval, and what the probe did in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadBy {
    /// The probe itself, around a stretch of its busy loop.
    #[default]
    Stretch = 0,
    /// The probe itself, around the pause before a stretch.
    Pause = 1,
    /// The process that drains it, from another CPU, at its own interval.
    Drain = 2,
}

/// Growth of counters over one interval. `None`: not read by this reader, or not there on this
/// machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Growth {
    /// Start, CLOCK_MONOTONIC ns.
    pub t0_ns: i64,
    /// End, CLOCK_MONOTONIC ns.
    pub t1_ns: i64,
    /// Who read them.
    pub read_by: ReadBy,
    /// ns that the thread waited for its CPU though it could have run (`/proc/<pid>/schedstat`,
    /// second number).
    pub run_delay_ns: Option<u64>,
    /// Times the thread got a CPU (`/proc/<pid>/schedstat`, third number).
    pub arrivals: Option<u64>,
    /// Switches away from the thread because it blocked or was stopped (`getrusage(2)`).
    pub voluntary: Option<u64>,
    /// Switches away from the thread though it could have run on.
    pub involuntary: Option<u64>,
    /// Page faults without input.
    pub minor_faults: Option<u64>,
    /// Page faults that waited for input.
    pub major_faults: Option<u64>,
    /// ns that the scheduler charged to the thread. Kernels that account for interrupts or for the
    /// hypervisor leave their time out.
    pub cpu_ns: Option<u64>,
    /// System management interrupts.
    pub smi: Option<u64>,
    /// ns that the hypervisor took from the CPU, in steps of the clock tick (`/proc/stat`).
    pub steal_ns: Option<u64>,
    /// ns that the CPU idled, in steps of the clock tick (`/proc/stat`).
    pub idle_ns: Option<u64>,
    /// Interrupts of all rows of `/proc/interrupts`.
    pub interrupts: Option<u64>,
    /// Softirqs of all rows of `/proc/softirqs`.
    pub softirqs: Option<u64>,
}

/// The columns, in their order.
pub const COLUMNS: [&str; 15] = [
    "t0_ns",
    "t1_ns",
    "read_by",
    "run_delay_ns",
    "arrivals",
    "voluntary",
    "involuntary",
    "minor_faults",
    "major_faults",
    "cpu_ns",
    "smi",
    "steal_ns",
    "idle_ns",
    "interrupts",
    "softirqs",
];
/// Columns that are never null.
const ALWAYS: usize = 3;
/// What a file must be to be read.
const EXPECTED: &str = "a whole file of counters";
/// Rows held in memory before they go to disk.
const ROW_GROUP: usize = 8 * 1024;

impl Growth {
    fn row(&self) -> [Option<i64>; COLUMNS.len()] {
        let count = |value: Option<u64>| value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        [
            Some(self.t0_ns),
            Some(self.t1_ns),
            Some(self.read_by as i64),
            count(self.run_delay_ns),
            count(self.arrivals),
            count(self.voluntary),
            count(self.involuntary),
            count(self.minor_faults),
            count(self.major_faults),
            count(self.cpu_ns),
            count(self.smi),
            count(self.steal_ns),
            count(self.idle_ns),
            count(self.interrupts),
            count(self.softirqs),
        ]
    }

    /// None where the reader is one that this version does not know, or a time is missing.
    fn of(row: [Option<i64>; COLUMNS.len()]) -> Option<Self> {
        let [t0, t1, read_by, counts @ ..] = row;
        let read_by = [ReadBy::Stretch, ReadBy::Pause, ReadBy::Drain]
            .into_iter()
            .find(|known| Some(*known as i64) == read_by)?;
        let [
            run_delay_ns,
            arrivals,
            voluntary,
            involuntary,
            minor_faults,
            major_faults,
            cpu_ns,
            smi,
            steal_ns,
            idle_ns,
            interrupts,
            softirqs,
        ] = counts.map(|value| value.and_then(|value| u64::try_from(value).ok()));
        Some(Self {
            t0_ns: t0?,
            t1_ns: t1?,
            read_by,
            run_delay_ns,
            arrivals,
            voluntary,
            involuntary,
            minor_faults,
            major_faults,
            cpu_ns,
            smi,
            steal_ns,
            idle_ns,
            interrupts,
            softirqs,
        })
    }
}

/// Writes rows as they come.
pub struct GrowthWriter {
    path: PathBuf,
    file: SerializedFileWriter<sums::Summed>,
    rows: Vec<Growth>,
}

impl GrowthWriter {
    /// Creates the file; it must not exist.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create_new(path).map_err(|source| Error::io("create", path, source))?;
        let column = |(at, name): (usize, &&str)| {
            let kind = if at < ALWAYS { "required" } else { "optional" };
            format!("{kind} int64 {name} (INTEGER(64,true));")
        };
        let columns: Vec<_> = COLUMNS.iter().enumerate().map(column).collect();
        let schema = parse_message_type(&format!("message counters {{ {} }}", columns.join(" ")));
        let schema = schema.map_err(|error| refused(path, error))?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(sums::Summed::new(file), Arc::new(schema), Arc::new(properties))
            .map_err(|error| refused(path, error))?;
        Ok(Self { path: path.to_owned(), file, rows: Vec::new() })
    }

    /// Adds one row.
    pub fn push(&mut self, row: Growth) -> Result<(), Error> {
        self.rows.push(row);
        if self.rows.len() == ROW_GROUP { self.flush() } else { Ok(()) }
    }

    /// Writes the rest.
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        let sums = sums::text(&self.file, &[]);
        self.file.append_key_value_metadata(KeyValue::new(sums::KEY.to_owned(), sums));
        self.file.finish().map(drop).map_err(|error| refused(&self.path, error))
    }

    fn flush(&mut self) -> Result<(), Error> {
        if !self.rows.is_empty() {
            write_group(&mut self.file, &self.rows).map_err(|error| refused(&self.path, error))?;
            self.rows.clear();
        }
        Ok(())
    }
}

fn write_group(file: &mut SerializedFileWriter<sums::Summed>, rows: &[Growth]) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for at in 0..COLUMNS.len() {
        let column: Vec<Option<i64>> = rows.iter().map(|row| row.row()[at]).collect();
        let values: Vec<i64> = column.iter().flatten().copied().collect();
        // A definition level of 1 is a value, 0 a null.
        let levels: Vec<i16> = column.iter().map(|value| i16::from(value.is_some())).collect();
        let mut writer = group.next_column()?.ok_or_else(|| ParquetError::EOF("column".into()))?;
        let levels = (at >= ALWAYS).then_some(levels.as_slice());
        writer.typed::<Int64Type>().write_batch(&values, levels, None)?;
        writer.close()?;
    }
    let group = group.close()?;
    sums::add(file, &group)
}

/// Reads a whole file.
pub fn read(path: &Path) -> Result<Vec<Growth>, Error> {
    let table = Table::open(path, EXPECTED)?;
    let names: Vec<_> = table.footer.columns.iter().map(|column| column.name.as_str()).collect();
    if names != COLUMNS {
        return Err(Error::invalid(path.display(), format!("columns {names:?}"), format!("{COLUMNS:?}")));
    }
    let mut growths = Vec::new();
    for group in 0..table.footer.groups.len() {
        let columns: Result<Vec<_>, _> =
            (0..COLUMNS.len()).map(|column| read_column(&table, group, column)).collect();
        let columns = columns?;
        let row = |at: usize| Growth::of(std::array::from_fn(|column| columns[column][at]));
        let rows: Option<Vec<_>> = (0..table.footer.groups[group].rows).map(row).collect();
        growths.extend(rows.ok_or_else(|| table.wrong(damage("has a row without times or reader")))?);
    }
    Ok(growths)
}

fn read_column(table: &Table, group: usize, column: usize) -> Result<Vec<Option<i64>>, Error> {
    if column >= ALWAYS {
        return table.optional_column(group, column);
    }
    let mut values = Vec::new();
    table.column(group, column, &mut values)?;
    Ok(values.into_iter().map(Some).collect())
}

fn refused(path: &Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => Error::io("write", path, *source),
            Err(other) => Error::invalid(path.display(), other, EXPECTED),
        },
        other => Error::invalid(path.display(), other, EXPECTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Counts = [Option<u32>; 12];

    fn growth((t0_ns, t1_ns, read_by, counts): (i64, i64, u8, Counts)) -> Growth {
        let counts = counts.map(|count| count.map(i64::from));
        let row = std::array::from_fn(|at| match at {
            0 => Some(t0_ns),
            1 => Some(t1_ns),
            2 => Some(i64::from(read_by)),
            at => counts[at - ALWAYS],
        });
        Growth::of(row).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn what_is_written_is_read(rows in proptest::collection::vec((any::<i64>(), any::<i64>(), 0u8..3, any::<Counts>()), 0..50)) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("c.parquet");
            let rows: Vec<_> = rows.into_iter().map(growth).collect();
            let mut writer = GrowthWriter::create(&path).unwrap();
            rows.iter().for_each(|row| writer.push(*row).unwrap());
            writer.finish().unwrap();
            prop_assert_eq!(read(&path).unwrap(), rows);
        }
    }

    #[test]
    fn no_changed_bit_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("c.parquet"), dir.path().join("o.parquet"));
        let mut writer = GrowthWriter::create(&path).unwrap();
        for at in 0..9 {
            let smi = (at % 3 > 0).then_some(at as u64);
            writer.push(Growth { t0_ns: at, smi, ..Growth::default() }).unwrap();
        }
        writer.finish().unwrap();
        let (whole, bytes) = (read(&path).unwrap(), std::fs::read(&path).unwrap());
        for (at, bit) in (0..bytes.len()).map(|at| (at, at % 8)) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            std::fs::write(&other, &changed).unwrap();
            assert!(
                read(&other).is_ok_and(|rows| rows == whole) || read(&other).is_err(),
                "bit {bit} of byte {at}"
            );
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_at_every_length() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cut) = (dir.path().join("c.parquet"), dir.path().join("cut.parquet"));
        let mut writer = GrowthWriter::create(&path).unwrap();
        writer.push(Growth { smi: Some(3), ..Growth::default() }).unwrap();
        writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            std::fs::write(&cut, &bytes[..length]).unwrap();
            assert!(read(&cut).is_err(), "{length} bytes of {}", bytes.len());
        }
    }
}
