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

/// Gives every span of the measured CPUs between two times, nearly in order of their ends. `buffers`: names of the file's buffers, ""
/// for the top one.
pub fn attributed(
    file: &TraceFile,
    buffers: &[&str],
    measured: &[MeasuredCpu],
    [t0_ns, t1_ns]: [i64; 2],
    mut sink: impl FnMut(Attributed),
) -> Result<(), Error> {
    let catalogue = EventCatalogue::embedded()?;
    let mut decoder = Decoder::new(&catalogue, file.formats(), file.symbols()?, &file.constants()?);
    let mut builder = SpanBuilder::new(t0_ns, t1_ns, measured, decoder.known());
    let mut stream = file.stream_buffers(buffers)?;
    let mut spans = Vec::new();
    while let Some(item) = stream.next()? {
        match item {
            Item::Event(event) => {
                let Some(event) = decoder.decode(&event) else { continue };
                if (t0_ns..=t1_ns).contains(&event.ts_ns) {
                    builder.event(&event, decoder.sets(), &mut |span| spans.push(span));
                }
            }
            Item::Lost { cpu, .. } => builder.lost(cpu, &mut |span| spans.push(span)),
        }
        spans.drain(..).for_each(|span| sink(told(file, &decoder, &span)));
    }
    builder.finish(&mut |span| spans.push(span));
    spans.iter().for_each(|span| sink(told(file, &decoder, span)));
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
