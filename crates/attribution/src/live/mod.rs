//! A recording while it goes on: the same decoding, spans and sources as of a finished trace, added
//! to tables of bounded size. For whoever looks on: a terminal, a resident monitor.
//!
//! [`merge`] puts the pages that have come into the order of time, and holds back what may still be
//! overtaken. [`Live`] decodes each event once, and hands spans that have ended to [`sums`] (class
//! × what ran × source) and [`worst`]. Spans and wake-ups that last longer than a chunk of pages
//! are not cut. [`view`] is what comes out: plain data.
//!
//! Memory: [`sums`] and [`worst`] have a fixed number of rows. Texts, names of tasks and the joins
//! of the decoder grow with what is seen; [`Live::is_full`] says when a new one is to be made.

pub mod merge;
mod sums;
pub mod view;
mod worst;

use crate::Error;
use crate::attribute::paths::{Keep, Paths};
use crate::attribute::spread::Spread;
use crate::decode::Decoder;
use crate::holes::Hole;
use crate::prio::Prio;
use crate::spans::{MeasuredCpu, Span, SpanBuilder};
use crate::view::{KernelEvent, Task, What};
use ftrace::Formats;
use merge::{Merge, Merged};
use model::EventClass;
use sums::{Ring, Sums};
use view::{CpuView, Latency, LiveView, Losses, Running};
use worst::{Names, Worst};

/// No thread: then nothing is self-caused.
const NOBODY: i32 = -1;
/// Texts and names of tasks after which a new decoder is made.
const MOST_TEXTS: usize = 1 << 17;
/// There has been no pause yet.
const NO_PAUSE: [i64; 2] = [i64::MAX; 2];
/// The least length of an interference event that may be among the worst, ns.
const LEAST_WORST_NS: u64 = 1_000;

/// A thread that waits longer than this has no path: what happened meanwhile is kept until it
/// runs, ns.
const MOST_AWAITED_NS: i64 = 3_000_000_000;

/// What is looked at in a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Follow {
    /// Its wake-ups, from the request for each.
    #[default]
    Requests,
    /// Its wake-ups, from the releases `first_ns + k · period_ns` (CLOCK_MONOTONIC) on: how late
    /// their timer was is part of them.
    Releases {
        /// The first release, ns.
        first_ns: i64,
        /// The interval, ns; greater than 0.
        period_ns: i64,
    },
    /// It runs all the time, but for pauses of its own, which are left out: what interrupts it.
    Loop,
}

impl Follow {
    /// The first release after a thread went to sleep, ns. None before the first: it may still be
    /// waiting for its start.
    fn next_release(self, slept_ns: i64) -> Option<i64> {
        let Self::Releases { first_ns, period_ns } = self else { return None };
        let past_ns = slept_ns - first_ns;
        (past_ns >= 0).then(|| slept_ns - past_ns % period_ns + period_ns)
    }
}

/// The thread that is followed on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Followed {
    /// The CPU.
    pub cpu: u32,
    /// The thread.
    pub tid: i32,
    /// What is looked at.
    pub follow: Follow,
}

/// One CPU while events stream by.
struct Cpu {
    number: u32,
    tid: i32,
    follow: Follow,
    running: Option<(Task, i64)>,
    /// When the followed thread was asked to run, and has not run since.
    awaited_ns: Option<i64>,
    asleep: bool,
    /// Its next release, while it sleeps.
    release_ns: Option<i64>,
    /// The last pause of a loop, ns; one that goes on has no end.
    pause_ns: [i64; 2],
    last_ns: Option<i64>,
    latencies: Spread,
    wakeups: u64,
    max_ns: u64,
    /// Longest event or latency of each second.
    maxima: Ring,
}

/// What has been derived so far.
struct Derived {
    sums: Sums,
    worst: Worst,
    cpus: Vec<Cpu>,
    /// Events of the measured CPUs, those of others, and holes.
    losses: Losses,
    events: u64,
    self_ns: u64,
}

/// The engine.
pub struct Live {
    decoder: Decoder,
    builder: SpanBuilder,
    paths: Paths,
    merge: Merge,
    derived: Derived,
    formats: Formats,
    last_ns: i64,
    began_ns: i64,
    /// When the last second ended.
    ended_ns: i64,
}

impl Live {
    /// For these CPUs, from `now_ns` on; of some, a thread's wake-ups are measured.
    pub fn new(decoder: Decoder, formats: Formats, cpus: &[u32], followed: &[Followed], now_ns: i64) -> Self {
        let cpu = |number: &u32| Cpu {
            number: *number,
            tid: of_cpu(followed, *number).map_or(NOBODY, |one| one.tid),
            follow: of_cpu(followed, *number).map_or(Follow::Requests, |one| one.follow),
            running: None,
            awaited_ns: None,
            asleep: false,
            release_ns: None,
            pause_ns: NO_PAUSE,
            last_ns: None,
            latencies: Spread::default(),
            wakeups: 0,
            max_ns: 0,
            maxima: Ring::default(),
        };
        let derived = Derived {
            sums: Sums::default(),
            worst: Worst::default(),
            cpus: cpus.iter().map(cpu).collect(),
            losses: Losses::default(),
            events: 0,
            self_ns: 0,
        };
        let (builder, paths) = begin(&decoder, &derived.cpus, now_ns);
        let merge = Merge::default();
        Self {
            decoder,
            builder,
            paths,
            merge,
            derived,
            formats,
            last_ns: now_ns,
            began_ns: now_ns,
            ended_ns: now_ns,
        }
    }

    /// Whether a new decoder should be made.
    pub fn is_full(&self) -> bool {
        self.decoder.labels().len() > MOST_TEXTS || self.decoder.tasks().comms.len() > MOST_TEXTS
    }

    /// Goes on with a new decoder, and with other threads where `followed` says so. What has been
    /// summed stays; spans that are open are cut, and counted as such.
    pub fn renew(&mut self, decoder: Decoder, followed: &[Followed]) {
        for cpu in &mut self.derived.cpus {
            let one = of_cpu(followed, cpu.number);
            let (tid, follow) = one.map_or((NOBODY, Follow::Requests), |one| (one.tid, one.follow));
            if (tid, follow) != (cpu.tid, cpu.follow) {
                (cpu.last_ns, cpu.latencies, cpu.wakeups, cpu.max_ns) = (None, Spread::default(), 0, 0);
                cpu.maxima = Ring::default();
            }
            (cpu.tid, cpu.follow, cpu.awaited_ns, cpu.asleep, cpu.release_ns) =
                (tid, follow, None, false, None);
            cpu.pause_ns = NO_PAUSE;
        }
        self.derived.sums.forget_numbers();
        self.derived.losses.renewals += 1;
        let (builder, paths) = begin(&decoder, &self.derived.cpus, self.last_ns);
        (self.decoder, self.builder, self.paths) = (decoder, builder, paths);
    }

    /// Takes pages that have come, by CPU; all events up to `until_ns` have.
    pub fn pages(&mut self, cpus: Vec<(u32, Vec<u8>)>, until_ns: i64) -> Result<(), Error> {
        let Self { decoder, builder, paths, merge, derived, formats, last_ns, .. } = self;
        let mut said = KernelEvent::NOTHING;
        merge.pass(formats, cpus, until_ns, &mut |merged| match merged {
            Merged::Event(event) => {
                derived.events += 1;
                if decoder.decode_into(&event, &mut said) {
                    *last_ns = said.ts_ns;
                    derived.event(&said, paths, builder, decoder);
                } else {
                    derived.losses.unreadable += 1;
                }
            }
            Merged::Lost(hole) => {
                derived.losses.holes += 1;
                derived.lost(hole, paths, builder, decoder);
            }
        })?;
        *last_ns = until_ns.max(*last_ns);
        Ok(())
    }

    /// Resets maxima and the worst events.
    pub fn reset(&mut self) {
        self.derived.worst = Worst::default();
        self.derived.sums.reset_maxima();
        for cpu in &mut self.derived.cpus {
            (cpu.max_ns, cpu.latencies, cpu.wakeups) = (0, Spread::default(), 0);
            cpu.maxima = Ring::default();
        }
    }

    /// Ends a second, and shows how things stand.
    pub fn second(&mut self) -> LiveView {
        let Self { derived, decoder, last_ns, began_ns, ended_ns, .. } = self;
        let view = LiveView {
            t_ns: *last_ns,
            began_ns: *began_ns,
            second_ns: *last_ns - std::mem::replace(ended_ns, *last_ns),
            cpus: derived.cpus.iter().map(|cpu| cpu_view(cpu, decoder)).collect(),
            rows: derived.sums.rows(),
            worst: derived.worst.all().to_vec(),
            losses: derived.losses,
            events: derived.events,
            self_ns: derived.self_ns,
        };
        derived.sums.second();
        derived.cpus.iter_mut().for_each(|cpu| cpu.maxima.second());
        view
    }
}

fn of_cpu(followed: &[Followed], cpu: u32) -> Option<&Followed> {
    followed.iter().find(|one| one.cpu == cpu)
}

fn begin(decoder: &Decoder, cpus: &[Cpu], now_ns: i64) -> (SpanBuilder, Paths) {
    let measured: Vec<_> = cpus.iter().map(|cpu| MeasuredCpu { cpu: cpu.number, tid: cpu.tid }).collect();
    let builder = SpanBuilder::new(now_ns, i64::MAX, &measured, decoder.known());
    let mut paths = Paths::of_each();
    for (place, one) in measured.iter().enumerate().filter(|(at, _)| cpus[*at].sleeps()) {
        let keep = Keep { worst: 0, sample: None };
        paths.add(place, *one, keep, decoder.known(), std::iter::empty());
    }
    (builder, paths)
}

fn cpu_view(cpu: &Cpu, decoder: &Decoder) -> CpuView {
    let running = cpu.running.map(|(task, since_ns)| Running {
        pid: task.pid,
        comm: decoder.labels().text(task.comm).to_owned(),
        policy: policy(task.prio),
        since_ns,
    });
    let latency = cpu.sleeps().then(|| {
        let histogram = cpu.latencies.histogram();
        Latency {
            tid: cpu.tid,
            comm: decoder.comm(cpu.tid).unwrap_or_default().to_owned(),
            n: cpu.wakeups,
            last_ns: cpu.last_ns.map(i64::unsigned_abs),
            // The histogram knows a range, the maximum is exact.
            p999_ns: histogram.value_at_quantile(0.999).min(cpu.max_ns),
            max_ns: cpu.max_ns,
        }
    });
    CpuView { cpu: cpu.number, running, latency, maxima_ns: cpu.maxima.longest() }
}

/// `F80`, `N0`, `D`; empty where it is not known. FIFO and RR are not distinguished.
fn policy(prio: Prio) -> String {
    match prio.number() {
        None => String::new(),
        Some(-2) => "stop".to_owned(),
        Some(-1) => "D".to_owned(),
        Some(number) => match prio.realtime() {
            Some(priority) => format!("F{priority}"),
            None => format!("N{}", number - 120),
        },
    }
}

impl Derived {
    fn event(
        &mut self,
        event: &KernelEvent,
        paths: &mut Paths,
        builder: &mut SpanBuilder,
        decoder: &Decoder,
    ) {
        let names = Names::of(decoder);
        self.releases(event.ts_ns, paths);
        self.follow(event, paths, &names);
        paths.event(event);
        builder.event(event, decoder.sets(), &mut |span| self.span(span, paths, &names));
        self.wakeups(paths, &names);
    }

    fn lost(&mut self, hole: Hole, paths: &mut Paths, builder: &mut SpanBuilder, decoder: &Decoder) {
        for cpu in &mut self.cpus {
            cpu.forget(paths);
            cpu.running = cpu.running.filter(|_| cpu.number != hole.cpu);
        }
        paths.lost(hole);
        let names = Names::of(decoder);
        builder.lost(hole, &mut |span| self.span(span, paths, &names));
        self.wakeups(paths, &names);
    }

    /// Begins wake-ups whose releases have come by now. Of those that wait too long only the
    /// latency is measured: what happened meanwhile is no longer kept.
    fn releases(&mut self, now_ns: i64, paths: &mut Paths) {
        for cpu in &mut self.cpus {
            if let Some(release_ns) = cpu.release_ns.filter(|release_ns| *release_ns <= now_ns) {
                cpu.release_ns = None;
                cpu.await_from(release_ns, paths);
            }
            if cpu.awaited_ns.is_some_and(|since_ns| now_ns - since_ns > MOST_AWAITED_NS) {
                paths.ran(cpu.tid, None);
            }
        }
    }

    /// Begins and ends wake-ups of the followed threads.
    fn follow(&mut self, event: &KernelEvent, paths: &mut Paths, names: &Names<'_>) {
        match event.what {
            What::Wake { pid, done: false, .. } => {
                let asleep = |cpu: &&mut Cpu| cpu.tid == pid && cpu.asleep && cpu.awaited_ns.is_none();
                for cpu in self.cpus.iter_mut().filter(asleep) {
                    match cpu.follow {
                        Follow::Requests => cpu.await_from(event.ts_ns, paths),
                        // Woken before its release, so by something else than its timer.
                        Follow::Releases { .. } => cpu.release_ns = None,
                        Follow::Loop => {}
                    }
                }
            }
            What::Switch { prev, runnable, next } => self.switch(event, (prev, runnable, next), paths, names),
            _ => {}
        }
    }

    fn switch(
        &mut self,
        event: &KernelEvent,
        (prev, runnable, next): (Task, bool, Task),
        paths: &mut Paths,
        names: &Names<'_>,
    ) {
        for cpu in self.cpus.iter_mut().filter(|cpu| cpu.tid != NOBODY) {
            if cpu.tid == prev.pid {
                cpu.asleep = !runnable;
                if cpu.asleep {
                    cpu.pause_ns = [event.ts_ns, i64::MAX];
                }
                cpu.release_ns = cpu.follow.next_release(event.ts_ns).filter(|_| cpu.asleep);
            }
            if cpu.tid == next.pid {
                (cpu.asleep, cpu.release_ns) = (false, None);
                cpu.pause_ns[1] = cpu.pause_ns[1].min(event.ts_ns);
                if let Some(from_ns) = cpu.awaited_ns.take() {
                    let here = cpu.number == event.cpu;
                    paths.ran(cpu.tid, here.then_some((event.cpu, event.ts_ns)));
                    if here {
                        let ns = event.ts_ns - from_ns;
                        cpu.latency(ns);
                        if ns > MOST_AWAITED_NS {
                            self.worst.without_parts(cpu.number, cpu.tid, from_ns, ns, names);
                        }
                    }
                }
            }
        }
        if let Some(cpu) = self.cpus.iter_mut().find(|cpu| cpu.number == event.cpu) {
            cpu.running = Some((next, event.ts_ns));
        }
    }

    /// Takes the wake-ups that are known in full by now.
    fn wakeups(&mut self, paths: &mut Paths, names: &Names<'_>) {
        for (place, path) in paths.take() {
            if let Some(cpu) = self.cpus.get(place) {
                self.worst.wakeup(cpu.number, cpu.tid, &path, names);
            }
        }
    }

    /// Takes a span that has ended.
    fn span(&mut self, span: &Span, paths: &mut Paths, names: &Names<'_>) {
        paths.span(span);
        if span.class == EventClass::SelfCaused {
            self.self_ns = self.self_ns.saturating_add(span.net_ns);
            return;
        }
        let Some(cpu) = self.cpus.iter_mut().find(|cpu| cpu.number == span.cpu) else { return };
        if cpu.pauses_at(span.t0_ns) {
            return;
        }
        self.sums.add(span, names);
        let followed = cpu.sleeps();
        // Where nobody is followed, what ran as a task is what the CPU is there for.
        let interferes = cpu.tid != NOBODY || span.class != EventClass::Switch;
        if interferes && !followed {
            cpu.maxima.add(span.net_ns);
        }
        if !followed {
            self.worst.remember(span);
            if interferes && span.counts && span.net_ns >= LEAST_WORST_NS {
                self.worst.event(span, names);
            }
        }
    }
}

impl Cpu {
    /// Whether wake-ups of a thread are looked at.
    fn sleeps(&self) -> bool {
        self.tid != NOBODY && self.follow != Follow::Loop
    }

    /// Whether its loop paused then.
    fn pauses_at(&self, t_ns: i64) -> bool {
        self.follow == Follow::Loop && (self.pause_ns[0]..self.pause_ns[1]).contains(&t_ns)
    }

    /// Its thread is to run from then on. Call it before the event that shows so.
    fn await_from(&mut self, release_ns: i64, paths: &mut Paths) {
        if paths.released(self.tid, release_ns) {
            self.awaited_ns = Some(release_ns);
        } else {
            paths.ran(self.tid, None);
        }
    }

    /// What its thread did last is not known any more.
    fn forget(&mut self, paths: &mut Paths) {
        if self.awaited_ns.take().is_some() {
            paths.ran(self.tid, None);
        }
        (self.asleep, self.release_ns) = (false, None);
    }

    fn latency(&mut self, ns: i64) {
        let ns = ns.max(0);
        self.last_ns = Some(ns);
        self.wakeups += 1;
        self.latencies.add(ns.unsigned_abs());
        self.max_ns = self.max_ns.max(ns.unsigned_abs());
        self.maxima.add(ns.unsigned_abs());
    }
}

#[cfg(test)]
mod tests;
