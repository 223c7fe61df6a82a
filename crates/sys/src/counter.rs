//! The CPU's own counter: the cheapest clock there is, where it can be trusted.
//!
//! x86-64: RDTSC, never RDTSCP (guests may trap it). arm64: CNTVCT_EL0. Neither is ordered against
//! the surrounding code by itself; the noise loop wants every turn as short as it gets, so it reads
//! unfenced.

use super::clock;
use serde::{Deserialize, Serialize};

/// What a probe reads its values from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counter {
    /// The CPU's counter, in ticks of its own.
    Cpu,
    /// CLOCK_MONOTONIC through the vDSO; one tick is one ns.
    Monotonic,
}

/// A read dearer than this is a trap into a hypervisor, not a counter.
const TRAP_NS: f64 = 200.0;

impl Counter {
    /// The CPU's counter where a read is cheap, else CLOCK_MONOTONIC.
    pub fn choose() -> Self {
        if Self::Cpu.read_cost_ns() < TRAP_NS { Self::Cpu } else { Self::Monotonic }
    }

    /// The name that a run records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Monotonic => "CLOCK_MONOTONIC",
            Self::Cpu if cfg!(target_arch = "x86_64") => "tsc",
            Self::Cpu => "cntvct",
        }
    }

    /// Cost of one read: the minimum over 20 batches of 1,000.
    pub fn read_cost_ns(self) -> f64 {
        match self {
            Self::Cpu => batch_minimum_ns(|| {
                std::hint::black_box(read());
            }),
            Self::Monotonic => batch_minimum_ns(|| {
                std::hint::black_box(clock::now_ns());
            }),
        }
    }
}

/// The CPU's counter, in its own ticks.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn read() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 CPU; where it is disabled for user space the process is
    // killed, and `choose` ran first.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The CPU's counter, in its own ticks.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub fn read() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user space read CNTVCT_EL0 on every arm64 machine.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

/// The counter's frequency as the CPU reports it, Hz (`CNTFRQ_EL0`).
#[cfg(target_arch = "aarch64")]
pub fn nominal_hz() -> Option<u64> {
    let hz: u64;
    // SAFETY: Linux lets user space read CNTFRQ_EL0 on every arm64 machine.
    unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack)) };
    (hz > 0).then_some(hz)
}

/// x86 measures it at boot.
#[cfg(not(target_arch = "aarch64"))]
pub fn nominal_hz() -> Option<u64> {
    None
}

/// Cost of one RDTSCP, ns, where there is one. A hypervisor may trap it at a thousand times the
/// cost, so only a handful are read.
#[cfg(target_arch = "x86_64")]
pub fn ordered_read_cost_ns() -> Option<f64> {
    use core::arch::x86_64::{__cpuid, __rdtscp};
    const RDTSCP: u32 = 1 << 27;
    const READS: u32 = 4;
    (__cpuid(0x8000_0001).edx & RDTSCP != 0).then(|| {
        let batch = |_| {
            let start = clock::now_ns();
            for _ in 0..READS {
                let mut cpu = 0;
                // SAFETY: CPUID says that the CPU has it, and `cpu` is valid for writing.
                std::hint::black_box(unsafe { __rdtscp(&raw mut cpu) });
            }
            (clock::now_ns() - start) as f64 / f64::from(READS)
        };
        (0..8).map(batch).fold(f64::INFINITY, f64::min)
    })
}

/// arm64 has no such thing.
#[cfg(not(target_arch = "x86_64"))]
pub fn ordered_read_cost_ns() -> Option<f64> {
    None
}

/// Cost of one call of `read`, ns: the minimum over 20 batches of 1,000, so that an interruption of
/// one batch does not count.
pub fn batch_minimum_ns(mut read: impl FnMut()) -> f64 {
    const BATCH: u32 = 1000;
    let batches = (0..20).map(|_| {
        let start = clock::now_ns();
        (0..BATCH).for_each(|_| read());
        (clock::now_ns() - start) as f64 / f64::from(BATCH)
    });
    batches.fold(f64::INFINITY, f64::min)
}

/// A counter value and the CLOCK_MONOTONIC time of the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Counter ticks.
    pub ticks: u64,
    /// CLOCK_MONOTONIC, ns.
    pub mono_ns: i64,
    /// The two lie at most this far apart, ns.
    pub error_ns: u32,
}

/// Reads counter and clock together: the tightest of 16 brackets clock–counter–clock.
pub fn pair(counter: Counter) -> Pair {
    if counter == Counter::Monotonic {
        let now = clock::now_ns();
        return Pair { ticks: now as u64, mono_ns: now, error_ns: 0 };
    }
    let bracket = || {
        let before = clock::now_ns();
        let ticks = read();
        let width = clock::now_ns() - before;
        Pair {
            ticks,
            mono_ns: before + width / 2,
            error_ns: u32::try_from(width / 2 + 1).unwrap_or(u32::MAX),
        }
    };
    let first = bracket();
    (0..15)
        .map(|_| bracket())
        .fold(first, |best, next| if next.error_ns < best.error_ns { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_and_clock_advance_together() {
        let counter = Counter::choose();
        let first = pair(counter);
        clock::sleep_until(first.mono_ns + 2_000_000);
        let second = pair(counter);
        assert!(second.mono_ns - first.mono_ns >= 2_000_000);
        assert!(second.ticks > first.ticks);
    }
}
