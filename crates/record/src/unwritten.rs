//! From raw pages to `trace.dat`: everything that the file needs beside them, as plain data, so
//! that another process than the one that records may write it. It takes the memory of the kernel's
//! whole table of symbols.

use super::symbols::{self, Referenced};
use ftrace::{BufferInput, Endian, Formats, TraceInput};
use model::run::{SenderRecord, TraceRecord};
use model::store;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use sys::{Error, tracefs};

/// Names of the other buffers in the file.
pub(super) const SENDER: &str = "sender";
pub(super) const WATCHED: &str = "watched";

/// A trace that is not written yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unwritten {
    /// Where the kernel's own files are.
    pub(super) tracefs: PathBuf,
    /// What the run will say of it.
    pub(super) record: TraceRecord,
    /// The top buffer, then the others in the order of the record.
    pub(super) buffers: Vec<RawBuffer>,
}

/// Pages of one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RawBuffer {
    /// CPU and raw pages.
    pub(super) files: Vec<(u32, PathBuf)>,
    /// CPU and text of `per_cpu/cpuN/stats`.
    pub(super) stats: Vec<(u32, String)>,
}

/// A trace that is written.
#[derive(Debug)]
pub struct Written {
    /// What the run says of it.
    pub record: TraceRecord,
    /// Processes and addresses in their memory that it names.
    pub(super) users: BTreeSet<(u32, u64)>,
}

impl Unwritten {
    /// Writes `trace.dat` into the run. The instances must still be there.
    pub fn write(self, run: &Path) -> Result<Written, Error> {
        let (input, users) = self.input()?;
        ftrace::write_v6(&run.join(store::TRACE), &input).map_err(Error::of)?;
        Ok(Written { record: self.record, users })
    }

    fn beside(&self) -> impl Iterator<Item = &SenderRecord> {
        self.record.sender.iter().chain(&self.record.watched)
    }

    /// What goes into the file, and the addresses in programs that it has.
    fn input(&self) -> Result<(TraceInput, BTreeSet<(u32, u64)>), Error> {
        let read = |name: &str| tracefs::read_bytes(&self.tracefs.join(name));
        let kallsyms = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let files: Vec<_> = self.buffers.iter().flat_map(|one| &one.files).cloned().collect();
        let of_others = self.beside().zip(self.buffers.iter().skip(1));
        let buffers = of_others.map(|(record, raw)| BufferInput {
            name: record.buffer.clone(),
            cpus: raw.files.clone(),
            stats: raw.stats.clone(),
        });
        let buffers = buffers.collect();
        let names = self.record.events.iter().chain(self.beside().flat_map(|one| &one.events));
        let names: Vec<&str> = each_once(names.map(String::as_str));
        let formats = formats(&self.tracefs, names.iter().copied())?;
        let Referenced { kallsyms, users } =
            symbols::referenced(&kallsyms, &formats, &files).map_err(Error::of)?;
        let top = self.buffers.first();
        let input = TraceInput {
            endian: native_endian(),
            header_page: read("events/header_page")?,
            header_event: read("events/header_event")?,
            formats: names
                .into_iter()
                .filter(|event| system(event) != OF_THE_KERNEL)
                .map(|event| Ok((system(event).to_owned(), read(&format_file(event))?)))
                .collect::<Result<_, Error>>()?,
            ftrace_formats: ftrace_formats(&self.tracefs),
            kallsyms: kallsyms.into_bytes(),
            printk: read("printk_formats").unwrap_or_default(),
            cmdlines: read("saved_cmdlines").unwrap_or_default(),
            clock: self.record.clock.clone(),
            uname: uname(),
            page_size: 0,
            cpus: top.map(|top| top.files.clone()).unwrap_or_default(),
            stats: top.map(|top| top.stats.clone()).unwrap_or_default(),
            buffers,
        };
        Ok((input, users))
    }
}

fn each_once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

/// The formats of these events, `system:name`, each once.
pub(super) fn formats<'a>(tracefs: &Path, events: impl Iterator<Item = &'a str>) -> Result<Formats, Error> {
    let header = tracefs::read(&tracefs.join("events/header_page"))?;
    let mut formats = Formats::new(native_endian(), &header, size_of::<usize>()).map_err(Error::of)?;
    for event in each_once(events) {
        formats.add(system(event), &tracefs::read(&tracefs.join(format_file(event)))?).map_err(Error::of)?;
    }
    Ok(formats)
}

fn system(event: &str) -> &str {
    event.split(':').next().unwrap_or_default()
}

fn format_file(event: &str) -> String {
    format!("events/{}/format", event.replace(':', "/"))
}

/// The system of the kernel's own record types, which are no tracepoints: stacks among them.
const OF_THE_KERNEL: &str = "ftrace";

/// The kernel's own record types. Viewers want to see all of them in a file, whichever are
/// recorded.
fn ftrace_formats(tracefs: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(tracefs.join("events").join(OF_THE_KERNEL)) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path().join("format"))).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

pub(super) fn native_endian() -> Endian {
    if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little }
}

fn uname() -> String {
    let name = rustix::system::uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    [
        part(name.sysname()),
        part(name.nodename()),
        part(name.release()),
        part(name.version()),
        part(name.machine()),
    ]
    .join(" ")
}
