//! The wake-ups of any threads, taken apart as if they were samples of a probe, and who interrupted
//! the CPUs that they ran on.
//!
//! When each was to run and when it ran was found before ([`super::watch::program::Wakeup`]); this
//! reads the trace once more. What a thread itself causes is no interference with it, so the spans
//! of a CPU are made anew for each thread that is taken apart there.

use super::paths::{Keep, PathSums, Paths};
use super::table::Table;
use super::watch::program::Wakeup;
use crate::Error;
use crate::by_cpu::ByCpu;
use crate::decode::{Decoder, Says};
use crate::hash::FastMap;
use crate::holes::Hole;
use crate::records::{Record, Records};
use crate::shape::{CpuSources, ThreadPaths};
use crate::spans::{MeasuredCpu, Span, SpanBuilder};
use crate::trace_pass::{damage, remarks};
use ftrace::{Event, Item, TraceFile};
use model::Cpus;
use model::sample::ProbeKind;
use std::collections::{BTreeMap, BTreeSet};

/// Nobody: of a CPU on which no thread is taken apart nothing is its own.
const NOBODY: i32 = -1;
/// The most threads of a CPU that are taken apart where not every one is wanted.
const MOST_A_CPU: usize = 4;

/// A thread on one CPU, with release and latency of each of its wake-ups there, by release, ns.
type Thread = (MeasuredCpu, Vec<(i64, i64)>);

/// What is taken apart.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    /// Those that waited longest in all first.
    threads: Vec<Thread>,
    /// The CPUs.
    cpus: Vec<u32>,
    left_out: usize,
}

/// Chooses among the wake-ups of a trace: those on the CPUs `wanted`, else on all that it `recorded`.
/// `all`: every thread; else of a CPU those that waited longest.
pub(crate) fn choose(wakeups: &[Wakeup], recorded: &Cpus, wanted: Option<&Cpus>, all: bool) -> Chosen {
    let is_wanted = |cpu: u32| wanted.unwrap_or(recorded).contains(cpu);
    let mut by_thread: BTreeMap<(u32, i32), Vec<(i64, i64)>> = BTreeMap::new();
    for one in wakeups.iter().filter(|one| is_wanted(one.cpu)) {
        let sample = (one.release_ns, one.ran_ns.saturating_sub(one.release_ns));
        by_thread.entry((one.cpu, one.tid)).or_default().push(sample);
    }
    let mut threads: Vec<Thread> =
        by_thread.into_iter().map(|((cpu, tid), samples)| (MeasuredCpu { cpu, tid }, samples)).collect();
    threads.iter_mut().for_each(|(_, samples)| samples.sort_unstable());
    threads.sort_by_key(|(_, samples)| {
        std::cmp::Reverse(samples.iter().fold(0i64, |sum, (_, ns)| sum.saturating_add(*ns)))
    });
    let found = threads.len();
    if !all {
        let mut of_cpu: FastMap<u32, usize> = FastMap::default();
        threads.retain(|(thread, _)| {
            let before = of_cpu.entry(thread.cpu).or_default();
            *before += 1;
            *before <= MOST_A_CPU
        });
    }
    let of_threads: BTreeSet<u32> = threads.iter().map(|(thread, _)| thread.cpu).collect();
    let cpus = match wanted {
        Some(cpus) => cpus.iter().filter(|cpu| recorded.contains(*cpu)).collect(),
        None if of_threads.is_empty() => recorded.iter().collect(),
        None => of_threads.into_iter().collect(),
    };
    Chosen { left_out: found - threads.len(), threads, cpus }
}

/// A thread on one CPU of a layer.
struct Measured<'c> {
    thread: MeasuredCpu,
    /// Its place among the chosen ones, and its wake-ups; nobody has none.
    samples: Option<(usize, &'c [(i64, i64)])>,
}

impl Chosen {
    /// As many layers as the CPU with most threads needs; the first has every CPU.
    fn layers(&self) -> Vec<Vec<Measured<'_>>> {
        let mut layers: Vec<Vec<Measured<'_>>> = vec![Vec::new()];
        for (place, (thread, samples)) in self.threads.iter().enumerate() {
            let free = |measured: &Vec<Measured<'_>>| measured.iter().all(|one| one.thread.cpu != thread.cpu);
            let at = layers.iter().position(free).unwrap_or(layers.len());
            if at == layers.len() {
                layers.push(Vec::new());
            }
            layers[at].push(Measured { thread: *thread, samples: Some((place, samples)) });
        }
        for &cpu in &self.cpus {
            if layers[0].iter().all(|one| one.thread.cpu != cpu) {
                layers[0].push(Measured { thread: MeasuredCpu { cpu, tid: NOBODY }, samples: None });
            }
        }
        layers
    }

    /// Whether the same threads are measured in the same layers.
    pub(crate) fn is_measured_as(&self, other: &Self) -> bool {
        let measured = |chosen: &Self| -> Vec<Vec<(u32, i32)>> {
            let sorted = |layer: Vec<Measured<'_>>| {
                let mut layer: Vec<_> = layer.iter().map(|one| (one.thread.cpu, one.thread.tid)).collect();
                layer.sort_unstable();
                layer
            };
            chosen.layers().into_iter().map(sorted).collect()
        };
        measured(self) == measured(other)
    }

    /// Whether it has this thread on this CPU.
    pub(crate) fn has(&self, cpu: u32, tid: i32) -> bool {
        self.threads.iter().any(|(thread, _)| *thread == MeasuredCpu { cpu, tid })
    }

    fn place(&self, one: &ThreadPaths) -> Option<usize> {
        let thread = MeasuredCpu { cpu: one.path.cpu, tid: one.tid };
        self.threads.iter().position(|(other, _)| *other == thread)
    }

    /// Whether all threads that were seen are in it.
    pub(crate) fn is_complete(&self) -> bool {
        self.left_out == 0
    }

    /// The same without their wake-ups.
    pub(crate) fn without_wakeups(mut self) -> Self {
        self.threads.iter_mut().for_each(|(_, wakeups)| wakeups.clear());
        self
    }

    /// Whether somebody waits for a reading.
    pub(crate) fn has_threads(&self) -> bool {
        !self.threads.is_empty()
    }

    /// That some are left out.
    pub(crate) fn statement(&self) -> Option<String> {
        let more = match self.left_out {
            0 => return None,
            1 => "1 more thread".to_owned(),
            many => format!("{many} more threads"),
        };
        Some(format!(
            "the wake-ups of {more} were not taken apart: of each CPU those {MOST_A_CPU} were that waited longest in all"
        ))
    }
}

/// What the reading gave.
pub(crate) struct Apart {
    /// The most late time first.
    pub(crate) paths: Vec<ThreadPaths>,
    /// By CPU.
    pub(crate) attribution: Vec<CpuSources>,
    /// Where the trace is damaged, one sentence each.
    pub(crate) damage: Vec<String>,
    /// What is missing or not known, one sentence each.
    pub(crate) statements: Vec<String>,
    /// What read the trace.
    pub(crate) decoder: Decoder,
}

/// Spans and ways of one thread a CPU.
struct Layer {
    builder: SpanBuilder,
    paths: Paths,
    /// What ran on each CPU beside that thread; of further threads of a CPU none.
    tables: ByCpu<(i32, Table)>,
}

#[inline(always)]
fn give(span: &Span, paths: &mut Paths, tables: &mut ByCpu<(i32, Table)>) {
    paths.span(span);
    if let Some((_, table)) = tables.get_mut(span.cpu) {
        table.add(span, span.net_ns);
    }
}

/// Reads what of some buffers of a trace lies in a window, both ends included.
pub(crate) fn take_apart(
    file: &TraceFile,
    decoder: Decoder,
    buffers: &[&str],
    window: [i64; 2],
    chosen: &Chosen,
    keep: Keep,
) -> Result<Apart, Error> {
    let mut layers = Layers::new(chosen, decoder, window, keep);
    let records = Records::of(file.formats());
    let mut stream = file.stream_buffers(buffers)?;
    while let Some(item) = stream.next()? {
        match item {
            Item::Event(event) => {
                if !layers.event(&event, &records.read(&event)) {
                    break;
                }
            }
            Item::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                layers.lost(Hole::new(cpu, after_ts_ns, before_ts_ns));
            }
        }
    }
    Ok(layers.finish(file, chosen, damage(&stream).collect()))
}

/// What takes wake-ups apart while a trace streams by.
pub(crate) struct Layers {
    all: Vec<Layer>,
    decoder: Decoder,
    window: [i64; 2],
    unknown: u64,
}

impl Layers {
    /// For events inside a window.
    pub(crate) fn new(chosen: &Chosen, decoder: Decoder, window: [i64; 2], keep: Keep) -> Self {
        let layer = |(at, measured): (usize, Vec<Measured>)| {
            let mut paths = Paths::default();
            for one in &measured {
                if let Some((place, samples)) = one.samples {
                    paths.add(place, one.thread, keep, decoder.known(), samples.iter().copied());
                }
            }
            let threads: Vec<MeasuredCpu> = measured.iter().map(|one| one.thread).collect();
            let builder = SpanBuilder::new(window[0], window[1], &threads, decoder.known());
            let mut tables = ByCpu::default();
            for one in threads.iter().filter(|_| at == 0) {
                tables.insert(one.cpu, (one.tid, Table::default()));
            }
            Layer { builder, paths, tables }
        };
        let all = chosen.layers().into_iter().enumerate().map(layer).collect();
        Self { all, decoder, window, unknown: 0 }
    }

    /// The next event, and its record; false where it is behind the window.
    #[inline(always)]
    pub(crate) fn event(&mut self, event: &Event<'_>, record: &Record<'_>) -> bool {
        let Self { all, decoder, window, .. } = self;
        let Some((at, says)) = decoder.of_record(event, record) else { return self.other(event) };
        if at.ts_ns < window[0] || at.ts_ns > window[1] {
            return at.ts_ns <= window[1];
        }
        match says {
            Says::Switch(switch) => {
                for Layer { builder, paths, tables } in all {
                    paths.switch(at, switch);
                    builder.switch(at, switch, &mut |span| give(span, paths, tables));
                }
            }
            Says::Wake(wake) => {
                for Layer { builder, paths, tables } in all {
                    paths.wake(at, wake);
                    builder.wake(at, wake, &mut |span| give(span, paths, tables));
                }
            }
        }
        true
    }

    #[inline(never)]
    fn other(&mut self, event: &Event<'_>) -> bool {
        let Self { all, decoder, window, unknown } = self;
        let Some(said) = decoder.decode(event) else {
            *unknown += 1;
            return true;
        };
        if said.ts_ns < window[0] || said.ts_ns > window[1] {
            return said.ts_ns <= window[1];
        }
        for Layer { builder, paths, tables } in all {
            paths.event(&said);
            builder.event(&said, decoder.sets(), &mut |span| give(span, paths, tables));
        }
        true
    }

    /// Events are missing.
    pub(crate) fn lost(&mut self, hole: Hole) {
        if hole.touches(self.window) {
            for Layer { builder, paths, tables } in &mut self.all {
                paths.lost(hole);
                builder.lost(hole, &mut |span| give(span, paths, tables));
            }
        }
    }

    /// A thread whose wake-ups were not known before is to run from then on ([`Paths::released`]).
    pub(crate) fn released(&mut self, tid: i32, release_ns: i64) -> bool {
        self.all.iter_mut().all(|layer| layer.paths.released(tid, release_ns))
    }

    /// It runs, or does not ([`Paths::ran`]).
    pub(crate) fn ran(&mut self, tid: i32, ran: Option<(u32, i64)>) {
        self.all.iter_mut().for_each(|layer| layer.paths.ran(tid, ran));
    }

    /// The last event was at `t1_ns`.
    pub(crate) fn until(&mut self, t1_ns: i64) {
        self.all.iter_mut().for_each(|layer| layer.builder.until(t1_ns));
    }

    /// What was found of the chosen threads; `damage`: of the trace.
    pub(crate) fn finish(self, file: &TraceFile, chosen: &Chosen, damage: Vec<String>) -> Apart {
        let Self { all, decoder, unknown, .. } = self;
        let statements = remarks(&decoder, unknown).into_iter().chain(chosen.statement()).collect();
        let (mut paths, mut attribution) = (Vec::new(), Vec::new());
        let names = Names { file, decoder: &decoder };
        for mut layer in all {
            layer.builder.finish(&mut |span| give(span, &mut layer.paths, &mut layer.tables));
            attribution.extend(names.sources(&layer.tables));
            let mut of_layer = names.paths(layer.paths);
            of_layer.sort_by_key(|one| chosen.place(one));
            paths.extend(of_layer);
        }
        paths.sort_by_key(|one| std::cmp::Reverse(one.path.total_ns));
        Apart { paths, attribution, damage, statements, decoder }
    }
}

/// What gives numbers their names.
struct Names<'a> {
    file: &'a TraceFile,
    decoder: &'a Decoder,
}

impl Names<'_> {
    /// The last name of a task: what events say goes before what was stored beside.
    fn comm(&self, pid: i32) -> Option<String> {
        self.decoder.comm(pid).or_else(|| self.file.comm(pid)).map(str::to_owned)
    }

    fn sources(&self, tables: &ByCpu<(i32, Table)>) -> Vec<CpuSources> {
        let of_cpu = |(cpu, (tid, table)): (u32, &(i32, Table))| {
            let tid = Some(*tid).filter(|tid| *tid != NOBODY);
            let [exact, by_order, unknown] = table.known();
            let rows = table.told(self.decoder.labels(), &|pid| self.comm(pid));
            CpuSources { cpu, tid, comm: tid.and_then(|tid| self.comm(tid)), exact, by_order, unknown, rows }
        };
        tables.iter().map(of_cpu).collect()
    }

    fn paths(&self, paths: Paths) -> Vec<ThreadPaths> {
        let told = |(MeasuredCpu { cpu, tid }, sums): (MeasuredCpu, PathSums)| {
            let window = ("", ProbeKind::Wakeup);
            let path = sums.told(window, [cpu, 0], self.decoder.labels(), &|pid| self.comm(pid))?;
            Some(ThreadPaths { tid, comm: self.comm(tid).unwrap_or_default(), path })
        };
        paths.finish_threads().filter_map(told).collect()
    }
}
