//! One pass over the trace: each event to the window it lies in, each span to the sums of its CPU.

use crate::layers::{Layers, Sums};
use crate::lengths::{Lengths, TracedTerm};
use crate::losses::TraceReading;
use crate::measured::Measured;
use crate::overlap::Intervals;
use crate::snapshots::Around;
use crate::tally::Tally;
use attribution::Error;
use attribution::attribute::off::Offs;
use attribution::damage::{damage, remarks};
use attribution::decode::Decoder;
use attribution::holes::Hole;
use attribution::labels::CpuSets;
use attribution::spans::Known;
use attribution::view::{KernelEvent, What};
use ftrace::{Item, TraceFile};
use model::EventClass;
use model::events::EventCatalogue;
use model::run::{Run, TRACED, TraceRecord, Window};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::path::Path;

/// What the trace gave besides the tallies.
pub(crate) struct Traced {
    pub(crate) reading: TraceReading,
    pub(crate) decoder: Decoder,
    pub(crate) recorded: Vec<String>,
    pub(crate) observable: BTreeSet<EventClass>,
    /// The CPUs of which an event says that they sleep, or wake.
    pub(crate) slept: BTreeSet<u32>,
    /// Names of tasks.
    pub(crate) comms: FxHashMap<i32, String>,
    /// The terms of the phase that was measured for its trace, and its CPU.
    pub(crate) lengths: Option<(u32, Vec<TracedTerm>)>,
    /// What ran during the samples of snapshots.
    pub(crate) around: Around,
    /// Stretches with interrupts or preemption off, and calls of probed functions.
    pub(crate) offs: Offs,
}

/// Streams the trace into the tallies. `None` where there is none that can be placed in the
/// windows.
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
    let mut decoder = Decoder::of(&file, catalogue)?.knowing(&run.idle_states, &run.frequency_change_ns);
    let mut reading = TraceReading::default();
    // Events of one CPU cannot be attributed to a thread that may have been on another.
    for one in measured.iter_mut().filter(|one| one.record.cpus.is_none()) {
        let intervals = std::mem::take(&mut one.intervals);
        let recorded = one.window.filter(|_| trace.snapshots.is_some());
        let recorded = recorded.map(|window| trace.stretches([window.t0_ns, window.t1_ns]));
        one.tally = Some(Tally::new(one.record, intervals, decoder.names().len(), recorded.as_deref()));
    }
    let mut around = Around::new(trace, measured);
    let sender = trace.sender.as_ref().map(|sender| sender.buffer.as_str());
    let mut stream = file.stream_buffers(&[Some(""), sender].into_iter().flatten().collect::<Vec<_>>())?;
    let mut windows = Windows::new(run, trace, Sums { measured, around: &mut around }, &decoder);
    let (mut unknown, mut slept, mut said) = (0u64, BTreeSet::new(), KernelEvent::NOTHING);
    let mut decoded: Vec<u64> = Vec::new();
    while let Some(item) = stream.next()? {
        match item {
            Item::Event(event) => {
                count(&mut decoded, event.cpu);
                if !decoder.decode_into(&event, &mut said) {
                    unknown += 1;
                    continue;
                }
                if matches!(said.what, What::Idle(_)) {
                    slept.insert(said.cpu);
                }
                windows.event(&said, decoder.sets());
            }
            // Between snapshots events are missing on purpose; in a stretch of one they are all
            // there.
            Item::Lost { .. } if trace.snapshots.is_some() => {}
            Item::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                windows.lost(Hole::new(cpu, after_ts_ns, before_ts_ns));
            }
        }
    }
    let (lengths, offs) = windows.finish();
    reading.decoded = (0..).zip(decoded).filter(|(_, events)| *events > 0).collect();
    reading.remarks = damage(&stream).chain(remarks(&decoder, unknown)).collect();
    let observable = decoder.observable(catalogue, &trace.events);
    // What events say goes before what was stored at the end.
    let named = file.comms().chain(decoder.comms());
    let comms = named.map(|(pid, comm)| (pid, comm.to_owned())).collect();
    Ok(Traced {
        reading,
        decoder,
        recorded: trace.events.clone(),
        observable,
        slept,
        comms,
        lengths,
        around,
        offs,
    })
}

/// One event more of a CPU; a file has thousands of them at most.
#[inline]
fn count(events: &mut Vec<u64>, cpu: u32) {
    let at = cpu as usize;
    if at >= events.len() {
        events.resize(at + 1, 0);
    }
    events[at] += 1;
}

/// A stretch of a window of which the trace holds everything.
struct Stretch {
    /// Place of the window in the run.
    window: usize,
    span: [i64; 2],
}

/// The windows of a run while its trace streams by, one stretch after another.
struct Windows<'a, 'r> {
    run: &'r Run,
    order: Vec<Stretch>,
    /// Place in `order` of the stretch that is open or comes next.
    at: usize,
    open: Option<Layers>,
    /// Holes that may last into stretches to come.
    holes: Vec<Hole>,
    sums: Sums<'a, 'r>,
    known: Known,
    lengths: Option<(u32, Lengths)>,
    offs: Offs,
}

impl<'a, 'r> Windows<'a, 'r> {
    fn new(run: &'r Run, trace: &TraceRecord, sums: Sums<'a, 'r>, decoder: &Decoder) -> Self {
        let stretches = |(window, one): (usize, &Window)| {
            let stretches = trace.stretches([one.t0_ns, one.t1_ns]);
            stretches.into_iter().map(move |span| Stretch { window, span })
        };
        let mut order: Vec<Stretch> = run.windows.iter().enumerate().flat_map(stretches).collect();
        order.sort_by_key(|stretch| stretch.span);
        let traced = run.probes.iter().find(|record| record.phase == TRACED);
        let tids =
            run.probes.iter().filter(|record| record.phase == TRACED).map(|record| record.tid).collect();
        let lengths = traced.map(|record| (record.cpu, Lengths::new(record.cpu, tids, decoder)));
        Self {
            run,
            order,
            at: 0,
            open: None,
            holes: Vec::new(),
            sums,
            known: decoder.known(),
            lengths,
            offs: Offs::default(),
        }
    }

    fn event(&mut self, event: &KernelEvent, sets: &CpuSets) {
        if self.order.is_empty() {
            return self.of_a_phase(event);
        }
        let stretch = loop {
            let Some(stretch) = self.order.get(self.at) else { return };
            if event.ts_ns > stretch.span[1] {
                self.close();
                self.at += 1;
                continue;
            }
            if event.ts_ns < stretch.span[0] {
                return;
            }
            break stretch;
        };
        let window = &self.run.windows[stretch.window];
        let Self { open, sums, known, holes, .. } = self;
        if open.is_none() {
            let mut layers = Layers::new(stretch.span, window, *known, sums);
            holes.retain(|hole| hole.t1_ns >= stretch.span[0]);
            holes.iter().for_each(|hole| layers.lost(*hole, sums));
            *open = Some(layers);
        }
        let Some(layers) = open else { return };
        if let Some((_, lengths)) = self.lengths.as_mut().filter(|_| window.phase == TRACED) {
            lengths.event(event, sets);
        }
        if self.run.measured_cpus.contains(event.cpu) {
            self.offs.event(&window.phase, event);
        }
        layers.event(event, sets, sums);
    }

    /// Where nothing was measured in windows, as of a watched program, its phase is the window.
    fn of_a_phase(&mut self, event: &KernelEvent) {
        let phase = self.run.phases.iter().find(|one| (one.t0_ns..=one.t1_ns).contains(&event.ts_ns));
        if let Some(phase) = phase.filter(|_| self.run.measured_cpus.contains(event.cpu)) {
            self.offs.event(&phase.name, event);
        }
    }

    fn close(&mut self) {
        if let Some(layers) = self.open.take() {
            layers.close(&mut self.sums);
            self.offs.lost(None);
        }
    }

    fn lost(&mut self, hole: Hole) {
        if let Some((_, lengths)) = self.lengths.as_mut().filter(|(own, _)| *own == hole.cpu) {
            lengths.lost();
        }
        self.offs.lost(Some(hole.cpu));
        if let Some(layers) = &mut self.open {
            layers.lost(hole, &mut self.sums);
        }
        // One that ends before the next stretch begins has no effect, and there may be very many.
        let next = self.order.get(self.at + usize::from(self.open.is_some()));
        if next.is_some_and(|stretch| hole.t1_ns >= stretch.span[0]) {
            self.holes.push(hole);
        }
    }

    fn finish(mut self) -> (Option<(u32, Vec<TracedTerm>)>, Offs) {
        self.close();
        (self.lengths.map(|(cpu, lengths)| (cpu, lengths.terms())), self.offs)
    }
}
