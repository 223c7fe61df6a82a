//! Samples on disk: Parquet, one row a sample, written as a stream and readable by any Arrow tool.
//!
//! Columns `t_ns` i64, `value_ns` i64, `seq` u64, `missed` u32, `flags` u32, then i64 columns of
//! the probe's own. The metadata (key `stillcore`) is [`SampleMeta`] as JSON; sums of all columns
//! stand beside it and are checked when they are read.
//!
//! Long because: one format is written and read here, and its tests look at both.

use crate::Error;
use crate::columns::{Column, CutOff, Kind, Meaning, Table, Value, damage, sums};
use crate::sample::{OwnColumn, Sample, SampleMeta};
use crate::samples_tail::{self, Handover, Tail};
use crate::store;
use parquet::basic::Compression;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The columns that every samples file has.
const COMMON: &str = "required int64 t_ns (INTEGER(64,true));
    required int64 value_ns (INTEGER(64,true));
    required int64 seq (INTEGER(64,false));
    required int32 missed (INTEGER(32,false));
    required int32 flags (INTEGER(32,false));";
/// How many those are.
const COMMON_COLUMNS: usize = 5;
const META_KEY: &str = "stillcore";
/// What a file must be to be read.
const EXPECTED: &str = "a whole samples file";
/// Rows held in memory before they go to disk as one row group: 1 MiB of samples.
const ROW_GROUP: usize = 32 * 1024;
/// The same of long files. The footer lists the row groups, and until it is written each takes
/// 4 KiB of memory.
const LARGE_ROW_GROUP: usize = 4 * ROW_GROUP;
/// So many row groups make a file long.
const LONG: usize = 64;

/// Writes samples as they come.
pub struct SampleWriter {
    path: PathBuf,
    file: SerializedFileWriter<sums::Summed>,
    rows: Vec<Sample>,
    /// One vector a column of the probe's own.
    more: Vec<Vec<i64>>,
    written: u64,
    /// Whether row groups say where they are, to be read without a footer.
    marks: bool,
}

impl SampleWriter {
    /// Creates the file; it must not exist.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::with_columns(path, &[])
    }

    /// Creates a file with i64 columns of the probe's own behind those that all have.
    pub fn with_columns(path: &Path, columns: &[String]) -> Result<Self, Error> {
        let file = File::create_new(path).map_err(|source| Error::io("create", path, source))?;
        let own = columns.iter().map(|name| format!("required int64 {name} (INTEGER(64,true));"));
        let schema = format!("message samples {{ {COMMON} {} }}", own.collect::<Vec<_>>().join(" "));
        let schema = parse_message_type(&schema).map_err(|error| refused(path, error))?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(sums::Summed::new(file), Arc::new(schema), Arc::new(properties))
            .map_err(|error| refused(path, error))?;
        let more = vec![Vec::new(); columns.len()];
        Ok(Self {
            path: path.to_owned(),
            file,
            rows: Vec::with_capacity(ROW_GROUP),
            more,
            written: 0,
            marks: false,
        })
    }

    /// The same, with row groups that can be read before the file has its footer.
    pub(crate) fn marked(path: &Path, columns: &[String]) -> Result<Self, Error> {
        Ok(Self { marks: true, ..Self::with_columns(path, columns)? })
    }

    /// Where the mark of the last row group begins, and the rows of all of them.
    pub(crate) fn marked_at(&self) -> (u64, u64) {
        (self.file.inner().marked(), self.written)
    }

    /// The rows that are in no row group yet.
    pub(crate) fn loose(&self) -> Handover {
        let own = (0..self.rows.len()).flat_map(|row| self.more.iter().map(move |column| column[row]));
        Handover { rows: self.rows.clone(), more: own.collect(), slices: Vec::new() }
    }

    /// Waits until all row groups are on the disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        store::sync_data(self.file.inner().file(), &self.path)
    }

    /// Adds one sample.
    pub fn push(&mut self, sample: Sample) -> Result<(), Error> {
        self.push_with(sample, &[])
    }

    /// Adds one sample with its own columns; a value that is not given is stored as 0.
    pub fn push_with(&mut self, sample: Sample, own: &[i64]) -> Result<(), Error> {
        self.rows.push(sample);
        for (index, column) in self.more.iter_mut().enumerate() {
            column.push(own.get(index).copied().unwrap_or(0));
        }
        let full = if self.file.flushed_row_groups().len() < LONG { ROW_GROUP } else { LARGE_ROW_GROUP };
        if self.rows.len() >= full { self.flush() } else { Ok(()) }
    }

    /// Writes metadata and footer. Returns the number of rows in the file.
    pub fn finish(mut self, meta: &SampleMeta) -> Result<u64, Error> {
        self.flush()?;
        let json = serde_json::to_string(meta);
        let json =
            json.map_err(|error| Error::invalid(self.path.display(), error, "metadata that JSON can hold"))?;
        let sums = sums::text(&self.file, &[(META_KEY, &json)]);
        self.file.append_key_value_metadata(KeyValue::new(META_KEY.to_owned(), json));
        self.file.append_key_value_metadata(KeyValue::new(sums::KEY.to_owned(), sums));
        self.file.finish().map_err(|error| refused(&self.path, error))?;
        if self.marks {
            self.sync()?;
        }
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let marks = self.marks;
        write_group(&mut self.file, &self.rows, &self.more, marks)
            .map_err(|error| refused(&self.path, error))?;
        self.written += self.rows.len() as u64;
        self.rows.clear();
        self.more.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

fn write_group(
    file: &mut SerializedFileWriter<sums::Summed>,
    rows: &[Sample],
    more: &[Vec<i64>],
    marks: bool,
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    let wide: [fn(&Sample) -> i64; 3] = [|row| row.t_ns, |row| row.value_ns, |row| row.seq as i64];
    let narrow: [fn(&Sample) -> i32; 2] = [|row| row.missed as i32, |row| row.flags as i32];
    for column in wide {
        let values: Vec<i64> = rows.iter().map(column).collect();
        let mut writer = group.next_column()?.ok_or_else(|| ParquetError::EOF("column".into()))?;
        writer.typed::<Int64Type>().write_batch(&values, None, None)?;
        writer.close()?;
    }
    for column in narrow {
        let values: Vec<i32> = rows.iter().map(column).collect();
        let mut writer = group.next_column()?.ok_or_else(|| ParquetError::EOF("column".into()))?;
        writer.typed::<Int32Type>().write_batch(&values, None, None)?;
        writer.close()?;
    }
    for values in more {
        let mut writer = group.next_column()?.ok_or_else(|| ParquetError::EOF("column".into()))?;
        writer.typed::<Int64Type>().write_batch(values, None, None)?;
        writer.close()?;
    }
    let group = group.close()?;
    if marks { sums::add_marked(file, &group) } else { sums::add(file, &group) }
}

/// Reads all of a samples file.
pub fn read(path: &Path) -> Result<(SampleMeta, Vec<Sample>), Error> {
    let (table, meta) = open(path)?;
    let mut samples = Vec::with_capacity(room(&table));
    for group in 0..table.footer.groups.len() {
        read_group(&table, group, &mut samples)?;
    }
    Ok((meta, samples))
}

/// Reads the columns of the probe's own.
pub fn read_columns(path: &Path) -> Result<Vec<OwnColumn>, Error> {
    let (table, _) = open(path)?;
    own_columns(&table)
}

/// A whole samples file column by column: what tables are made of without touching a value twice.
/// One element a row everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleColumns {
    /// What the file says of itself.
    pub meta: SampleMeta,
    /// [`Sample::t_ns`].
    pub t_ns: Vec<i64>,
    /// [`Sample::value_ns`].
    pub value_ns: Vec<i64>,
    /// [`Sample::seq`].
    pub seq: Vec<u64>,
    /// [`Sample::missed`].
    pub missed: Vec<u32>,
    /// [`Sample::flags`].
    pub flags: Vec<u32>,
    /// The columns of the probe's own.
    pub more: Vec<OwnColumn>,
}

/// Reads every column of a samples file.
pub fn read_all_columns(path: &Path) -> Result<SampleColumns, Error> {
    let (table, meta) = open(path)?;
    let wide = |column: usize| whole_column::<i64>(&table, column);
    let narrow = |column: usize| whole_column::<i32>(&table, column);
    Ok(SampleColumns {
        t_ns: wide(0)?,
        value_ns: wide(1)?,
        seq: wide(2)?.into_iter().map(|value| value as u64).collect(),
        missed: narrow(3)?.into_iter().map(|value| value as u32).collect(),
        flags: narrow(4)?.into_iter().map(|value| value as u32).collect(),
        more: own_columns(&table)?,
        meta,
    })
}

fn own_columns(table: &Table) -> Result<Vec<OwnColumn>, Error> {
    let columns = table.footer.columns.iter().enumerate().skip(COMMON_COLUMNS);
    columns
        .map(|(at, column)| Ok(OwnColumn { name: column.name.clone(), values: whole_column(table, at)? }))
        .collect()
}

fn whole_column<T: Value>(table: &Table, column: usize) -> Result<Vec<T>, Error> {
    let mut values = Vec::with_capacity(room(table));
    for group in 0..table.footer.groups.len() {
        table.column(group, column, &mut values)?;
    }
    Ok(values)
}

/// Rows to make room for before any is read: what the footer says is not yet believed.
fn room(table: &Table) -> usize {
    table.footer.rows.min(1 << 20) as usize
}

/// Opens a samples file to be read piece by piece; one that was cut off, up to there.
pub(crate) fn open(path: &Path) -> Result<(Table, SampleMeta), Error> {
    let table = match Table::open(path, EXPECTED) {
        Ok(table) => table,
        Err(error) => match samples_tail::read(path) {
            Some(tail) => Table::open_cut_off(path, EXPECTED, cut_off(tail, path)?)?,
            None => return Err(error),
        },
    };
    let meta = read_meta(&table)?;
    Ok((table, meta))
}

/// A table of which its tail says what the footer would have said.
fn cut_off(tail: Tail, path: &Path) -> Result<CutOff, Error> {
    let Tail { opening, rows: Handover { rows, more, .. } } = tail;
    let json = serde_json::to_string(&opening.meta)
        .map_err(|error| Error::invalid(path.display(), error, "metadata that JSON can hold"))?;
    let column = |name: &str, kind| Column {
        name: name.to_owned(),
        kind,
        optional: false,
        meaning: Meaning::default(),
    };
    let mut columns = vec![
        column("t_ns", Kind::Int64),
        column("value_ns", Kind::Int64),
        column("seq", Kind::Int64),
        column("missed", Kind::Int32),
        column("flags", Kind::Int32),
    ];
    columns.extend(opening.columns.iter().map(|name| column(name, Kind::Int64)));
    let common: [fn(&Sample) -> i64; COMMON_COLUMNS] = [
        |row| row.t_ns,
        |row| row.value_ns,
        |row| row.seq as i64,
        |row| i64::from(row.missed),
        |row| i64::from(row.flags),
    ];
    let own = opening.columns.len();
    let common = common.iter().map(|value| rows.iter().map(value).collect());
    let more = (0..own).map(|at| more.iter().skip(at).step_by(own).copied().collect());
    let loose = common.chain(more).collect();
    Ok(CutOff { columns, texts: vec![(META_KEY.to_owned(), json)], last: opening.last, loose })
}

/// What the file says of itself, where its columns are those of samples.
fn read_meta(table: &Table) -> Result<SampleMeta, Error> {
    let place = || table.path().display();
    let names: Vec<_> = table.footer.columns.iter().map(|column| column.name.as_str()).collect();
    let wanted = ["t_ns", "value_ns", "seq", "missed", "flags"];
    if !names.iter().take(wanted.len()).eq(&wanted) {
        return Err(Error::invalid(place(), format!("columns {names:?}"), format!("{wanted:?} first")));
    }
    for (at, column) in table.footer.columns.iter().enumerate() {
        let kind = if (3..COMMON_COLUMNS).contains(&at) { Kind::Int32 } else { Kind::Int64 };
        if column.kind != kind {
            return Err(table.wrong(damage(format!("column {at} is of {}, not of {kind}", column.kind))));
        }
    }
    let json = table.footer.text(META_KEY);
    let json = json.ok_or_else(|| Error::invalid(place(), "no metadata", format!("the key {META_KEY:?}")))?;
    serde_json::from_str(json).map_err(|error| Error::invalid(place(), error, "stillcore's sample metadata"))
}

fn read_group(table: &Table, group: usize, samples: &mut Vec<Sample>) -> Result<(), Error> {
    let mut wide: [Vec<i64>; 3] = Default::default();
    let mut narrow: [Vec<i32>; 2] = Default::default();
    for (column, values) in wide.iter_mut().enumerate() {
        table.column(group, column, values)?;
    }
    for (column, values) in narrow.iter_mut().enumerate() {
        table.column(group, column + 3, values)?;
    }
    samples.extend((0..table.footer.groups[group].rows).map(|row| Sample {
        t_ns: wide[0][row],
        value_ns: wide[1][row],
        seq: wide[2][row] as u64,
        missed: narrow[0][row] as u32,
        flags: narrow[1][row] as u32,
    }));
    Ok(())
}

/// The system's own reason if there is one behind the library's error, so that a full disk says so.
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
    use crate::sample::{Policy, ProbeKind};
    use proptest::prelude::*;

    fn meta() -> SampleMeta {
        let policy = Policy::fifo(80);
        SampleMeta {
            probe: ProbeKind::Wakeup,
            cpu: 3,
            thread: 0,
            phase: "idle-before".into(),
            unit: "ns".into(),
            clock: "CLOCK_MONOTONIC".into(),
            counter: "CLOCK_MONOTONIC".into(),
            policy_asked: policy.clone(),
            policy_effective: policy,
            period_ns: Some(1_000_000),
            threshold_ns: None,
        }
    }

    fn write(path: &Path, samples: &[Sample]) -> u64 {
        let mut writer = SampleWriter::create(path).unwrap();
        samples.iter().for_each(|&sample| writer.push(sample).unwrap());
        writer.finish(&meta()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn what_is_written_is_read(rows in proptest::collection::vec(any::<(i64, i64, u64, u32, u32)>(), 0..200)) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s.parquet");
            let samples: Vec<_> = rows
                .into_iter()
                .map(|(t_ns, value_ns, seq, missed, flags)| Sample { t_ns, value_ns, seq, missed, flags })
                .collect();
            prop_assert_eq!(write(&path, &samples), samples.len() as u64);
            let (all, of) = (read_all_columns(&path).unwrap(), |field: fn(&Sample) -> u64| samples.iter().map(field).collect::<Vec<_>>());
            prop_assert_eq!((all.seq, all.missed.len()), (of(|sample| sample.seq), samples.len()));
            let rows = all.t_ns.iter().zip(&all.value_ns).zip(all.missed.iter().zip(&all.flags));
            for (((t_ns, value_ns), (missed, flags)), sample) in rows.zip(&samples) {
                prop_assert_eq!((*t_ns, *value_ns, *missed, *flags), (sample.t_ns, sample.value_ns, sample.missed, sample.flags));
            }
            prop_assert_eq!(read(&path).unwrap(), (meta(), samples));
        }
    }

    #[test]
    fn columns_of_a_probe_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.parquet");
        let names = ["start_ns".to_owned(), "cpu_ns".to_owned()];
        let mut writer = SampleWriter::with_columns(&path, &names).unwrap();
        let rows = ROW_GROUP as i64 + 3;
        for seq in 0..rows {
            let sample = Sample { seq: seq as u64, ..Sample::default() };
            writer.push_with(sample, &[seq * 2, -seq]).unwrap();
        }
        writer.finish(&meta()).unwrap();
        assert_eq!(read(&path).unwrap().1.len() as i64, rows);
        let columns = read_columns(&path).unwrap();
        let all = read_all_columns(&path).unwrap();
        assert_eq!((all.meta, &all.more), (meta(), &columns));
        assert_eq!((all.seq, all.t_ns.len()), ((0..rows as u64).collect(), rows as usize));
        for ((column, name), factor) in columns.iter().zip(names).zip([2, -1]) {
            assert_eq!((&column.name, column.values.len() as i64), (&name, rows));
            assert!((0..rows).zip(&column.values).all(|(seq, value)| seq * factor == *value));
        }
    }

    #[test]
    fn several_row_groups_keep_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.parquet");
        let samples: Vec<_> = (0..ROW_GROUP as u64 * 2 + 7)
            .map(|seq| Sample { seq, value_ns: -(seq as i64), ..Sample::default() })
            .collect();
        write(&path, &samples);
        assert_eq!(read(&path).unwrap().1, samples);
    }

    #[test]
    fn row_groups_of_long_files_are_larger() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = SampleWriter::create(&dir.path().join("s.parquet")).unwrap();
        let mut add = |rows: usize| {
            (0..rows).for_each(|_| writer.push(Sample::default()).unwrap());
            writer.marked_at().1 as usize
        };
        let long = LONG * ROW_GROUP;
        assert_eq!(add(long), long);
        assert_eq!([add(LARGE_ROW_GROUP - 1), add(1)], [long, long + LARGE_ROW_GROUP]);
    }

    #[test]
    fn columns_of_other_types_are_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.parquet");
        let schema = "message samples { required int64 t_ns; required int32 value_ns; required int64 seq;
            required int32 missed; required int32 flags; }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut file =
            SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
        let mut group = file.next_row_group().unwrap();
        for wide in [true, false, true, false, false] {
            let mut column = group.next_column().unwrap().unwrap();
            if wide {
                column.typed::<Int64Type>().write_batch(&[1], None, None).unwrap();
            } else {
                column.typed::<Int32Type>().write_batch(&[1], None, None).unwrap();
            }
            column.close().unwrap();
        }
        group.close().unwrap();
        let json = serde_json::to_string(&meta()).unwrap();
        file.append_key_value_metadata(KeyValue::new(META_KEY.to_owned(), json));
        file.finish().unwrap();
        for error in [read(&path).unwrap_err(), read_all_columns(&path).unwrap_err()] {
            assert!(error.to_string().contains("column 1 is of INT32, not of INT64"), "{error}");
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_at_every_length() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cut) = (dir.path().join("s.parquet"), dir.path().join("cut.parquet"));
        write(&path, &[Sample::default(); 3]);
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            std::fs::write(&cut, &bytes[..length]).unwrap();
            assert!(read(&cut).is_err(), "{length} bytes of {}", bytes.len());
            assert!(read_all_columns(&cut).is_err(), "{length} bytes of {}", bytes.len());
        }
    }

    #[test]
    fn no_changed_bit_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("s.parquet"), dir.path().join("o.parquet"));
        let mut writer = SampleWriter::with_columns(&path, &["start_ns".to_owned()]).unwrap();
        for seq in 0..40u64 {
            let value_ns = (seq * 7919 % 1000) as i64;
            writer
                .push_with(Sample { t_ns: seq as i64 * 10, value_ns, seq, missed: 1, flags: 2 }, &[3])
                .unwrap();
        }
        writer.finish(&meta()).unwrap();
        let (whole, bytes) = (read_all_columns(&path).unwrap(), std::fs::read(&path).unwrap());
        let mut errors = 0;
        for (at, bit) in (0..bytes.len()).map(|at| (at, at % 8)) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            std::fs::write(&other, &changed).unwrap();
            // What a footer says besides (statistics, who wrote it) may change; nothing that is
            // read from it.
            match read_all_columns(&other) {
                Ok(columns) => assert_eq!(columns, whole, "bit {bit} of byte {at}"),
                Err(_) => errors += 1,
            }
        }
        assert!(errors * 2 > bytes.len(), "{errors} of {} bytes", bytes.len());
    }
}
