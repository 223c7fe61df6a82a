//! Known causes, provoked one by one with their times: what tests of attribution compare with.
//!
//! A thread of this process spins on the measured CPU; another one, elsewhere, does something whose
//! effect there is known, waits, and does it again. Sources: membarrier(2); mprotect(2), which
//! flushes TLBs of all CPUs that run the process (arch/x86/mm/tlb.c); `/proc/sys/vm/stat_refresh`,
//! a work item for each CPU (mm/vmstat.c); `/proc/sys/kernel/sched_schedstats`, a static key
//! (kernel/sched/core.c), whose change patches code and has every CPU synchronise; a write to a
//! pipe that a thread on the measured CPU reads. Then the spinning ends, and a thread on the idle
//! CPU sleeps: by a high-resolution timer, and by one of the wheel, which kernels with
//! `kernel.timer_migration` let expire on a CPU that is busy anyway (`get_nohz_timer_target`,
//! kernel/sched/core.c).

mod sleep;

use model::Cpus;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use sys::{Error, clock, sched};

/// Between two provocations, so that the effects of one are over.
const APART_NS: i64 = 6_000_000;
/// What is known to take effect at once takes it within this time after the call returned.
const SETTLE_NS: i64 = 3_000_000;
const SCHEDSTATS: &str = "/proc/sys/kernel/sched_schedstats";
/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED` and its registration (include/uapi/linux/membarrier.h).
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// What can be provoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A memory barrier on every CPU that runs the process.
    Membarrier,
    /// A TLB flush on every CPU that runs the process.
    Mprotect,
    /// A work item on every CPU.
    StatRefresh,
    /// Code patched, and every CPU synchronised.
    StaticKey,
    /// A task woken on the measured CPU.
    Wake,
    /// A task of the measured CPU, idle otherwise, sleeps until a time.
    Timer,
    /// It waits for what does not come, until it gives up.
    Wheel,
}

/// All of them.
pub const KINDS: [Kind; 7] = [
    Kind::Membarrier,
    Kind::Mprotect,
    Kind::StatRefresh,
    Kind::StaticKey,
    Kind::Wake,
    Kind::Timer,
    Kind::Wheel,
];

/// One provocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provoked {
    /// What.
    pub kind: Kind,
    /// CLOCK_MONOTONIC before it, ns.
    pub t0_ns: i64,
    /// CLOCK_MONOTONIC when its effects are over, ns.
    pub t1_ns: i64,
}

/// One sleep until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slept {
    /// When it was to end, CLOCK_MONOTONIC, ns.
    pub release_ns: i64,
    /// When it had ended.
    pub ran_ns: i64,
}

/// Everything that was provoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// Where.
    pub cpu: u32,
    /// The thread that spun there.
    pub spinner: i32,
    /// The thread that was woken there.
    pub wakee: i32,
    /// The thread that slept there.
    pub sleeper: i32,
    /// Who did the rest.
    pub tid: i32,
    /// Where that ran.
    pub from: u32,
    /// One by one.
    pub provoked: Vec<Provoked>,
    /// What the sleeper measured.
    pub slept: Vec<Slept>,
}

/// Provokes each kind `times` times on `cpu` from `from`. The caller records.
pub fn provoke(cpu: u32, from: u32, times: u32) -> Result<Truth, Error> {
    sched::pin(&Cpus::one(from)).map_err(|source| Error::os("run on", format!("CPU {from}"), source))?;
    let stop = Arc::new(AtomicBool::new(false));
    let (spinner, spinning) = start(cpu, "spinner", Arc::clone(&stop), |stop| {
        while !stop.load(Ordering::Relaxed) {
            sys::relax::relax();
        }
    })?;
    let (mut wake, sleep) =
        std::io::pipe().map(|(sleep, wake)| (wake, sleep)).map_err(os("make", "a pipe"))?;
    let (wakee, sleeping) = start(cpu, "wakee", Arc::clone(&stop), move |_| {
        let mut sleep = sleep;
        let mut byte = [0u8];
        while sleep.read(&mut byte).is_ok_and(|read| read == 1) {}
    })?;
    let provoked = each(times, &mut wake);
    stop.store(true, Ordering::Relaxed);
    drop(wake);
    for thread in [spinning, sleeping] {
        thread.join().map_err(|_| Error::failed("a thread", "it panicked"))?;
    }
    let (tid, mut provoked) = (sched::tid(), provoked?);
    let (sleeper, sleeps) = sleep::provoke(cpu, times)?;
    provoked.extend(sleeps.iter().map(|(one, _)| *one));
    let slept = sleeps.iter().filter_map(|(_, slept)| *slept).collect();
    Ok(Truth { cpu, spinner, wakee, sleeper, tid, from, provoked, slept })
}

/// A thread on the measured CPU, and its number.
pub(super) fn start<T: Send + 'static>(
    cpu: u32,
    name: &str,
    stop: Arc<AtomicBool>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<(i32, std::thread::JoinHandle<T>), Error> {
    let number = Arc::new(AtomicI32::new(0));
    let tid_slot = Arc::clone(&number);
    let body = move || {
        let there = sched::pin(&Cpus::one(cpu)).is_ok();
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        tid_slot.store(if there { tid } else { -1 }, Ordering::Release);
        work(&stop)
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body).map_err(os("start", name))?;
    loop {
        match number.load(Ordering::Acquire) {
            0 => clock::sleep_until(clock::now_ns() + 1_000_000),
            -1 => return Err(Error::failed(name, format!("it cannot run on CPU {cpu}"))),
            tid => return Ok((tid, thread)),
        }
    }
}

pub(super) fn os(action: &'static str, what: &str) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.to_owned();
    move |source| Error::os(action, what, source)
}

fn each(times: u32, wake: &mut impl Write) -> Result<Vec<Provoked>, Error> {
    membarrier(REGISTER_PRIVATE_EXPEDITED)?;
    let page = Page::new()?;
    let schedstats = fs::read_to_string(SCHEDSTATS).ok();
    let provoked = in_turn(times, wake, &page, schedstats.is_some());
    if let Some(old) = schedstats {
        put(SCHEDSTATS, old.trim())?;
    }
    provoked
}

fn in_turn(times: u32, wake: &mut impl Write, page: &Page, schedstats: bool) -> Result<Vec<Provoked>, Error> {
    let mut provoked = Vec::new();
    for number in 0..times {
        for kind in KINDS.into_iter().filter(|kind| !matches!(kind, Kind::Timer | Kind::Wheel)) {
            let t0_ns = clock::now_ns();
            match kind {
                Kind::Membarrier => membarrier(PRIVATE_EXPEDITED)?,
                Kind::Mprotect => page.flush()?,
                Kind::StatRefresh => put("/proc/sys/vm/stat_refresh", "1")?,
                Kind::StaticKey if !schedstats => continue,
                Kind::StaticKey => put(SCHEDSTATS, ["1", "0"][number as usize % 2])?,
                Kind::Wake => wake.write_all(b"x").map_err(os("write", "a pipe"))?,
                Kind::Timer | Kind::Wheel => continue,
            }
            let t1_ns = clock::now_ns() + SETTLE_NS;
            provoked.push(Provoked { kind, t0_ns, t1_ns });
            clock::sleep_until(t0_ns + APART_NS);
        }
    }
    Ok(provoked)
}

fn put(path: &str, value: &str) -> Result<(), Error> {
    fs::write(path, value).map_err(os("write", path))
}

fn membarrier(command: libc::c_int) -> Result<(), Error> {
    // SAFETY: membarrier takes numbers and touches no memory of the caller.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if result < 0 { Err(os("ask for", "a memory barrier")(std::io::Error::last_os_error())) } else { Ok(()) }
}

/// A page whose protection is taken away while it is in use.
struct Page(*mut std::ffi::c_void);

const PAGE: usize = 4096;

impl Page {
    fn new() -> Result<Self, Error> {
        // SAFETY: a new private mapping overlaps nothing.
        let page = unsafe {
            mmap_anonymous(std::ptr::null_mut(), PAGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        page.map(Self).map_err(|error| os("map", "a page")(error.into()))
    }

    /// Writes to the page and forbids writing: the translation that is in use has to go everywhere.
    fn flush(&self) -> Result<(), Error> {
        let protect = |flags| {
            // SAFETY: the page is this struct's own, and nobody holds a reference into it.
            unsafe { mprotect(self.0, PAGE, flags) }.map_err(|error| os("protect", "a page")(error.into()))
        };
        protect(MprotectFlags::READ | MprotectFlags::WRITE)?;
        // SAFETY: as above; the page is writable now.
        unsafe { self.0.cast::<u8>().write_volatile(1) };
        protect(MprotectFlags::READ)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the page is this struct's own.
        let _ = unsafe { munmap(self.0, PAGE) };
    }
}
