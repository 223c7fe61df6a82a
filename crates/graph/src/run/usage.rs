//! What the processes of a graph use while they run, from `/proc/PID/stat` and `/proc/PID/status`
//! (`proc(5)`).

use crate::results::resources::Used;
use machine::Root;
use serde::{Deserialize, Serialize};

/// Clock ticks of `/proc/PID/stat` a second: 100 on every architecture that Linux's user interface
/// knows (`USER_HZ`).
const TICKS_HZ: f64 = 100.0;

/// What a process used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProcessUse {
    /// Its name in the graph.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// CPU time of user and kernel so far, ms, to ten of them.
    pub cpu_ms: u64,
    /// Peak resident memory, KiB.
    pub rss_peak_kib: u64,
    /// Resident memory, KiB.
    pub rss_kib: u64,
    /// Address space, KiB.
    pub vsz_kib: u64,
}

impl ProcessUse {
    /// Samples the process; one that is gone keeps its last values.
    pub(super) fn look(&mut self, root: &Root) {
        let status = root.maybe(&format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let kib = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|rest| rest.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok())
        };
        self.rss_peak_kib = kib("VmHWM").unwrap_or(0).max(self.rss_peak_kib);
        self.rss_kib = kib("VmRSS").unwrap_or(self.rss_kib);
        self.vsz_kib = kib("VmSize").unwrap_or(self.vsz_kib);
        let stat = root.maybe(&format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        if let Some(ticks) = cpu_ticks(&stat) {
            self.cpu_ms = (ticks as f64 * 1_000.0 / TICKS_HZ) as u64;
        }
    }
}

/// Fields 14 and 15, counted behind the name, which may hold anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let behind = stat.rsplit_once(')')?.1;
    let mut fields = behind.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// Rows for `resources.txt`: all processes together, one row per sample.
#[derive(Debug)]
pub(super) struct Watch {
    root: Root,
    /// The processes.
    pub(super) processes: Vec<ProcessUse>,
    /// The rows so far.
    pub(super) rows: Vec<Used>,
    cpus: usize,
    last: (i64, u64),
}

/// Sampling interval, ns: the default of ros2-performance.
const STEP_NS: i64 = 1_000_000_000;

impl Watch {
    /// Begins with a row of zeros, as ros2-performance does.
    pub(super) fn begin(processes: Vec<ProcessUse>, cpus: usize) -> Self {
        Self { root: Root::live(), processes, rows: vec![Used::default()], cpus: cpus.max(1), last: (0, 0) }
    }

    /// Samples when it is time; `elapsed_ns` counts from the start.
    pub(super) fn look(&mut self, elapsed_ns: i64, at_once: bool) {
        if elapsed_ns <= self.last.0 || (!at_once && elapsed_ns < self.last.0 + STEP_NS) {
            return;
        }
        self.processes.iter_mut().for_each(|one| one.look(&self.root));
        let sum = |of: fn(&ProcessUse) -> u64| self.processes.iter().map(of).sum::<u64>();
        let cpu_ms = sum(|one| one.cpu_ms);
        let (before_ns, before_ms) = self.last;
        let used_ms = cpu_ms.saturating_sub(before_ms) as f64;
        let passed_ms = (elapsed_ns - before_ns) as f64 / 1e6;
        self.rows.push(Used {
            time_ms: (elapsed_ns / 1_000_000) as u64,
            cpu_percent: used_ms / (passed_ms * self.cpus as f64) * 100.0,
            rss_kib: sum(|one| one.rss_peak_kib),
            vsz_kib: sum(|one| one.vsz_kib),
        });
        self.last = (elapsed_ns, cpu_ms);
    }

    /// What was used before the start is not the run's.
    pub(super) fn start(&mut self) {
        self.processes.iter_mut().for_each(|one| one.look(&self.root));
        self.last = (0, self.processes.iter().map(|one| one.cpu_ms).sum());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_is_no_field() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 133 0 0 0 12 30 0 0 20 0 1 0 5 1 1";
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(cpu_ticks("7 (a"), None);
    }

    #[test]
    fn this_process_has_memory() {
        let mut own = ProcessUse { pid: std::process::id(), ..ProcessUse::default() };
        own.look(&Root::live());
        assert!(own.rss_peak_kib >= own.rss_kib && own.rss_kib > 0 && own.vsz_kib > own.rss_kib);
    }
}
