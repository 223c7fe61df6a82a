//! Samples on disk: Parquet, one row a sample, written as a stream and readable by any Arrow tool.
//!
//! Columns `t_ns` i64, `value_ns` i64, `seq` u64, `missed` u32, `flags` u32, then i64 columns of the probe's own. The metadata (key
//! `stillcore`) is [`SampleMeta`] as JSON.

use crate::Error;
use crate::sample::{Sample, SampleMeta};
use parquet::basic::Compression;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
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
/// Rows held in memory before they go to disk as one row group: 1 MiB of samples.
const ROW_GROUP: usize = 32 * 1024;

/// Writes samples as they come.
pub struct SampleWriter {
    path: PathBuf,
    file: SerializedFileWriter<File>,
    rows: Vec<Sample>,
    /// One vector a column of the probe's own.
    more: Vec<Vec<i64>>,
    written: u64,
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
        let file = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
            .map_err(|error| refused(path, error))?;
        let more = vec![Vec::new(); columns.len()];
        Ok(Self { path: path.to_owned(), file, rows: Vec::with_capacity(ROW_GROUP), more, written: 0 })
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
        if self.rows.len() == ROW_GROUP { self.flush() } else { Ok(()) }
    }

    /// Writes metadata and footer. Returns the number of rows in the file.
    pub fn finish(mut self, meta: &SampleMeta) -> Result<u64, Error> {
        self.flush()?;
        let json = serde_json::to_string(meta);
        let json =
            json.map_err(|error| Error::invalid(self.path.display(), error, "metadata that JSON can hold"))?;
        self.file.append_key_value_metadata(KeyValue::new(META_KEY.to_owned(), json));
        self.file.finish().map_err(|error| refused(&self.path, error))?;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.rows.is_empty() {
            return Ok(());
        }
        write_group(&mut self.file, &self.rows, &self.more).map_err(|error| refused(&self.path, error))?;
        self.written += self.rows.len() as u64;
        self.rows.clear();
        self.more.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

fn write_group(
    file: &mut SerializedFileWriter<File>,
    rows: &[Sample],
    more: &[Vec<i64>],
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
    group.close()?;
    Ok(())
}

/// Reads a whole samples file.
pub fn read(path: &Path) -> Result<(SampleMeta, Vec<Sample>), Error> {
    let file = File::open(path).map_err(|source| Error::io("read", path, source))?;
    let reader = SerializedFileReader::new(file).map_err(|error| refused(path, error))?;
    let meta = read_meta(&reader, path)?;
    let mut samples =
        Vec::with_capacity(reader.metadata().file_metadata().num_rows().clamp(0, 1 << 24) as usize);
    for index in 0..reader.num_row_groups() {
        read_group(&reader, index, &mut samples).map_err(|error| refused(path, error))?;
    }
    Ok((meta, samples))
}

/// Reads the columns of the probe's own: names, and one vector each.
pub fn read_columns(path: &Path) -> Result<Vec<(String, Vec<i64>)>, Error> {
    let file = File::open(path).map_err(|source| Error::io("read", path, source))?;
    let reader = SerializedFileReader::new(file).map_err(|error| refused(path, error))?;
    read_meta(&reader, path)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let names = schema.columns().iter().skip(COMMON_COLUMNS).map(|column| column.name().to_owned());
    let mut columns: Vec<_> = names.map(|name| (name, Vec::new())).collect();
    for index in 0..reader.num_row_groups() {
        for (number, (_, values)) in columns.iter_mut().enumerate() {
            read_column::<Int64Type>(&reader, index, COMMON_COLUMNS + number, values)
                .map_err(|error| refused(path, error))?;
        }
    }
    Ok(columns)
}

/// A whole samples file column by column: what tables are made of without touching a value twice. One element a row everywhere.
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
    /// The columns of the probe's own, by name.
    pub more: Vec<(String, Vec<i64>)>,
}

/// Reads every column of a samples file.
pub fn read_all_columns(path: &Path) -> Result<SampleColumns, Error> {
    let file = File::open(path).map_err(|source| Error::io("read", path, source))?;
    let reader = SerializedFileReader::new(file).map_err(|error| refused(path, error))?;
    let meta = read_meta(&reader, path)?;
    let wide =
        |column: usize| whole_column::<Int64Type>(&reader, column).map_err(|error| refused(path, error));
    let narrow =
        |column: usize| whole_column::<Int32Type>(&reader, column).map_err(|error| refused(path, error));
    let schema = reader.metadata().file_metadata().schema_descr();
    let names = schema.columns().iter().map(|column| column.name().to_owned());
    let more = names.enumerate().skip(COMMON_COLUMNS).map(|(column, name)| Ok((name, wide(column)?)));
    Ok(SampleColumns {
        t_ns: wide(0)?,
        value_ns: wide(1)?,
        seq: wide(2)?.into_iter().map(|value| value as u64).collect(),
        missed: narrow(3)?.into_iter().map(|value| value as u32).collect(),
        flags: narrow(4)?.into_iter().map(|value| value as u32).collect(),
        more: more.collect::<Result<_, Error>>()?,
        meta,
    })
}

fn whole_column<T: DataType>(
    reader: &SerializedFileReader<File>,
    column: usize,
) -> Result<Vec<T::T>, ParquetError> {
    let rows = reader.metadata().file_metadata().num_rows().clamp(0, 1 << 24) as usize;
    let mut values = Vec::with_capacity(rows);
    for group in 0..reader.num_row_groups() {
        read_column::<T>(reader, group, column, &mut values)?;
    }
    Ok(values)
}

fn read_column<T: DataType>(
    reader: &SerializedFileReader<File>,
    group: usize,
    column: usize,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    use parquet::column::reader::get_typed_column_reader;
    let group = reader.get_row_group(group)?;
    let until = values.len() + usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    let found = group.metadata().column(column).column_type();
    if found != T::get_physical_type() {
        let what = format!("column {column} is of {found}, expected {}", T::get_physical_type());
        return Err(ParquetError::General(what));
    }
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
    while values.len() < until && reader.read_records(until - values.len(), None, None, values)?.0 > 0 {}
    if values.len() == until { Ok(()) } else { Err(ParquetError::EOF("a column is short".into())) }
}

pub(crate) fn read_meta(reader: &SerializedFileReader<File>, path: &Path) -> Result<SampleMeta, Error> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let names: Vec<_> = schema.columns().iter().map(|column| column.name().to_owned()).collect();
    let wanted = ["t_ns", "value_ns", "seq", "missed", "flags"];
    if !names.iter().map(String::as_str).take(wanted.len()).eq(wanted) {
        return Err(Error::invalid(
            path.display(),
            format!("columns {names:?}"),
            format!("{wanted:?} first"),
        ));
    }
    check_layout(reader, path)?;
    let entries = reader.metadata().file_metadata().key_value_metadata();
    let json = entries
        .into_iter()
        .flatten()
        .find(|entry| entry.key == META_KEY)
        .and_then(|entry| entry.value.as_ref());
    let json =
        json.ok_or_else(|| Error::invalid(path.display(), "no metadata", format!("the key {META_KEY:?}")))?;
    serde_json::from_str(json)
        .map_err(|error| Error::invalid(path.display(), error, "stillcore's sample metadata"))
}

/// Whether the footer describes columns of the right types that lie inside the file: the reader trusts it, and panics where it should not.
fn check_layout(reader: &SerializedFileReader<File>, path: &Path) -> Result<(), Error> {
    use parquet::basic::Type;
    use parquet::file::metadata::RowGroupMetaData;
    let wrong = |what: String| Err(Error::invalid(path.display(), what, "a whole samples file"));
    let length = std::fs::metadata(path).map_err(|source| Error::io("read", path, source))?.len();
    for (group, columns) in reader.metadata().row_groups().iter().map(RowGroupMetaData::columns).enumerate() {
        for (place, column) in columns.iter().enumerate() {
            let kind = if (3..COMMON_COLUMNS).contains(&place) { Type::INT32 } else { Type::INT64 };
            if column.column_type() != kind {
                return wrong(format!("column {place} is of {}, not of {kind}", column.column_type()));
            }
            let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
            let end = start.checked_add(column.compressed_size());
            let inside = start >= 0 && end.is_some_and(|end| end >= start && end as u64 <= length);
            if !inside || column.num_values() < 0 {
                return wrong(format!("column {place} of row group {group} lies outside the file"));
            }
        }
    }
    Ok(())
}

fn read_group(
    reader: &SerializedFileReader<File>,
    index: usize,
    samples: &mut Vec<Sample>,
) -> Result<(), ParquetError> {
    use parquet::column::reader::get_typed_column_reader;
    let group = reader.get_row_group(index)?;
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    let mut wide: [Vec<i64>; 3] = Default::default();
    let mut narrow: [Vec<i32>; 2] = Default::default();
    for (column, values) in wide.iter_mut().enumerate() {
        let mut reader = get_typed_column_reader::<Int64Type>(group.get_column_reader(column)?);
        while values.len() < rows && reader.read_records(rows - values.len(), None, None, values)?.0 > 0 {}
    }
    for (column, values) in narrow.iter_mut().enumerate() {
        let mut reader = get_typed_column_reader::<Int32Type>(group.get_column_reader(column + 3)?);
        while values.len() < rows && reader.read_records(rows - values.len(), None, None, values)?.0 > 0 {}
    }
    if wide.iter().any(|values| values.len() != rows) || narrow.iter().any(|values| values.len() != rows) {
        return Err(ParquetError::EOF(format!("row group {index} is short")));
    }
    samples.extend((0..rows).map(|row| Sample {
        t_ns: wide[0][row],
        value_ns: wide[1][row],
        seq: wide[2][row] as u64,
        missed: narrow[0][row] as u32,
        flags: narrow[1][row] as u32,
    }));
    Ok(())
}

/// The system's own reason if there is one behind the library's error, so that a full disk says so.
pub(crate) fn refused(path: &Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => Error::io("write", path, *source),
            Err(other) => Error::invalid(path.display(), other, "a whole samples file"),
        },
        other => Error::invalid(path.display(), other, "a whole samples file"),
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
        assert_eq!(columns[0], ("start_ns".to_owned(), (0..rows).map(|seq| seq * 2).collect()));
        assert_eq!(columns[1], ("cpu_ns".to_owned(), (0..rows).map(|seq| -seq).collect()));
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
}
