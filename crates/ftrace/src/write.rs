//! Writes a trace.dat of version 6, uncompressed: the oldest format that trace-cmd reads (tested
//! with 3.1).
//!
//! The input is text and page files already taken from tracefs; nothing here knows where they came
//! from. CPU tables have a slot for every number up to the highest CPU, empty ones with size 0,
//! since version 6 numbers them by place; all buffers of a file have the same number of slots.
//! Source: trace-cmd.dat.v6(5); of the parts that page leaves out (the clock behind the CPU table,
//! BUFFER options), trace-cmd's `tracecmd_write_cpu_data`.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::endian::Endian;
use crate::error::Error;
use crate::meta::MAX_CPUS;
use crate::page::{PAGE_SIZES, PageLayout};
use crate::tracefile::MAGIC;

const OPTION_CPUSTAT: u16 = 2;
const OPTION_BUFFER: u16 = 3;
const OPTION_TRACECLOCK: u16 = 4;
const OPTION_UNAME: u16 = 5;
const OPTION_VERSION: u16 = 9;

/// Everything that goes into a trace.dat. All texts are verbatim copies of the kernel's files.
#[derive(Clone, Debug, Default)]
pub struct TraceInput {
    /// Byte order of the traced machine.
    pub endian: Endian,
    /// `events/header_page`.
    pub header_page: Vec<u8>,
    /// `events/header_event`.
    pub header_event: Vec<u8>,
    /// System and text of each `events/<system>/<name>/format`, those of `ftrace` left out.
    pub formats: Vec<(String, Vec<u8>)>,
    /// Text of each `events/ftrace/<name>/format`.
    pub ftrace_formats: Vec<Vec<u8>>,
    /// `/proc/kallsyms`; may be empty.
    pub kallsyms: Vec<u8>,
    /// `printk_formats`; may be empty.
    pub printk: Vec<u8>,
    /// `saved_cmdlines`: "pid comm" a line.
    pub cmdlines: Vec<u8>,
    /// Name of the trace clock, as "mono".
    pub clock: String,
    /// The traced system as uname(1) gives it; left out if empty.
    pub uname: String,
    /// Bytes of a sub-buffer; 0 takes it from `header_page`.
    pub page_size: u32,
    /// CPU and raw pages of the top buffer. Files must hold whole pages.
    pub cpus: Vec<(u32, PathBuf)>,
    /// CPU and text of `per_cpu/cpuN/stats` of the top buffer; may be empty.
    pub stats: Vec<(u32, String)>,
    /// Further buffers.
    pub buffers: Vec<BufferInput>,
}

/// A ring buffer beside the top one.
#[derive(Clone, Debug, Default)]
pub struct BufferInput {
    /// Name of the instance; not empty.
    pub name: String,
    /// CPU and raw pages, as in [`TraceInput::cpus`].
    pub cpus: Vec<(u32, PathBuf)>,
    /// CPU and text of `per_cpu/cpuN/stats`; may be empty.
    pub stats: Vec<(u32, String)>,
}

/// Writes `input` to a new file at `out` (an old one is replaced).
///
/// On an error the file may be left behind, unfinished.
pub fn write_v6(out: &Path, input: &TraceInput) -> Result<(), Error> {
    let checked = Checked::new(input)?;
    let failed = |action| move |source| Error::Io { path: out.to_owned(), action, source };
    let file = File::options().write(true).create(true).truncate(true).open(out).map_err(failed("create"))?;
    let mut sink = Sink { file: BufWriter::new(file), at: 0, path: out, endian: input.endian };
    sink.head(input, &checked)?;
    let buffer_options = sink.options(input)?;
    sink.data(&checked.top, &checked, &input.clock)?;
    for (place, cpus) in buffer_options.into_iter().zip(&checked.others) {
        let start = sink.at;
        sink.patch(place, start)?;
        sink.data(cpus, &checked, &input.clock)?;
    }
    sink.file.flush().map_err(failed("write"))
}

/// The input with its contradictions ruled out.
struct Checked<'a> {
    long_size: u8,
    page_size: u64,
    slots: u32,
    top: Vec<Option<Pages<'a>>>,
    others: Vec<Vec<Option<Pages<'a>>>>,
}

/// A file of raw pages and its length.
struct Pages<'a> {
    path: &'a Path,
    size: u64,
}

impl<'a> Checked<'a> {
    fn new(input: &'a TraceInput) -> Result<Self, Error> {
        let layout = PageLayout::parse(&String::from_utf8_lossy(&input.header_page), 8)?;
        let page_size = match input.page_size {
            0 => layout.page_size() as u64,
            given => u64::from(given),
        };
        if !PAGE_SIZES.contains(&(page_size as usize)) || !page_size.is_power_of_two() {
            return Err(bad("page_size", &page_size, "a power of two from 64 bytes to 8 MiB"));
        }
        let all = input.cpus.iter().chain(input.buffers.iter().flat_map(|b| &b.cpus));
        let slots = all.map(|(cpu, _)| cpu.saturating_add(1)).max().unwrap_or(1);
        if slots > MAX_CPUS {
            return Err(bad("number of a CPU", &(slots - 1), "below 8192"));
        }
        for name in std::iter::once(&input.clock).chain(input.formats.iter().map(|f| &f.0)) {
            if name.is_empty() || name.contains(['\0', '[', ']', '\n']) {
                return Err(bad("name of a clock or system", &format!("{name:?}"), "a plain word"));
            }
        }
        if let Some(name) = input.buffers.iter().map(|b| &b.name).find(|n| n.is_empty() || n.contains('\0')) {
            return Err(bad("name of a buffer", &format!("{name:?}"), "a plain word"));
        }
        let top = slotted(&input.cpus, slots, page_size)?;
        let others =
            input.buffers.iter().map(|b| slotted(&b.cpus, slots, page_size)).collect::<Result<_, _>>()?;
        Ok(Self { long_size: layout.commit_size as u8, page_size, slots, top, others })
    }
}

fn bad(what: &'static str, value: &dyn Display, expected: &'static str) -> Error {
    Error::Input { what, value: value.to_string(), expected }
}

/// The files in the places of their CPUs.
fn slotted(cpus: &[(u32, PathBuf)], slots: u32, page_size: u64) -> Result<Vec<Option<Pages<'_>>>, Error> {
    let mut places: Vec<Option<Pages>> = (0..slots).map(|_| None).collect();
    for (cpu, path) in cpus {
        let stat = std::fs::metadata(path);
        let size = stat.map_err(|source| Error::Io { path: path.clone(), action: "read", source })?.len();
        if !size.is_multiple_of(page_size) {
            return Err(bad("size of a file of raw pages", &size, "a multiple of the page size"));
        }
        match places.get_mut(*cpu as usize) {
            Some(place @ None) => *place = Some(Pages { path, size }),
            _ => return Err(bad("number of a CPU", &cpu, "each CPU once")),
        }
    }
    Ok(places)
}

/// The file being written, with its length so far.
struct Sink<'a> {
    file: BufWriter<File>,
    at: u64,
    path: &'a Path,
    endian: Endian,
}

impl Sink<'_> {
    fn failed(&self, source: std::io::Error) -> Error {
        Error::Io { path: self.path.to_owned(), action: "write", source }
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|e| self.failed(e))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn u16(&mut self, value: u16) -> Result<(), Error> {
        self.bytes(&self.endian.put_u16(value))
    }

    fn u32(&mut self, value: u32) -> Result<(), Error> {
        self.bytes(&self.endian.put_u32(value))
    }

    fn u64(&mut self, value: u64) -> Result<(), Error> {
        self.bytes(&self.endian.put_u64(value))
    }

    /// A text with its size, 64 bits, in front.
    fn sized(&mut self, text: &[u8]) -> Result<(), Error> {
        self.u64(text.len() as u64)?;
        self.bytes(text)
    }

    /// A text with its size, 32 bits, in front.
    fn sized_32(&mut self, text: &[u8], what: &'static str) -> Result<(), Error> {
        let size = u32::try_from(text.len()).map_err(|_| bad(what, &text.len(), "less than 4 GiB"))?;
        self.u32(size)?;
        self.bytes(text)
    }

    fn head(&mut self, input: &TraceInput, checked: &Checked) -> Result<(), Error> {
        self.bytes(MAGIC)?;
        self.bytes(b"6\0")?;
        self.bytes(&[u8::from(input.endian == Endian::Big), checked.long_size])?;
        self.u32(checked.page_size as u32)?;
        self.bytes(b"header_page\0")?;
        self.sized(&input.header_page)?;
        self.bytes(b"header_event\0")?;
        self.sized(&input.header_event)?;
        self.u32(input.ftrace_formats.len() as u32)?;
        for text in &input.ftrace_formats {
            self.sized(text)?;
        }
        let systems = by_system(&input.formats);
        self.u32(systems.len() as u32)?;
        for (system, texts) in systems {
            self.bytes(system.as_bytes())?;
            self.bytes(&[0])?;
            self.u32(texts.len() as u32)?;
            for text in texts {
                self.sized(text)?;
            }
        }
        self.sized_32(&input.kallsyms, "size of kallsyms")?;
        self.sized_32(&input.printk, "size of printk_formats")?;
        self.sized(&input.cmdlines)?;
        self.u32(checked.slots)
    }

    fn option(&mut self, id: u16, data: &[u8]) -> Result<(), Error> {
        self.u16(id)?;
        self.sized_32(data, "size of an option")
    }

    fn text_option(&mut self, id: u16, text: &str) -> Result<(), Error> {
        self.option(id, &[text.as_bytes(), &[0]].concat())
    }

    /// Writes the options; returns where each buffer's offset must be put.
    fn options(&mut self, input: &TraceInput) -> Result<Vec<u64>, Error> {
        self.bytes(b"options  \0")?;
        for (cpu, stats) in &input.stats {
            self.text_option(OPTION_CPUSTAT, &format!("CPU: {cpu}\n{stats}"))?;
        }
        // The option's presence says that the clock follows the CPU table; old readers look there,
        // new ones here.
        self.text_option(OPTION_TRACECLOCK, &format!("[{}]", input.clock))?;
        if !input.uname.is_empty() {
            self.text_option(OPTION_UNAME, &input.uname)?;
        }
        self.text_option(OPTION_VERSION, concat!("stillcore ", env!("CARGO_PKG_VERSION")))?;
        let mut places = Vec::new();
        for buffer in &input.buffers {
            places.push(self.at + 6);
            let mut data = vec![0; 8];
            data.extend_from_slice(buffer.name.as_bytes());
            data.push(0);
            self.option(OPTION_BUFFER, &data)?;
            if !buffer.stats.is_empty() {
                self.text_option(OPTION_CPUSTAT, &format!("\nBuffer: {}\n", buffer.name))?;
            }
            for (cpu, stats) in &buffer.stats {
                self.text_option(OPTION_CPUSTAT, &format!("CPU: {cpu}\n{stats}"))?;
            }
        }
        self.u16(0)?;
        Ok(places)
    }

    /// Puts `value` at `place` in what is already written.
    fn patch(&mut self, place: u64, value: u64) -> Result<(), Error> {
        let bytes = self.endian.put_u64(value);
        let end = self.at;
        let done = (|| {
            self.file.seek(SeekFrom::Start(place))?;
            self.file.write_all(&bytes)?;
            self.file.seek(SeekFrom::Start(end))
        })();
        done.map(|_| ()).map_err(|e| self.failed(e))
    }

    /// The CPU table, the clock, and the pages of one buffer, each CPU's at a multiple of the page
    /// size.
    fn data(&mut self, cpus: &[Option<Pages>], checked: &Checked, clock: &str) -> Result<(), Error> {
        let align = |at: u64| at.next_multiple_of(checked.page_size);
        let clock = format!("[{clock}]");
        self.bytes(b"flyrecord\0")?;
        let mut at = align(self.at + 16 * cpus.len() as u64 + 8 + clock.len() as u64);
        for pages in cpus {
            let size = pages.as_ref().map_or(0, |p| p.size);
            self.u64(at)?;
            self.u64(size)?;
            at = align(at + size);
        }
        self.sized(clock.as_bytes())?;
        for pages in cpus.iter().flatten() {
            self.pad_to(align(self.at))?;
            self.copy(pages)?;
        }
        // A file without pages still ends where the table says they would be.
        self.pad_to(align(self.at))
    }

    fn pad_to(&mut self, target: u64) -> Result<(), Error> {
        let zeros = [0; 4096];
        while self.at < target {
            let n = (target - self.at).min(zeros.len() as u64) as usize;
            self.bytes(&zeros[..n])?;
        }
        Ok(())
    }

    fn copy(&mut self, pages: &Pages) -> Result<(), Error> {
        let reading = |source| Error::Io { path: pages.path.to_owned(), action: "read", source };
        let mut from = File::open(pages.path).map_err(reading)?.take(pages.size);
        let mut buffer = vec![0; 64 << 10];
        let mut copied = 0;
        loop {
            let n = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(reading(e)),
            };
            self.bytes(&buffer[..n])?;
            copied += n as u64;
        }
        if copied == pages.size {
            return Ok(());
        }
        Err(bad("size of a file of raw pages", &copied, "unchanged while it is copied"))
    }
}

/// Formats grouped by system, systems in the order they first appear.
fn by_system(formats: &[(String, Vec<u8>)]) -> Vec<(&str, Vec<&[u8]>)> {
    let mut systems: Vec<(&str, Vec<&[u8]>)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (system, text) in formats {
        let place = *places.entry(system.as_str()).or_insert_with(|| {
            systems.push((system, Vec::new()));
            systems.len() - 1
        });
        if let Some((_, texts)) = systems.get_mut(place) {
            texts.push(text);
        }
    }
    systems
}
