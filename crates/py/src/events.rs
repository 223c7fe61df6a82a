//! The interference events of a run as one table, an event a row with who caused it: the columns of
//! `trace export --parquet`.

use crate::error::{Answer, Wrong};
use crate::table::Table;
use arrow_array::builder::{
    BooleanBuilder, Int32Builder, Int64Builder, StringBuilder, StringDictionaryBuilder, UInt32Builder,
    UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use attribution::attribute::Confidence;
use attribution::attribute::events::Attributed;
use attribution::attribute::windows::{Passed, attributed_in, recorded};
use model::groups::by_tid;
use report::export::{InOrder, other_sources};
use serde_json::json;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Reads the events of a run's measured CPUs, or of one of them; by their starts.
pub(crate) fn events(dir: &Path, cpu: Option<u32>) -> Answer<Table> {
    let run = model::run::stored::read_run(dir)?;
    if let Some(cpu) = cpu.filter(|cpu| !run.measured_cpus.contains(*cpu)) {
        let expected = format!("one of {}, the CPUs that were measured", run.measured_cpus);
        return Err(Wrong::new("cpu", format!("CPU {cpu}"), expected));
    }
    let mut subject = recorded(dir, &run)?;
    for window in &mut subject.windows {
        window.measured.retain(|one| cpu.is_none_or(|cpu| cpu == one.cpu));
    }
    let file = ftrace::TraceFile::open(&subject.file)?;
    let buffers: Vec<&str> = subject.buffers.iter().map(String::as_str).collect();
    let (mut order, mut rows) = (InOrder::default(), Rows::default());
    let groups = by_tid(run.trace.as_ref().map_or(&[], |trace| &trace.groups));
    let passed = attributed_in(&file, &buffers, &subject.windows, |mut event| {
        event.find_groups(&groups);
        order.push(event).iter().for_each(|event| rows.add(event));
        Ok::<_, attribution::Error>(())
    })?;
    while let Some(event) = order.pop() {
        rows.add(&event);
    }
    rows.table(passed, &subject.clock)
}

/// The columns as they grow.
#[derive(Default)]
struct Rows {
    cpu: UInt32Builder,
    class: StringDictionaryBuilder<Int32Type>,
    label: StringDictionaryBuilder<Int32Type>,
    t0_ns: Int64Builder,
    t1_ns: Int64Builder,
    net_ns: UInt64Builder,
    counts: BooleanBuilder,
    source_cpu: UInt32Builder,
    source_who: StringDictionaryBuilder<Int32Type>,
    source_pid: Int32Builder,
    source_site: StringDictionaryBuilder<Int32Type>,
    source_group: StringDictionaryBuilder<Int32Type>,
    confidence: StringDictionaryBuilder<Int32Type>,
    other_sources: StringBuilder,
}

impl Rows {
    fn add(&mut self, event: &Attributed) {
        self.cpu.append_value(event.cpu);
        self.class.append_value(event.class.name());
        self.label.append_value(&event.label);
        self.t0_ns.append_value(event.t0_ns);
        self.t1_ns.append_value(event.t1_ns);
        self.net_ns.append_value(event.net_ns);
        self.counts.append_value(event.counts);
        let (source, how) = event.sources.first().map(|(source, how)| (source, *how)).unzip();
        self.source_cpu.append_option(source.map(|source| source.cpu));
        self.source_who.append_option(source.map(|source| &source.who));
        self.source_pid.append_option(source.and_then(|source| source.pid));
        self.source_site.append_option(source.and_then(|source| source.site.as_ref()));
        self.source_group.append_option(source.and_then(|source| source.group.as_ref()));
        self.confidence.append_option(how.map(Confidence::word));
        self.other_sources.append_option(other_sources(event));
    }

    fn table(mut self, passed: Passed, clock: &str) -> Answer<Table> {
        let words = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let column = |name: &str, kind, absent| Field::new(name, kind, absent);
        let fields = vec![
            column("cpu", DataType::UInt32, false),
            column("class", words(), false),
            column("label", words(), false),
            column("t0_ns", DataType::Int64, false),
            column("t1_ns", DataType::Int64, false),
            column("net_ns", DataType::UInt64, false),
            column("counts", DataType::Boolean, false),
            column("source_cpu", DataType::UInt32, true),
            column("source_who", words(), true),
            column("source_pid", DataType::Int32, true),
            column("source_site", words(), true),
            column("source_group", words(), true),
            column("confidence", words(), true),
            column("other_sources", DataType::Utf8, true),
        ];
        let about = json!({
            "clock": clock,
            "events": passed.events,
            "continued": passed.continued,
            "holes": passed.holes,
            "unknown": passed.unknown,
            "damaged": passed.damaged,
        });
        let metadata = HashMap::from([("stillcore".to_owned(), about.to_string())]);
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.cpu.finish()),
            Arc::new(self.class.finish()),
            Arc::new(self.label.finish()),
            Arc::new(self.t0_ns.finish()),
            Arc::new(self.t1_ns.finish()),
            Arc::new(self.net_ns.finish()),
            Arc::new(self.counts.finish()),
            Arc::new(self.source_cpu.finish()),
            Arc::new(self.source_who.finish()),
            Arc::new(self.source_pid.finish()),
            Arc::new(self.source_site.finish()),
            Arc::new(self.source_group.finish()),
            Arc::new(self.confidence.finish()),
            Arc::new(self.other_sources.finish()),
        ];
        let batch = RecordBatch::try_new(schema.clone(), columns).map_err(Wrong::sentence)?;
        Ok(Table::new(schema, vec![batch]))
    }
}
