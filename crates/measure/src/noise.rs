//! The noise probe: a busy loop that reads the CPU's counter and stores every gap that is longer
//! than a turn has any reason to be.
//!
//! The loop runs in stretches with pauses between them, so that neither RT throttling
//! (`sched_rt_runtime_us`) nor the fair server (6.12+) has to take the CPU from it: what they would
//! take is not noise of the machine but the price of hogging it. Each stretch is framed by pairs of
//! counter and CLOCK_MONOTONIC, between which gaps are placed in time, and by readings of what the
//! kernel counts for the thread (`own`).

mod drain;

use super::budgets::budgets;
use super::kind::{Drain, Loop, LoopResult, Place, Probe, Window, rehearsed};
use super::own::{self, Own, Reading};
use super::ring::Ring;
use drain::NoiseDrain;
use machine::Root;
use model::growth::ReadBy;
use model::probe::{NoiseDetail, NoiseRecord, ProbeDetail};
use model::run::ProbeRecord;
use model::sample::Policy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use sys::clock;
use sys::counter::{self, Counter, Pair};

/// Stamp = start of a gap in ticks, value = its length in ticks.
const GAP: u8 = 0;
/// Opens a stretch: stamp = ticks, value = error in ns; the [`CLOCK`] record follows.
const OPEN: u8 = 1;
/// Closes a stretch; like [`OPEN`].
const CLOSE: u8 = 2;
/// Follows [`OPEN`] and [`CLOSE`]: stamp = CLOCK_MONOTONIC ns of the same moment.
const CLOCK: u8 = 3;
/// A part of a stretch in which the loop should have run and could not: stamp = CLOCK_MONOTONIC ns
/// at which it began, value = its length in ns. It is a gap, and belongs to the stretch.
const LATE: u8 = 4;

/// How long before a stretch the probe wakes up, to spin until it begins: so long may its own
/// wake-up take without being taken for noise.
const LEAD_NS: i64 = 2_000_000;

/// Turns of the loop that calibration times.
const CALIBRATION_TURNS: usize = 4096;

/// The noise probe's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseSpec {
    /// Shortest gap stored, ns; 0 lets the probe choose (five turns of its loop, at least 500 ns).
    pub threshold_ns: u64,
    /// How long the loop runs at a stretch, ns.
    pub spin_ns: i64,
    /// How long it pauses between, ns.
    pub pause_ns: i64,
    /// Bytes copied each turn, as oslat's `memmove` workload does; 0 for none.
    pub memmove_bytes: u64,
    /// How long the loop runs before what it finds counts, ns; a part of the duration.
    pub preheat_ns: u64,
    /// Whether to subtract the smallest turn from every gap, as oslat's `--bias` does.
    pub bias: bool,
}

impl Probe for NoiseSpec {
    fn prepare(&self, place: Place) -> io::Result<Box<dyn Loop>> {
        // The loop is rehearsed, and its dial calibrated, under the policy.
        let dial = Dial {
            counter: Counter::Monotonic,
            ticks_per_ns: 1.0,
            threshold_ticks: u64::MAX,
            least_turn_ticks: 0,
        };
        let gear = Gear { dial, own: Own::open(place.cpu()) };
        Ok(Box::new(Noise { spec: self.clone(), gear }))
    }

    fn drain(&self, _policy: &Policy, start_ns: i64) -> Box<dyn Drain> {
        Box::new(NoiseDrain::new(start_ns + self.preheat_ns as i64))
    }

    fn complete(&self, record: &mut ProbeRecord) {
        record.t0_ns += self.preheat_ns as i64;
        if let ProbeDetail::Noise(NoiseDetail { noise: Some(noise), .. }) = &mut record.detail {
            (noise.throttling, noise.fair_server) = budgets(&Root::live(), record.cpu);
        }
    }
}

/// The measuring side.
struct Noise {
    spec: NoiseSpec,
    gear: Gear,
}

impl Loop for Noise {
    fn rehearse(&mut self, short: Window<'_>) {
        let Window { ring, duration_ns, releases, .. } = short;
        let dial = Dial::calibrate(&self.spec);
        // No gap is as long as this threshold: the ring, which nobody drains yet, cannot fill up.
        self.gear.dial = Dial { threshold_ticks: u64::MAX, ..dial };
        let preheat_ns = std::mem::take(&mut self.spec.preheat_ns);
        rehearsed(self, Window { ring, start_ns: clock::now_ns(), duration_ns, releases });
        self.spec.preheat_ns = preheat_ns;
        self.gear.dial = dial;
        store(ring, 0, 0, u64::MAX);
    }

    fn run(&mut self, window: Window<'_>) -> io::Result<LoopResult> {
        let Window { ring, start_ns, duration_ns, .. } = window;
        Ok(run(ring, &self.spec, &self.gear, start_ns, duration_ns))
    }

    fn counter(&self) -> Counter {
        self.gear.dial.counter
    }

    /// What else may take its CPU is for the other side to read.
    fn detail(&self) -> ProbeDetail {
        let Gear { dial, own } = &self.gear;
        let least_turn_ns = dial.least_turn_ns();
        let noise = NoiseRecord {
            workload_bytes: self.spec.memmove_bytes,
            preheat_ns: self.spec.preheat_ns,
            least_turn_ns,
            bias_ns: if self.spec.bias { least_turn_ns.round() as u64 } else { 0 },
            read_ns: read_costs(),
            smi: own.smi.name(),
            smi_counted: own.smi.read().is_some(),
            ..NoiseRecord::default()
        };
        let threshold_ns = dial.threshold_ns();
        ProbeDetail::Noise(NoiseDetail { threshold_ns, noise: Some(noise), ..NoiseDetail::default() })
    }
}

/// The counter that the loop reads, and what its ticks mean.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Dial {
    /// The counter.
    counter: Counter,
    /// Ticks in a ns.
    ticks_per_ns: f64,
    /// The shortest gap that is stored.
    threshold_ticks: u64,
    /// The smallest turn of the loop.
    least_turn_ticks: u64,
}

/// What the probe has prepared before its window.
#[derive(Debug)]
struct Gear {
    /// The counter.
    dial: Dial,
    /// What the kernel counts for the thread.
    own: Own,
}

impl Dial {
    /// Chooses the counter and measures it. Without a threshold (0) it takes five median turns, so
    /// that no ordinary turn is stored, but at least 500 ns: less than any interrupt costs.
    fn calibrate(spec: &NoiseSpec) -> Self {
        const LEAST_NS: f64 = 500.0;
        let counter = Counter::choose();
        let ticks_per_ns = ticks_per_ns(counter);
        let ticks = |ns: f64| (ns * ticks_per_ns).ceil() as u64;
        let turns = turns(counter, spec.memmove_bytes);
        let threshold_ticks = match spec.threshold_ns {
            0 => ticks(LEAST_NS).max(5 * turns[CALIBRATION_TURNS / 2]),
            asked => ticks(asked as f64),
        };
        Self { counter, ticks_per_ns, threshold_ticks, least_turn_ticks: turns[0] }
    }

    /// The smallest turn in ns.
    fn least_turn_ns(self) -> f64 {
        self.least_turn_ticks as f64 / self.ticks_per_ns
    }

    /// The threshold in ns.
    fn threshold_ns(self) -> u64 {
        (self.threshold_ticks as f64 / self.ticks_per_ns).round() as u64
    }
}

/// What one read of each counter costs on this CPU, ns, by name. An ordered read (RDTSCP) is what
/// others take; it may trap.
fn read_costs() -> BTreeMap<String, f64> {
    let cost = |counter: Counter| (counter.name().to_owned(), counter.read_cost_ns());
    let ordered = counter::ordered_read_cost_ns().map(|ns| ("rdtscp".to_owned(), ns));
    [cost(Counter::Cpu), cost(Counter::Monotonic)].into_iter().chain(ordered).collect()
}

/// Turns of the loop, in ticks, ascending.
fn turns(counter: Counter, memmove_bytes: u64) -> Vec<u64> {
    let mut load = Load::new(memmove_bytes);
    let mut turns = vec![0u64; CALIBRATION_TURNS];
    let mut last = tick(counter);
    for turn in &mut turns {
        load.iter_mut().for_each(Load::turn);
        let now = tick(counter);
        *turn = now.wrapping_sub(last);
        last = now;
    }
    turns.sort_unstable();
    turns
}

/// Counter ticks per ns over the next 10 ms.
fn ticks_per_ns(counter: Counter) -> f64 {
    let first = counter::pair(counter);
    clock::sleep_until(first.mono_ns + 10_000_000);
    let second = counter::pair(counter);
    (second.ticks - first.ticks) as f64 / (second.mono_ns - first.mono_ns) as f64
}

/// Runs stretches of `spin_ns` with pauses of `pause_ns` until the end or until asked to stop:
/// first those of the preheat, then, begun anew, those of the measurement. Only the latter's turns
/// count.
fn run(ring: &mut Ring, spec: &NoiseSpec, gear: &Gear, start_ns: i64, duration_ns: i64) -> LoopResult {
    let end_ns = start_ns + duration_ns;
    let measured_ns = start_ns + (spec.preheat_ns as i64).min(duration_ns);
    let mut load = Load::new(spec.memmove_bytes);
    if spec.preheat_ns > 0 {
        stretches(ring, spec, gear, &mut load, [start_ns, measured_ns], i64::MAX);
    }
    let limit_ns = ring.stop_over_ns();
    let iterations = stretches(ring, spec, gear, &mut load, [measured_ns, end_ns], limit_ns);
    LoopResult { t1_ns: clock::now_ns(), released: 0, iterations }
}

/// Stretches from the first time to the second, or until a gap of `limit_ns`; gives the turns of
/// the loop.
fn stretches(
    ring: &mut Ring,
    spec: &NoiseSpec,
    gear: &Gear,
    load: &mut Option<Load>,
    [start_ns, end_ns]: [i64; 2],
    limit_ns: i64,
) -> u64 {
    let Dial { counter, ticks_per_ns, threshold_ticks, .. } = gear.dial;
    let limits = Limits::of(gear.dial, limit_ns);
    let mut iterations = 0;
    let mut begin_ns = start_ns;
    // Whoever takes the CPU at the end of a stretch may keep it into the next; that time is in the
    // gap already.
    let mut covered_ns = start_ns;
    let mut mark = gear.own.read();
    // Stretches begin at set times: whoever holds the CPU at that time, or all through a stretch,
    // has taken it.
    while begin_ns < end_ns && !ring.stopped() {
        let close_ns = (begin_ns + spec.spin_ns).min(end_ns);
        // Without pauses the loop never gives up the CPU, even where a counter that is known badly
        // ended the last stretch too soon.
        if spec.pause_ns > 0 || begin_ns == start_ns {
            clock::sleep_until(begin_ns - LEAD_NS);
            mark = store_growth(ring, &gear.own, &mark, ReadBy::Pause);
        }
        let open = open_at(begin_ns, gear.dial);
        let from_ns = begin_ns.max(covered_ns);
        let late_ns = open.mono_ns.min(close_ns) - from_ns;
        if late_ns > 0 && (late_ns as f64 * ticks_per_ns) as u64 >= threshold_ticks {
            own::push(ring, from_ns as u64, late_ns as u64, LATE);
            if late_ns >= limit_ns {
                ring.stop();
                store_growth(ring, &gear.own, &mark, ReadBy::Stretch);
                break;
            }
        }
        if open.mono_ns < close_ns {
            frame(ring, OPEN, open);
            let until = open.ticks + ((close_ns - open.mono_ns) as f64 * ticks_per_ns) as u64;
            iterations += match (counter, &mut *load) {
                (Counter::Cpu, None) => spin(ring, counter::read, || {}, until, limits),
                (Counter::Monotonic, None) => spin(ring, monotonic, || {}, until, limits),
                (Counter::Cpu, Some(load)) => spin(ring, counter::read, || load.turn(), until, limits),
                (Counter::Monotonic, Some(load)) => spin(ring, monotonic, || load.turn(), until, limits),
            };
            let close = counter::pair(counter);
            frame(ring, CLOSE, close);
            mark = store_growth(ring, &gear.own, &mark, ReadBy::Stretch);
            covered_ns = booked(close.mono_ns);
        }
        begin_ns += spec.spin_ns + spec.pause_ns;
    }
    iterations
}

/// Stores how the thread's counters have grown since the last reading, and gives the new one.
fn store_growth(ring: &mut Ring, own: &Own, mark: &Reading, read_by: ReadBy) -> Reading {
    let now = own.read();
    own::report(mark, &now, read_by, |stamp, value, kind| own::push(ring, stamp, value, kind));
    now
}

/// Until when a stretch that follows without a pause is not to ask where the time has gone: the
/// bookkeeping behind the last one is the probe's own, unless it took so long that somebody else
/// had the CPU.
fn booked(close_ns: i64) -> i64 {
    const BOOKKEEPING_NS: i64 = 1_000_000;
    let now_ns = clock::now_ns();
    if now_ns - close_ns < BOOKKEEPING_NS { now_ns } else { close_ns }
}

/// Pairs counter and clock shortly before a stretch, and reads the counter until the stretch
/// begins. Gives the moment of the first read in it: the beginning, or later where somebody else
/// has the CPU.
fn open_at(begin_ns: i64, dial: Dial) -> Pair {
    let anchor = counter::pair(dial.counter);
    let ahead_ns = (begin_ns - anchor.mono_ns).max(0);
    let until = anchor.ticks + (ahead_ns as f64 * dial.ticks_per_ns) as u64;
    let mut ticks = tick(dial.counter);
    while ticks < until {
        ticks = tick(dial.counter);
    }
    let since_ns = (ticks.wrapping_sub(anchor.ticks) as f64 / dial.ticks_per_ns) as i64;
    Pair { ticks, mono_ns: anchor.mono_ns + since_ns, error_ns: anchor.error_ns }
}

/// What the loop does with gaps of some lengths, in ticks.
#[derive(Clone, Copy)]
struct Limits {
    /// It stores those at least so long.
    store: u64,
    /// It ends at the first of these.
    stop: u64,
}

impl Limits {
    fn of(dial: Dial, stop_over_ns: i64) -> Self {
        let stop = match stop_over_ns {
            i64::MAX => u64::MAX,
            // The drain places gaps with a better rate of the counter, and decides. What is so
            // little above the limit that the two may differ, it alone sees, a stretch later.
            ns => (ns as f64 * dial.ticks_per_ns * 1.001).ceil() as u64,
        };
        Self { store: dial.threshold_ticks, stop }
    }
}

/// The loop itself. A gap is measured from the read before it to the read after it, so that no time
/// lies between two gaps; storing one is part of the next turn.
#[inline(always)]
fn spin(ring: &mut Ring, read: impl Fn() -> u64, mut load: impl FnMut(), until: u64, limits: Limits) -> u64 {
    let mut turns = 0;
    let mut last = read();
    while last < until {
        load();
        let now = read();
        let gap = now.wrapping_sub(last);
        turns += 1;
        if gap >= limits.store && !store(ring, last, gap, limits.stop) {
            break;
        }
        last = now;
    }
    turns
}

/// Stores a gap, which may end the measurement; returns whether it goes on. Out of line, so that
/// the loop stays small.
#[cold]
#[inline(never)]
fn store(ring: &mut Ring, start: u64, gap: u64, stop: u64) -> bool {
    ring.push(start, gap, GAP);
    if gap >= stop {
        ring.stop();
    }
    !ring.stopped()
}

/// Frames must not get lost: without them no gap can be placed. The loop is not running, so there
/// is time to wait for room.
fn frame(ring: &mut Ring, kind: u8, pair: Pair) {
    own::push(ring, pair.ticks, u64::from(pair.error_ns), kind);
    own::push(ring, pair.mono_ns as u64, 0, CLOCK);
}

/// What a turn copies, forth and back: memory traffic and cache use, as an application's.
struct Load {
    bytes: Vec<u8>,
    forth: bool,
}

impl Load {
    fn new(bytes: u64) -> Option<Self> {
        (bytes > 0).then(|| Self { bytes: vec![1; 2 * bytes as usize], forth: false })
    }

    #[inline(always)]
    fn turn(&mut self) {
        let half = self.bytes.len() / 2;
        self.forth = !self.forth;
        let (from, to) = if self.forth { (0, half) } else { (half, 0) };
        self.bytes.copy_within(from..from + half, to);
        std::hint::black_box(&mut self.bytes);
    }
}

fn monotonic() -> u64 {
    clock::now_ns() as u64
}

fn tick(counter: Counter) -> u64 {
    match counter {
        Counter::Cpu => counter::read(),
        Counter::Monotonic => clock::now_ns() as u64,
    }
}
