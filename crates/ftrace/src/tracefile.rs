//! A trace.dat file, opened: what is in it, and a stream of its events.
//!
//! The file starts with 17 08 44 (hex), "tracing", a version, the byte order, the size of a `long`,
//! and the size of a page. Source: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5).

use crate::buffer::{Buffer, CpuData};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::ahead::Reader;
use crate::cursor::Cursor;
use crate::endian::Endian;
use crate::error::Error;
use crate::formats::Formats;
use crate::input::Input;
use crate::meta::Meta;
use crate::page::PAGE_SIZES;
use crate::region::{Chunks, Region};
use crate::stats::{self, CpuStats};
use crate::stream::EventStream;
use crate::symbols::Symbols;
use crate::{v6, v7};

pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// A trace.dat with its metadata read, and its records still in the file.
#[derive(Debug)]
pub struct TraceFile {
    input: Input,
    version: u32,
    meta: Meta,
    cpus: Vec<u32>,
    symbols: OnceLock<Symbols>,
}

impl TraceFile {
    /// Opens the file at `path` and reads its metadata.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::read(Input::open(path)?)
    }

    /// A file that is in memory; `name` stands for its path in messages.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, Error> {
        Self::read(Input::memory(Path::new(name), bytes))
    }

    fn read(input: Input) -> Result<Self, Error> {
        let mut cursor = Cursor::new(&input, Endian::Little, 0, u64::MAX);
        cursor.expect(MAGIC, "magic number of trace.dat")?;
        let version = cursor.string(16, "version")?;
        let endian = cursor.u8("byte order")?;
        cursor.endian = match endian {
            0 => Endian::Little,
            1 => Endian::Big,
            other => return Err(cursor.malformed(1, "byte order", &other, &"0 (little) or 1 (big)")),
        };
        let long_size = cursor.u8("size of a long")?;
        if !matches!(long_size, 4 | 8) {
            return Err(cursor.malformed(1, "size of a long", &long_size, &"4 or 8"));
        }
        let page_size = cursor.u32("page size")?;
        let (version, meta) = match version.as_str() {
            "6" => (6, v6::read(&input, &mut cursor, usize::from(long_size), page_size)?),
            "7" => (7, v7::read(&input, &mut cursor, usize::from(long_size))?),
            other => {
                return Err(Error::Unsupported {
                    path: input.path().to_owned(),
                    what: "version of trace.dat",
                    value: format!("`{}`", other.escape_default()),
                    expected: "6 or 7".to_owned(),
                });
            }
        };
        for buffer in &meta.buffers {
            check_buffer(buffer, &input)?;
        }
        let cpus = meta.buffers.first().map(cpus_with_data).unwrap_or_default();
        Ok(Self { input, version, meta, cpus, symbols: OnceLock::new() })
    }

    /// The path, or the name given to [`TraceFile::from_bytes`].
    pub fn path(&self) -> &Path {
        self.input.path()
    }

    /// Version of the file format: 6 or 7.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The event layouts.
    pub fn formats(&self) -> &Formats {
        &self.meta.formats
    }

    /// Event formats in the file that could not be parsed; their events have numbers only.
    pub fn problems(&self) -> &[Error] {
        &self.meta.problems
    }

    /// The CPUs with data in the top buffer, in rising order.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// The name a task had when the trace was saved; "`<idle>`" for 0.
    pub fn comm(&self, pid: i32) -> Option<&str> {
        match self.meta.comms.get(&pid) {
            Some(comm) => Some(comm),
            None if pid == 0 => Some("<idle>"),
            None => None,
        }
    }

    /// All names of tasks that were saved.
    pub fn comms(&self) -> impl Iterator<Item = (i32, &str)> {
        self.meta.comms.iter().map(|(pid, comm)| (*pid, comm.as_str()))
    }

    /// Clock of the top buffer's timestamps, as "mono".
    pub fn clock(&self) -> Option<&str> {
        let top = self.meta.buffers.first().and_then(|b| b.clock.as_deref());
        top.or(self.meta.options.clock.as_deref())
    }

    /// Whether it says how ticks of the counter become nanoseconds, which
    /// [`Event::ts_ns`](crate::Event) then is in.
    pub fn has_ticks_in_ns(&self) -> bool {
        self.meta.options.tsc.is_some()
    }

    /// The traced system as uname(1) gives it.
    pub fn uname(&self) -> Option<&str> {
        self.meta.options.uname.as_deref()
    }

    /// The program that wrote the file, where it says so.
    pub fn writer(&self) -> Option<&str> {
        self.meta.options.writer.as_deref()
    }

    /// The kernel's own statistics of a buffer ("" for the top one) by CPU, if the file has them.
    pub fn stats(&self, buffer: &str) -> BTreeMap<u32, CpuStats> {
        let all = stats::of_options(&self.meta.options.cpu_stats);
        all.into_iter().filter(|(name, _, _)| name == buffer).map(|(_, cpu, stats)| (cpu, stats)).collect()
    }

    /// What trace-cmd would add to each timestamp (options DATE and OFFSET).
    /// [`Event::ts_ns`](crate::Event) is without.
    pub fn offset_ns(&self) -> i64 {
        self.meta.options.offset_ns
    }

    /// The buffers, the top one first.
    pub fn buffers(&self) -> &[Buffer] {
        &self.meta.buffers
    }

    /// The buffer of an instance; "" for the top one.
    pub fn buffer(&self, name: &str) -> Option<&Buffer> {
        self.meta.buffers.iter().find(|b| b.name == name)
    }

    /// The kernel's symbols, if the file has them (read on first use: some MB).
    pub fn symbols(&self) -> Result<Symbols, Error> {
        if let Some(symbols) = self.symbols.get() {
            return Ok(symbols.clone());
        }
        let text = self.meta.kallsyms.as_ref().map(crate::meta::Piece::text).transpose()?;
        Ok(self.symbols.get_or_init(|| Symbols::of(text.unwrap_or_default())).clone())
    }

    /// The constant texts that event fields may point to; empty if the file has none.
    pub fn constants(&self) -> Result<crate::Constants, Error> {
        Ok(crate::Constants::parse(&self.printk_formats()?))
    }

    /// The text of `printk_formats`, if the file has it.
    pub fn printk_formats(&self) -> Result<String, Error> {
        self.meta.printk.as_ref().map_or_else(|| Ok(String::new()), crate::meta::Piece::text)
    }

    /// A pass over the events of the top buffer.
    pub fn stream(&self) -> Result<EventStream, Error> {
        match self.meta.buffers.first() {
            Some(top) => self.stream_buffer(top),
            None => Ok(EventStream::new(&self.meta.formats, Vec::new(), None, Reader::One)),
        }
    }

    /// A pass over the events of one of [`TraceFile::buffers`].
    pub fn stream_buffer(&self, buffer: &Buffer) -> Result<EventStream, Error> {
        let regions = self.regions(buffer)?;
        Ok(EventStream::new(&self.meta.formats, regions, self.meta.options.tsc, Reader::One))
    }

    /// A pass over the events of several buffers, merged by time; names that the file does not have
    /// are left out. Buffers of different clocks have no common order, and each CPU should be in
    /// one of them only.
    pub fn stream_buffers(&self, names: &[&str]) -> Result<EventStream, Error> {
        self.stream_buffers_for(Reader::One, names)
    }

    /// The same for a reader that uses more CPUs, or little of the trace.
    pub fn stream_buffers_for(&self, reader: Reader, names: &[&str]) -> Result<EventStream, Error> {
        let mut regions = Vec::new();
        for buffer in self.meta.buffers.iter().filter(|buffer| names.contains(&buffer.name.as_str())) {
            regions.extend(self.regions(buffer)?);
        }
        regions.sort_by_key(|(cpu, _)| *cpu);
        Ok(EventStream::new(&self.meta.formats, regions, self.meta.options.tsc, reader))
    }

    /// The same from about `ts_ns` on: each CPU from the page on that holds this time. `None` where
    /// pages cannot be found by their times, because they are compressed or counted in cycles.
    pub fn stream_buffers_from(
        &self,
        reader: Reader,
        names: &[&str],
        ts_ns: u64,
    ) -> Result<Option<EventStream>, Error> {
        let mut regions = self.plain_regions(names)?;
        if regions.is_empty() {
            return Ok(None);
        }
        for (_, region) in &mut regions {
            let page = region.page_at(self.meta.formats.page(), self.meta.formats.endian(), ts_ns)?;
            let skipped = page * region.page_size as u64;
            (region.offset, region.size) = (region.offset + skipped, region.size - skipped);
        }
        Ok(Some(EventStream::new(&self.meta.formats, regions, None, reader)))
    }

    /// Times of the first page of some buffers and of the last; `None` as in
    /// [`TraceFile::stream_buffers_from`].
    pub fn extent(&self, names: &[&str]) -> Result<Option<[u64; 2]>, Error> {
        let (layout, endian) = (self.meta.formats.page(), self.meta.formats.endian());
        let mut extent: Option<[u64; 2]> = None;
        for (_, region) in self.plain_regions(names)? {
            for page in [0, region.pages().saturating_sub(1)] {
                let at = region.page_time(layout, endian, page)?;
                extent = at.map_or(extent, |at| {
                    let [first, last] = extent.unwrap_or([at; 2]);
                    Some([first.min(at), last.max(at)])
                });
            }
        }
        Ok(extent)
    }

    /// The data of some buffers by CPU; none where its pages cannot be found by their times.
    fn plain_regions(&self, names: &[&str]) -> Result<Vec<(u32, Region)>, Error> {
        let mut regions = Vec::new();
        for buffer in self.meta.buffers.iter().filter(|buffer| names.contains(&buffer.name.as_str())) {
            regions.extend(self.regions(buffer)?);
        }
        regions.sort_by_key(|(cpu, _)| *cpu);
        let plain = self.meta.options.tsc.is_none() && regions.iter().all(|(_, one)| one.chunks.is_none());
        Ok(if plain { regions } else { Vec::new() })
    }

    /// The data of a buffer's CPUs.
    fn regions(&self, buffer: &Buffer) -> Result<Vec<(u32, Region)>, Error> {
        check_buffer(buffer, &self.input)?;
        let with_data: Vec<_> = buffer.cpus.iter().filter(|c| c.size > 0).collect();
        let endian = self.meta.formats.endian();
        let chunks = buffer.compressed.then(|| Chunks::new(buffer.codec, endian, with_data.len()));
        Ok(with_data.into_iter().map(|c| (c.cpu, self.region(buffer, c, chunks))).collect())
    }

    fn region(&self, buffer: &Buffer, cpu: &CpuData, chunks: Option<Chunks>) -> Region {
        // trace-cmd does not count the four bytes with the number of chunks into the size.
        let uncounted = if buffer.compressed { 4 } else { 0 };
        let present = self.input.len().saturating_sub(cpu.offset);
        let size =
            if cpu.size <= present { cpu.size.saturating_add(uncounted).min(present) } else { cpu.size };
        Region {
            input: self.input.clone(),
            offset: cpu.offset,
            size,
            page_size: buffer.page_size as usize,
            chunks,
        }
    }
}

fn cpus_with_data(buffer: &Buffer) -> Vec<u32> {
    buffer.cpus.iter().filter(|c| c.size > 0).map(|c| c.cpu).collect()
}

/// Memory is bounded by the windows of the CPUs, so the data of two CPUs must not be the same
/// bytes.
fn check_buffer(buffer: &Buffer, input: &Input) -> Result<(), Error> {
    let bad = |offset, what, value: String, expected: String| {
        Err(Error::Malformed { path: input.path().to_owned(), offset, what, value, expected })
    };
    let with_data: Vec<_> = buffer.cpus.iter().filter(|c| c.size > 0).collect();
    if !with_data.is_empty() && !PAGE_SIZES.contains(&(buffer.page_size as usize)) {
        let expected = format!("{} to {} bytes", PAGE_SIZES.start(), PAGE_SIZES.end());
        return bad(0, "page size", buffer.page_size.to_string(), expected);
    }
    let mut present = 0_u64;
    for cpu in with_data {
        let Some(end) = cpu.offset.checked_add(cpu.size) else {
            return bad(
                cpu.offset,
                "size of a CPU's data",
                cpu.size.to_string(),
                "an end below 2^64".to_owned(),
            );
        };
        present = present.saturating_add(end.min(input.len()).saturating_sub(cpu.offset));
        if present > input.len() {
            let value = format!("{present} bytes up to CPU {}", cpu.cpu);
            return bad(
                cpu.offset,
                "size of the CPUs' data together",
                value,
                format!("at most {}", input.len()),
            );
        }
    }
    Ok(())
}

/// A pass over raw per-CPU dumps: files with what was read from `per_cpu/cpuN/trace_pipe_raw`.
///
/// The size of the pages comes from `formats` (its `header_page`).
pub fn stream_raw(formats: &Formats, cpus: &[(u32, PathBuf)]) -> Result<EventStream, Error> {
    let mut regions = Vec::new();
    for (cpu, path) in cpus {
        let input = Input::open(path)?;
        let size = input.len();
        let page_size = formats.page().page_size();
        regions.push((*cpu, Region { input, offset: 0, size, page_size, chunks: None }));
    }
    regions.sort_by_key(|r| r.0);
    Ok(EventStream::new(formats, regions, None, Reader::One))
}

/// The same of pages in memory, one buffer a CPU: whole pages, one after the other.
pub fn stream_pages(formats: &Formats, cpus: Vec<(u32, Vec<u8>)>) -> EventStream {
    let page_size = formats.page().page_size();
    let region = |(cpu, bytes): (u32, Vec<u8>)| {
        let size = bytes.len() as u64;
        let input = Input::memory("pages in memory".as_ref(), bytes);
        (cpu, Region { input, offset: 0, size, page_size, chunks: None })
    };
    let mut regions: Vec<_> = cpus.into_iter().map(region).collect();
    regions.sort_by_key(|(cpu, _)| *cpu);
    // Nothing is read ahead of what is in memory anyway.
    EventStream::new(formats, regions, None, Reader::Beginning)
}
