//! An interference event with its sources, in words: for export, and for comparison with known
//! causes.

use super::cause::Confidence;
use super::table::source_text;
use crate::attribute::section::SourceText;
use crate::decode::Decoder;
use crate::spans::Span;
use ftrace::TraceFile;
use model::EventClass;
use model::groups::TaskGroup;
use serde::Serialize;
use std::collections::BTreeMap;

/// One event on a measured CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attributed {
    /// Where.
    pub cpu: u32,
    /// Its class.
    pub class: EventClass,
    /// What ran.
    pub label: String,
    /// Start, ns of the trace clock.
    pub t0_ns: i64,
    /// End.
    pub t1_ns: i64,
    /// Its length without what interrupted it, ns.
    pub net_ns: u64,
    /// Whether it is an event; false for the rest of an earlier one.
    pub counts: bool,
    /// Who caused it; several for an IPI that served several.
    pub sources: Vec<(SourceText, Confidence)>,
}

impl Attributed {
    /// Sets the control groups of the tasks that caused it, by task number.
    pub fn find_groups(&mut self, groups: &BTreeMap<i32, &TaskGroup>) {
        self.sources.iter_mut().for_each(|(source, _)| source.find_group(groups));
    }
}

/// A span with texts for numbers.
pub(super) fn describe(file: &TraceFile, decoder: &Decoder, span: &Span) -> Attributed {
    let comm = |pid: i32| decoder.comm(pid).or_else(|| file.comm(pid)).map(str::to_owned);
    let text = |cause: super::Cause| (source_text(&cause.source, decoder.labels(), &comm), cause.confidence);
    Attributed {
        cpu: span.cpu,
        class: span.class,
        label: decoder.labels().text(span.label).to_owned(),
        t0_ns: span.t0_ns,
        t1_ns: span.t1_ns,
        net_ns: span.net_ns,
        counts: span.counts,
        sources: span.causes.iter().map(text).collect(),
    }
}
