//! Values as Parquet: the table of [`super::figures`], for pandas, Polars, DuckDB or R. Samples are
//! Parquet already.

use super::figures::{Figure, figures};
use super::parquet::{begin, optional, refused, required};
use crate::{Document, Error, heading};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use std::io::Write;

const SCHEMA: &str = "message figures {
    required binary probe (STRING);
    required binary phase (STRING);
    required int32 cpu (INTEGER(32,false));
    required int32 thread (INTEGER(32,false));
    optional binary class (STRING);
    required binary figure (STRING);
    required binary unit (STRING);
    required double value;
}";

/// The whole file. Key `stillcore` of its metadata: what the run was, as JSON.
pub fn figures_parquet(document: &Document) -> Result<Vec<u8>, Error> {
    let run = &document.run;
    let about = serde_json::json!({
        "schema": "stillcore.figures/1", "title": heading::title(run), "command": run.command,
        "started_at": run.started_at, "tool_version": run.tool_version,
        "kernel": document.machine.machine.kernel.release,
    });
    let about = vec![KeyValue::new("stillcore".to_owned(), about.to_string())];
    let mut file = begin(Vec::new(), SCHEMA, about)?;
    write(&mut file, &figures(document)).map_err(refused)?;
    file.into_inner().map_err(refused)
}

fn write<W: Write + Send>(file: &mut SerializedFileWriter<W>, rows: &[Figure]) -> Result<(), ParquetError> {
    let text = |value: &str| ByteArray::from(value);
    let mut group = file.next_row_group()?;
    required::<_, ByteArrayType, _>(&mut group, rows, |row| text(row.probe.name()))?;
    required::<_, ByteArrayType, _>(&mut group, rows, |row| text(&row.phase))?;
    required::<_, Int32Type, _>(&mut group, rows, |row| row.cpu as i32)?;
    required::<_, Int32Type, _>(&mut group, rows, |row| row.thread as i32)?;
    optional::<_, ByteArrayType, _>(&mut group, rows, |row| row.class.map(|class| text(class.name())))?;
    required::<_, ByteArrayType, _>(&mut group, rows, |row| text(&row.figure))?;
    required::<_, ByteArrayType, _>(&mut group, rows, |row| text(row.unit))?;
    required::<_, DoubleType, _>(&mut group, rows, |row| row.value)?;
    group.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn it_reads_back_row_by_row() {
        let document = fixture::document();
        let bytes = figures_parquet(&document).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let all = figures(&document);
        assert_eq!(rows.len(), all.len());
        for (row, one) in rows.iter().zip(&all) {
            assert_eq!(row.get_string(5).unwrap(), &one.figure);
            assert!((row.get_double(7).unwrap() - one.value).abs() <= 0.0);
        }
    }
}
