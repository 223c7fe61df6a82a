//! Bytes ↔ kernel events: ring-buffer pages, event formats, trace.dat versions 6 and 7, reader and
//! writer; and counts of the text form.
//!
//! The way in is [`TraceFile::open`], then [`TraceFile::stream`]; [`write_v6`] is the way out. No
//! analysis here, and no policy about which files to read: callers bring paths or bytes. Malformed
//! input gives an [`Error`], or is reported as [`Item::Lost`]; it never panics, and memory stays
//! bounded by the number of CPUs.
//!
//! ```no_run
//! # fn main() -> Result<(), ftrace::Error> {
//! let file = ftrace::TraceFile::open("trace.dat".as_ref())?;
//! let formats = file.formats();
//! let mut stream = file.stream()?;
//! while let Some(item) = stream.next()? {
//!     let ftrace::Item::Event(event) = item else { continue };
//!     let Some(format) = formats.by_id(event.id) else { continue };
//!     let irq = format.field("irq").and_then(|f| f.int(event.data, formats.endian()));
//!     assert!(format.name != "irq_handler_entry" || irq.is_some());
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod ahead;
mod buffer;
mod compress;
mod constants;
mod convert;
mod counts;
mod cursor;
mod endian;
mod error;
mod fill;
mod format;
mod formats;
mod input;
mod lane;
mod meta;
mod page;
mod pages;
mod region;
mod stack;
mod stats;
mod stream;
mod symbols;
mod text;
mod tracefile;
mod v6;
mod v7;
mod write;

pub use crate::buffer::{Buffer, CpuData};
pub use ahead::Reader;
pub use constants::Constants;
pub use convert::{Compression, convert_to_v7};
pub use counts::{Counts, LostCounts, event_name};
pub use endian::Endian;
pub use error::Error;
pub use format::{EventFormat, Field, FieldKind};
pub use formats::{CommonFields, Formats};
pub use lane::Damage;
pub use page::{Missed, PageFault, PageHeader, PageLayout, RawRecord, Walker};
pub use stack::{StackLayout, UserStackLayout};
pub use stats::CpuStats;
pub use stream::{Event, EventStream, Item, Next, TscToNs};
pub use symbols::Symbols;
pub use text::is_text_trace;
pub use tracefile::{TraceFile, stream_pages, stream_raw};
pub use write::{BufferInput, TraceInput, write_v6};
