//! The interference events of a trace one by one, each with its sources: for export, and for comparing with known causes.

use super::cause::Confidence;
use super::table::source_text;
use crate::Error;
use crate::decode::Decoder;
use crate::shape::SourceText;
use crate::spans::{MeasuredCpu, Span, SpanBuilder};
use ftrace::{Item, TraceFile};
use model::EventClass;
use model::events::EventCatalogue;
use serde::Serialize;

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
    /// Whether it is an event; false where it only goes on.
    pub counts: bool,
    /// Who caused it; several for an IPI that served several.
    pub sources: Vec<(SourceText, Confidence)>,
}

/// What a pass over a trace met beside spans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// Events of the trace, inside and outside the measured time.
    pub events: u64,
    /// Of these, events that no format of the trace describes.
    pub unknown: u64,
    /// Places where events are missing.
    pub holes: u64,
    /// Of these, places that could not be read.
    pub damaged: u64,
}

/// Gives every span of the measured CPUs between two times, nearly in order of their ends, with the decoder that names its labels.
/// `buffers`: names of the file's buffers, "" for the top one. One pass, in memory that grows with CPUs and distinct names only.
pub fn spans(
    file: &TraceFile,
    catalogue: &EventCatalogue,
    buffers: &[&str],
    measured: &[MeasuredCpu],
    [t0_ns, t1_ns]: [i64; 2],
    mut sink: impl FnMut(&Span, &Decoder),
) -> Result<Passed, Error> {
    let mut decoder = Decoder::new(catalogue, file.formats(), file.symbols()?, &file.constants()?);
    let mut builder = SpanBuilder::new(t0_ns, t1_ns, measured, decoder.known());
    let mut stream = file.stream_buffers(buffers)?;
    let mut passed = Passed::default();
    while let Some(item) = stream.next()? {
        match item {
            Item::Event(event) => {
                passed.events += 1;
                let Some(event) = decoder.decode(&event) else {
                    passed.unknown += 1;
                    continue;
                };
                if (t0_ns..=t1_ns).contains(&event.ts_ns) {
                    builder.event(&event, decoder.sets(), &mut |span| sink(&span, &decoder));
                }
            }
            Item::Lost { cpu, .. } => {
                passed.holes += 1;
                builder.lost(cpu, &mut |span| sink(&span, &decoder));
            }
        }
    }
    builder.finish(&mut |span| sink(&span, &decoder));
    Ok(Passed { damaged: stream.damaged(), ..passed })
}

/// As [`spans`], each span with everything in words.
pub fn attributed(
    file: &TraceFile,
    buffers: &[&str],
    measured: &[MeasuredCpu],
    window_ns: [i64; 2],
    mut sink: impl FnMut(Attributed),
) -> Result<(), Error> {
    let catalogue = EventCatalogue::embedded()?;
    spans(file, &catalogue, buffers, measured, window_ns, |span, decoder| sink(told(file, decoder, span)))?;
    Ok(())
}

/// A span with everything in words.
pub(super) fn told(file: &TraceFile, decoder: &Decoder, span: &Span) -> Attributed {
    let comm = |pid: i32| file.comm(pid).map(str::to_owned);
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
