//! Any small table as Parquet: columns by name, each of one type, cells that may be missing. For
//! pandas, Polars, DuckDB or R.

use super::parquet::{begin, optional, refused};
use crate::Error;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use std::io::Write;

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name: letters, digits and `_` for readers that want no quotes.
    pub name: String,
    /// A value a row.
    pub values: Values,
}

/// The values of a column, as many as the table has rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// UTF-8.
    Text(Vec<Option<String>>),
    /// Binary64.
    Number(Vec<Option<f64>>),
    /// Signed, 64 bits.
    Count(Vec<Option<i64>>),
    /// True or false.
    Flag(Vec<Option<bool>>),
}

impl Values {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "binary",
            Self::Number(_) => "double",
            Self::Count(_) => "int64",
            Self::Flag(_) => "boolean",
        }
    }

    const fn annotation(&self) -> &'static str {
        match self {
            Self::Text(_) => " (STRING)",
            Self::Count(_) => " (INTEGER(64,true))",
            Self::Number(_) | Self::Flag(_) => "",
        }
    }
}

/// The whole file. Key `stillcore` of its metadata: what it is, as JSON. Columns are to be of one
/// length, and their names of letters, digits and `_`.
pub fn table_parquet(columns: &[Column], about: &serde_json::Value) -> Result<Vec<u8>, Error> {
    let column = |column: &Column| {
        format!("optional {} {}{};", column.values.kind(), column.name, column.values.annotation())
    };
    let schema = format!("message table {{ {} }}", columns.iter().map(column).collect::<String>());
    let about = vec![KeyValue::new("stillcore".to_owned(), about.to_string())];
    let mut file = begin(Vec::new(), &schema, about)?;
    write(&mut file, columns).map_err(refused)?;
    file.into_inner().map_err(refused)
}

fn write<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &[Column],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for column in columns {
        match &column.values {
            Values::Text(rows) => {
                let text = |row: &Option<String>| row.as_deref().map(ByteArray::from);
                optional::<_, ByteArrayType, _>(&mut group, rows, text)?;
            }
            Values::Number(rows) => optional::<_, DoubleType, _>(&mut group, rows, |row| *row)?,
            Values::Count(rows) => optional::<_, Int64Type, _>(&mut group, rows, |row| *row)?,
            Values::Flag(rows) => optional::<_, BoolType, _>(&mut group, rows, |row| *row)?,
        }
    }
    group.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn it_reads_back_with_what_is_missing() {
        let column = |name: &str, values| Column { name: name.to_owned(), values };
        let columns = [
            column("load", Values::Text(vec![Some("idle".to_owned()), None, Some("µs".to_owned())])),
            column("max_us", Values::Number(vec![None, Some(1.5), Some(f64::MAX)])),
            column("repetition", Values::Count(vec![Some(i64::MIN), Some(2), None])),
            column("emulated", Values::Flag(vec![Some(true), Some(false), None])),
        ];
        let bytes = table_parquet(&columns, &serde_json::json!({ "schema": "test/1" })).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        let about = reader.metadata().file_metadata().key_value_metadata().unwrap()[0].clone();
        assert_eq!(
            (about.key.as_str(), about.value.as_deref()),
            ("stillcore", Some("{\"schema\":\"test/1\"}"))
        );
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].get_string(0).unwrap(), "idle");
        assert!(rows[1].get_string(0).is_err() && rows[0].get_double(1).is_err());
        assert_eq!(rows[2].get_string(0).unwrap(), "µs");
        assert_eq!(rows[1].get_double(1).unwrap().to_bits(), 1.5_f64.to_bits());
        assert_eq!(rows[0].get_long(2).unwrap(), i64::MIN);
        assert!(
            rows[0].get_bool(3).unwrap() && !rows[1].get_bool(3).unwrap() && rows[2].get_bool(3).is_err()
        );
    }

    #[test]
    fn a_table_without_rows_is_a_file() {
        let columns = [Column { name: "a".to_owned(), values: Values::Text(Vec::new()) }];
        let bytes = table_parquet(&columns, &serde_json::Value::Null).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    }
}
