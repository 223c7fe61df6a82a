//! The metadata both versions of trace.dat share: formats, symbols, command names, options.
//!
//! Source: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). In v6 the parts follow each other; in v7
//! each is a section.

use std::collections::HashMap;

use crate::buffer::Buffer;
use crate::cursor::{Cursor, MAX_PIECE, lossy};
use crate::error::Error;
use crate::formats::Formats;
use crate::input::Input;
use crate::stream::TscToNs;

/// More systems, events a system, or CPUs than any kernel has: the file is broken.
const MAX_SYSTEMS: u32 = 1 << 16;
const MAX_EVENTS: u32 = 1 << 16;
/// Events are numbered with 16 bits, so no kernel has more formats than this.
const MAX_FORMATS: u64 = 1 << 16;
/// The longest format file of a kernel is about 10 KiB.
const MAX_FORMAT: u64 = 1 << 20;
/// Formats of one file together: a kernel's all are 3 to 5 MiB.
const MAX_FORMATS_BYTES: u64 = 64 << 20;
/// Command names: four million pids, the most there can be, need about this much.
const MAX_CMDLINES: u64 = 64 << 20;
/// Unreadable formats reported one by one.
const MAX_PROBLEMS: usize = 64;
/// NR_CPUS is 8192 at most on the supported architectures (`CONFIG_MAXSMP`).
pub(crate) const MAX_CPUS: u32 = 8192;
const MAX_NAME: usize = 4096;

/// A part of an input that is read on first use.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) input: Input,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Piece {
    pub(crate) fn text(&self) -> Result<String, Error> {
        let mut cursor = Cursor::new(&self.input, crate::Endian::Little, self.offset, u64::MAX);
        cursor.bytes(self.len, "text section").map(lossy)
    }
}

/// Everything in a trace.dat but the records.
#[derive(Debug)]
pub(crate) struct Meta {
    pub(crate) formats: Formats,
    pub(crate) problems: Vec<Error>,
    formats_read: u64,
    formats_bytes: u64,
    pub(crate) comms: HashMap<i32, String>,
    pub(crate) kallsyms: Option<Piece>,
    pub(crate) printk: Option<Piece>,
    pub(crate) options: Options,
    pub(crate) buffers: Vec<Buffer>,
}

impl Meta {
    pub(crate) fn new(formats: Formats) -> Self {
        Self {
            formats,
            problems: Vec::new(),
            formats_read: 0,
            formats_bytes: 0,
            comms: HashMap::new(),
            kallsyms: None,
            printk: None,
            options: Options::default(),
            buffers: Vec::new(),
        }
    }

    /// One unreadable format (of some module) does not make the rest of a trace unreadable.
    fn add_format(&mut self, system: &str, text: &[u8]) {
        if let Err(problem) = self.formats.add(system, &String::from_utf8_lossy(text))
            && self.problems.len() < MAX_PROBLEMS
        {
            self.problems.push(problem);
        }
    }

    /// Bounds what a broken file can make us keep.
    fn count_format(&mut self, size: u64, cursor: &Cursor) -> Result<(), Error> {
        self.formats_read += 1;
        self.formats_bytes = self.formats_bytes.saturating_add(size);
        if size > MAX_FORMAT || self.formats_bytes > MAX_FORMATS_BYTES {
            let expected = format!("at most {MAX_FORMAT}, and {MAX_FORMATS_BYTES} bytes in all");
            return Err(cursor.malformed(8, "size of an event format", &size, &expected));
        }
        if self.formats_read > MAX_FORMATS {
            let expected = format!("at most {MAX_FORMATS}");
            return Err(cursor.malformed(8, "number of event formats", &self.formats_read, &expected));
        }
        Ok(())
    }

    pub(crate) fn read_ftrace_formats(&mut self, cursor: &mut Cursor) -> Result<(), Error> {
        self.read_formats_of("ftrace", cursor)
    }

    fn read_formats_of(&mut self, system: &str, cursor: &mut Cursor) -> Result<(), Error> {
        let events = cursor.u32("number of event formats")?;
        if events > MAX_EVENTS {
            return Err(cursor.malformed(
                4,
                "number of event formats",
                &events,
                &format!("at most {MAX_EVENTS}"),
            ));
        }
        for _ in 0..events {
            let size = cursor.u64("size of an event format")?;
            self.count_format(size, cursor)?;
            let text = cursor.bytes(size, "event format")?;
            self.add_format(system, &text);
        }
        Ok(())
    }

    pub(crate) fn read_event_formats(&mut self, cursor: &mut Cursor) -> Result<(), Error> {
        let systems = cursor.u32("number of event systems")?;
        if systems > MAX_SYSTEMS {
            return Err(cursor.malformed(
                4,
                "number of event systems",
                &systems,
                &format!("at most {MAX_SYSTEMS}"),
            ));
        }
        for _ in 0..systems {
            let system = cursor.string(MAX_NAME, "name of an event system")?;
            self.read_formats_of(&system, cursor)?;
        }
        Ok(())
    }

    pub(crate) fn read_cmdlines(&mut self, cursor: &mut Cursor) -> Result<(), Error> {
        let size = cursor.u64("size of the command names")?;
        if size > MAX_CMDLINES {
            return Err(cursor.malformed(
                8,
                "size of the command names",
                &size,
                &format!("at most {MAX_CMDLINES}"),
            ));
        }
        let text = lossy(cursor.bytes(size, "command names")?);
        self.comms.extend(text.lines().filter_map(|line| {
            let (pid, comm) = line.trim_start().split_once(' ')?;
            Some((pid.parse().ok()?, comm.to_owned()))
        }));
        Ok(())
    }
}

/// `header_page` and `header_event`; the second says nothing that could differ.
pub(crate) fn read_header_page(cursor: &mut Cursor) -> Result<String, Error> {
    cursor.expect(b"header_page\0", "start of the page header")?;
    let size = cursor.u64("size of the page header")?;
    let page = lossy(cursor.bytes(size, "page header")?);
    cursor.expect(b"header_event\0", "start of the event header")?;
    let size = cursor.u64("size of the event header")?;
    cursor.skip(size, "event header")?;
    Ok(page)
}

/// A part with a 32-bit size in front, to be read later.
pub(crate) fn read_piece(cursor: &mut Cursor, input: &Input, what: &'static str) -> Result<Piece, Error> {
    let len = u64::from(cursor.u32(what)?);
    if len > MAX_PIECE {
        return Err(cursor.malformed(
            4,
            what,
            &format!("{len} bytes long"),
            &format!("at most {MAX_PIECE} bytes"),
        ));
    }
    let piece = Piece { input: input.clone(), offset: cursor.position(), len };
    cursor.skip(len, what)?;
    Ok(piece)
}

/// What the options of a file say.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) clock: Option<String>,
    /// The option is there, even if empty: in v6 the clock's text then follows the CPU table.
    pub(crate) has_clock: bool,
    pub(crate) uname: Option<String>,
    pub(crate) writer: Option<String>,
    pub(crate) cpu_stats: Vec<String>,
    pub(crate) offset_ns: i64,
    pub(crate) tsc: Option<TscToNs>,
    pub(crate) cpu_count: Option<u32>,
    /// v6: name and place of further buffers.
    pub(crate) buffers_v6: Vec<(String, u64)>,
    /// v7: the bytes of each BUFFER option.
    pub(crate) buffers_v7: Vec<Vec<u8>>,
    /// v7: id and place of the metadata sections.
    pub(crate) sections: Vec<(u16, u64)>,
    /// v7: a text ("latency") buffer is in the file.
    pub(crate) has_text: bool,
}

impl Options {
    /// Takes in one option; unknown ones are for newer readers, and skipped.
    pub(crate) fn add(
        &mut self,
        id: u16,
        data: Vec<u8>,
        cursor: &Cursor,
        sections: bool,
    ) -> Result<(), Error> {
        let number = |at: usize, size: usize, what: &'static str| {
            cursor.endian.uint_at(&data, at, size).ok_or_else(|| {
                cursor.malformed(
                    data.len() as u64,
                    what,
                    &format!("{} bytes long", data.len()),
                    &"more bytes",
                )
            })
        };
        match id {
            1 => self.offset_ns = self.offset_ns.saturating_add(number_text(&data).saturating_mul(1000)),
            2 => self.cpu_stats.push(text(&data)),
            3 if sections => self.buffers_v7.push(data),
            3 => {
                let offset = number(0, 8, "BUFFER option")?;
                self.buffers_v6.push((text(data.get(8..).unwrap_or(&[])), offset));
            }
            4 => {
                self.has_clock = true;
                self.clock = clock_name(&text(&data)).or(self.clock.take());
            }
            5 => self.uname = Some(text(&data)),
            7 => self.offset_ns = self.offset_ns.saturating_add(number_text(&data)),
            8 => self.cpu_count = Some(number(0, 4, "CPUCOUNT option")? as u32),
            9 => self.writer = Some(text(&data)),
            14 => {
                self.tsc = Some(TscToNs {
                    mult: number(0, 4, "TSC2NSEC option")? as u32,
                    shift: number(4, 4, "TSC2NSEC option")? as u32,
                });
            }
            16..=21 if sections => self.sections.push((id, number(0, 8, "section option")?)),
            22 => self.has_text = true,
            _ => {}
        }
        Ok(())
    }
}

/// The text up to the first NUL.
fn text(data: &[u8]) -> String {
    let end = data.iter().position(|b| *b == 0).unwrap_or(data.len());
    String::from_utf8_lossy(&data[..end]).into_owned()
}

/// The chosen clock in the text of `trace_clock`, where it is in brackets: "local [mono] boot"; or
/// a bare name.
pub(crate) fn clock_name(text: &str) -> Option<String> {
    let name = match text.split_once('[') {
        Some((_, rest)) => rest.split(']').next().unwrap_or(rest),
        None => text,
    };
    let name = name.split_whitespace().next()?;
    Some(name.to_owned())
}

/// A decimal or 0x number as C's `strtoll` reads it; 0 where there is none.
fn number_text(data: &[u8]) -> i64 {
    let text = text(data);
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match digits.strip_prefix("0x") {
        // The writer prints the bits of a negative offset.
        Some(hex) => u64::from_str_radix(hex, 16).map(|v| v as i64),
        None => digits.parse::<i64>(),
    };
    let value = value.unwrap_or(0);
    if negative { value.wrapping_neg() } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_in_brackets_or_bare() {
        assert_eq!(clock_name("local global [mono] boot\n").as_deref(), Some("mono"));
        assert_eq!(clock_name("mono\n").as_deref(), Some("mono"));
        assert_eq!(clock_name("[x86-tsc]").as_deref(), Some("x86-tsc"));
        assert_eq!(clock_name(" \n"), None);
    }

    #[test]
    fn numbers_as_strtoll() {
        assert_eq!(number_text(b"0x10\0junk"), 16);
        assert_eq!(number_text(b"-25"), -25);
        assert_eq!(number_text(b"0xffffffffffffffff"), -1);
        assert_eq!(number_text(b"none"), 0);
    }
}
