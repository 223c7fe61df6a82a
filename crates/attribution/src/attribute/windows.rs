//! The interference events of several windows, one after another, in one pass over the trace.
//!
//! Memory grows with CPUs and distinct names, not with events. Events between two windows are
//! skipped.

use super::events::{Attributed, describe};
use super::path::Path;
use super::paths::{Keep, Paths};
use crate::Error;
use crate::decode::Decoder;
use crate::holes::Hole;
use crate::spans::{MeasuredCpu, Span, SpanBuilder};
use ftrace::{Item, TraceFile};
use model::events::EventCatalogue;
use model::run::Run;
use std::path::PathBuf;

/// A stretch of time in which CPUs are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredWindow {
    /// Start, ns of the trace clock.
    pub t0_ns: i64,
    /// End.
    pub t1_ns: i64,
    /// The CPUs, each with the thread that measures there.
    pub measured: Vec<MeasuredCpu>,
    /// Whether it is a snapshot: it holds every event of its time, and the trace misses only
    /// events outside it.
    pub snapshot: bool,
}

/// What a pass over a trace found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// Spans that are events.
    pub events: u64,
    /// Spans that continue an earlier one, from before an interruption or the window.
    pub continued: u64,
    /// Events of the trace, inside and outside the windows.
    pub decoded: u64,
    /// Of these, events that no format of the trace describes.
    pub unknown: u64,
    /// Places inside the windows where the trace misses events of a CPU.
    pub holes: u64,
    /// Places of the trace that could not be read.
    pub damaged: u64,
}

/// The windows of a run, or the parts of them that its trace holds, by time, with the threads
/// that measured in each. Threads that measured CPUs of no window are left out.
pub fn windows_of(run: &Run) -> Vec<MeasuredWindow> {
    let inside = |t0_ns: i64, t1_ns: i64| {
        let mut measured: Vec<MeasuredCpu> = Vec::new();
        for probe in run.probes.iter().filter(|probe| probe.t0_ns < t1_ns && t0_ns < probe.t1_ns) {
            // Only the first thread of a CPU is followed, as in the analysis.
            if measured.iter().all(|known| known.cpu != probe.cpu) {
                measured.push(MeasuredCpu { cpu: probe.cpu, tid: probe.tid });
            }
        }
        measured
    };
    let recorded = |window: &model::run::Window| {
        let whole = [window.t0_ns, window.t1_ns];
        run.trace.as_ref().map_or_else(|| vec![whole], |trace| trace.stretches(whole))
    };
    let snapshot = run.trace.as_ref().is_some_and(|trace| trace.snapshots.is_some());
    let window =
        |[t0_ns, t1_ns]: [i64; 2]| MeasuredWindow { t0_ns, t1_ns, measured: inside(t0_ns, t1_ns), snapshot };
    let mut windows: Vec<_> = run.windows.iter().flat_map(recorded).map(window).collect();
    windows.sort_by_key(|window| window.t0_ns);
    windows
}

/// The trace of a run, for reading its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The file.
    pub file: PathBuf,
    /// Clock of its times.
    pub clock: String,
    /// Names of the buffers that hold the run's events, "" for the top one.
    pub buffers: Vec<String>,
    /// When which CPUs were measured.
    pub windows: Vec<MeasuredWindow>,
}

/// The trace of a run's events; an error if none were recorded, or by another clock than that
/// of the windows.
pub fn recorded(dir: &std::path::Path, run: &Run) -> Result<Recorded, model::Error> {
    let none = || model::Error::invalid(dir.display(), "no trace was recorded", "a run with a trace");
    let trace = run.trace.as_ref().ok_or_else(none)?;
    if trace.clock != "mono" {
        let what = format!("the trace clock is {}: its events have no place in the windows", trace.clock);
        return Err(model::Error::invalid(dir.display(), what, "mono, or the trace.dat by itself"));
    }
    let sender = trace.sender.as_ref().map(|sender| sender.buffer.clone());
    Ok(Recorded {
        file: dir.join(&trace.file),
        clock: trace.clock.clone(),
        buffers: [Some(String::new()), sender].into_iter().flatten().collect(),
        windows: windows_of(run),
    })
}

/// From the first event of some buffers to the last, ns; `None` where they hold none.
pub fn extent(file: &TraceFile, buffers: &[&str]) -> Result<Option<[i64; 2]>, Error> {
    let mut stream = file.stream_buffers(buffers)?;
    let mut extent: Option<[i64; 2]> = None;
    while let Some(item) = stream.next()? {
        if let Item::Event(event) = item {
            let ts_ns = i64::try_from(event.ts_ns).unwrap_or(i64::MAX);
            let [first, last] = extent.unwrap_or([ts_ns; 2]);
            extent = Some([first.min(ts_ns), last.max(ts_ns)]);
        }
    }
    Ok(extent)
}

/// Passes every span of the measured CPUs inside the windows to the sink, with the decoder that
/// names its labels; nearly in order of their ends. The windows follow one another in time.
/// `buffers`: names of the file's buffers, "" for the top one. The sink's first error ends the
/// pass.
pub fn spans_in<E: From<Error>>(
    file: &TraceFile,
    catalogue: &EventCatalogue,
    buffers: &[&str],
    windows: &[MeasuredWindow],
    sink: impl FnMut(&Span, &Decoder) -> Result<(), E>,
) -> Result<Passed, E> {
    let mut decoder = Decoder::of(file, catalogue)?;
    let mut stream = file.stream_buffers(buffers).map_err(Error::from)?;
    let mut windows = windows.iter();
    let mut holes = Vec::new();
    let mut open = windows.next().map(|window| Open::new(window, &decoder, &holes));
    let (mut passed, mut out) = (Passed::default(), Out { sink, events: 0, continued: 0, result: Ok(()) });
    while let Some(item) = stream.next().map_err(Error::from)? {
        match item {
            Item::Event(event) => {
                passed.decoded += 1;
                let Some(event) = decoder.decode(&event) else {
                    passed.unknown += 1;
                    continue;
                };
                while let Some(over) = open.take_if(|open| event.ts_ns > open.window.t1_ns) {
                    over.builder.finish(&mut |span| out.give(span, &decoder));
                    open = windows.next().map(|window| Open::new(window, &decoder, &holes));
                }
                if let Some(open) = open.as_mut().filter(|open| event.ts_ns >= open.window.t0_ns) {
                    open.builder.event(&event, decoder.sets(), &mut |span| out.give(span, &decoder));
                }
            }
            Item::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                let hole = Hole::new(cpu, after_ts_ns, before_ts_ns);
                if let Some(open) = open.as_mut().filter(|open| open.is_broken_by(&hole)) {
                    passed.holes += 1;
                    open.builder.lost(hole, &mut |span| out.give(span, &decoder));
                }
                // No later window needs the others, and there may be very many.
                let last_ns = open.as_ref().map_or(i64::MAX, |open| open.window.t1_ns);
                if hole.t1_ns > last_ns {
                    holes.push(hole);
                }
            }
        }
        if out.result.is_err() {
            break;
        }
    }
    if let Some(over) = open {
        over.builder.finish(&mut |span| out.give(span, &decoder));
    }
    out.result?;
    Ok(Passed { events: out.events, continued: out.continued, damaged: stream.damaged(), ..passed })
}

/// As [`spans_in`], each span with texts for numbers.
pub fn attributed_in<E: From<Error>>(
    file: &TraceFile,
    buffers: &[&str],
    windows: &[MeasuredWindow],
    mut sink: impl FnMut(Attributed) -> Result<(), E>,
) -> Result<Passed, E> {
    let catalogue = EventCatalogue::embedded().map_err(Error::from)?;
    spans_in(file, &catalogue, buffers, windows, |span, decoder| sink(describe(file, decoder, span)))
}

/// The wake-ups of threads that measured in a window, one by one. `samples`: a CPU, its thread, and
/// release and latency of each sample by release, ns. The sink gets each sample that was not early,
/// taken apart, with the place of its thread in `samples`.
pub fn paths_in(
    file: &TraceFile,
    buffers: &[&str],
    window: &MeasuredWindow,
    samples: &[(MeasuredCpu, Vec<(i64, i64)>)],
    mut sink: impl FnMut(usize, Path),
) -> Result<(), Error> {
    let catalogue = EventCatalogue::embedded()?;
    let mut decoder = Decoder::of(file, &catalogue)?;
    let mut stream = file.stream_buffers(buffers)?;
    let (mut builder, mut paths) = (Open::new(window, &decoder, &[]).builder, Paths::of_each());
    for (place, (thread, samples)) in samples.iter().enumerate() {
        paths.add(place, *thread, Keep::default(), decoder.known(), samples.iter().copied());
    }
    while let Some(item) = stream.next()? {
        match item {
            Item::Event(event) => {
                let Some(event) = decoder.decode(&event) else { continue };
                if event.ts_ns > window.t1_ns {
                    break;
                }
                if event.ts_ns >= window.t0_ns {
                    paths.event(&event);
                    paths.take().for_each(|(place, path)| sink(place, path));
                    builder.event(&event, decoder.sets(), &mut |span| paths.span(span));
                }
            }
            Item::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                let hole = Hole::new(cpu, after_ts_ns, before_ts_ns);
                paths.lost(hole);
                builder.lost(hole, &mut |span| paths.span(span));
            }
        }
    }
    builder.finish(&mut |span| paths.span(span));
    paths.finish_each().for_each(|(place, path)| sink(place, path));
    Ok(())
}

/// Where the spans go, until it refuses one.
struct Out<F, E> {
    sink: F,
    pub events: u64,
    pub continued: u64,
    result: Result<(), E>,
}

impl<E, F: FnMut(&Span, &Decoder) -> Result<(), E>> Out<F, E> {
    fn give(&mut self, span: &Span, decoder: &Decoder) {
        if self.result.is_ok() {
            *(if span.counts { &mut self.events } else { &mut self.continued }) += 1;
            self.result = (self.sink)(span, decoder);
        }
    }
}

/// The window that is open or comes next.
struct Open<'w> {
    window: &'w MeasuredWindow,
    builder: SpanBuilder,
}

impl<'w> Open<'w> {
    /// `holes`: the holes that began before it.
    fn new(window: &'w MeasuredWindow, decoder: &Decoder, holes: &[Hole]) -> Self {
        let builder = SpanBuilder::new(window.t0_ns, window.t1_ns, &window.measured, decoder.known());
        let mut open = Self { window, builder };
        for hole in holes.iter().filter(|hole| open.is_broken_by(hole)).copied().collect::<Vec<_>>() {
            open.builder.lost(hole, &mut |_| {});
        }
        open
    }

    /// Whether events are missing in it; between snapshots that is intended.
    fn is_broken_by(&self, hole: &Hole) -> bool {
        !self.window.snapshot && hole.touches([self.window.t0_ns, self.window.t1_ns])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn run() -> (Run, TraceFile) {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small");
        (model::run::stored::read_run(&dir).unwrap(), TraceFile::open(&dir.join("trace.dat")).unwrap())
    }

    #[test]
    fn one_pass_gives_what_a_pass_a_window_gives() {
        let (run, file) = run();
        let windows = windows_of(&run);
        assert_eq!(windows.len(), run.windows.len());
        let mut apart = Vec::new();
        for window in &windows {
            assert_eq!(window.measured.iter().map(|one| one.cpu).collect::<Vec<_>>(), [2]);
            let one = |event| {
                apart.push(event);
                Ok::<_, Error>(())
            };
            attributed_in(&file, &[""], std::slice::from_ref(window), one).unwrap();
        }
        let mut together = Vec::new();
        let passed = attributed_in(&file, &[""], &windows, |event| {
            together.push(event);
            Ok::<_, Error>(())
        })
        .unwrap();
        assert!(!apart.is_empty());
        assert_eq!(together, apart);
        let events = apart.iter().filter(|event| event.counts).count() as u64;
        assert_eq!((passed.events, passed.events + passed.continued), (events, apart.len() as u64));
        assert_eq!((passed.holes, passed.unknown), (0, 0));
    }

    #[test]
    fn the_extent_holds_every_window_with_events_and_the_first_refusal_ends_the_pass() {
        let (run, file) = run();
        let [first, last] = extent(&file, &[""]).unwrap().unwrap();
        assert!(
            first < last && run.windows.iter().any(|window| window.t0_ns <= first && first <= window.t1_ns)
        );
        let mut given = 0;
        let full = || Error::from(model::Error::invalid("out", "a full disk", "room"));
        let refused = attributed_in(&file, &[""], &windows_of(&run), |_| {
            given += 1;
            if given == 3 { Err(full()) } else { Ok(()) }
        });
        assert_eq!((refused.unwrap_err().to_string(), given), (full().to_string(), 3));
    }
}
