//! A run directory → [`Analysis`]: reads the samples, streams the trace once, and puts the sections together.

use crate::Error;
use crate::compare::{EventTrust, WindowData, compare};
use crate::decode::Decoder;
use crate::distribution::distribution;
use crate::events::{self, window_events};
use crate::losses::{self, TraceReading, disagreements, trace_whole};
use crate::overlap::Intervals;
use crate::resample;
use crate::shape::{self, Analysis, CountNs, Distribution};
use crate::spans::{MeasuredCpu, Span, SpanBuilder};
use crate::tally::Tally;
use ftrace::{Item, TraceFile};
use model::events::EventCatalogue;
use model::run::{ProbeRecord, Run, TraceRecord, Window};
use model::sample::ProbeKind;
use model::{samples_file, store};
use std::collections::BTreeSet;
use std::path::Path;

/// Everything that a run directory says.
///
/// A partial run is analysed as far as it goes, and what is missing is said; a complete run with a file missing or damaged is an
/// error.
pub fn analyse(run_dir: &Path) -> Result<Analysis, Error> {
    let run = store::read_run(run_dir)?;
    let catalogue = EventCatalogue::embedded()?;
    let mut remarks = Vec::new();
    let mut measured = read_samples(run_dir, &run, &mut remarks)?;
    let traced = read_trace(run_dir, &run, &catalogue, &mut measured, &mut remarks)?;
    let mut section = losses::losses(&run, traced.as_ref().map(|traced| &traced.reading), remarks);
    let mut events = Vec::new();
    let mut overlaps = Vec::new();
    if let Some(traced) = &traced {
        let context = events::Context {
            catalogue: &catalogue,
            recorded: &traced.recorded,
            names: traced.decoder.names(),
            labels: traced.decoder.labels(),
            observable: &traced.observable,
        };
        for one in &mut measured {
            let (Some(window), Some(tally)) = (one.window, &one.tally) else { continue };
            let record = one.record;
            events.push(window_events(&context, record, window, tally, trace_whole(&section, record.cpu)));
            overlaps.extend(tally.intervals.overlaps(&record.phase, record.probe, record.cpu));
            if let Some(stolen) = &mut one.distribution.stolen {
                stolen.unexplained = Some(unexplained(&tally.intervals));
            }
        }
    }
    section.statements.extend(disagreements(&section, &events));
    let none = BTreeSet::new();
    let trust = EventTrust {
        observable: traced.as_ref().map_or(&none, |traced| &traced.observable),
        whole: &|cpu| trace_whole(&section, cpu),
    };
    let windows: Vec<WindowData<'_>> = measured
        .iter()
        .map(|one| WindowData { record: one.record, intervals: one.intervals(), tally: one.tally.as_ref() })
        .collect();
    let comparisons = compare(&run, &windows, &trust, resample::DRAWS);
    Ok(Analysis {
        schema: shape::SCHEMA.to_owned(),
        complete: run.complete,
        losses: section,
        distributions: measured.into_iter().map(|one| one.distribution).collect(),
        events,
        overlaps,
        comparisons,
    })
}

/// One probe record with its samples and, once the trace has been read, its events.
struct Measured<'r> {
    record: &'r ProbeRecord,
    window: Option<&'r Window>,
    distribution: Distribution,
    /// Moves into the tally while there is one.
    intervals: Intervals,
    tally: Option<Tally>,
}

impl Measured<'_> {
    fn intervals(&self) -> &Intervals {
        self.tally.as_ref().map_or(&self.intervals, |tally| &tally.intervals)
    }
}

fn read_samples<'r>(dir: &Path, run: &'r Run, remarks: &mut Vec<String>) -> Result<Vec<Measured<'r>>, Error> {
    let mut measured = Vec::with_capacity(run.probes.len());
    for record in &run.probes {
        let samples = match samples_file::read(&dir.join(&record.file)) {
            Ok((_, samples)) => samples,
            Err(error) if !run.complete => {
                remarks.push(format!("samples are missing: {error}"));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        remarks.extend(accounts(record, samples.len() as u64));
        // A gap's place on the clock is known as well as the counter was fitted to it.
        let slack_ns = if record.probe == ProbeKind::Noise { record.clock_error_ns.unwrap_or(0) } else { 0 };
        measured.push(Measured {
            record,
            window: window_of(run, record),
            distribution: distribution(record, &samples),
            intervals: Intervals::new(&samples, slack_ns),
            tally: None,
        });
    }
    Ok(measured)
}

/// Whether the samples file holds what the probe says it wrote, and every release is accounted for.
fn accounts(record: &ProbeRecord, rows: u64) -> Vec<String> {
    let place = format!("CPU {}, {} window of phase {}", record.cpu, record.probe.name(), record.phase);
    let mut remarks = Vec::new();
    if rows != record.samples {
        remarks
            .push(format!("{place}: the samples file has {rows} rows, the probe wrote {}", record.samples));
    }
    let told = record.samples + record.missed + record.ring_lost;
    if record.probe == ProbeKind::Wakeup && told != record.released {
        remarks.push(format!(
            "{place}: {} releases were asked for, but served, missed and lost ones are {told}: the account does not balance",
            record.released
        ));
    }
    remarks
}

/// The window a probe ran in: phase and probe agree, and times overlap where two windows would do.
fn window_of<'r>(run: &'r Run, record: &ProbeRecord) -> Option<&'r Window> {
    let mut named =
        run.windows.iter().filter(|window| window.phase == record.phase && window.probe == record.probe);
    let shared = |window: &&Window| window.t0_ns < record.t1_ns && record.t0_ns < window.t1_ns;
    named.clone().find(shared).or_else(|| named.next())
}

/// Time in gaps that no recorded event touches.
fn unexplained(intervals: &Intervals) -> CountNs {
    let add = |sum: CountNs, gap: i64| CountNs { count: sum.count + 1, ns: sum.ns + gap.max(0) as u64 };
    intervals.untouched().fold(CountNs::default(), add)
}

/// What the trace gave besides the tallies.
struct Traced {
    reading: TraceReading,
    decoder: Decoder,
    recorded: Vec<String>,
    observable: BTreeSet<model::EventClass>,
}

/// Streams the trace into the tallies. `None` where there is none that can be placed in the windows.
fn read_trace<'r>(
    dir: &Path,
    run: &'r Run,
    catalogue: &EventCatalogue,
    measured: &mut [Measured<'r>],
    remarks: &mut Vec<String>,
) -> Result<Option<Traced>, Error> {
    let Some(trace) = &run.trace else { return Ok(None) };
    if trace.clock != "mono" {
        remarks.push(format!(
            "the trace clock is {}, not mono: its events have no place in the windows",
            trace.clock
        ));
        return Ok(None);
    }
    match stream_trace(&dir.join(&trace.file), run, trace, catalogue, measured) {
        Ok(traced) => Ok(Some(traced)),
        Err(error) if !run.complete => {
            measured.iter_mut().for_each(|one| {
                one.intervals = one.tally.take().map_or_else(Intervals::default, |t| t.intervals);
            });
            remarks.push(format!("the trace cannot be read: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn stream_trace<'r>(
    path: &Path,
    run: &'r Run,
    trace: &TraceRecord,
    catalogue: &EventCatalogue,
    measured: &mut [Measured<'r>],
) -> Result<Traced, Error> {
    let file = TraceFile::open(path)?;
    let mut decoder = Decoder::new(catalogue, file.formats(), file.symbols()?);
    let mut reading = TraceReading::default();
    for one in measured.iter_mut() {
        let intervals = std::mem::take(&mut one.intervals);
        one.tally = Some(Tally::new(one.record, intervals, decoder.names().len()));
    }
    let mut stream = file.stream()?;
    let mut windows = Windows::new(run, measured, &decoder);
    let mut unknown = 0u64;
    while let Some(item) = stream.next()? {
        match item {
            Item::Event(event) => {
                *reading.decoded.entry(event.cpu).or_default() += 1;
                match decoder.decode(&event) {
                    Some(event) => windows.event(&event),
                    None => unknown += 1,
                }
            }
            Item::Lost { cpu, .. } => windows.lost(cpu),
        }
    }
    windows.finish();
    reading.remarks = remarks(&decoder, &stream, unknown);
    let observable = decoder.observable(catalogue, &trace.events);
    Ok(Traced { reading, decoder, recorded: trace.events.clone(), observable })
}

fn remarks(decoder: &Decoder, stream: &ftrace::EventStream, unknown: u64) -> Vec<String> {
    let damage = stream.damage();
    let mut remarks: Vec<String> = damage
        .map(|at| {
            format!("the trace is damaged: CPU {}, byte {} of its data: {}", at.cpu, at.offset, at.what)
        })
        .collect();
    remarks.extend(
        decoder.unreadable().iter().map(|what| format!("{what} on this kernel: its class is not observed")),
    );
    if unknown > 0 {
        remarks.push(format!("{unknown} events of the trace have no format and are in no class"));
    }
    if !decoder.has_symbols() {
        remarks.push(
            "the trace has no kernel symbols (kptr_restrict?): functions are shown as addresses, and the tick is counted as a timer"
                .into(),
        );
    }
    remarks
}

/// The windows of a run while its trace streams by, one after another.
struct Windows<'a, 'r> {
    run: &'r Run,
    order: Vec<usize>,
    /// Place in `order` of the window that is open or comes next.
    at: usize,
    builder: Option<SpanBuilder>,
    /// Place in `measured` by CPU, for the open window.
    places: Vec<Option<usize>>,
    measured: &'a mut [Measured<'r>],
    known: crate::spans::KnownLabels,
}

impl<'a, 'r> Windows<'a, 'r> {
    fn new(run: &'r Run, measured: &'a mut [Measured<'r>], decoder: &Decoder) -> Self {
        let mut order: Vec<usize> = (0..run.windows.len()).collect();
        order.sort_by_key(|&at| run.windows[at].t0_ns);
        Self { run, order, at: 0, builder: None, places: Vec::new(), measured, known: decoder.known() }
    }

    fn event(&mut self, event: &crate::view::KernelEvent) {
        loop {
            let Some(&window) = self.order.get(self.at) else { return };
            let window = &self.run.windows[window];
            if event.ts_ns > window.t1_ns {
                self.close();
                self.at += 1;
                continue;
            }
            if event.ts_ns < window.t0_ns {
                return;
            }
            break;
        }
        if self.builder.is_none() {
            self.open();
        }
        let Self { builder, places, measured, .. } = self;
        if let Some(one) = place(places, event.cpu)
            && let Some(tally) = &mut measured[one].tally
        {
            tally.event(event);
        }
        if let Some(builder) = builder {
            builder.event(event, &mut sink(places, measured));
        }
    }

    fn open(&mut self) {
        let Some(&at) = self.order.get(self.at) else { return };
        let window = &self.run.windows[at];
        let mut cpus = Vec::new();
        self.places.clear();
        for (one, measured) in self.measured.iter().enumerate() {
            if !measured.window.is_some_and(|own| std::ptr::eq(own, window)) {
                continue;
            }
            let cpu = measured.record.cpu;
            cpus.push(MeasuredCpu { cpu, tid: measured.record.tid });
            if self.places.len() <= cpu as usize {
                self.places.resize(cpu as usize + 1, None);
            }
            self.places[cpu as usize] = Some(one);
        }
        self.builder = Some(SpanBuilder::new(window.t0_ns, window.t1_ns, &cpus, self.known));
    }

    fn close(&mut self) {
        if let Some(builder) = self.builder.take() {
            builder.finish(&mut sink(&self.places, self.measured));
        }
    }

    fn lost(&mut self, cpu: u32) {
        if let Some(builder) = &mut self.builder {
            builder.lost(cpu, &mut sink(&self.places, self.measured));
        }
    }

    fn finish(mut self) {
        self.close();
    }
}

fn place(places: &[Option<usize>], cpu: u32) -> Option<usize> {
    places.get(cpu as usize).copied().flatten()
}

/// Gives each span to the sums of its CPU.
fn sink<'s>(places: &'s [Option<usize>], measured: &'s mut [Measured<'_>]) -> impl FnMut(Span) {
    move |span| {
        if let Some(one) = place(places, span.cpu)
            && let Some(tally) = &mut measured[one].tally
        {
            tally.span(&span);
        }
    }
}
