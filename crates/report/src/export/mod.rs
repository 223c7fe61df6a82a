//! Values of a run (`csv`, `markdown`, `latex`, `openmetrics`, `figures_parquet`), and its events
//! in formats that other tools open: each event of a measured CPU with its source, and the samples.
//!
//! Everything streams: an exporter holds a bounded number of events, whatever the length of the
//! run. Spans come in the order of their ends; [`order`] sorts them by start, and [`lanes`] keeps
//! those of a track nested.

mod chrome;
mod csv;
mod families;
mod figures;
mod figures_parquet;
mod folded;
mod lanes;
mod latex;
mod markdown;
mod monitor;
mod openmetrics;
mod order;
mod parquet;
mod perfetto;
mod protobuf;
mod table_parquet;
#[cfg(test)]
mod testing;
mod tracks;

pub use chrome::Chrome;
pub use csv::csv;
pub use figures::{Figure, figures};
pub use figures_parquet::figures_parquet;
pub use folded::Folded;
pub use latex::latex;
pub use markdown::markdown;
pub use monitor::{Format, monitor};
pub use openmetrics::openmetrics;
pub use order::InOrder;
pub use parquet::{Rows, other_sources};
pub use perfetto::Perfetto;
pub use table_parquet::{Column, Values, table_parquet};

use crate::Error;
use attribution::attribute::Confidence;
use attribution::attribute::events::Attributed;
use model::sample::{ProbeKind, Sample};

/// What an exported file says of itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Origin {
    /// What it was made from.
    pub source: String,
    /// The kernel, where the trace says so.
    pub kernel: Option<String>,
    /// Clock of every time, as the kernel calls it: `mono` is CLOCK_MONOTONIC.
    pub clock: String,
    /// Version of this program.
    pub tool_version: String,
}

/// The window that a sample was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken<'a> {
    /// The probe.
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// The phase.
    pub phase: &'a str,
}

/// A file being written.
pub trait Exporter {
    /// Adds an event; starts ascend, but for a span longer than what [`InOrder`] holds.
    fn event(&mut self, event: &Attributed) -> Result<(), Error>;
    /// Adds a sample; those of one window follow one another in time.
    fn sample(&mut self, taken: Taken<'_>, sample: &Sample) -> Result<(), Error>;
    /// Ends the file.
    fn finish(self: Box<Self>) -> Result<(), Error>;
}

/// All sources of an event in one line: `bash[812] on CPU 0 by do_sync_core (exact)`.
fn sources(event: &Attributed) -> String {
    let one = |(source, confidence): &(attribution::attribute::section::SourceText, Confidence)| {
        let site = source.place().map(|site| format!(" by {site}")).unwrap_or_default();
        format!("{} on CPU {}{site} ({})", source.name(), source.cpu, confidence.word())
    };
    event.sources.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// What an event is called on a track: what ran, or its class where that has no name.
fn name(event: &Attributed) -> &str {
    if event.label.is_empty() { event.class.name() } else { &event.label }
}
