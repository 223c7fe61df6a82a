//! The other core: what reaches it while a load runs elsewhere, by the kernel's own counters. A
//! busy victim is a loop of the ordinary policy; an idle one is nothing.

use crate::common::Failed;
use model::Cpus;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Inter-processor interrupts, as `/proc/interrupts` describes them on x86 and arm64.
const KINDS: [(&str, &str); 3] = [
    ("calls", "Function call interrupts"),
    ("TLB flushes", "TLB shootdowns"),
    ("reschedules", "Rescheduling interrupts"),
];

/// What the kernel has counted on the victim's CPU since boot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    at: Instant,
    /// In the order of [`KINDS`].
    ipis: [u64; 3],
    /// Switches away from a busy victim that it had not asked for; none where it is idle.
    switches: Option<u64>,
}

/// What has reached the CPU in a window, per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effect {
    /// In the order of [`KINDS`].
    pub(crate) ipis: [f64; 3],
    pub(crate) switches: Option<f64>,
}

impl Effect {
    /// All interrupts together.
    pub(crate) fn all_ipis(&self) -> f64 {
        self.ipis.iter().sum()
    }

    /// `calls 12.0, TLB flushes 0.0, reschedules 3.5`.
    pub(crate) fn by_kind(all: &[Self]) -> String {
        let of = |at: usize| crate::common::median(all.iter().map(|effect| effect.ipis[at]).collect());
        let kinds = KINDS.iter().enumerate().map(|(at, (name, _))| format!("{name} {:.1}", of(at)));
        kinds.collect::<Vec<_>>().join(", ")
    }
}

/// A CPU that is looked at.
pub(crate) struct Victim {
    pub(crate) cpu: u32,
    busy: Option<Busy>,
}

struct Busy {
    over: Arc<AtomicBool>,
    tid: i32,
    thread: Option<JoinHandle<()>>,
}

impl Victim {
    pub(crate) fn start(cpu: u32, is_busy: bool) -> Result<Self, Failed> {
        let busy = if is_busy { Some(Busy::start(cpu)?) } else { None };
        Ok(Self { cpu, busy })
    }

    pub(crate) fn counts(&self) -> Result<Counts, Failed> {
        let text = fs::read_to_string("/proc/interrupts")?;
        let rows = machine::cpu_table(&text, Some(&Cpus::one(self.cpu)))
            .ok_or_else(|| Failed(format!("/proc/interrupts has no column of CPU {}", self.cpu)))?;
        let of = |(_, described): (&str, &str)| {
            let rows = rows.iter().filter(|row| row.text.ends_with(described));
            rows.flat_map(|row| row.counts.values()).sum()
        };
        let switches = self.busy.as_ref().map(|busy| switches(busy.tid)).transpose()?;
        Ok(Counts { at: Instant::now(), ipis: KINDS.map(of), switches })
    }
}

impl Counts {
    /// What came until `later`.
    pub(crate) fn until(&self, later: &Self) -> Effect {
        let seconds = later.at.duration_since(self.at).as_secs_f64().max(1e-3);
        let per_s = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
        let ipis = std::array::from_fn(|at| per_s(self.ipis[at], later.ipis[at]));
        let switches = self.switches.zip(later.switches).map(|(before, after)| per_s(before, after));
        Effect { ipis, switches }
    }
}

impl Busy {
    fn start(cpu: u32) -> Result<Self, Failed> {
        let (over, tid) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI32::new(0)));
        let (seen, known) = (Arc::clone(&over), Arc::clone(&tid));
        let thread = std::thread::spawn(move || {
            let pinned = sys::sched::pin(&Cpus::one(cpu)).is_ok();
            known.store(if pinned { sys::sched::tid() } else { -1 }, Ordering::Release);
            while pinned && !seen.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        while tid.load(Ordering::Acquire) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        match tid.load(Ordering::Acquire) {
            -1 => Err(Failed(format!("cannot run on CPU {cpu}"))),
            tid => Ok(Self { over, tid, thread: Some(thread) }),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn switches(tid: i32) -> Result<u64, Failed> {
    let text = fs::read_to_string(format!("/proc/self/task/{tid}/status"))?;
    let count = text.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    count
        .and_then(|count| count.trim().parse().ok())
        .ok_or_else(|| Failed::because("no count of switches in /proc/self/task/TID/status"))
}
