//! A trace.dat of version 6 → the same trace in version 7, uncompressed or with zstd.
//!
//! The parts of a version 6 are the sections of a version 7, byte for byte; what differs is how
//! they are found, and that CPU tables are in options. Memory is that of the largest section and a
//! chunk of pages, whatever the length of the trace. Source: trace-cmd.dat.v6(5) and
//! trace-cmd.dat.v7(5).

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use crate::buffer::Buffer;
use crate::cursor::Cursor;
use crate::endian::Endian;
use crate::error::Error;
use crate::input::Input;
use crate::meta::read_header_page;
use crate::tracefile::{MAGIC, TraceFile};

const OPTIONS: u16 = 0;
const BUFFER: u16 = 3;
const CPUCOUNT: u16 = 8;
const COMPRESSED: u16 = 1;
/// Pages compressed together, as trace-cmd does by default.
const CHUNK_PAGES: u64 = 10;
/// The longest name of an event system that is looked for.
const MAX_NAME: usize = 4096;

/// How sections and pages of a version 7 are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As they are.
    None,
    /// As zstd frames (RFC 8878).
    Zstd,
}

impl Compression {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Zstd => "zstd",
        }
    }
}

/// Writes the trace of version 6 at `from` into `out`, an empty file whose name is `path` in
/// messages, as version 7.
///
/// # Errors
/// Where `from` is not a whole trace of version 6, or reading or writing fails; `out` may be
/// unfinished then.
pub fn convert_to_v7(from: &Path, out: File, path: &Path, compression: Compression) -> Result<(), Error> {
    let trace = TraceFile::open(from)?;
    if trace.version() != 6 {
        return Err(Error::Unsupported {
            path: from.to_owned(),
            what: "version of trace.dat to convert",
            value: trace.version().to_string(),
            expected: "6".to_owned(),
        });
    }
    let input = Input::open(from)?;
    let parts = Parts::of(&input)?;
    let mut sink = Sink { file: BufWriter::new(out), at: 0, path, endian: parts.endian, compression };
    sink.whole(&input, &parts, &trace)
}

/// Where the parts of a version 6 are.
struct Parts {
    endian: Endian,
    long_size: u8,
    page_size: u32,
    /// Number of the section in version 7, and bytes from where to where.
    sections: Vec<(u16, [u64; 2])>,
    options: Vec<(u16, Vec<u8>)>,
}

/// Reads over one part.
type Pass = fn(&mut Cursor<'_>) -> Result<(), Error>;

impl Parts {
    fn of(input: &Input) -> Result<Self, Error> {
        let mut cursor = Cursor::new(input, Endian::Little, 0, u64::MAX);
        cursor.expect(MAGIC, "magic number of trace.dat")?;
        cursor.string(16, "version")?;
        cursor.endian = if cursor.u8("byte order")? == 0 { Endian::Little } else { Endian::Big };
        let long_size = cursor.u8("size of a long")?;
        let page_size = cursor.u32("page size")?;
        let mut sections = Vec::new();
        let passes: [Pass; 6] =
            [|cursor| read_header_page(cursor).map(|_| ()), formats, systems, text, text, names];
        for (id, pass) in (16..).zip(passes) {
            let from = cursor.position();
            pass(&mut cursor)?;
            sections.push((id, [from, cursor.position()]));
        }
        cursor.u32("number of CPUs")?;
        let mut options = Vec::new();
        if cursor.bytes(10, "start of the options or the data")?.starts_with(b"options") {
            loop {
                let id = cursor.u16("id of an option")?;
                if id == 0 {
                    break;
                }
                let size = cursor.u32("size of an option")?;
                options.push((id, cursor.bytes(u64::from(size), "option")?));
            }
        }
        Ok(Self { endian: cursor.endian, long_size, page_size, sections, options })
    }
}

fn formats(cursor: &mut Cursor<'_>) -> Result<(), Error> {
    for _ in 0..cursor.u32("number of event formats")? {
        names(cursor)?;
    }
    Ok(())
}

fn systems(cursor: &mut Cursor<'_>) -> Result<(), Error> {
    for _ in 0..cursor.u32("number of event systems")? {
        cursor.string(MAX_NAME, "name of an event system")?;
        formats(cursor)?;
    }
    Ok(())
}

/// A part with its size, 32 bits, in front.
fn text(cursor: &mut Cursor<'_>) -> Result<(), Error> {
    let size = u64::from(cursor.u32("size of a text")?);
    cursor.skip(size, "text section")
}

/// A part with its size, 64 bits, in front.
fn names(cursor: &mut Cursor<'_>) -> Result<(), Error> {
    let size = cursor.u64("size of a part")?;
    cursor.skip(size, "part of a trace")
}

/// The file being written, with its length so far.
struct Sink<'a> {
    file: BufWriter<File>,
    at: u64,
    path: &'a Path,
    endian: Endian,
    compression: Compression,
}

impl Sink<'_> {
    fn whole(&mut self, input: &Input, parts: &Parts, trace: &TraceFile) -> Result<(), Error> {
        self.bytes(MAGIC)?;
        self.bytes(b"7\0")?;
        self.bytes(&[u8::from(self.endian == Endian::Big), parts.long_size])?;
        self.bytes(&self.endian.put_u32(parts.page_size))?;
        self.bytes(self.compression.name().as_bytes())?;
        self.bytes(b"\x001.0\0")?;
        let first_options = self.at;
        self.bytes(&[0; 8])?;
        let mut options = Vec::new();
        for (id, [from, to]) in &parts.sections {
            let content = Cursor::new(input, self.endian, *from, *to).bytes(to - from, "part of a trace")?;
            let at = self.section(*id, &content)?;
            self.option(&mut options, *id, &self.endian.put_u64(at))?;
        }
        let kept = parts.options.iter().filter(|(id, _)| !matches!(*id, BUFFER | CPUCOUNT));
        for (id, data) in kept {
            self.option(&mut options, *id, data)?;
        }
        for buffer in trace.buffers() {
            let data = self.buffer(input, buffer)?;
            self.option(&mut options, BUFFER, &data)?;
        }
        // The end of the chain.
        self.option(&mut options, OPTIONS, &self.endian.put_u64(0))?;
        let at = self.section(OPTIONS, &options)?;
        self.patch(first_options, &self.endian.put_u64(at))?;
        self.file.flush().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::Io { path: self.path.to_owned(), action: "write", source }
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|source| self.failed(source))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Puts bytes in place of those at `place`.
    fn patch(&mut self, place: u64, bytes: &[u8]) -> Result<(), Error> {
        let end = self.at;
        let done = (|| {
            self.file.seek(SeekFrom::Start(place))?;
            self.file.write_all(bytes)?;
            self.file.seek(SeekFrom::Start(end))
        })();
        done.map(|_| ()).map_err(|source| self.failed(source))
    }

    fn option(&self, options: &mut Vec<u8>, id: u16, data: &[u8]) -> Result<(), Error> {
        options.extend(self.endian.put_u16(id));
        options.extend(self.length(data)?);
        options.extend(data);
        Ok(())
    }

    /// The length of something as 32 bits.
    fn length(&self, data: &[u8]) -> Result<[u8; 4], Error> {
        let length = u32::try_from(data.len()).map_err(|_| Error::Input {
            what: "length of a section",
            value: data.len().to_string(),
            expected: "less than 4 GiB",
        })?;
        Ok(self.endian.put_u32(length))
    }

    /// A section, compressed where that is wanted; gives its place.
    fn section(&mut self, id: u16, content: &[u8]) -> Result<u64, Error> {
        let at = self.at;
        let packed = self.packed(content)?;
        self.head(id, packed.as_ref().map_or(content.len(), Vec::len) as u64)?;
        self.bytes(packed.as_deref().unwrap_or(content))?;
        Ok(at)
    }

    fn head(&mut self, id: u16, length: u64) -> Result<(), Error> {
        let flags = if self.compression == Compression::None { 0 } else { COMPRESSED };
        self.bytes(&self.endian.put_u16(id))?;
        self.bytes(&self.endian.put_u16(flags))?;
        // No description.
        self.bytes(&self.endian.put_u32(0))?;
        self.bytes(&self.endian.put_u64(length))
    }

    /// Both lengths and the compressed bytes; `None` where nothing is compressed.
    fn packed(&self, content: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if self.compression == Compression::None {
            return Ok(None);
        }
        let packed = ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest);
        Ok(Some([&self.length(&packed)?[..], &self.length(content)?, &packed].concat()))
    }

    /// The pages of a buffer; gives the option that says where they are.
    fn buffer(&mut self, input: &Input, buffer: &Buffer) -> Result<Vec<u8>, Error> {
        let start = self.at;
        self.head(BUFFER, 0)?;
        let mut option = self.endian.put_u64(start).to_vec();
        option.extend(buffer.name.as_bytes());
        option.push(0);
        option.extend(buffer.clock.as_deref().unwrap_or("local").as_bytes());
        option.push(0);
        option.extend(self.endian.put_u32(buffer.page_size));
        // Here CPUs bear their numbers, so that those without pages need no place.
        let cpus: Vec<_> = buffer.cpus.iter().filter(|data| data.size > 0).collect();
        option.extend(self.endian.put_u32(cpus.len() as u32));
        for data in cpus {
            let page = u64::from(buffer.page_size.max(1));
            self.pad_to(self.at.next_multiple_of(page))?;
            let at = self.at;
            self.pages(
                Cursor::new(input, self.endian, data.offset, data.offset.saturating_add(data.size)),
                page,
            )?;
            option.extend(self.endian.put_u32(data.cpu));
            option.extend(self.endian.put_u64(at));
            option.extend(self.endian.put_u64(self.at - at));
        }
        // Behind id, flags and description.
        let length = self.at - start - 16;
        self.patch(start + 8, &self.endian.put_u64(length))?;
        Ok(option)
    }

    fn pages(&mut self, mut from: Cursor<'_>, page: u64) -> Result<(), Error> {
        let chunk = page * CHUNK_PAGES;
        if self.compression != Compression::None {
            let chunks = u32::try_from(from.remaining().div_ceil(chunk)).unwrap_or(u32::MAX);
            self.bytes(&self.endian.put_u32(chunks))?;
        }
        while from.remaining() > 0 {
            let bytes = from.bytes(from.remaining().min(chunk), "pages of a CPU")?;
            let packed = self.packed(&bytes)?;
            self.bytes(packed.as_deref().unwrap_or(&bytes))?;
        }
        Ok(())
    }

    fn pad_to(&mut self, target: u64) -> Result<(), Error> {
        let zeros = vec![0; (target - self.at) as usize];
        self.bytes(&zeros)
    }
}
