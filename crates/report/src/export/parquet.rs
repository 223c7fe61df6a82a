//! Events as a table: Parquet, one row an event, for pandas, Polars, DuckDB or R.
//!
//! Of an event that served several senders the columns hold the first; the others are in one text,
//! so that every event stays one row.

use super::{Exporter, Origin, Taken};
use crate::Error;
use attribution::attribute::events::Attributed;
use model::sample::Sample;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::Write;
use std::sync::Arc;

const SCHEMA: &str = "message events {
    required int32 cpu (INTEGER(32,false));
    required binary class (STRING);
    required binary label (STRING);
    required int64 t0_ns (INTEGER(64,true));
    required int64 t1_ns (INTEGER(64,true));
    required int64 net_ns (INTEGER(64,false));
    required boolean counts;
    optional int32 source_cpu (INTEGER(32,false));
    optional binary source_who (STRING);
    optional int32 source_pid (INTEGER(32,true));
    optional binary source_site (STRING);
    optional binary source_group (STRING);
    optional binary confidence (STRING);
    optional binary other_sources (STRING);
}";
/// Rows held in memory before they go to the file as one row group.
const ROW_GROUP: usize = 16 * 1024;

/// A table of events.
pub struct Rows<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Vec<Attributed>,
}

impl<W: Write + Send> Rows<W> {
    /// Begins the file. Key `stillcore` of its metadata: the origin as JSON.
    pub fn new(out: W, origin: &Origin) -> Result<Self, Error> {
        let about = serde_json::to_string(origin)
            .map_err(|source| Error::Json { what: "the origin of an export", source })?;
        let about = vec![KeyValue::new("stillcore".to_owned(), about)];
        let file = begin(out, SCHEMA, about)?;
        Ok(Self { file, rows: Vec::with_capacity(ROW_GROUP) })
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        let rows = &self.rows;
        let text = |value: &str| ByteArray::from(value);
        let first = |row: &Attributed| row.sources.first().cloned();
        required::<_, Int32Type, _>(&mut group, rows, |row| row.cpu as i32)?;
        required::<_, ByteArrayType, _>(&mut group, rows, |row| text(row.class.name()))?;
        required::<_, ByteArrayType, _>(&mut group, rows, |row| text(&row.label))?;
        required::<_, Int64Type, _>(&mut group, rows, |row| row.t0_ns)?;
        required::<_, Int64Type, _>(&mut group, rows, |row| row.t1_ns)?;
        required::<_, Int64Type, _>(&mut group, rows, |row| row.net_ns as i64)?;
        required::<_, BoolType, _>(&mut group, rows, |row| row.counts)?;
        optional::<_, Int32Type, _>(&mut group, rows, |row| first(row).map(|(source, _)| source.cpu as i32))?;
        optional::<_, ByteArrayType, _>(&mut group, rows, |row| {
            first(row).map(|(source, _)| text(&source.who))
        })?;
        optional::<_, Int32Type, _>(&mut group, rows, |row| first(row).and_then(|(source, _)| source.pid))?;
        optional::<_, ByteArrayType, _>(&mut group, rows, |row| {
            first(row).and_then(|(source, _)| source.site).map(|site| text(&site))
        })?;
        optional::<_, ByteArrayType, _>(&mut group, rows, |row| {
            first(row).and_then(|(source, _)| source.group).map(|group| text(&group))
        })?;
        optional::<_, ByteArrayType, _>(&mut group, rows, |row| first(row).map(|(_, how)| text(how.word())))?;
        optional::<_, ByteArrayType, _>(&mut group, rows, |row| {
            other_sources(row).map(|others| text(&others))
        })?;
        group.close()?;
        self.rows.clear();
        Ok(())
    }
}

/// All sources of an event but the first, in one line; none where there is one at most.
pub fn other_sources(row: &Attributed) -> Option<String> {
    let others = row.sources.get(1..).filter(|others| !others.is_empty())?;
    Some(super::sources(&Attributed { sources: others.to_vec(), ..row.clone() }))
}

pub(super) fn required<R, T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[R],
    value: impl Fn(&R) -> T::T,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = rows.iter().map(value).collect();
    write::<T, W>(group, &values, None)
}

pub(super) fn optional<R, T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[R],
    value: impl Fn(&R) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = rows.iter().map(value).collect();
    let present: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    write::<T, W>(group, &values, Some(&present))
}

fn write<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    present: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has fewer columns than a row".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, present, None)?;
    column.close()
}

impl<W: Write + Send> Exporter for Rows<W> {
    fn event(&mut self, event: &Attributed) -> Result<(), Error> {
        self.rows.push(event.clone());
        if self.rows.len() == ROW_GROUP { self.flush().map_err(refused) } else { Ok(()) }
    }

    /// Samples are tables already: the files of the run.
    fn sample(&mut self, _: Taken<'_>, _: &Sample) -> Result<(), Error> {
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.flush().map_err(refused)?;
        self.file.finish().map_err(refused)?;
        Ok(())
    }
}

/// Begins a file of one schema with what it says of itself.
pub(super) fn begin<W: Write + Send>(
    out: W,
    schema: &str,
    about: Vec<KeyValue>,
) -> Result<SerializedFileWriter<W>, Error> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(about))
        .build();
    let schema = parse_message_type(schema).map_err(refused)?;
    SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties)).map_err(refused)
}

/// The system's own reason if there is one behind the library's error, so that a full disk says so.
pub(super) fn refused(error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => Error::Write(*source),
            Err(other) => Error::Write(std::io::Error::other(other)),
        },
        other => Error::Write(std::io::Error::other(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::testing::{event, origin, served};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    /// The rows of a file, each value by the name of its column.
    fn read(bytes: Vec<u8>) -> Vec<Vec<(String, Field)>> {
        let reader = SerializedFileReader::new(bytes_of(bytes)).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().into_columns()).collect()
    }

    /// The reader wants something that can be read at any place: a file.
    fn bytes_of(bytes: Vec<u8>) -> std::fs::File {
        use std::io::Seek;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file.rewind().unwrap();
        file
    }

    fn written(events: &[Attributed]) -> Vec<Vec<(String, Field)>> {
        let mut bytes = Vec::new();
        let mut rows = Rows::new(&mut bytes, &origin()).unwrap();
        events.iter().for_each(|event| rows.event(event).unwrap());
        Box::new(rows).finish().unwrap();
        read(bytes)
    }

    #[test]
    fn every_event_is_a_row_and_what_is_unknown_is_null() {
        let mut grouped = served(2, 50, 60);
        grouped.sources[0].0.group = Some("cron.service".into());
        let rows = written(&[served(2, 10, 40), event(3, 20, 30), grouped]);
        let cell = |row: usize, name: &str| {
            let found = rows[row].iter().find(|(column, _)| column == name);
            found.unwrap_or_else(|| panic!("no column {name}")).1.clone()
        };
        let text = |value: &str| Field::Str(value.to_owned());
        assert_eq!(rows.len(), 3);
        assert_eq!((cell(0, "cpu"), cell(0, "class")), (Field::UInt(2), text("ipi.call")));
        assert_eq!((cell(0, "t0_ns"), cell(0, "t1_ns")), (Field::Long(10), Field::Long(40)));
        assert_eq!((cell(0, "source_who"), cell(0, "source_pid")), (text("bash"), Field::Int(812)));
        assert_eq!((cell(0, "confidence"), cell(0, "counts")), (text("exact"), Field::Bool(true)));
        assert_eq!(cell(0, "other_sources"), text("interrupt: TIMER on CPU 1 (by order)"));
        assert_eq!((cell(1, "net_ns"), cell(1, "label")), (Field::ULong(10), text("eth0 \"rx\"\n")));
        assert_eq!((cell(0, "source_group"), cell(2, "source_group")), (Field::Null, text("cron.service")));
        for column in [
            "source_cpu",
            "source_who",
            "source_pid",
            "source_site",
            "source_group",
            "confidence",
            "other_sources",
        ] {
            assert_eq!(cell(1, column), Field::Null, "{column}");
        }
    }

    #[test]
    fn several_row_groups_keep_their_order() {
        let events: Vec<_> = (0..ROW_GROUP as i64 + 3).map(|t| event(2, t, t + 1)).collect();
        let times: Vec<_> = written(&events).into_iter().map(|row| row[3].1.clone()).collect();
        assert_eq!(times, (0..ROW_GROUP as i64 + 3).map(Field::Long).collect::<Vec<_>>());
    }

    #[test]
    fn a_table_without_events_can_be_read() {
        assert!(written(&[]).is_empty());
    }
}
