//! What the kernel counts for the measuring thread itself, read by it at the borders of its
//! stretches: never inside the loop.
//!
//! `/proc/<pid>/schedstat` (Linux `Documentation/scheduler/sched-stats.rst`): CPU time, time spent
//! ready but not running, times it got a CPU. The second counts whoever had the CPU instead,
//! throttling and the fair server included; neither a hypervisor nor an interrupt nor an SMI shows
//! there. `getrusage(2)` distinguishes the loop's voluntary switches (none) from involuntary ones.

use super::ring::Ring;
use super::smi::Smi;
use model::growth::{Growth, ReadBy};
use model::usage::Usage;
use rustix::io::pread;
use std::fs::File;
use sys::clock;

/// First record of an interval: stamp = its start, CLOCK_MONOTONIC ns; value = [`ReadBy`].
pub(crate) const BEGAN: u8 = 5;
/// stamp = its end, CLOCK_MONOTONIC ns; value = SMIs, or [`NOT_READ`].
pub(crate) const ENDED: u8 = 6;
/// stamp = growth of the run delay, ns; value = times the thread got a CPU, or [`NOT_READ`] for
/// both.
pub(crate) const DELAY: u8 = 7;
/// stamp = voluntary context switches; value = involuntary ones.
pub(crate) const SWITCHES: u8 = 8;
/// stamp = minor faults; value = major faults.
pub(crate) const FAULTS: u8 = 9;
/// Last record: stamp = CPU time, ns.
pub(crate) const CPU_TIME: u8 = 10;
/// Stands for a counter that this machine does not have: the largest value that a record holds.
pub(crate) const NOT_READ: u64 = (1 << 44) - 1;

/// The open files.
#[derive(Debug)]
pub(crate) struct Own {
    schedstat: Option<File>,
    /// The counter of SMIs.
    pub smi: Smi,
}

/// One reading.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    t_ns: i64,
    delay: Option<[u64; 2]>,
    usage: Usage,
    cpu_ns: u64,
    smi: Option<u64>,
}

impl Own {
    /// Opens what there is, for the calling thread on this CPU.
    pub(crate) fn open(cpu: u32) -> Self {
        Self { schedstat: File::open("/proc/thread-self/schedstat").ok(), smi: Smi::open(cpu) }
    }

    /// Reads all of it; a few system calls.
    pub(crate) fn read(&self) -> Reading {
        let usage = clock::thread_usage().unwrap_or_default();
        let mut text = [0u8; 96];
        let delay = self.schedstat.as_ref().and_then(|file| {
            let bytes = pread(file, &mut text, 0).ok()?;
            run_delay(std::str::from_utf8(&text[..bytes]).ok()?)
        });
        let cpu_ns = clock::thread_cpu_ns() as u64;
        Reading { t_ns: clock::now_ns(), delay, usage, cpu_ns, smi: self.smi.read() }
    }
}

/// Run delay in ns and arrivals, of the three numbers of schedstat. All zero: this kernel does not
/// count.
pub(crate) fn run_delay(schedstat: &str) -> Option<[u64; 2]> {
    let mut words = schedstat.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let (cpu_ns, delay_ns, arrivals) = (words.next()??, words.next()??, words.next()??);
    (cpu_ns + arrivals > 0).then_some([delay_ns, arrivals])
}

/// Stores how the counters grew from one reading to the next. `store` waits for room: without its
/// other records one is of no use.
pub(crate) fn report(
    earlier: &Reading,
    later: &Reading,
    read_by: ReadBy,
    mut store: impl FnMut(u64, u64, u8),
) {
    let grown = |kind: fn(&Reading) -> u64| kind(later).saturating_sub(kind(earlier));
    let smi = earlier.smi.zip(later.smi).map_or(NOT_READ, |(before, after)| after.saturating_sub(before));
    let delay = earlier.delay.zip(later.delay);
    let [delay_ns, arrivals] = delay.map_or([NOT_READ; 2], |(before, after)| {
        std::array::from_fn(|at| after[at].saturating_sub(before[at]))
    });
    store(earlier.t_ns as u64, read_by as u64, BEGAN);
    store(later.t_ns as u64, smi, ENDED);
    store(delay_ns, arrivals, DELAY);
    let Usage { faults, switches } = later.usage - earlier.usage;
    store(switches.voluntary, switches.involuntary, SWITCHES);
    store(faults.minor, faults.major, FAULTS);
    store(grown(|one| one.cpu_ns), 0, CPU_TIME);
}

/// Stores a record of [`report`] in the ring, waiting for room.
pub(crate) fn push(ring: &mut Ring, stamp: u64, value: u64, kind: u8) {
    while !ring.push_or_wait(stamp, value, kind) && !ring.stopped() {
        clock::sleep_until(clock::now_ns() + 1_000_000);
    }
}

/// Puts the records of [`report`] together again.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    growth: Growth,
}

impl Assembler {
    /// Takes a record; the last of an interval gives its growth.
    pub(crate) fn add(&mut self, stamp: u64, value: u64, kind: u8) -> Option<Growth> {
        let read = |count: u64| (count != NOT_READ).then_some(count);
        let growth = &mut self.growth;
        match kind {
            BEGAN => {
                let read_by = if value == ReadBy::Pause as u64 { ReadBy::Pause } else { ReadBy::Stretch };
                *growth = Growth { t0_ns: stamp as i64, read_by, ..Growth::default() };
            }
            ENDED => (growth.t1_ns, growth.smi) = (stamp as i64, read(value)),
            DELAY => (growth.run_delay_ns, growth.arrivals) = (read(value).and(Some(stamp)), read(value)),
            SWITCHES => (growth.voluntary, growth.involuntary) = (Some(stamp), Some(value)),
            FAULTS => (growth.minor_faults, growth.major_faults) = (Some(stamp), Some(value)),
            CPU_TIME => {
                growth.cpu_ns = Some(stamp);
                return Some(std::mem::take(growth));
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::usage::{Faults, Switches};

    #[test]
    fn what_is_stored_of_an_interval_is_put_together_again() {
        let earlier = Reading { t_ns: 100, delay: Some([5, 1]), cpu_ns: 40, ..Reading::default() };
        let later = Reading {
            t_ns: 900,
            delay: Some([55, 3]),
            usage: Usage {
                faults: Faults { minor: 3, major: 0 },
                switches: Switches { voluntary: 1, involuntary: 2 },
            },
            cpu_ns: 740,
            smi: Some(9),
        };
        let mut assembler = Assembler::default();
        let mut whole = Vec::new();
        report(&earlier, &later, ReadBy::Pause, |stamp, value, kind| {
            whole.extend(assembler.add(stamp, value, kind));
        });
        let expected = Growth {
            t0_ns: 100,
            t1_ns: 900,
            read_by: ReadBy::Pause,
            run_delay_ns: Some(50),
            arrivals: Some(2),
            voluntary: Some(1),
            involuntary: Some(2),
            minor_faults: Some(3),
            major_faults: Some(0),
            cpu_ns: Some(700),
            ..Growth::default()
        };
        assert_eq!(whole, [expected]);
    }

    #[test]
    fn a_kernel_that_counts_no_delays_is_not_one_without_delays() {
        assert_eq!(run_delay("12000 2142547 3\n"), Some([2_142_547, 3]));
        assert_eq!(run_delay("0 0 0\n"), None);
        assert_eq!(run_delay("12 x 3"), None);
        assert_eq!(run_delay(""), None);
    }

    #[test]
    fn this_thread_can_be_read() {
        let own = Own::open(0);
        let (first, second) = (own.read(), own.read());
        assert!(second.t_ns >= first.t_ns && second.cpu_ns >= first.cpu_ns);
    }
}
