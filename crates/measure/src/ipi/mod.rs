//! The IPI probe: how long it takes one CPU to make a sleeping thread run on another.
//!
//! A timer that expires on the measured CPU itself, cyclictest's only event, never shows this (F.
//! Cerqueira and B. Brandenburg, "A Comparison of Scheduling Latency in Linux, PREEMPT-RT, and
//! LITMUS-RT", OSPERT 2013, §II). One process a target CPU: the measuring thread is the target; a
//! second thread, pinned to each sending CPU in turn, wakes it. Pairs run one after the other,
//! targets too.

mod exchange;
pub mod method;
mod stamps;

pub use method::Method;
pub use stamps::{Trip, too_vague};

use super::batch::{self, Batch, BatchDrain, Finished};
use super::kind::{Drain, Loop, Place, Probe, Window};
use super::offset::{self, Offset, Table};
use super::ring::Ring;
use exchange::{Heard, Line, Pace, Said};
use method::Channel;
use model::Cpus;
use model::probe::{IpiDetail, ProbeDetail, WakeUpsRecord};
use model::sample::{Policy, flag};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use sys::counter::{self, Counter, Pair};
use sys::{clock, sched};

/// The columns of its samples, all i64. `how` is 0 where `value_ns` is the way `there_ns`, 1 where
/// it is half of the round trip.
pub const COLUMNS: [&str; 9] =
    ["from", "to", "method", "how", "there_ns", "back_ns", "slept", "offset_ns", "bound_ns"];

/// Between wake-ups of a target that spins: it must not hog its CPU for longer than it has to.
const SPIN_INTERVAL_NS: i64 = 20_000;

/// The IPI probe's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpiSpec {
    /// The CPUs that wake it, one after the other.
    pub from: Vec<u32>,
    /// The methods, one after the other.
    pub methods: Vec<Method>,
    /// Wake-ups a pair and method.
    pub count: u32,
    /// Of these, the first so many are stored, and every statistic excludes them.
    pub warm_up: u32,
    /// Interval of wake-ups, ns.
    pub interval_ns: i64,
    /// Whether a SCHED_OTHER task keeps both CPUs busy.
    pub busy: bool,
    /// Begins so long after the window's start, ns: the targets before it have their turn first.
    pub offset_ns: i64,
}

impl Probe for IpiSpec {
    fn stays(&self) -> bool {
        false
    }

    fn columns(&self) -> Vec<String> {
        COLUMNS.map(str::to_owned).to_vec()
    }

    fn prepare(&self, place: Place) -> io::Result<Box<dyn Loop>> {
        let spec = self.clone();
        let wake_ups = WakeUpsRecord { interval_ns: spec.interval_ns as u64, busy: spec.busy };
        let detail = ProbeDetail::Ipi(IpiDetail { wake_ups: Some(wake_ups), ..IpiDetail::default() });
        Ok(Batch::boxed(detail, move |window: Window<'_>| run(&spec, &place, window)))
    }

    fn drain(&self, _policy: &Policy, _start_ns: i64) -> Box<dyn Drain> {
        Box::new(BatchDrain::default())
    }
}

/// Measures every pair, and stores its samples.
fn run(spec: &IpiSpec, order: &Place, window: Window<'_>) -> io::Result<Finished> {
    let Window { ring, start_ns, duration_ns, .. } = window;
    let until_ns = start_ns + duration_ns;
    let mut finished = Finished::default();
    batch::wait_until(ring, start_ns + spec.offset_ns);
    method::block_signal()?;
    for from in &spec.from {
        if ring.stopped() || clock::now_ns() >= until_ns {
            break;
        }
        pair(ring, spec, order, *from, until_ns, &mut finished)?;
    }
    finished.result.t1_ns = clock::now_ns();
    Ok(finished)
}

/// The facts of a pair that its samples carry.
#[derive(Clone, Copy)]
struct Facts {
    from: u32,
    to: u32,
    offset: Offset,
    ns_per_tick: f64,
    begin: Pair,
}

fn pair(
    ring: &mut Ring,
    spec: &IpiSpec,
    order: &Place,
    from: u32,
    until_ns: i64,
    finished: &mut Finished,
) -> io::Result<()> {
    let counter = Counter::choose();
    let lines = spec.methods.iter().map(|method| {
        Ok(Line { there: Channel::new(*method)?, back: Channel::new(*method)?, over: AtomicBool::new(false) })
    });
    let lines = lines.collect::<io::Result<Vec<_>>>()?;
    let tables = [Table::default(), Table::default()];
    let ready = AtomicU32::new(0);
    let load = spec.busy.then(|| Load::start(&[order.cpu(), from])).transpose()?;
    let begin = counter::pair(counter);
    let stopped = || ring.stopped();
    let paces = spec.methods.iter().map(|method| Pace {
        count: spec.count,
        interval_ns: if method.sleeps() { spec.interval_ns } else { SPIN_INTERVAL_NS.min(spec.interval_ns) },
        until_ns,
        sleeps: method.sleeps(),
    });
    let paces: Vec<Pace> = paces.collect();
    let (said, heard) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let set_up = enter(from, &order.policy);
            lines.iter().for_each(|line| line.back.enter());
            ready.store(if set_up.is_ok() { 1 } else { 2 }, Ordering::Release);
            set_up?;
            let before = offset::lead(&tables[0], counter);
            let said =
                lines.iter().zip(&paces).map(|(line, pace)| exchange::send(line, counter, *pace, &stopped));
            let said = said.collect::<io::Result<Vec<Said>>>()?;
            Ok::<_, io::Error>((before, said, offset::lead(&tables[1], counter)))
        });
        lines.iter().for_each(|line| line.there.enter());
        while ready.load(Ordering::Acquire) == 0 {
            clock::sleep_until(clock::now_ns() + 100_000);
        }
        let mut heard = Vec::new();
        if ready.load(Ordering::Acquire) == 1 {
            offset::follow(&tables[0], counter);
            for line in &lines {
                heard.push(exchange::answer(line, counter, spec.count)?);
            }
            offset::follow(&tables[1], counter);
        }
        let said = sender.join().map_err(|_| io::Error::other("the sending thread died"))?;
        Ok::<_, io::Error>((said, heard))
    })?;
    drop(load);
    let (before, said, after) =
        said.map_err(|error| io::Error::new(error.kind(), format!("cannot send from CPU {from}: {error}")))?;
    let end = counter::pair(counter);
    let ns_per_tick =
        (end.mono_ns - begin.mono_ns) as f64 / end.ticks.wrapping_sub(begin.ticks).max(1) as f64;
    let offsets = offset::offset(&before).zip(offset::offset(&after));
    let (before, after) =
        offsets.ok_or_else(|| io::Error::other("no round of the ping-pong came to its end"))?;
    let facts = Facts { from, to: order.cpu(), offset: offset::between(before, after), ns_per_tick, begin };
    for ((method, said), heard) in spec.methods.iter().zip(said).zip(heard) {
        store(ring, spec, *method, facts, &said, &heard, finished);
    }
    Ok(())
}

/// What the sending thread, and the busy ones, do first.
fn enter(cpu: u32, policy: &Policy) -> io::Result<()> {
    sched::pin(&Cpus::one(cpu))?;
    // A policy that is refused is refused to the measuring thread, too, which says so.
    let _ = sys::policy::set_policy(policy);
    Ok(())
}

/// Turns the stamps of a method into samples. Wake-ups that were sent and not heard are counted as
/// missed.
fn store(
    ring: &mut Ring,
    spec: &IpiSpec,
    method: Method,
    facts: Facts,
    said: &Said,
    heard: &Heard,
    finished: &mut Finished,
) {
    let Facts { from, to, offset, ns_per_tick, begin } = facts;
    let trips: Vec<Trip> = (said.stamps.iter().zip(&heard.stamps))
        .map(|(&[sent, returned], &[received, answered])| Trip { sent, received, answered, returned })
        .collect();
    let ns = |ticks: i64| (ticks as f64 * ns_per_tick).round() as i64;
    let half = too_vague(&trips, offset);
    let bound_ns = (offset.bound as f64 * ns_per_tick).ceil() as i64;
    for (number, (trip, slept)) in trips.iter().zip(&heard.slept).enumerate() {
        let (there, back) = (trip.there(offset), trip.back(offset));
        let value = if half { trip.half() } else { there };
        // The clock was paired with the counter of the target, which is ahead of the sender's by
        // the offset.
        let since = trip.sent.wrapping_add_signed(offset.ticks).wrapping_sub(begin.ticks) as i64;
        let flags = if number < spec.warm_up as usize { flag::WARM_UP } else { 0 };
        let own = [
            i64::from(from),
            i64::from(to),
            method.code(),
            i64::from(half),
            ns(there),
            ns(back),
            i64::from(*slept),
            ns(offset.ticks),
            bound_ns,
        ];
        batch::push(ring, begin.mono_ns + ns(since), ns(value), flags, 0, &own);
    }
    finished.result.released += said.stamps.len() as u64;
    finished.used = finished.used + said.used + heard.used;
}

/// SCHED_OTHER tasks that do nothing but run, one a CPU; they end when this is dropped.
struct Load {
    over: std::sync::Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Load {
    fn start(cpus: &[u32]) -> io::Result<Self> {
        let over = std::sync::Arc::new(AtomicBool::new(false));
        let started = std::sync::Arc::new(AtomicU32::new(0));
        let mut threads = Vec::new();
        for cpu in cpus.iter().copied() {
            let (over, started) = (over.clone(), started.clone());
            threads.push(std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
                let set_up =
                    sys::policy::set_policy(&Policy::other()).and_then(|()| sched::pin(&Cpus::one(cpu)));
                started.fetch_add(1, Ordering::Release);
                while set_up.is_ok() && !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })?);
        }
        while (started.load(Ordering::Acquire) as usize) < cpus.len() {
            clock::sleep_until(clock::now_ns() + 100_000);
        }
        Ok(Self { over, threads })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
