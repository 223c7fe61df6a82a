//! One execution: damaged bytes through everything this crate has for them, with what must hold
//! whatever the bytes.

use ftrace::{
    Constants, CpuStats, Endian, EventFormat, EventStream, Formats, Item, PageLayout, Symbols, TraceFile,
    Walker,
};

/// What became of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Refused with an error.
    Refused,
    /// Read, and marked as incomplete.
    Partial,
    /// Read to the end.
    Whole,
}

/// Far above what the corpus holds, decompressed: a stream with more does not end.
const MOST_ITEMS: u64 = 200 << 20;

/// A container, all its buffers and texts.
pub(crate) fn container(bytes: Vec<u8>) -> Outcome {
    let Ok(file) = TraceFile::from_bytes("damaged", bytes) else { return Outcome::Refused };
    let mut damaged = 0;
    for buffer in file.buffers() {
        match file.stream_buffer(buffer) {
            Ok(mut stream) => damaged += drain(&mut stream, file.formats()),
            Err(_) => return Outcome::Refused,
        }
    }
    let texts = file.symbols().is_err() || file.printk_formats().is_err();
    let _ = (file.stats(""), file.uname(), file.comms().count());
    if texts || damaged > 0 || !file.problems().is_empty() { Outcome::Partial } else { Outcome::Whole }
}

/// Reads every field of every event; returns the number of damaged places, each of which must have
/// been reported as a loss.
fn drain(stream: &mut EventStream, formats: &Formats) -> u64 {
    let (mut items, mut losses) = (0, 0);
    while let Some(item) = stream.next().expect("memory can be read") {
        items += 1;
        assert!(items < MOST_ITEMS, "more items than the bytes can hold");
        match item {
            Item::Event(event) => {
                for field in formats.by_id(event.id).into_iter().flat_map(|format| &format.fields) {
                    let _ =
                        (field.int(event.data, formats.endian()), field.bytes(event.data, formats.endian()));
                }
            }
            Item::Lost { count, .. } => losses += u64::from(count.is_none()),
        }
    }
    assert!(losses >= stream.damaged(), "damage that was not told as a loss");
    stream.damaged()
}

/// Raw pages of a little-endian kernel; read as those of a big-endian one as well, of which nothing
/// but an end is expected.
pub(crate) fn pages(bytes: &[u8]) -> Outcome {
    let mut outcome = Outcome::Whole;
    for page in bytes.chunks(4096) {
        walk(page, Endian::Big);
        match walk(page, Endian::Little) {
            Outcome::Refused => return Outcome::Refused,
            Outcome::Partial => outcome = Outcome::Partial,
            Outcome::Whole => {}
        }
    }
    outcome
}

fn walk(page: &[u8], endian: Endian) -> Outcome {
    let layout = PageLayout::classic(8);
    let Ok(header) = layout.header(page, endian) else { return Outcome::Refused };
    let mut walker = Walker::new(&layout, &header, endian);
    let mut records = 0;
    loop {
        match walker.next_record(page) {
            Ok(Some(record)) => {
                assert!(record.data.end <= page.len() && record.data.start <= record.data.end);
                records += 1;
                assert!(records <= page.len() / 4, "more records than the page can hold");
            }
            Ok(None) => return Outcome::Whole,
            Err(_) => {
                assert_eq!(walker.next_record(page), Ok(None), "a fault is not the end");
                return Outcome::Partial;
            }
        }
    }
}

/// A text that stands in a trace.
pub(crate) fn text(bytes: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(bytes);
    let format = EventFormat::parse("system", &text);
    if let Ok(format) = &format {
        let data = [0xff; 64];
        for field in &format.fields {
            let _ = (field.int(&data, Endian::Little), field.bytes(&data, Endian::Big));
        }
    }
    let page = Formats::new(Endian::Little, &text, 8).is_ok();
    let symbols = Symbols::parse(&text);
    let _ =
        (symbols.resolve(u64::MAX), Constants::parse(&text).iter().count(), CpuStats::parse(&text).lost());
    if format.is_ok() || page || !symbols.is_empty() { Outcome::Whole } else { Outcome::Refused }
}
