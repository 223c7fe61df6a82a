//! trace.dat version 7: sections found through chained options, each possibly compressed. Source:
//! trace-cmd.dat.v7(5).

use crate::buffer::{Buffer, CpuData};
use crate::compress::Codec;
use crate::cursor::{Cursor, MAX_PIECE};
use crate::error::Error;
use crate::formats::Formats;
use crate::input::Input;
use crate::meta::{MAX_CPUS, Meta, Options, read_header_page, read_piece};

const SECTION_OPTIONS: u16 = 0;
const SECTION_COMPRESSED: u16 = 1;
/// A file has one options section, plus one for each time something was appended.
const MAX_OPTION_SECTIONS: usize = 1024;

/// Reads everything behind the page size of the first header.
pub(crate) fn read(input: &Input, cursor: &mut Cursor, long_size: usize) -> Result<Meta, Error> {
    let name = cursor.string(64, "name of the compression")?;
    cursor.string(64, "version of the compression")?;
    let codec = Codec::from_name(&name).ok_or_else(|| Error::Unsupported {
        path: cursor.path().to_owned(),
        what: "compression",
        value: format!("`{}`", name.escape_default()),
        expected: "none, zlib or zstd".to_owned(),
    })?;
    let file = File { input, codec, endian: cursor.endian };
    let first = cursor.u64("offset of the options")?;
    let options = file.read_options(first)?;

    let find = |id: u16| options.sections.iter().find(|s| s.0 == id).map(|s| s.1);
    let header_page = match find(16) {
        Some(offset) => read_header_page(&mut file.section(offset, 16)?.cursor())?,
        None => String::new(),
    };
    let mut meta = Meta::new(Formats::new(cursor.endian, &header_page, long_size)?);
    if let Some(offset) = find(17) {
        meta.read_ftrace_formats(&mut file.section(offset, 17)?.cursor())?;
    }
    if let Some(offset) = find(18) {
        meta.read_event_formats(&mut file.section(offset, 18)?.cursor())?;
    }
    if let Some(offset) = find(19) {
        let section = file.section(offset, 19)?;
        meta.kallsyms = Some(read_piece(&mut section.cursor(), &section.input, "kallsyms")?);
    }
    if let Some(offset) = find(20) {
        let section = file.section(offset, 20)?;
        meta.printk = Some(read_piece(&mut section.cursor(), &section.input, "printk formats")?);
    }
    if let Some(offset) = find(21) {
        meta.read_cmdlines(&mut file.section(offset, 21)?.cursor())?;
    }
    if options.has_text && options.buffers_v7.is_empty() {
        return Err(Error::Unsupported {
            path: input.path().to_owned(),
            what: "kind of data",
            value: "latency (the text of a trace)".to_owned(),
            expected: "flyrecord (raw pages)".to_owned(),
        });
    }
    for bytes in &options.buffers_v7 {
        let buffer = file.read_buffer(bytes)?;
        meta.buffers.push(buffer);
    }
    // The top buffer first, wherever it stands: its name is empty.
    meta.buffers.sort_by_key(|b| !b.name.is_empty());
    meta.options = options;
    Ok(meta)
}

struct File<'a> {
    input: &'a Input,
    codec: Codec,
    endian: crate::Endian,
}

/// A section's content, decompressed if need be.
struct Section {
    input: Input,
    endian: crate::Endian,
    start: u64,
    end: u64,
}

impl Section {
    fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.input, self.endian, self.start, self.end)
    }
}

impl File<'_> {
    /// Reads the header of a section: its flags, and the cursor behind it with the size.
    fn section_header(&self, offset: u64, id: u16) -> Result<(u16, u64, Cursor<'_>), Error> {
        let mut cursor = Cursor::new(self.input, self.endian, offset, u64::MAX);
        let found = cursor.u16("id of a section")?;
        if found != id {
            return Err(cursor.malformed(2, "id of a section", &found, &id));
        }
        let flags = cursor.u16("flags of a section")?;
        cursor.u32("description of a section")?;
        let size = cursor.u64("size of a section")?;
        Ok((flags, size, cursor))
    }

    fn section(&self, offset: u64, id: u16) -> Result<Section, Error> {
        let (flags, size, mut cursor) = self.section_header(offset, id)?;
        if flags & SECTION_COMPRESSED == 0 {
            let start = cursor.position();
            return Ok(Section {
                input: self.input.clone(),
                endian: self.endian,
                start,
                end: start.saturating_add(size),
            });
        }
        let packed_size = u64::from(cursor.u32("compressed size of a section")?);
        let full_size = u64::from(cursor.u32("size of a compressed section")?);
        if full_size > MAX_PIECE {
            return Err(cursor.malformed(
                4,
                "size of a compressed section",
                &full_size,
                &format!("<= {MAX_PIECE}"),
            ));
        }
        let packed = cursor.bytes(packed_size, "compressed section")?;
        let full = self.codec.decompress(&packed, full_size as usize).map_err(|e| {
            cursor.malformed(packed_size, "compressed section", &e, &format!("{full_size} bytes"))
        })?;
        let name = format!("{} (section {id} at byte {offset})", self.input.path().display());
        Ok(Section {
            input: Input::memory(name.as_ref(), full),
            endian: self.endian,
            start: 0,
            end: full_size,
        })
    }

    fn read_options(&self, first: u64) -> Result<Options, Error> {
        let mut options = Options::default();
        let mut offset = first;
        let mut total = 0;
        for _ in 0..MAX_OPTION_SECTIONS {
            let section = self.section(offset, SECTION_OPTIONS)?;
            // A chain may lead in a circle.
            total += section.cursor().remaining();
            if total > MAX_PIECE {
                break;
            }
            offset = read_option_section(&mut options, &mut section.cursor())?;
            if offset == 0 {
                return Ok(options);
            }
        }
        Err(Error::Malformed {
            path: self.input.path().to_owned(),
            offset: first,
            what: "chain of options",
            value: "longer than any real one".to_owned(),
            expected: format!("an end within {MAX_OPTION_SECTIONS} sections and {MAX_PIECE} bytes"),
        })
    }

    fn read_buffer(&self, bytes: &[u8]) -> Result<Buffer, Error> {
        let name = format!("{} (BUFFER option)", self.input.path().display());
        let option = Input::memory(name.as_ref(), bytes.to_vec());
        let mut cursor = Cursor::new(&option, self.endian, 0, u64::MAX);
        let offset = cursor.u64("offset of the buffer")?;
        let name = cursor.string(4096, "name of the buffer")?;
        let clock = cursor.string(4096, "clock of the buffer")?;
        let page_size = cursor.u32("page size of the buffer")?;
        let count = cursor.u32("number of CPUs")?;
        if count > MAX_CPUS {
            return Err(cursor.malformed(4, "number of CPUs", &count, &format!("at most {MAX_CPUS}")));
        }
        let mut cpus: Vec<CpuData> = Vec::new();
        for _ in 0..count {
            let cpu = cursor.u32("number of a CPU")?;
            let offset = cursor.u64("offset of a CPU's data")?;
            let size = cursor.u64("size of a CPU's data")?;
            if cpu >= MAX_CPUS || cpus.iter().any(|c| c.cpu == cpu) {
                return Err(cursor.malformed(
                    20,
                    "number of a CPU",
                    &cpu,
                    &format!("one below {MAX_CPUS}, only once"),
                ));
            }
            cpus.push(CpuData { cpu, offset, size });
        }
        cpus.sort_by_key(|c| c.cpu);
        let (flags, _, _) = self.section_header(offset, 3)?;
        let compressed = flags & SECTION_COMPRESSED != 0;
        let clock = crate::meta::clock_name(&clock);
        Ok(Buffer { name, clock, page_size, cpus, codec: self.codec, compressed })
    }
}

/// Reads one section of options; returns the offset of the next one, or 0.
fn read_option_section(options: &mut Options, cursor: &mut Cursor) -> Result<u64, Error> {
    loop {
        let id = cursor.u16("id of an option")?;
        let size = cursor.u32("size of an option")?;
        if id == 0 {
            return if size >= 8 { cursor.u64("offset of the next options") } else { Ok(0) };
        }
        let data = cursor.bytes(u64::from(size), "option")?;
        options.add(id, data, cursor, true)?;
    }
}
