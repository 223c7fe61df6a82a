//! CPUs kept busy: while they leave their scheduling domain, and once all is applied.
//!
//! **Leaving.** A CPU that is idle with its tick stopped at that moment stays in the kernel's mask
//! of idle CPUs (`nohz.idle_cpus_mask`): only the tick of a busy CPU takes it out
//! (`nohz_balancer_kick`), and a CPU without a domain never gets that far. Until it goes offline,
//! the others then send it their idle load balancing: an IPI and a softirq each time. Known since
//! 2023 (Zhang Rui, "sched/fair: Skip cpus with no sched domain attached during NOHZ idle
//! balance"), and the order of the checks in `kernel/sched/fair.c` is the same today.
//!
//! **Settling.** Deferrable timers of an idle CPU wait for its next tick (`kernel/time/timer.c`,
//! TIMER_DEFERRABLE), and the work that they queue with them, such as the update of memory
//! statistics. Set before isolation, they would come minutes after it. Two busy threads are what
//! keeps the tick on full-dynticks CPUs, so that all that is due comes at once.
//!
//! The threads are a process of their own, which joins the group that becomes the partition: all
//! others are moved away before the domains are rebuilt, and an instant of idleness is enough.

use crate::enter;
use model::Cpus;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sys::{Error, clock, sched, spawn};

/// The words by which the process is called, before the CPUs.
const WORDS: [&str; 2] = ["internal", "occupy"];
/// Several ticks, also at 100 Hz.
const LONG_ENOUGH_NS: i64 = 50_000_000;
/// A CPU that somebody else holds so long is not idle anyway.
const WAIT_NS: i64 = 300_000_000;
/// Nobody occupies CPUs longer, come what may.
const LIMIT_NS: i64 = 10 * clock::SECOND_NS;

/// Busy threads a CPU.
const THREADS: usize = 2;

/// A process with busy threads on each CPU, until dropped; none where it could not be started,
/// which costs no more than the disturbance it would have spared.
#[derive(Debug, Default)]
pub struct Occupied {
    child: Option<Child>,
}

impl Occupied {
    /// Returns when all threads have run for several ticks, or cannot.
    pub(super) fn start(program: &Path, cpus: &Cpus) -> Self {
        let mut command = Command::new(program);
        command.args(WORDS).arg(cpus.to_string()).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        spawn::die_with_parent(&mut command);
        let mut child = command.spawn().ok();
        if let Some(mut said) = child.as_mut().and_then(|child| child.stdout.take()) {
            let _ = said.read(&mut [0]);
        }
        Self { child }
    }

    /// Moves the process into a control group. That the kernel refuses is no error of the change at
    /// hand.
    pub fn join(&self, group: &str) {
        if let Some(child) = &self.child {
            let _ = fs::write(format!("{group}/cgroup.procs"), child.id().to_string());
        }
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The work of the process: keep the CPUs busy, report once they are, continue until killed.
pub fn occupy(cpus: &str) -> Result<(), Error> {
    let cpus: Cpus = cpus.parse().map_err(|error| Error::failed("occupying CPUs", error))?;
    let begun = clock::now_ns();
    let ready = Arc::new(AtomicUsize::new(0));
    enter::onto(&cpus).map_err(|error| Error::os("run on CPUs", &cpus, error))?;
    for cpu in cpus.iter().flat_map(|cpu| [cpu; THREADS]) {
        let ready = Arc::clone(&ready);
        std::thread::spawn(move || spin(cpu, begun + LIMIT_NS, &ready));
    }
    while ready.load(Ordering::Relaxed) < cpus.len() * THREADS && clock::now_ns() < begun + WAIT_NS {
        clock::sleep_until(clock::now_ns() + 2_000_000);
    }
    let mut out = io::stdout();
    out.write_all(b".").and_then(|()| out.flush()).map_err(|error| Error::os("write", "stdout", error))?;
    clock::sleep_until(begun + LIMIT_NS);
    Ok(())
}

fn spin(cpu: u32, until_ns: i64, ready: &AtomicUsize) {
    let pinned = sched::pin(&Cpus::one(cpu)).is_ok();
    let enough = clock::now_ns() + LONG_ENOUGH_NS;
    while pinned && clock::now_ns() < enough {}
    ready.fetch_add(1, Ordering::Relaxed);
    while pinned && clock::now_ns() < until_ns {}
}
