//! What a thread has used and waited: CPU time by its clock, voluntary switches by
//! /proc/thread-self/status.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The number after `--rounds` on the command line.
pub(crate) fn rounds(default: u64) -> u64 {
    let mut words = std::env::args().skip_while(|word| word != "--rounds");
    words.nth(1).and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// CPU time of the calling thread.
#[allow(dead_code, reason = "not every bench is timed")]
pub(crate) fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// How often the calling thread has given up its CPU to wait for something; 0 where the kernel does
/// not report it.
#[allow(dead_code, reason = "not every bench has threads")]
pub(crate) fn waits() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let switches = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    switches.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
