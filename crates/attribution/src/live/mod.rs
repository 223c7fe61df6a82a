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

mod cpu;
pub mod long;
pub mod merge;
mod recent;
mod sums;
pub mod view;
pub mod wakeups;
mod worst;

use crate::Error;
use crate::attribute::paths::{Keep, Paths};
use crate::attribute::spread::Spread;
use crate::decode::Decoder;
use crate::holes::Hole;
use crate::spans::{MeasuredCpu, Span, SpanBuilder};
use crate::view::{KernelEvent, Task, What};
use cpu::Cpu;
use ftrace::Formats;
use long::{Long, LongEvent};
use merge::{Merge, Merged};
use model::EventClass;
use recent::Longest;
use sums::Sums;
use view::{LiveView, Losses, Ran};
use wakeups::{LateThread, Wakeups, Wanted, Woken};
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

/// What has been derived so far.
struct Derived {
    sums: Sums,
    worst: Worst,
    cpus: Vec<Cpu>,
    /// Events of the measured CPUs, those of others, and holes.
    losses: Losses,
    events: u64,
    self_ns: u64,
    long: Option<Long>,
}

/// The engine.
pub struct Live {
    decoder: Decoder,
    builder: SpanBuilder,
    paths: Paths,
    merge: Merge,
    derived: Derived,
    /// Of all threads that are wanted; none, until they are.
    wakeups: Option<Wakeups>,
    formats: Formats,
    last_ns: i64,
    began_ns: i64,
    /// When the last second ended.
    ended_ns: i64,
    most_texts: usize,
}

impl Live {
    /// For these CPUs, from `now_ns` on; of some, a thread's wake-ups are measured.
    pub fn new(decoder: Decoder, formats: Formats, cpus: &[u32], followed: &[Followed], now_ns: i64) -> Self {
        let cpu = |number: &u32| Cpu::new(*number, of_cpu(followed, *number));
        let derived = Derived {
            sums: Sums::default(),
            worst: Worst::default(),
            cpus: cpus.iter().map(cpu).collect(),
            losses: Losses::default(),
            events: 0,
            self_ns: 0,
            long: None,
        };
        let (builder, paths) = begin(&decoder, &derived.cpus, now_ns);
        let merge = Merge::default();
        Self {
            decoder,
            builder,
            paths,
            merge,
            derived,
            wakeups: None,
            formats,
            last_ns: now_ns,
            began_ns: now_ns,
            ended_ns: now_ns,
            most_texts: MOST_TEXTS,
        }
    }

    /// A new decoder is wanted at so many tasks or texts.
    pub fn hold_at_most(&mut self, texts: usize) {
        self.most_texts = texts;
    }

    /// Whether a new decoder should be made.
    pub fn is_full(&self) -> bool {
        self.decoder.labels().len().max(self.decoder.tasks().comms.len()) > self.most_texts
    }

    /// Goes on with a new decoder, and with other threads where `followed` says so. What has been
    /// summed stays; spans that are open are cut, and counted as such.
    pub fn renew(&mut self, decoder: Decoder, followed: &[Followed]) {
        for cpu in &mut self.derived.cpus {
            let one = of_cpu(followed, cpu.number);
            let (tid, follow) = one.map_or((NOBODY, Follow::Requests), |one| (one.tid, one.follow));
            if (tid, follow) != (cpu.tid, cpu.follow) {
                (cpu.last_ns, cpu.latencies, cpu.wakeups, cpu.max_ns) = (None, Spread::default(), 0, 0);
                cpu.maxima = Longest::default();
            }
            (cpu.tid, cpu.follow, cpu.awaited_ns, cpu.asleep, cpu.release_ns) =
                (tid, follow, None, false, None);
            cpu.pause_ns = NO_PAUSE;
        }
        self.derived.sums.forget_numbers();
        self.wakeups.iter_mut().for_each(Wakeups::lost);
        self.derived.losses.renewals += 1;
        let (builder, paths) = begin(&decoder, &self.derived.cpus, self.last_ns);
        (self.decoder, self.builder, self.paths) = (decoder, builder, paths);
    }

    /// Measures the wake-ups of these threads too, from here on; one that takes longer than
    /// `limit_ns` is late.
    pub fn measure(&mut self, wanted: Wanted, limit_ns: u64) {
        let cpus: Vec<u32> = self.derived.cpus.iter().map(|cpu| cpu.number).collect();
        self.wakeups = Some(Wakeups::new(&cpus, wanted, limit_ns));
    }

    /// Remembers interference that lasts longer than this, from here on.
    pub fn remember_longer(&mut self, limit_ns: u64) {
        self.derived.long = Some(Long::new(limit_ns));
    }

    /// What lasted longer since the last call.
    pub fn take_long(&mut self) -> Vec<LongEvent> {
        self.derived.long.as_mut().map(Long::take).unwrap_or_default()
    }

    /// Threads that are measured by their numbers from here on.
    pub fn measure_tids(&mut self, tids: Vec<i32>) {
        self.wakeups.iter_mut().for_each(|wakeups| wakeups.set_tids(tids.clone()));
    }

    /// Threads that were late since the last call.
    pub fn take_late(&mut self) -> Vec<LateThread> {
        self.wakeups.as_mut().map(Wakeups::take_late).unwrap_or_default()
    }

    /// All wake-ups since the last call. Call it before [`Live::renew`].
    pub fn take_latencies(&mut self) -> Vec<Woken> {
        let labels = self.decoder.labels();
        self.wakeups.as_mut().map(|wakeups| wakeups.take_latencies(labels)).unwrap_or_default()
    }

    /// Wake-ups of which not all was recorded.
    pub fn unjudged(&self) -> u64 {
        self.wakeups.as_ref().map_or(0, Wakeups::unjudged)
    }

    /// Takes pages that have come, by CPU; all events up to `until_ns` have.
    pub fn pages(&mut self, cpus: Vec<(u32, Vec<u8>)>, until_ns: i64) -> Result<(), Error> {
        let Self { decoder, builder, paths, merge, derived, wakeups, formats, last_ns, .. } = self;
        let mut said = KernelEvent::NOTHING;
        merge.pass(formats, cpus, until_ns, &mut |merged| match merged {
            Merged::Event(event) => {
                derived.events += 1;
                if decoder.decode_into(&event, &mut said) {
                    *last_ns = said.ts_ns;
                    derived.event(&said, paths, builder, decoder);
                    wakeups.iter_mut().for_each(|wakeups| wakeups.event(&said, decoder.labels()));
                } else {
                    derived.losses.unreadable += 1;
                }
            }
            Merged::Lost(hole) => {
                derived.losses.holes += 1;
                derived.lost(hole, paths, builder, decoder);
                wakeups.iter_mut().for_each(Wakeups::lost);
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
            cpu.maxima = Longest::default();
        }
    }

    /// Ends a second, and shows how things stand.
    pub fn second(&mut self) -> LiveView {
        let Self { derived, decoder, last_ns, began_ns, ended_ns, .. } = self;
        let view = LiveView {
            t_ns: *last_ns,
            began_ns: *began_ns,
            second_ns: *last_ns - std::mem::replace(ended_ns, *last_ns),
            cpus: derived.cpus.iter().map(|cpu| cpu.view(decoder)).collect(),
            rows: derived.sums.rows(),
            worst: derived.worst.all().to_vec(),
            losses: derived.losses,
            events: derived.events,
            self_ns: derived.self_ns,
        };
        derived.second();
        view
    }

    /// Ends a second, and shows what there was in it: for who sums it up himself.
    pub fn second_by_row(&mut self, each: &mut dyn FnMut(Ran<'_>)) {
        self.derived.sums.each_of_now(each);
        self.ended_ns = self.last_ns;
        self.derived.second();
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

impl Derived {
    /// The next second begins.
    fn second(&mut self) {
        self.sums.second();
        self.cpus.iter_mut().for_each(|cpu| cpu.maxima.second());
    }

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
        self.long.iter_mut().for_each(|long| long.span(span, names));
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

#[cfg(test)]
mod tests;
