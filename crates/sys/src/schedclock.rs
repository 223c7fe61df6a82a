//! The scheduler's clock (`local_clock()`, what `rq_clock` and every SCHED_DEADLINE release live
//! in), read from user space.
//!
//! No system call returns it, but perf stamps its records with it by default. A software event that
//! counts nothing (`PERF_COUNT_SW_DUMMY`) gives access in two ways. Where the clock is a plain
//! conversion of the CPU's counter, the event's first page describes it (`cap_user_time_zero`,
//! `time_mult`, `time_shift`, `time_zero`: `perf_event_open(2)`). Elsewhere, as under kvm-clock,
//! the event requests a record of each change of the thread's name, and a change to the same name
//! is stamped.

use super::memory::Mapping;
use super::{clock, counter, sched};
use rustix::fd::{FromRawFd, OwnedFd};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Offsets in `struct perf_event_mmap_page` (`include/uapi/linux/perf_event.h`).
mod page {
    pub(super) const LOCK: usize = 8;
    pub(super) const CAPABILITIES: usize = 40;
    pub(super) const TIME_SHIFT: usize = 50;
    pub(super) const TIME_MULT: usize = 52;
    pub(super) const TIME_ZERO: usize = 64;
    pub(super) const TIME_CYCLES: usize = 80;
    pub(super) const TIME_MASK: usize = 88;
    pub(super) const DATA_HEAD: usize = 1024;
    pub(super) const DATA_TAIL: usize = 1032;
    pub(super) const DATA_OFFSET: usize = 1040;
    pub(super) const DATA_SIZE: usize = 1048;
}

/// Bits of the page's capabilities.
const CAP_USER_TIME: u64 = 1 << 3;
const CAP_USER_TIME_ZERO: u64 = 1 << 4;
const CAP_USER_TIME_SHORT: u64 = 1 << 5;

/// How the scheduler's clock follows from the CPU's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    /// ns = zero + (ticks · mult) >> shift.
    pub mult: u32,
    /// See `mult`.
    pub shift: u16,
    /// The clock at tick 0, ns.
    pub zero_ns: u64,
    /// Counters of less than 64 bits: a recent tick, and the mask of those that count.
    pub short: Option<(u64, u64)>,
}

impl Conversion {
    /// The clock at a tick, ns.
    pub fn ns(&self, ticks: u64) -> i64 {
        let ticks =
            self.short.map_or(ticks, |(recent, mask)| recent.wrapping_add(ticks.wrapping_sub(recent) & mask));
        let grown = (u128::from(ticks) * u128::from(self.mult)) >> self.shift;
        self.zero_ns.wrapping_add(grown as u64) as i64
    }

    /// ns a tick.
    pub fn ns_per_tick(&self) -> f64 {
        f64::from(self.mult) / 2f64.powi(i32::from(self.shift))
    }
}

/// The scheduler's clock and CLOCK_MONOTONIC at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Both {
    /// CLOCK_MONOTONIC, ns.
    pub mono_ns: i64,
    /// The scheduler's clock, ns.
    pub sched_ns: i64,
    /// The two lie at most this far apart, ns.
    pub error_ns: i64,
}

impl Both {
    /// The scheduler's clock minus CLOCK_MONOTONIC, ns.
    pub fn ahead_ns(&self) -> i64 {
        self.sched_ns - self.mono_ns
    }
}

/// The scheduler's clock of the thread that opened it. Where the kernel's clocks are not stable,
/// each CPU has its own.
#[derive(Debug)]
pub struct SchedClock {
    /// Keeps the event open.
    _event: OwnedFd,
    mapping: Mapping,
    conversion: Option<Conversion>,
    name: [u8; 16],
}

impl SchedClock {
    /// Opens it for the calling thread. EACCES where `kernel.perf_event_paranoid` forbids perf to
    /// users; ENOSYS and ENOENT without perf.
    pub fn open() -> io::Result<Self> {
        let event = dummy_event()?;
        let mapping = Mapping::new(&event, 2 * rustix::param::page_size())?;
        let mut name = [0u8; 16];
        // SAFETY: PR_GET_NAME writes at most 16 bytes.
        if unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut clock = Self { _event: event, mapping, conversion: None, name };
        clock.conversion = clock.read_conversion();
        clock.now_ns()?;
        Ok(clock)
    }

    /// How it follows from the CPU's counter, where it does.
    pub fn conversion(&self) -> Option<Conversion> {
        self.conversion
    }

    /// Its time, ns: one read of the counter, or a system call. ENODATA where the kernel stamped
    /// nothing.
    pub fn now_ns(&self) -> io::Result<i64> {
        match &self.conversion {
            Some(conversion) => Ok(conversion.ns(counter::read())),
            None => self.stamp().ok_or_else(|| io::Error::from_raw_os_error(libc::ENODATA)),
        }
    }

    /// Both clocks, from the tightest of `tries` brackets monotonic–scheduler–monotonic.
    pub fn both(&self, tries: u32) -> io::Result<Both> {
        let bracket = || -> io::Result<Both> {
            let before = clock::now_ns();
            let sched_ns = self.now_ns()?;
            let width = clock::now_ns() - before;
            Ok(Both { mono_ns: before + width / 2, sched_ns, error_ns: width / 2 + 1 })
        };
        let first = bracket()?;
        (1..tries).try_fold(first, |best, _| {
            let next = bracket()?;
            Ok(if next.error_ns < best.error_ns { next } else { best })
        })
    }

    fn read_conversion(&self) -> Option<Conversion> {
        // The page is a seqlock: an odd or changed count means that the kernel was writing.
        for _ in 0..100 {
            let before: u32 = self.field(page::LOCK);
            fence(Ordering::Acquire);
            let capabilities: u64 = self.field(page::CAPABILITIES);
            let short = (capabilities & CAP_USER_TIME_SHORT != 0)
                .then(|| (self.field(page::TIME_CYCLES), self.field(page::TIME_MASK)));
            let conversion = Conversion {
                mult: self.field(page::TIME_MULT),
                shift: self.field(page::TIME_SHIFT),
                zero_ns: self.field(page::TIME_ZERO),
                short,
            };
            fence(Ordering::Acquire);
            if before & 1 == 0 && self.field::<u32>(page::LOCK) == before {
                let wanted = CAP_USER_TIME | CAP_USER_TIME_ZERO;
                return (capabilities & wanted == wanted).then_some(conversion);
            }
        }
        None
    }

    /// Sets the thread's name to what it is, and takes the stamp of that.
    fn stamp(&self) -> Option<i64> {
        self.tail().store(self.head(), Ordering::Release);
        // SAFETY: the name is zero-terminated and 16 bytes long.
        unsafe { libc::prctl(libc::PR_SET_NAME, self.name.as_ptr()) };
        let (from, to) = (self.tail().load(Ordering::Relaxed), self.head());
        let size: u64 = self.field(page::DATA_SIZE);
        let size = if size == 0 { rustix::param::page_size() as u64 } else { size };
        // Each record is a multiple of 8 bytes, and so is the buffer; the stamp is the last word of
        // the last record.
        (to > from).then(|| {
            let offset: u64 = self.field(page::DATA_OFFSET);
            let offset = if offset == 0 { rustix::param::page_size() as u64 } else { offset };
            self.field::<u64>((offset + (to - 8) % size) as usize) as i64
        })
    }

    fn head(&self) -> u64 {
        self.word(page::DATA_HEAD).load(Ordering::Acquire)
    }

    fn tail(&self) -> &AtomicU64 {
        self.word(page::DATA_TAIL)
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offset is inside the first page, aligned, and both sides touch this word as a
        // whole only.
        unsafe { &*self.at(offset).cast::<AtomicU64>().as_ptr() }
    }

    fn field<T: Copy>(&self, offset: usize) -> T {
        debug_assert!(offset + size_of::<T>() <= self.mapping.bytes());
        // SAFETY: inside the mapping, plain integers; volatile because the kernel writes there.
        unsafe { self.at(offset).cast::<T>().as_ptr().read_volatile() }
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: every caller stays inside the mapping of two pages.
        unsafe { self.mapping.start().add(offset % self.mapping.bytes()) }
    }
}

/// A disabled-for-nothing software event of the calling thread that records changes of its name
/// with their time.
fn dummy_event() -> io::Result<OwnedFd> {
    const TYPE_SOFTWARE: u64 = 1;
    const COUNT_SW_DUMMY: u64 = 9;
    const SAMPLE_TIME: u64 = 1 << 2;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HV: u64 = 1 << 6;
    const COMM: u64 = 1 << 9;
    const SAMPLE_ID_ALL: u64 = 1 << 18;
    const FLAG_FD_CLOEXEC: u64 = 8;
    // `struct perf_event_attr` up to its size in Linux 4.1, which every later kernel accepts. The
    // first word is two 32-bit ones.
    let mut attr = [0u64; 14];
    let size = size_of_val(&attr) as u64;
    attr[0] =
        if cfg!(target_endian = "little") { TYPE_SOFTWARE | size << 32 } else { TYPE_SOFTWARE << 32 | size };
    attr[1] = COUNT_SW_DUMMY;
    attr[3] = SAMPLE_TIME;
    attr[5] = EXCLUDE_KERNEL | EXCLUDE_HV | COMM | SAMPLE_ID_ALL;
    // SAFETY: `attr` is a valid perf_event_attr of the size it states; the kernel only reads it.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), 0, -1, -1, FLAG_FD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Where the absolute deadline of the calling SCHED_DEADLINE thread is read.
#[derive(Debug)]
pub enum DeadlineReader {
    /// `sched_getattr(2)` with SCHED_GETATTR_FLAG_DL_DYNAMIC (6.19), in CLOCK_MONOTONIC.
    Attributes,
    /// `dl.deadline` of `/proc/thread-self/sched`, in the scheduler's clock.
    Proc(std::fs::File, SchedClock),
}

impl DeadlineReader {
    /// The best way that this kernel has; the reason where it has none. The calling thread must be
    /// under SCHED_DEADLINE.
    pub fn open() -> Result<Self, String> {
        if sched::absolute_deadline_ns().is_ok() {
            return Ok(Self::Attributes);
        }
        let path = "/proc/thread-self/sched";
        let file = std::fs::File::open(path).map_err(|error| format!("{path}: {error}"))?;
        if read_deadline(&file).is_none() {
            return Err(format!("{path} shows no dl.deadline"));
        }
        let clock = SchedClock::open()
            .map_err(|error| format!("the scheduler's clock cannot be read by perf: {error}"))?;
        Ok(Self::Proc(file, clock))
    }

    /// The absolute deadline in CLOCK_MONOTONIC, and how far it may be off, ns.
    pub fn read(&self) -> Option<(i64, i64)> {
        match self {
            Self::Attributes => sched::absolute_deadline_ns().ok().map(|deadline| (deadline, 0)),
            Self::Proc(file, clock) => {
                let deadline = read_deadline(file)?;
                let both = clock.both(2).ok()?;
                Some((deadline - both.ahead_ns(), both.error_ns))
            }
        }
    }

    /// Where it reads, for the record.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Attributes => "sched_getattr",
            Self::Proc(..) => "/proc/thread-self/sched",
        }
    }
}

/// The `dl.deadline` of an open `/proc/*/sched`. Allocates nothing: a measuring loop calls it.
fn read_deadline(file: &std::fs::File) -> Option<i64> {
    use std::os::unix::fs::FileExt;
    let mut text = [0u8; 4096];
    let length = file.read_at(&mut text, 0).ok()?;
    parse_deadline(&text[..length])
}

fn parse_deadline(text: &[u8]) -> Option<i64> {
    let line = text.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"dl.deadline"))?;
    let digits = line.iter().filter(|byte| byte.is_ascii_digit());
    // Zero: the thread has not been under SCHED_DEADLINE yet.
    let value =
        digits.fold(0i64, |value, digit| value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')));
    (value > 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_clocks_advance_alike() {
        let clock = match SchedClock::open() {
            Ok(clock) => clock,
            // A machine that forbids perf says so; that is all there is to test there.
            Err(error) => return assert!(error.raw_os_error().is_some()),
        };
        let first = clock.both(16).unwrap();
        clock::sleep_until(first.mono_ns + 50_000_000);
        let second = clock.both(16).unwrap();
        let apart = (second.ahead_ns() - first.ahead_ns()).abs();
        let bound = first.error_ns + second.error_ns + (second.mono_ns - first.mono_ns) / 1000;
        assert!(apart <= bound, "the clocks moved by {apart} ns against each other, bound {bound} ns");
    }

    #[test]
    fn the_stamp_by_record_and_the_conversion_are_one_clock() {
        let Ok(clock) = SchedClock::open() else {
            println!("skipped: the kernel gives no perf counter here");
            return;
        };
        let before = clock.now_ns().unwrap();
        let stamp = clock.stamp().unwrap();
        let after = clock.now_ns().unwrap();
        assert!((before..=after).contains(&stamp), "{before} {stamp} {after}");
    }

    #[test]
    fn the_deadline_is_found_among_other_lines() {
        let text = b"x (1, #threads: 1)\n---\nprio        :    -1\ndl.runtime    :     99\ndl.deadline   :   29802383572992\n";
        assert_eq!(parse_deadline(text), Some(29_802_383_572_992));
        assert_eq!(parse_deadline(b"prio : 120\n"), None);
        assert_eq!(parse_deadline(b"dl.deadline : 0\n"), None);
    }

    proptest! {
        #[test]
        fn the_conversion_is_the_kernels_in_two_parts(ticks in 0u64..1 << 56, mult in 1u32.., shift in 8u16..32, zero: u32) {
            let conversion = Conversion { mult, shift, zero_ns: u64::from(zero), short: None };
            let (quot, rem) = (ticks >> shift, ticks & ((1 << shift) - 1));
            let parts = u64::from(zero)
                .wrapping_add(quot.wrapping_mul(u64::from(mult)))
                .wrapping_add((rem * u64::from(mult)) >> shift);
            prop_assert_eq!(conversion.ns(ticks), parts as i64);
        }
    }
}
