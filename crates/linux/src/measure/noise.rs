//! The noise probe: a busy loop that reads the CPU's counter and stores every gap that is longer than a turn has any reason to be.
//!
//! The loop runs in stretches with pauses between them, so that neither RT throttling (`sched_rt_runtime_us`) nor the fair server
//! (6.12+) has to take the CPU from it: what they would take is not noise of the machine but the price of hogging it. Each stretch is
//! framed by pairs of counter and CLOCK_MONOTONIC, between which gaps are placed in time.

use super::ring::Ring;
use super::spec::{LoopResult, NoiseSpec};
use crate::sys::clock;
use crate::sys::counter::{self, Counter, Pair};

/// Stamp = start of a gap in ticks, value = its length in ticks.
pub const GAP: u8 = 0;
/// Opens a stretch: stamp = ticks, value = error in ns; the [`CLOCK`] record follows.
pub const OPEN: u8 = 1;
/// Closes a stretch; like [`OPEN`].
pub const CLOSE: u8 = 2;
/// Follows [`OPEN`] and [`CLOSE`]: stamp = CLOCK_MONOTONIC ns of the same moment.
pub const CLOCK: u8 = 3;
/// A part of a stretch in which the loop should have run and could not: stamp = CLOCK_MONOTONIC ns at which it began, value = its length
/// in ns. It is a gap, and belongs to the stretch.
pub const LATE: u8 = 4;

/// How long before a stretch the probe wakes up, to spin until it begins: so long may its own wake-up take without being taken for
/// noise.
const LEAD_NS: i64 = 2_000_000;

/// Turns of the loop that calibration times.
const CALIBRATION_TURNS: usize = 4096;

/// The counter that the loop reads, and what its ticks mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dial {
    /// The counter.
    pub counter: Counter,
    /// Ticks in a ns.
    pub ticks_per_ns: f64,
    /// The shortest gap that is stored.
    pub threshold_ticks: u64,
}

impl Dial {
    /// Chooses the counter and measures it. Without a threshold (0) it takes five median turns, so that no ordinary turn is stored, but
    /// at least 500 ns: less than any interrupt costs.
    pub fn calibrate(spec: &NoiseSpec) -> Self {
        const LEAST_NS: f64 = 500.0;
        let counter = Counter::choose();
        let ticks_per_ns = ticks_per_ns(counter);
        let ticks = |ns: f64| (ns * ticks_per_ns).ceil() as u64;
        let threshold_ticks = match spec.threshold_ns {
            0 => ticks(LEAST_NS).max(5 * median_turn(counter, spec.memmove_bytes)),
            asked => ticks(asked as f64),
        };
        Self { counter, ticks_per_ns, threshold_ticks }
    }

    /// The threshold in ns.
    pub fn threshold_ns(self) -> u64 {
        (self.threshold_ticks as f64 / self.ticks_per_ns).round() as u64
    }
}

/// The median turn of the loop, in ticks.
fn median_turn(counter: Counter, memmove_bytes: u64) -> u64 {
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
    turns[CALIBRATION_TURNS / 2]
}

/// Counter ticks per ns over the next 10 ms.
fn ticks_per_ns(counter: Counter) -> f64 {
    let first = counter::pair(counter);
    clock::sleep_until(first.mono_ns + 10_000_000);
    let second = counter::pair(counter);
    (second.ticks - first.ticks) as f64 / (second.mono_ns - first.mono_ns) as f64
}

/// Runs stretches of `spin_ns` with pauses of `pause_ns` until `end` or until told to stop.
pub fn run(ring: &mut Ring, spec: &NoiseSpec, dial: Dial, start_ns: i64, duration_ns: i64) -> LoopResult {
    let Dial { counter, ticks_per_ns, threshold_ticks } = dial;
    let end_ns = start_ns + duration_ns;
    let mut load = Load::new(spec.memmove_bytes);
    let mut iterations = 0;
    let mut begin_ns = start_ns;
    // Whoever takes the CPU at the end of a stretch may keep it into the next; that time is in the gap already.
    let mut covered_ns = start_ns;
    // Stretches begin at set times: whoever holds the CPU at that time, or all through a stretch, has taken it.
    while begin_ns < end_ns && !ring.stopped() {
        let close_ns = (begin_ns + spec.spin_ns).min(end_ns);
        let open = open_at(begin_ns, dial);
        let from_ns = begin_ns.max(covered_ns);
        let late_ns = open.mono_ns.min(close_ns) - from_ns;
        if late_ns > 0 && (late_ns as f64 * ticks_per_ns) as u64 >= threshold_ticks {
            push_or_wait(ring, from_ns as u64, late_ns as u64, LATE);
        }
        if open.mono_ns < close_ns {
            frame(ring, OPEN, open);
            let until = open.ticks + ((close_ns - open.mono_ns) as f64 * ticks_per_ns) as u64;
            iterations += match (counter, &mut load) {
                (Counter::Cpu, None) => spin(ring, counter::read, || {}, until, threshold_ticks),
                (Counter::Monotonic, None) => spin(ring, monotonic, || {}, until, threshold_ticks),
                (Counter::Cpu, Some(load)) => {
                    spin(ring, counter::read, || load.turn(), until, threshold_ticks)
                }
                (Counter::Monotonic, Some(load)) => {
                    spin(ring, monotonic, || load.turn(), until, threshold_ticks)
                }
            };
            let close = counter::pair(counter);
            frame(ring, CLOSE, close);
            covered_ns = close.mono_ns;
        }
        begin_ns += spec.spin_ns + spec.pause_ns;
    }
    LoopResult { t1_ns: clock::now_ns(), released: 0, iterations }
}

/// Wakes up shortly before a stretch, pairs counter and clock, and reads the counter until the stretch begins. Gives the moment of the
/// first read in it: the beginning, or later where somebody else has the CPU.
fn open_at(begin_ns: i64, dial: Dial) -> Pair {
    clock::sleep_until(begin_ns - LEAD_NS);
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

/// The loop itself. A gap is measured from the read before it to the read after it, so that no time lies between two gaps; storing
/// one is part of the next turn.
#[inline(always)]
fn spin(ring: &mut Ring, read: impl Fn() -> u64, mut load: impl FnMut(), until: u64, threshold: u64) -> u64 {
    let mut turns = 0;
    let mut last = read();
    while last < until {
        load();
        let now = read();
        let gap = now.wrapping_sub(last);
        if gap >= threshold {
            store(ring, last, gap);
        }
        last = now;
        turns += 1;
    }
    turns
}

/// Stores a gap; out of line, so that the loop stays small.
#[cold]
#[inline(never)]
pub(super) fn store(ring: &mut Ring, start: u64, gap: u64) {
    ring.push(start, gap, GAP);
}

fn frame(ring: &mut Ring, kind: u8, pair: Pair) {
    push_or_wait(ring, pair.ticks, u64::from(pair.error_ns), kind);
    push_or_wait(ring, pair.mono_ns as u64, 0, CLOCK);
}

/// Frames must not get lost: without them no gap can be placed. The loop is not running, so there is time to wait for room.
fn push_or_wait(ring: &mut Ring, stamp: u64, value: u64, kind: u8) {
    while !ring.push_or_wait(stamp, value, kind) && !ring.stopped() {
        clock::sleep_until(clock::now_ns() + 1_000_000);
    }
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
