//! The samples of a run as one table: a batch a samples file, its columns as they come from the
//! file, and beside them whose they are.
//!
//! A file that is not what `run.json` says of it is an error, as in the analysis. For an incomplete
//! run, the table's metadata lists what is missing.

use crate::error::{Answer, Wrong};
use crate::table::Table;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
    new_null_array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use model::run::{ProbeRecord, Run};
use model::sample::{OwnColumn, flag};
use model::samples_file::{SampleColumns, read_all_columns};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// Which samples.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) probe: Option<String>,
    pub(crate) phase: Option<String>,
    pub(crate) cpu: Option<u32>,
    /// Only those that statistics include.
    pub(crate) counted: bool,
}

impl Wanted {
    fn holds(&self, record: &ProbeRecord) -> bool {
        self.probe.as_ref().is_none_or(|probe| probe == record.probe().name())
            && self.phase.as_ref().is_none_or(|phase| *phase == record.phase)
            && self.cpu.is_none_or(|cpu| cpu == record.cpu)
    }
}

/// Reads the samples of a run.
pub(crate) fn samples(dir: &Path, wanted: &Wanted) -> Answer<Table> {
    let run = model::run::stored::read_run(dir)?;
    let records: Vec<&ProbeRecord> = run.probes.iter().filter(|record| wanted.holds(record)).collect();
    if records.is_empty() {
        return Err(none(dir, &run, wanted));
    }
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    for record in records {
        match read(dir, record) {
            Ok(columns) => files.push((record, columns)),
            Err(error) if !run.complete => missing.push(error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    let own = own_columns(&files);
    let schema = Arc::new(schema(&run, &files, &own, &missing));
    let batches = files.into_iter().map(|(record, columns)| {
        let columns = if wanted.counted { counted(columns) } else { columns };
        batch(&schema, record, columns, &own)
    });
    let batches = batches.collect::<Answer<Vec<_>>>()?;
    Ok(Table::new(schema, batches))
}

fn read(dir: &Path, record: &ProbeRecord) -> Result<SampleColumns, model::Error> {
    let path = dir.join(&record.file);
    let columns = read_all_columns(&path)?;
    analysis::samples::belongs(record, &path, &columns.meta, columns.t_ns.len() as u64)?;
    Ok(columns)
}

fn none(dir: &Path, run: &Run, wanted: &Wanted) -> Wrong {
    let mut known: Vec<String> = run
        .probes
        .iter()
        .map(|record| format!("{} of phase {} on CPU {}", record.probe().name(), record.phase, record.cpu))
        .collect();
    known.dedup();
    let asked = [
        wanted.probe.as_ref().map(|probe| format!("probe {probe}")),
        wanted.phase.as_ref().map(|phase| format!("phase {phase}")),
        wanted.cpu.map(|cpu| format!("CPU {cpu}")),
    ];
    let asked: Vec<String> = asked.into_iter().flatten().collect();
    let known = if known.is_empty() { "a run that measured something".to_owned() } else { known.join(", ") };
    Wrong::new(dir.display(), format!("no samples of {}", asked.join(", ")), known)
}

/// The columns of the probes' own, in the order in which they come.
fn own_columns(files: &[(&ProbeRecord, SampleColumns)]) -> Vec<String> {
    let mut own: Vec<String> = Vec::new();
    for OwnColumn { name, .. } in files.iter().flat_map(|(_, columns)| &columns.more) {
        if !own.contains(name) {
            own.push(name.clone());
        }
    }
    own
}

fn words() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

fn schema(run: &Run, files: &[(&ProbeRecord, SampleColumns)], own: &[String], missing: &[String]) -> Schema {
    let common = [
        ("probe", words()),
        ("phase", words()),
        ("cpu", DataType::UInt32),
        ("thread", DataType::UInt32),
        ("t_ns", DataType::Int64),
        ("value_ns", DataType::Int64),
        ("seq", DataType::UInt64),
        ("missed", DataType::UInt32),
        ("flags", DataType::UInt32),
    ];
    let mut fields: Vec<Field> =
        common.into_iter().map(|(name, kind)| Field::new(name, kind, false)).collect();
    for name in own {
        let everywhere =
            files.iter().all(|(_, columns)| columns.more.iter().any(|known| known.name == *name));
        fields.push(Field::new(name, DataType::Int64, !everywhere));
    }
    let about = json!({
        "files": files.iter().map(|(_, columns)| &columns.meta).collect::<Vec<_>>(),
        "complete": run.complete,
        "missing": missing,
        "missed_releases": files.iter().map(|(record, _)| record.missed()).sum::<u64>(),
        "lost_samples": files.iter().map(|(record, _)| record.known_ring_lost()).sum::<Option<u64>>(),
    });
    Schema::new_with_metadata(fields, HashMap::from([("stillcore".to_owned(), about.to_string())]))
}

/// Only the rows that statistics include.
fn counted(columns: SampleColumns) -> SampleColumns {
    let kept: Vec<bool> = columns.flags.iter().map(|flags| flags & flag::NOT_COUNTED == 0).collect();
    SampleColumns {
        t_ns: keep(columns.t_ns, &kept),
        value_ns: keep(columns.value_ns, &kept),
        seq: keep(columns.seq, &kept),
        missed: keep(columns.missed, &kept),
        flags: keep(columns.flags, &kept),
        more: columns
            .more
            .into_iter()
            .map(|own| OwnColumn { values: keep(own.values, &kept), ..own })
            .collect(),
        meta: columns.meta,
    }
}

fn keep<T: Copy>(values: Vec<T>, kept: &[bool]) -> Vec<T> {
    values.into_iter().zip(kept).filter(|(_, kept)| **kept).map(|(value, _)| value).collect()
}

fn batch(
    schema: &SchemaRef,
    record: &ProbeRecord,
    columns: SampleColumns,
    own: &[String],
) -> Answer<RecordBatch> {
    let rows = columns.t_ns.len();
    let mut more: BTreeMap<String, Vec<i64>> =
        columns.more.into_iter().map(|own| (own.name, own.values)).collect();
    let mut all: Vec<ArrayRef> = vec![
        Arc::new(word(record.probe().name(), rows)?),
        Arc::new(word(&record.phase, rows)?),
        Arc::new(UInt32Array::from(vec![record.cpu; rows])),
        Arc::new(UInt32Array::from(vec![record.thread; rows])),
        Arc::new(Int64Array::from(columns.t_ns)),
        Arc::new(Int64Array::from(columns.value_ns)),
        Arc::new(UInt64Array::from(columns.seq)),
        Arc::new(UInt32Array::from(columns.missed)),
        Arc::new(UInt32Array::from(columns.flags)),
    ];
    all.extend(own.iter().map(|name| match more.remove(name) {
        Some(values) => Arc::new(Int64Array::from(values)) as ArrayRef,
        None => new_null_array(&DataType::Int64, rows),
    }));
    RecordBatch::try_new(schema.clone(), all).map_err(Wrong::sentence)
}

/// The same word in every row.
fn word(word: &str, rows: usize) -> Answer<DictionaryArray<Int32Type>> {
    let keys = Int32Array::from(vec![0; rows]);
    DictionaryArray::try_new(keys, Arc::new(StringArray::from(vec![word]))).map_err(Wrong::sentence)
}
