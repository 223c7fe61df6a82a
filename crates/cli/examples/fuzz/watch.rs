//! The watch over the fuzzer's threads: how long each execution has been running, and how much
//! memory the process has.

use super::campaign::Campaign;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// An execution of this length hangs: the corpus has no seed that takes a hundredth of it.
const HANG: Duration = Duration::from_secs(10);
/// More than every bound inside the readers together.
const MOST_KIB: u64 = 1 << 20;
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// What a thread is doing.
#[derive(Default)]
pub(crate) struct Slot {
    input: Mutex<Vec<u8>>,
    /// Executions begun; `u64::MAX` after the last.
    begun: AtomicU64,
}

impl Slot {
    pub(crate) fn begin(&self, input: &[u8]) {
        let mut kept = self.input.lock().unwrap();
        kept.clear();
        kept.extend_from_slice(input);
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }
}

/// Says at its end that a thread rests.
pub(crate) struct Rests<'a>(pub(crate) &'a Slot);

impl Drop for Rests<'_> {
    fn drop(&mut self) {
        self.0.begun.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Looks every half second, until every thread rests. A hang or too much memory ends the process:
/// threads cannot be ended. What counts for a hang is the process' own CPU time, so that a busy
/// machine is none.
pub(crate) fn until_all_rest(campaign: &Campaign<'_>, slots: &[Slot]) {
    let mut last_line = Instant::now();
    let mut since: Vec<(u64, Duration)> = vec![(0, process_cpu()); slots.len()];
    let limit = HANG * slots.len() as u32;
    while slots.iter().any(|slot| slot.begun() != u64::MAX) {
        std::thread::sleep(Duration::from_millis(500));
        for (slot, (execution, at)) in slots.iter().zip(&mut since) {
            let (begun, now) = (slot.begun(), process_cpu());
            if begun == u64::MAX || begun != *execution {
                (*execution, *at) = (begun, now);
            } else if now - *at > limit {
                end(campaign, [slot], "hang");
            }
        }
        if memory_kib("VmRSS:") > MOST_KIB {
            end(campaign, slots, "too much memory, perhaps");
        }
        if last_line.elapsed() > BETWEEN_LINES {
            eprintln!("{}", campaign.line());
            campaign.keep();
            last_line = Instant::now();
        }
    }
}

fn end<'a>(campaign: &Campaign<'_>, slots: impl IntoIterator<Item = &'a Slot>, what: &str) {
    slots.into_iter().for_each(|slot| campaign.failed(&slot.input.lock().unwrap(), what));
    eprintln!("{}", campaign.line());
    std::process::exit(1);
}

/// Time this thread has had a CPU: what neighbours take is not in it.
pub(crate) fn thread_cpu() -> Duration {
    cpu(rustix::time::ClockId::ThreadCPUTime)
}

fn process_cpu() -> Duration {
    cpu(rustix::time::ClockId::ProcessCPUTime)
}

fn cpu(clock: rustix::time::ClockId) -> Duration {
    rustix::time::clock_gettime(clock).try_into().unwrap()
}

/// A line of /proc/self/status, KiB; 0 where there is none.
pub(crate) fn memory_kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
