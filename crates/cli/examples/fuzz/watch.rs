//! The watch over the fuzzer's threads: how long each execution has been running, and how much
//! memory the process has.

use super::Campaign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// An execution of this length hangs: the corpus has no seed that takes a hundredth of it.
const HANG: Duration = Duration::from_secs(10);
/// More than every bound inside the readers together.
const MOST_KIB: u64 = 1 << 20;
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// What a thread is doing.
#[derive(Default)]
pub(crate) struct Slot {
    execution: AtomicU64,
    /// ms since 1970; 0 before the first, `u64::MAX` after the last.
    since_ms: AtomicU64,
}

impl Slot {
    pub(crate) fn begin(&self, execution: u64) {
        self.execution.store(execution, Ordering::Relaxed);
        self.since_ms.store(now_ms(), Ordering::Relaxed);
    }

    pub(crate) fn rest(&self) {
        self.since_ms.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Looks every half second, until every thread rests. A hang or too much memory ends the process:
/// threads cannot be ended.
pub(crate) fn until_all_rest(campaign: &Campaign<'_>, slots: &[Slot], line: impl Fn()) {
    let mut last_line = Instant::now();
    while slots.iter().any(|slot| slot.since_ms.load(Ordering::Relaxed) != u64::MAX) {
        std::thread::sleep(Duration::from_millis(500));
        let now = now_ms();
        let hangs = |slot: &&Slot| {
            let since = slot.since_ms.load(Ordering::Relaxed);
            since != 0 && since != u64::MAX && now.saturating_sub(since) > HANG.as_millis() as u64
        };
        let execution = |slot: &Slot| slot.execution.load(Ordering::Relaxed);
        if let Some(slot) = slots.iter().find(hangs) {
            campaign.failed(execution(slot), "hang");
            line();
            std::process::exit(1);
        }
        if memory_kib("VmRSS:") > MOST_KIB {
            slots.iter().for_each(|slot| campaign.failed(execution(slot), "too much memory, perhaps"));
            line();
            std::process::exit(1);
        }
        if last_line.elapsed() > BETWEEN_LINES {
            line();
            last_line = Instant::now();
        }
    }
}

/// Time this thread has had a CPU, by the first number of its schedstat
/// (Documentation/scheduler/sched-stats.rst): what neighbours take is not in it. 0 where the kernel
/// does not report it.
pub(crate) fn thread_cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// A line of /proc/self/status, KiB; 0 where there is none.
pub(crate) fn memory_kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_millis() as u64)
}
