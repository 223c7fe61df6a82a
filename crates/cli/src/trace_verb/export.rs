//! `stillcore trace export`: every event of the measured CPUs with its source, and the samples of
//! the run, for other tools.
//!
//! A trace is read once, whatever the number of files. A file appears under its name when it is
//! whole, or not at all.

use super::destination::Destination;
use super::list::List;
use crate::trace_verb::options::{CompressionName, TraceExportArgs};
use anyhow::Context;
use attribution::attribute::windows::{MeasuredWindow, Passed, Recorded, attributed_in, extent, recorded};
use attribution::spans::MeasuredCpu;
use ftrace::{Compression, TraceFile};
use model::groups::by_tid;
use model::{Cpus, Run, samples_file, store};
use report::export::{Chrome, Exporter, Folded, InOrder, Origin, Perfetto, Rows, Taken};
use report::format;
use serde_json::json;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// No thread: in a trace without probes, nothing is the probe's own.
const NOBODY: i32 = -1;
/// The buffer of a trace of ours that holds what other CPUs do to the measured ones.
pub(super) const SENDER: &str = "sender";

/// What is exported.
struct Subject {
    trace: PathBuf,
    /// The run that the trace belongs to.
    run: Option<(PathBuf, Run)>,
    clock: String,
    buffers: Vec<String>,
    windows: Vec<MeasuredWindow>,
}

/// An exporter, and the file it writes.
type Open = (PathBuf, Box<dyn Exporter>);

/// Exports a run or a trace.
pub(super) fn run(args: &TraceExportArgs) -> anyhow::Result<u8> {
    let (subject, file) = if args.source.is_dir() {
        let subject = of_run(&args.source, args.cpus.as_ref())?;
        let file = TraceFile::open(&subject.trace)?;
        (subject, file)
    } else {
        let file = TraceFile::open(&args.source)?;
        (plain(&file, args.cpus.as_ref())?, file)
    };
    let origin = Origin {
        source: args.source.display().to_string(),
        kernel: file.uname().map(str::to_owned),
        clock: subject.clock.clone(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut outputs = outputs(args)?;
    let mut exporters: Vec<Open> = Vec::new();
    for (format, output) in &mut outputs {
        let out = output.create()?;
        match exporter(format, out, &origin).with_context(|| output.path().display().to_string())? {
            Begun::Exporter(exporter) => exporters.push((output.path().to_owned(), exporter)),
            Begun::Copy(out) => dat(args, &file, out, output.path())?,
        }
    }
    let wanted = !exporters.is_empty() || args.events.is_some();
    let summary = if wanted { Some(export(&file, &subject, args, &mut exporters)?) } else { None };
    for (path, exporter) in exporters {
        exporter.finish().with_context(|| path.display().to_string())?;
    }
    let mut files = Vec::new();
    for (format, output) in outputs {
        files.push((format, output.path().to_owned(), output.keep()?));
    }
    print_summary(args, &subject, summary.as_ref(), &files);
    Ok(0)
}

/// The files that the user asked for, each by the name of its format.
fn outputs(args: &TraceExportArgs) -> anyhow::Result<Vec<(&'static str, Destination)>> {
    let named = [
        ("perfetto", &args.perfetto),
        ("chrome", &args.chrome),
        ("folded", &args.folded),
        ("dat", &args.dat),
        ("parquet", &args.parquet),
    ];
    let mut outputs: Vec<(&str, Destination)> = Vec::new();
    for (format, path) in named {
        let Some(path) = path else { continue };
        if let Some((other, _)) = outputs.iter().find(|(_, known)| known.path() == path) {
            let what = format!("it is asked for as --{other} and as --{format}");
            return Err(model::Error::invalid(path.display(), what, "a file for each format").into());
        }
        outputs.push((format, Destination::new(path, &args.source)?));
    }
    Ok(outputs)
}

/// How a file is filled.
enum Begun {
    /// Event by event.
    Exporter(Box<dyn Exporter>),
    /// With the trace as it is.
    Copy(File),
}

fn exporter(format: &str, file: File, origin: &Origin) -> Result<Begun, report::Error> {
    let out = BufWriter::new(file);
    Ok(Begun::Exporter(match format {
        "perfetto" => Box::new(Perfetto::new(out, origin)?),
        "chrome" => Box::new(Chrome::new(out, origin)?),
        "folded" => Box::new(Folded::new(out)),
        "parquet" => Box::new(Rows::new(out, origin)?),
        _ => return Ok(Begun::Copy(out.into_inner().map_err(std::io::IntoInnerError::into_error)?)),
    }))
}

/// The trace in the version that the user asked for.
fn dat(args: &TraceExportArgs, file: &TraceFile, out: File, path: &Path) -> anyhow::Result<()> {
    let (found, wanted) = (file.version(), args.version.unwrap_or(file.version()));
    let zstd = args.compression == Some(CompressionName::Zstd);
    match (found, wanted) {
        (6, 7) => {
            let how = if zstd { Compression::Zstd } else { Compression::None };
            Ok(ftrace::convert_to_v7(file.path(), out, path, how)?)
        }
        _ if found != wanted || args.compression.is_some() => {
            let what =
                format!("version {wanted} of a trace.dat of version {found}, or another compression of it");
            Err(model::Error::invalid("--version", what, "7, from a trace.dat of version 6").into())
        }
        _ => Ok(copy(file.path(), out, path)?),
    }
}

fn copy(trace: &Path, mut out: File, path: &Path) -> Result<(), model::Error> {
    let mut trace = File::open(trace).map_err(|error| model::Error::io("read", trace, error))?;
    std::io::copy(&mut trace, &mut out).map_err(|error| model::Error::io("write", path, error))?;
    Ok(())
}

/// What has been exported.
struct ExportSummary {
    passed: Passed,
    samples: u64,
    notes: Vec<String>,
    list: List,
}

fn export(
    file: &TraceFile,
    subject: &Subject,
    args: &TraceExportArgs,
    exporters: &mut [Open],
) -> anyhow::Result<ExportSummary> {
    let mut list = List::new(args.events.unwrap_or(0), args.around);
    let passed = events(file, subject, exporters, &mut list)?;
    let mut summary = ExportSummary { passed, samples: 0, notes: Vec::new(), list };
    if passed.holes > 0 {
        summary
            .notes
            .push(format!("events were lost in {} places: what ran there is in no file", passed.holes));
    }
    if passed.unknown > 0 {
        summary
            .notes
            .push(format!("{} events of the trace have no format and are in no file", passed.unknown));
    }
    samples(subject, args, exporters, &mut summary)?;
    Ok(summary)
}

/// A run: its windows, with the threads that measured.
fn of_run(dir: &Path, cpus: Option<&Cpus>) -> anyhow::Result<Subject> {
    let run = model::run::stored::read_run(dir)?;
    let mut subject = recorded(dir, &run)?;
    if subject.windows.is_empty() {
        let expected = format!("one with windows, or its trace: {}", dir.join(store::TRACE).display());
        return Err(model::Error::invalid(dir.display(), "a run without measuring windows", expected).into());
    }
    if let Some(cpus) = cpus {
        if let Some(other) = cpus.iter().find(|cpu| !run.measured_cpus.contains(*cpu)) {
            let expected = format!("some of {}, the CPUs that were measured", run.measured_cpus);
            return Err(model::Error::invalid("--cpus", format!("CPU {other}"), expected).into());
        }
        subject.windows.iter_mut().for_each(|window| window.measured.retain(|one| cpus.contains(one.cpu)));
    }
    let Recorded { file, clock, buffers, windows } = subject;
    Ok(Subject { trace: file, clock, buffers, windows, run: Some((dir.to_owned(), run)) })
}

/// A trace by itself: one window from its first event to its last.
fn plain(file: &TraceFile, cpus: Option<&Cpus>) -> anyhow::Result<Subject> {
    let top = file.buffer("");
    let known: Vec<u32> = top.iter().flat_map(|top| &top.cpus).map(|data| data.cpu).collect();
    let wanted: Vec<u32> = match cpus {
        Some(cpus) => cpus.iter().collect(),
        None => known.clone(),
    };
    if let Some(other) = wanted.iter().find(|cpu| !known.contains(cpu)) {
        let expected = format!("some of {}, the CPUs of the trace", known.into_iter().collect::<Cpus>());
        return Err(model::Error::invalid("--cpus", format!("CPU {other}"), expected).into());
    }
    let sender = file.buffer(SENDER).map(|buffer| buffer.name.clone());
    let buffers: Vec<String> = [Some(String::new()), sender].into_iter().flatten().collect();
    let extent = extent(file, &buffers.iter().map(String::as_str).collect::<Vec<_>>())?;
    let measured: Vec<_> = wanted.iter().map(|&cpu| MeasuredCpu { cpu, tid: NOBODY }).collect();
    let window = extent.map(|[t0_ns, t1_ns]| MeasuredWindow { t0_ns, t1_ns, measured, snapshot: false });
    let clock = top.and_then(|top| top.clock.as_deref()).or(file.clock()).unwrap_or("unknown");
    Ok(Subject {
        trace: file.path().to_owned(),
        run: None,
        clock: clock.to_owned(),
        buffers,
        windows: window.into_iter().collect(),
    })
}

fn events(
    file: &TraceFile,
    subject: &Subject,
    exporters: &mut [Open],
    list: &mut List,
) -> anyhow::Result<Passed> {
    let mut order = InOrder::default();
    let buffers: Vec<&str> = subject.buffers.iter().map(String::as_str).collect();
    let mut give = |event| {
        list.add(&event);
        each(exporters, |exporter| exporter.event(&event))
    };
    let trace = subject.run.as_ref().and_then(|(_, run)| run.trace.as_ref());
    let groups = by_tid(trace.map_or(&[], |trace| &trace.groups));
    let passed = attributed_in(file, &buffers, &subject.windows, |mut event| {
        event.find_groups(&groups);
        order.push(event).map_or(Ok(()), &mut give)
    })?;
    while let Some(event) = order.pop() {
        give(event)?;
    }
    Ok(passed)
}

/// The samples of the run, one window after another.
fn samples(
    subject: &Subject,
    args: &TraceExportArgs,
    exporters: &mut [Open],
    summary: &mut ExportSummary,
) -> anyhow::Result<()> {
    let Some((dir, run)) = &subject.run else { return Ok(()) };
    let wanted = |cpu| args.cpus.as_ref().is_none_or(|cpus| cpus.contains(cpu));
    for probe in run.probes.iter().filter(|probe| wanted(probe.cpu)) {
        let samples = match samples_file::read(&dir.join(&probe.file)) {
            Ok((_, samples)) => samples,
            Err(error) if !run.complete => {
                summary.notes.push(format!("samples are missing: {error}"));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let taken = Taken { probe: probe.probe(), cpu: probe.cpu, phase: &probe.phase };
        for sample in &samples {
            each(exporters, |exporter| exporter.sample(taken, sample))?;
        }
        summary.samples += samples.len() as u64;
    }
    Ok(())
}

fn each(
    exporters: &mut [Open],
    mut add: impl FnMut(&mut dyn Exporter) -> Result<(), report::Error>,
) -> anyhow::Result<()> {
    for (path, exporter) in exporters {
        add(exporter.as_mut()).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn print_summary(
    args: &TraceExportArgs,
    subject: &Subject,
    summary: Option<&ExportSummary>,
    files: &[(&str, PathBuf, u64)],
) {
    let cpus: Cpus = subject.windows.iter().flat_map(|window| &window.measured).map(|one| one.cpu).collect();
    if args.json {
        let file = |(format, path, bytes): &(&str, PathBuf, u64)| json!({ "format": format, "path": path.display().to_string(), "bytes": bytes });
        let passed = summary.map(|summary| summary.passed);
        let answer = json!({
            "schema": "stillcore.trace-export/1",
            "cpus": cpus.to_string(),
            "clock": subject.clock,
            "windows": subject.windows.len(),
            "events": passed.map(|passed| passed.events),
            "continued": passed.map(|passed| passed.continued),
            "samples": summary.map(|summary| summary.samples),
            "holes": passed.map(|passed| passed.holes),
            "unknown": passed.map(|passed| passed.unknown),
            "notes": summary.map(|summary| summary.notes.as_slice()).unwrap_or_default(),
            "list": summary.map(|summary| summary.list.rows()).unwrap_or_default(),
            "files": files.iter().map(file).collect::<Vec<_>>(),
        });
        println!("{answer}");
        return;
    }
    if let Some(ExportSummary { passed, samples, notes, list }) = summary {
        println!(
            "{} events on CPUs {cpus} in {} windows ({} more spans only go on), {} samples",
            format::count(passed.events),
            subject.windows.len(),
            format::count(passed.continued),
            format::count(*samples)
        );
        notes.iter().for_each(|note| println!("note: {note}"));
        list.lines().for_each(|line| println!("{line}"));
    }
    for (format, path, bytes) in files {
        println!("{format:>9}  {:>10}  {}", format::kib(bytes.div_ceil(1024)), path.display());
    }
}
