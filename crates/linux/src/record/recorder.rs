//! The recorder of a run: set up before the first window, switched around each window, turned into `trace.dat` at the end.

use super::instance::Instance;
use super::reader::Reader;
use super::{symbols, tracefs};
use crate::error::Error;
use crate::isolate::undo::Transient;
use crate::session::Session;
use crate::sys::clock;
use ftrace::{Endian, Formats, TraceInput};
use model::events::{EventCatalogue, EventSpec};
use model::run::{TraceCpu, TraceRecord};
use model::{Cpus, store};
use std::fs;
use std::path::{Path, PathBuf};

/// Buffer per measured CPU. At 200 ms between polls it holds some 500,000 events a second.
const BUFFER_KIB: u64 = 8192;
/// Time for the IPIs and RCU work that enabling causes to be over before the first window.
const SETTLE_NS: i64 = 300_000_000;

/// A private instance that is recording, or ready to.
pub struct Recorder {
    tracefs: PathBuf,
    instance: Instance,
    target: String,
    cpus: Vec<u32>,
    events: Vec<EventSpec>,
    absent: Vec<String>,
    scratch: PathBuf,
    reader: Option<Reader>,
    formats: Formats,
}

impl Recorder {
    /// Makes the instance `name`, enables every event of the catalogue that this kernel has, and waits until that has settled. Raw
    /// pages go to `scratch`, which must exist.
    pub fn prepare(
        session: &mut Session,
        catalogue: &EventCatalogue,
        name: &str,
        cpus: &Cpus,
        scratch: &Path,
    ) -> Result<Self, Error> {
        let tracefs = session.tracefs()?;
        let path = Instance::path_of(&tracefs, name);
        let target = path.display().to_string();
        let instance = session.change(Transient::TraceInstance, &target, || {
            Instance::create(path.clone(), cpus, BUFFER_KIB).inspect_err(|_| {
                let _ = super::instance::remove(&path);
            })
        })?;
        let (events, absent) = enable(&instance, catalogue)?;
        let formats = formats(&tracefs, &events)?;
        let cpus: Vec<u32> = cpus.iter().collect();
        let reader = Reader::start(&instance.path, &cpus, formats.page().page_size(), scratch)?;
        clock::sleep_until(clock::now_ns() + SETTLE_NS);
        let scratch = scratch.to_owned();
        Ok(Self { tracefs, instance, target, cpus, events, absent, scratch, reader: Some(reader), formats })
    }

    /// Starts or stops recording: the only change inside a window.
    pub fn record(&self, on: bool) -> Result<(), Error> {
        self.instance.record(on)
    }

    /// Whether the reader has died, so that going on is pointless.
    pub fn failed(&self) -> bool {
        self.reader.as_ref().is_some_and(Reader::failed)
    }

    /// Drains the buffers, takes the kernel's accounts, writes `trace.dat` into the run and removes the instance.
    pub fn finish(mut self, session: &mut Session, run: &Path) -> Result<TraceRecord, Error> {
        self.record(false)?;
        let lanes = match self.reader.take() {
            Some(reader) => reader.finish()?,
            None => Vec::new(),
        };
        let accounts = lanes.iter().map(|lane| {
            self.instance.account(lane.cpu).map(|account| TraceCpu { pages: lane.pages, ..account })
        });
        let accounts: Vec<TraceCpu> = accounts.collect::<Result<_, _>>()?;
        let files: Vec<(u32, PathBuf)> = lanes.into_iter().map(|lane| (lane.cpu, lane.path)).collect();
        let input = self.input(&files)?;
        ftrace::write_v6(&run.join(store::TRACE), &input)?;
        for (_, path) in &files {
            fs::remove_file(path).map_err(|source| Error::os("remove", path.display(), source))?;
        }
        fs::remove_dir(&self.scratch)
            .map_err(|source| Error::os("remove", self.scratch.display(), source))?;
        self.instance.disable_events()?;
        session.take_back(Transient::TraceInstance, &self.target)?;
        Ok(TraceRecord {
            file: store::TRACE.to_owned(),
            clock: "mono".to_owned(),
            instance: self.target,
            buffer_kib: BUFFER_KIB,
            events: self.events.iter().map(|event| event.name.clone()).collect(),
            absent: self.absent,
            cpus: accounts,
        })
    }

    fn input(&self, files: &[(u32, PathBuf)]) -> Result<TraceInput, Error> {
        let read = |name: &str| tracefs::read_bytes(&self.tracefs.join(name));
        let kallsyms = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let stats = self.cpus.iter().map(|cpu| {
            let path = self.instance.path.join(format!("per_cpu/cpu{cpu}/stats"));
            tracefs::read(&path).map(|text| (*cpu, text))
        });
        Ok(TraceInput {
            endian: native_endian(),
            header_page: read("events/header_page")?,
            header_event: read("events/header_event")?,
            formats: self
                .events
                .iter()
                .map(|event| Ok((system(event).to_owned(), read(&format_file(event))?)))
                .collect::<Result<_, Error>>()?,
            ftrace_formats: ftrace_formats(&self.tracefs),
            kallsyms: symbols::referenced(&kallsyms, &self.formats, files)?.into_bytes(),
            printk: read("printk_formats").unwrap_or_default(),
            cmdlines: read("saved_cmdlines").unwrap_or_default(),
            clock: "mono".to_owned(),
            uname: uname(),
            page_size: 0,
            cpus: files.to_vec(),
            stats: stats.collect::<Result<_, _>>()?,
            buffers: Vec::new(),
        })
    }
}

/// Enables what the kernel has; tells both what it has and what it lacks.
fn enable(instance: &Instance, catalogue: &EventCatalogue) -> Result<(Vec<EventSpec>, Vec<String>), Error> {
    let (mut events, mut absent) = (Vec::new(), Vec::new());
    let here = catalogue
        .events
        .iter()
        .filter(|event| event.arch.as_deref().is_none_or(|arch| arch == std::env::consts::ARCH));
    for event in here {
        if instance.enable(&event.name, event.filter.as_deref())? {
            events.push(event.clone());
        } else {
            absent.push(event.name.clone());
        }
    }
    Ok((events, absent))
}

fn formats(tracefs: &Path, events: &[EventSpec]) -> Result<Formats, Error> {
    let header = tracefs::read(&tracefs.join("events/header_page"))?;
    let mut formats = Formats::new(native_endian(), &header, size_of::<usize>())?;
    for event in events {
        formats.add(system(event), &tracefs::read(&tracefs.join(format_file(event)))?)?;
    }
    Ok(formats)
}

fn system(event: &EventSpec) -> &str {
    event.name.split(':').next().unwrap_or_default()
}

fn format_file(event: &EventSpec) -> String {
    format!("events/{}/format", event.name.replace(':', "/"))
}

/// The kernel's own record types, which viewers want to see in a file although none of them is recorded.
fn ftrace_formats(tracefs: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(tracefs.join("events/ftrace")) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path().join("format"))).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

fn native_endian() -> Endian {
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
