//! One pass over the trace: each event to the window it lies in, each span to the sums of its CPU.

use crate::Error;
use crate::analyse::Measured;
use crate::attribute::paths::Paths;
use crate::decode::Decoder;
use crate::hash::FastMap;
use crate::labels::CpuSets;
use crate::lengths::{Lengths, TracedTerm};
use crate::losses::TraceReading;
use crate::overlap::Intervals;
use crate::spans::{KnownLabels, MeasuredCpu, Span, SpanBuilder};
use crate::tally::Tally;
use crate::view::KernelEvent;
use ftrace::{Item, TraceFile};
use model::EventClass;
use model::cpus::MAX_CPU;
use model::events::EventCatalogue;
use model::run::{Run, TRACED, TraceRecord};
use model::sample::ProbeKind;
use std::collections::BTreeSet;
use std::path::Path;

/// What the trace gave besides the tallies.
pub(crate) struct Traced {
    pub(crate) reading: TraceReading,
    pub(crate) decoder: Decoder,
    pub(crate) recorded: Vec<String>,
    pub(crate) observable: BTreeSet<EventClass>,
    /// Names of tasks when the trace was saved.
    pub(crate) comms: FastMap<i32, String>,
    /// The terms of the phase that was measured for its trace, and its CPU.
    pub(crate) lengths: Option<(u32, Vec<TracedTerm>)>,
}

/// Streams the trace into the tallies. `None` where there is none that can be placed in the windows.
pub(crate) fn read_trace<'r>(
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
    let mut decoder = Decoder::new(catalogue, file.formats(), file.symbols()?, &file.constants()?);
    let mut reading = TraceReading::default();
    for one in measured.iter_mut() {
        let intervals = std::mem::take(&mut one.intervals);
        one.tally = Some(Tally::new(one.record, intervals, decoder.names().len()));
    }
    let sender = trace.sender.as_ref().map(|sender| sender.buffer.as_str());
    let mut stream = file.stream_buffers(&[Some(""), sender].into_iter().flatten().collect::<Vec<_>>())?;
    let mut windows = Windows::new(run, measured, &decoder);
    let mut unknown = 0u64;
    while let Some(item) = stream.next()? {
        match item {
            Item::Event(event) => {
                *reading.decoded.entry(event.cpu).or_default() += 1;
                match decoder.decode(&event) {
                    Some(event) => windows.event(&event, decoder.sets()),
                    None => unknown += 1,
                }
            }
            Item::Lost { cpu, .. } => windows.lost(cpu),
        }
    }
    let lengths = windows.finish();
    reading.remarks = remarks(&decoder, &stream, unknown);
    let observable = decoder.observable(catalogue, &trace.events);
    let comms = file.comms().map(|(pid, comm)| (pid, comm.to_owned())).collect();
    Ok(Traced { reading, decoder, recorded: trace.events.clone(), observable, comms, lengths })
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
    paths: Paths,
    /// Place in `measured` by CPU, for the open window.
    places: Vec<Option<usize>>,
    measured: &'a mut [Measured<'r>],
    known: KnownLabels,
    lengths: Option<(u32, Lengths)>,
}

impl<'a, 'r> Windows<'a, 'r> {
    fn new(run: &'r Run, measured: &'a mut [Measured<'r>], decoder: &Decoder) -> Self {
        let mut order: Vec<usize> = (0..run.windows.len()).collect();
        order.sort_by_key(|&at| run.windows[at].t0_ns);
        let traced = run.probes.iter().find(|record| record.phase == TRACED);
        let tids =
            run.probes.iter().filter(|record| record.phase == TRACED).map(|record| record.tid).collect();
        let lengths = traced.map(|record| (record.cpu, Lengths::new(record.cpu, tids, decoder)));
        Self {
            run,
            order,
            at: 0,
            builder: None,
            paths: Paths::default(),
            places: Vec::new(),
            measured,
            known: decoder.known(),
            lengths,
        }
    }

    fn event(&mut self, event: &KernelEvent, sets: &CpuSets) {
        let traced = loop {
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
            break window.phase == TRACED;
        };
        if self.builder.is_none() {
            self.open();
        }
        if let Some((_, lengths)) = self.lengths.as_mut().filter(|_| traced) {
            lengths.event(event, sets);
        }
        let Self { builder, paths, places, measured, .. } = self;
        if let Some(one) = place(places, event.cpu)
            && let Some(tally) = &mut measured[one].tally
        {
            tally.event(event);
        }
        paths.event(event);
        if let Some(builder) = builder {
            builder.event(event, sets, &mut sink(places, measured, paths));
        }
    }

    fn open(&mut self) {
        let Some(&at) = self.order.get(self.at) else { return };
        let window = &self.run.windows[at];
        let mut cpus = Vec::new();
        self.places.clear();
        for (one, measured) in self.measured.iter().enumerate() {
            let inside = measured.window.is_some_and(|own| std::ptr::eq(own, window));
            if !inside || measured.record.cpu > MAX_CPU {
                continue;
            }
            let cpu = measured.record.cpu;
            cpus.push(MeasuredCpu { cpu, tid: measured.record.tid });
            if self.places.len() <= cpu as usize {
                self.places.resize(cpu as usize + 1, None);
            }
            self.places[cpu as usize] = Some(one);
            if let (ProbeKind::Wakeup, Some(tally)) = (measured.record.probe, &measured.tally) {
                self.paths.add(one, cpu, measured.record.tid, tally.intervals.samples());
            }
        }
        self.builder = Some(SpanBuilder::new(window.t0_ns, window.t1_ns, &cpus, self.known));
    }

    fn close(&mut self) {
        if let Some(builder) = self.builder.take() {
            for (cpu, breaks) in builder.breaks() {
                if let Some(tally) =
                    place(&self.places, cpu).and_then(|one| self.measured[one].tally.as_mut())
                {
                    tally.breaks += breaks;
                }
            }
            builder.finish(&mut sink(&self.places, self.measured, &mut self.paths));
        }
        for (one, sums) in std::mem::take(&mut self.paths).finish() {
            self.measured[one].paths = Some(sums);
        }
    }

    fn lost(&mut self, cpu: u32) {
        self.paths.lost(cpu);
        if let Some((_, lengths)) = self.lengths.as_mut().filter(|(own, _)| *own == cpu) {
            lengths.lost();
        }
        if let Some(builder) = &mut self.builder {
            builder.lost(cpu, &mut sink(&self.places, self.measured, &mut self.paths));
        }
    }

    fn finish(mut self) -> Option<(u32, Vec<TracedTerm>)> {
        self.close();
        self.lengths.map(|(cpu, lengths)| (cpu, lengths.terms()))
    }
}

fn place(places: &[Option<usize>], cpu: u32) -> Option<usize> {
    places.get(cpu as usize).copied().flatten()
}

/// Gives each span to the sums of its CPU.
fn sink<'s>(
    places: &'s [Option<usize>],
    measured: &'s mut [Measured<'_>],
    paths: &'s mut Paths,
) -> impl FnMut(Span) {
    move |span| {
        paths.span(&span);
        if let Some(one) = place(places, span.cpu)
            && let Some(tally) = &mut measured[one].tally
        {
            tally.span(&span);
        }
    }
}
