//! The critical paths of a window's wake-up probes. Passes each event to the probes that need it,
//! and each path to its probe's sums.

use super::bound::Gathered;
use super::cause::{Cause, Confidence, Source};
use super::path::{Expiry, Part, Path, PathBuilder, Piece, Taken, Taker};
use super::table::source_text;
use crate::attribute::delay::Blocking;
use crate::attribute::path_section::{PathBox, PathSection, SamplePath, SamplePiece, TaskText};
use crate::attribute::step::Step;
use crate::by_cpu::ByCpu;
use crate::holes::Hole;
use crate::labels::{LabelId, Labels};
use crate::some_tasks::SomeTasks;
use crate::spans::{Known, MeasuredCpu, Span};
use crate::view::{At, Context, KernelEvent, Level, Switch, Task, Wake, What};
use model::EventClass;
use model::sample::ProbeKind;
use rustc_hash::FxHashMap;

/// The samples that are kept whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// The number of samples per window, the largest.
    pub worst: usize,
    /// Also the sample that was due at this time, ns.
    pub sample: Option<i64>,
}

impl Default for Keep {
    fn default() -> Self {
        Self { worst: 20, sample: None }
    }
}

/// The most pieces of time reported for a sample.
const MOST_PIECES: usize = 400;
/// The most boxes reported for a window.
const MOST_BOXES: usize = 60;

/// Boxes of a window that are kept by task; further ones by its name only.
const MOST_BY_TASK: usize = 1024;

/// What distinguishes a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    step: Step,
    cpu: u32,
    mark: Option<Confidence>,
    taken: Option<TakenKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct TakenKey {
    taker: Taker,
    label: LabelId,
    task: Option<Task>,
    cause: Option<Cause>,
}

impl Key {
    fn of(part: &Part) -> Self {
        let plain = |cause: Cause| Cause { source: cause.source.plain(), ..cause };
        let taken = part.taken.map(|Taken { taker, label, task, causes }| TakenKey {
            taker,
            label,
            task,
            cause: causes.iter().next().map(plain),
        });
        Self { step: part.step, cpu: part.cpu, mark: part.mark, taken }
    }

    /// The same by name only: without the task, and without the place in the kernel.
    fn without_task(self) -> Self {
        let nowhere = |source: Source| Source::new(source.cpu, source.who);
        let cause = |cause: Cause| Cause { source: nowhere(cause.source), ..cause };
        let taken = |taken: TakenKey| TakenKey { task: None, cause: taken.cause.map(cause), ..taken };
        Self { taken: self.taken.map(taken), ..self }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: u64,
    ns: u64,
    max_ns: u64,
    /// The stack of the first.
    frames: Option<LabelId>,
}

impl Sum {
    fn of(part: &Part) -> Self {
        let frames = part.taken.and_then(|taken| taken.causes.iter().next()?.source.frames);
        Self { count: 1, ns: part.ns, max_ns: part.ns, frames }
    }
}

/// The sums of one probe.
#[derive(Debug, Clone, Default)]
pub struct PathSums {
    keep: Keep,
    samples: u64,
    total_ns: u64,
    boxes: FxHashMap<Key, Sum>,
    worst: Vec<Path>,
    asked: Option<Path>,
    bound: Gathered,
}

impl PathSums {
    /// Empty sums that will keep these samples.
    pub fn keeping(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Adds those of another stretch of the same window.
    pub fn append(&mut self, other: Self) {
        self.samples += other.samples;
        self.total_ns += other.total_ns;
        for (key, more) in other.boxes {
            self.sum(key, more);
        }
        self.bound.append(other.bound);
        other.worst.into_iter().chain(other.asked).for_each(|path| self.keep(path));
    }

    fn add(&mut self, path: Path) {
        self.samples += 1;
        self.total_ns += path.value_ns.unsigned_abs();
        for part in &path.parts {
            self.sum(Key::of(part), Sum::of(part));
        }
        self.keep(path);
    }

    fn sum(&mut self, key: Key, more: Sum) {
        let full = self.boxes.len() >= MOST_BY_TASK && !self.boxes.contains_key(&key);
        let sum = self.boxes.entry(if full { key.without_task() } else { key }).or_default();
        sum.count += more.count;
        sum.ns += more.ns;
        sum.max_ns = sum.max_ns.max(more.max_ns);
        sum.frames = sum.frames.or(more.frames);
    }

    fn keep(&mut self, path: Path) {
        if self.keep.sample == Some(path.t_ns) {
            self.asked = Some(path);
            return;
        }
        let at = self.worst.partition_point(|other| other.value_ns >= path.value_ns);
        if at < self.keep.worst {
            self.worst.insert(at, path);
            self.worst.truncate(self.keep.worst);
        }
    }

    /// The section of a probe in this phase, on this CPU; `None` where no sample was late enough
    /// to have a path.
    pub fn section(
        &self,
        (phase, probe): (&str, ProbeKind),
        [cpu, thread]: [u32; 2],
        labels: &Labels,
        comm: &dyn Fn(i32) -> Option<String>,
    ) -> Option<PathSection> {
        if self.samples == 0 {
            return None;
        }
        let path_box = |key: &Key, sum: &Sum| {
            let Key { step, cpu, mark, taken } = *key;
            let cause = taken.and_then(|taken| taken.cause);
            let taker = taken.map(|taken| taken.taker);
            PathBox {
                step,
                cpu,
                class: taker.and_then(Taker::class),
                blocking: taker.and_then(blocking),
                label: taken.map(|taken| labels.text(taken.label).to_owned()),
                task: taken.and_then(|taken| taken.task).map(|task| task_text(task, labels)),
                source: cause
                    .map(|cause| source_text(&Source { frames: sum.frames, ..cause.source }, labels, comm)),
                confidence: cause.map(|cause| cause.confidence).or(mark.filter(|_| taken.is_none())),
                count: sum.count,
                ns: sum.ns,
                max_ns: sum.max_ns,
            }
        };
        let mut boxes: Vec<_> = self.boxes.iter().collect();
        boxes.sort_by_key(|(key, sum)| (std::cmp::Reverse(sum.ns), **key));
        let part = |part: &Part| path_box(&Key::of(part), &Sum::of(part));
        let worst = self.asked.iter().chain(&self.worst).map(|path| SamplePath {
            t_ns: path.t_ns,
            value_ns: path.value_ns,
            parts: path.parts.iter().map(part).collect(),
            pieces: pieces(path),
            replaced: path.replaced.map(|task| task_text(task, labels)),
        });
        let mut section = PathSection {
            phase: phase.to_owned(),
            probe,
            cpu,
            thread,
            samples: self.samples,
            total_ns: self.total_ns,
            boxes: boxes.into_iter().map(|(key, sum)| path_box(key, sum)).collect(),
            others: Vec::new(),
            worst: worst.collect(),
            bound: (probe != ProbeKind::Noise).then(|| self.bound.bound(labels)),
        };
        section.list(MOST_BOXES);
        Some(section)
    }
}

fn task_text(task: Task, labels: &Labels) -> TaskText {
    TaskText { pid: task.pid, comm: labels.text(task.comm).to_owned(), prio: task.prio.number(), group: None }
}

fn blocking(taker: Taker) -> Option<Blocking> {
    if let Taker::Blocking(blocking) = taker { Some(blocking) } else { None }
}

/// The pieces of a path, relative to its release; only the longest if there are very many.
fn pieces(path: &Path) -> Vec<SamplePiece> {
    let piece = |piece: &Piece| SamplePiece {
        from_ns: piece.t0_ns.abs_diff(path.t_ns),
        ns: piece.t1_ns.abs_diff(piece.t0_ns),
        part: piece.part as u64,
    };
    let mut pieces: Vec<_> = path.pieces.iter().map(piece).collect();
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.ns));
    pieces.truncate(MOST_PIECES);
    pieces.sort_unstable();
    pieces
}

/// One probe while its window is open.
#[derive(Debug)]
struct Open {
    place: usize,
    builder: PathBuilder,
    sums: PathSums,
    /// Address of the timer that its thread armed last.
    armed: Option<u64>,
}

/// Adds the path of a sample.
#[inline(never)]
fn give_path(each: &mut Option<Vec<(usize, Path)>>, place: usize, sums: &mut PathSums, path: Path) {
    if let Some(each) = each {
        each.push((place, path.clone()));
    }
    sums.add(path);
}

/// The wake-up probes of one window.
#[derive(Debug, Default)]
pub struct Paths {
    probes: Vec<Open>,
    /// Places in `probes` by CPU and by thread: one per CPU for a thread that moved.
    by_cpu: ByCpu<usize>,
    by_thread: FxHashMap<i32, Vec<usize>>,
    /// The threads.
    threads: SomeTasks,
    /// Time, address and level of the last timer expiry, by CPU.
    expiries: ByCpu<(i64, u64, Level)>,
    /// Each path with its probe's place, until it is taken; only if requested.
    each: Option<Vec<(usize, Path)>>,
}

impl Paths {
    /// Keeps each path until [`Self::take`] takes it.
    pub(crate) fn of_each() -> Self {
        Self { each: Some(Vec::new()), ..Self::default() }
    }

    /// Takes the finished paths, with the places of their probes.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (usize, Path)> + '_ {
        self.each.iter_mut().flat_map(|each| each.drain(..))
    }

    /// Adds a probe's thread and its CPU; `place` is the caller's name for it. Only the first
    /// probe of a CPU is followed.
    pub fn add(
        &mut self,
        place: usize,
        MeasuredCpu { cpu, tid }: MeasuredCpu,
        keep: Keep,
        known: Known,
        samples: impl Iterator<Item = (i64, i64)>,
    ) {
        if self.by_cpu.get(cpu).is_some() {
            return;
        }
        let at = self.probes.len();
        self.by_cpu.insert(cpu, at);
        self.by_thread.entry(tid).or_default().push(at);
        self.threads.add(tid);
        let builder = PathBuilder::new(cpu, tid, known, samples);
        self.probes.push(Open { place, builder, sums: PathSums::keeping(keep), armed: None });
    }

    /// A thread is to run from `release_ns` on, where samples are not known in advance. Call it
    /// before the event that shows so. False where its path began earlier and is not valid.
    pub(crate) fn released(&mut self, tid: i32, release_ns: i64) -> bool {
        let Self { probes, by_thread, .. } = self;
        let mut places = by_thread.get(&tid).into_iter().flatten();
        places.all(|at| probes[*at].builder.released(release_ns))
    }

    /// `Some`: where it runs, and since when; `None`: it does not run after that wake-up.
    pub(crate) fn ran(&mut self, tid: i32, ran: Option<(u32, i64)>) {
        let Self { probes, by_thread, by_cpu, .. } = self;
        let here = ran.and_then(|(cpu, _)| by_cpu.get(cpu).copied());
        for at in by_thread.get(&tid).into_iter().flatten() {
            probes[*at].builder.ran(ran.filter(|_| here == Some(*at)).map(|(_, ran_ns)| ran_ns));
        }
    }

    /// The next event of the merged stream.
    pub fn event(&mut self, event: &KernelEvent) {
        match event.what {
            What::Switch { prev, runnable, next } => {
                self.switch(event.at(), Switch { prev, runnable, next });
            }
            What::Wake { pid, target, done } => self.wake(event.at(), Wake { pid, target, done }),
            _ => self.other(event),
        }
    }

    /// The same of a switch.
    #[inline(always)]
    pub(crate) fn switch(&mut self, at: At, switch: Switch) {
        let Self { probes, by_cpu, each, .. } = self;
        let own = by_cpu.get(at.cpu).and_then(|own| probes.get_mut(*own));
        let Some(Open { place, builder, sums, .. }) = own else { return };
        builder.switch(at, switch, &mut |path| give_path(each, *place, sums, path));
    }

    /// The same of a wake-up.
    #[inline(always)]
    pub(crate) fn wake(&mut self, at: At, wake: Wake) {
        if self.threads.may_have(wake.pid) {
            return self.other(&at.says(wake.what()));
        }
        self.wake_other(at.cpu, at, wake);
        // It changes the queue of its own CPU.
        if wake.target != at.cpu {
            self.wake_other(wake.target, at, wake);
        }
    }

    /// Another task is woken; for the probe of this CPU.
    #[inline(always)]
    fn wake_other(&mut self, cpu: u32, at: At, wake: Wake) {
        let Self { probes, by_cpu, each, .. } = self;
        let own = by_cpu.get(cpu).and_then(|own| probes.get_mut(*own));
        let Some(Open { place, builder, sums, .. }) = own else { return };
        builder.wake(at, wake, &mut |path| give_path(each, *place, sums, path));
    }

    /// Takes any event as a rare one.
    #[cfg(test)]
    pub(crate) fn each_event(&mut self, event: &KernelEvent) {
        self.other(event);
    }

    #[inline(never)]
    fn other(&mut self, event: &KernelEvent) {
        match event.what {
            What::Enter {
                class: EventClass::TimerHrtimer | EventClass::TimerTick | EventClass::TimerWheel,
                context: Context::Preemptible,
                key,
                ..
            } => {
                self.expiries.insert(event.cpu, (event.ts_ns, key, event.level));
            }
            What::Armed { timer, .. } if event.in_task() => {
                for at in self.by_thread.get(&event.pid).into_iter().flatten() {
                    self.probes[*at].armed = Some(timer);
                }
            }
            _ => {}
        }
        let own = self.by_cpu.get(event.cpu).copied();
        if let Some(at) = own {
            self.give(at, event);
        }
        // Most events matter to their own CPU alone.
        if matches!(event.what, What::Wake { .. } | What::Migrate { .. } | What::Frequency { .. }) {
            self.give_elsewhere(event, own);
        }
    }

    /// Passes an event of another CPU to the probes that need it.
    #[inline(never)]
    fn give_elsewhere(&mut self, event: &KernelEvent, own: Option<usize>) {
        let Self { by_cpu, by_thread, .. } = self;
        // The probes of its thread, and those whose CPU's queue it changes from elsewhere.
        let (threads, queues) = match event.what {
            What::Wake { pid, target, .. } => (by_thread.get(&pid), [by_cpu.get(target), None]),
            What::Migrate { from, to, .. } => (None, [by_cpu.get(from), by_cpu.get(to)]),
            What::Frequency { cpu, .. } => (None, [by_cpu.get(cpu), None]),
            _ => (None, [None; 2]),
        };
        let threads = threads.map_or(&[][..], Vec::as_slice);
        let queues = queues.into_iter().flatten().filter(|at| !threads.contains(at));
        let elsewhere = threads.iter().chain(queues).copied().filter(|at| Some(*at) != own);
        // Nearly always none.
        for at in elsewhere.collect::<Vec<_>>() {
            self.give(at, event);
        }
    }

    /// Passes an event to a probe.
    fn give(&mut self, at: usize, event: &KernelEvent) {
        let Self { probes, expiries, each, .. } = self;
        let Some(Open { place, builder, sums, armed }) = probes.get_mut(at) else { return };
        let expiry = expiries.get(event.cpu).map(|&(at_ns, timer, level)| {
            let known = if *armed == Some(timer) { Confidence::Exact } else { Confidence::Order };
            Expiry { at_ns, known, level }
        });
        builder.event(event, expiry, &mut |path| give_path(each, *place, sums, path));
    }

    /// Events of a CPU are missing from here on: timers armed or expired meanwhile are unknown.
    pub fn lost(&mut self, hole: Hole) {
        self.probes.iter_mut().for_each(|probe| probe.builder.lost(hole));
        if let Some(at) = self.by_cpu.get(hole.cpu) {
            self.probes[*at].armed = None;
        }
        self.expiries.remove(hole.cpu);
    }

    /// A span of a measured CPU.
    #[inline(always)]
    pub fn span(&mut self, span: &Span) {
        let at = self.by_cpu.get(span.cpu).copied();
        if let Some(probe) = at.and_then(|at| self.probes.get_mut(at)) {
            probe.builder.span(span);
        }
    }

    /// Ends the window, after which each path can be taken.
    pub(crate) fn finish_each(&mut self) -> impl Iterator<Item = (usize, Path)> + '_ {
        for Open { place, builder, .. } in std::mem::take(&mut self.probes) {
            builder
                .finish(&mut |path| self.each.iter_mut().for_each(|each| each.push((place, path.clone()))));
        }
        self.take()
    }

    /// Ends the window; returns each probe and its sums.
    pub(crate) fn finish_threads(self) -> impl Iterator<Item = (MeasuredCpu, PathSums)> {
        self.probes.into_iter().map(|Open { builder, mut sums, .. }| {
            let thread = builder.thread();
            sums.bound = builder.finish(&mut |path| sums.add(path));
            (thread, sums)
        })
    }

    /// Ends the window; returns each probe's place and sums.
    pub fn finish(self) -> impl Iterator<Item = (usize, PathSums)> {
        self.probes.into_iter().map(|Open { place, builder, mut sums, .. }| {
            sums.bound = builder.finish(&mut |path| sums.add(path));
            (place, sums)
        })
    }
}
