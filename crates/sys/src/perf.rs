//! Event counters of the calling thread (`perf_event_open(2)`): hardware where there is a PMU, the
//! kernel's software counters, and getrusage(2) where neither may be used.
//!
//! Which counters there are is found out once, before any measuring ([`usable`]); a measuring
//! thread then opens exactly those. A value is read from the counter's page in user space where the
//! kernel maps it (x86: RDPMC), else by read(2). A counter that did not run all the time between
//! two reads was multiplexed: its difference is refused, because a scaled one is a guess that no
//! single job supports.

use super::clock;
use model::usage::Usage;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Raw, Software};
use perf_event::{Builder, Counter, ReadFormat, Sampler};
use rustix::fd::BorrowedFd;
use serde::{Deserialize, Serialize};
use std::os::fd::AsRawFd;
use std::str::FromStr;
use std::{fmt, io};

/// The most counters of a thread.
pub const MOST: usize = 12;

/// What is to be counted: a known name, or a name of one's own with the CPU's number for the event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Lower-case letters, digits and underscores: it becomes the name of a column.
    pub name: String,
    /// The event as the CPU's manual numbers it (perf's `rHEX`), if not the known one of that name.
    pub raw: Option<u64>,
}

/// Where a counter's values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The PMU, in user space and kernel.
    Hardware,
    /// The PMU, in user space only: `kernel.perf_event_paranoid` allows no more.
    HardwareUser,
    /// The kernel's software counters.
    Software,
    /// `getrusage(2)`, which needs no right.
    Usage,
}

impl Source {
    /// The word that a run records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::HardwareUser => "hardware, user space only",
            Self::Software => "software",
            Self::Usage => "getrusage",
        }
    }
}

/// An event that can be counted here, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// The event.
    pub event: Event,
    /// Where its values come from.
    pub source: Source,
}

/// The known names, in the order they are printed.
pub const KNOWN: [&str; 11] = [
    "l1d_refill",
    "l1i_refill",
    "l2d_refill",
    "ll_refill",
    "bus_access",
    "tlb_refill",
    "cycles",
    "instructions",
    "switches",
    "migrations",
    "faults",
];

/// What a name stands for on this architecture. Refills at L2 and bus accesses have no number that
/// all CPUs share; Armv8's PMU gives them one (Arm ARM, PMU events: L1I_CACHE_REFILL 0x01,
/// L1D_CACHE_REFILL 0x03, L2D_CACHE_REFILL 0x17, BUS_ACCESS 0x19).
enum Meaning {
    Hardware(Hardware),
    Cache(CacheId),
    Raw(u64),
    Software(Software),
}

impl Event {
    fn meaning(&self) -> Option<Meaning> {
        const ARM: bool = cfg!(target_arch = "aarch64");
        if let Some(number) = self.raw {
            return Some(Meaning::Raw(number));
        }
        Some(match self.name.as_str() {
            "l1d_refill" if ARM => Meaning::Raw(0x03),
            "l1i_refill" if ARM => Meaning::Raw(0x01),
            "l2d_refill" if ARM => Meaning::Raw(0x17),
            "bus_access" if ARM => Meaning::Raw(0x19),
            "l1d_refill" => Meaning::Cache(CacheId::L1D),
            "l1i_refill" => Meaning::Cache(CacheId::L1I),
            "ll_refill" => Meaning::Cache(CacheId::LL),
            "tlb_refill" => Meaning::Cache(CacheId::DTLB),
            "cycles" => Meaning::Hardware(Hardware::CPU_CYCLES),
            "instructions" => Meaning::Hardware(Hardware::INSTRUCTIONS),
            "switches" => Meaning::Software(Software::CONTEXT_SWITCHES),
            "migrations" => Meaning::Software(Software::CPU_MIGRATIONS),
            "faults" => Meaning::Software(Software::PAGE_FAULTS),
            _ => return None,
        })
    }

    fn builder(&self) -> Option<Builder<'static>> {
        let refills = |which| Cache { which, operation: CacheOp::READ, result: CacheResult::MISS };
        Some(match self.meaning()? {
            Meaning::Hardware(event) => Builder::new(event),
            Meaning::Cache(which) => Builder::new(refills(which)),
            Meaning::Raw(number) => Builder::new(Raw::new(number)),
            Meaning::Software(event) => Builder::new(event),
        })
    }

    fn is_software(&self) -> bool {
        matches!(self.meaning(), Some(Meaning::Software(_)))
    }

    /// Opens it for the calling thread, running.
    fn open(&self, source: Source, group: Option<&mut Counter>, format: ReadFormat) -> io::Result<Counter> {
        let mut builder = self.builder().ok_or(io::ErrorKind::Unsupported)?;
        builder.enabled(true).read_format(format).exclude_hv(false);
        builder.exclude_kernel(source == Source::HardwareUser);
        match group {
            Some(leader) => builder.build_with_group(leader),
            None => builder.build(),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.raw {
            Some(raw) => write!(f, "{}=r{raw:x}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl FromStr for Event {
    type Err = String;

    /// `NAME`, one of [`KNOWN`], or `NAME=rHEX`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let known = KNOWN.join(", ");
            format!("{text:?} is no counter; expected one of {known}, or NAME=rHEX with a raw event")
        };
        let (name, raw) = match text.split_once("=r") {
            Some((name, hex)) => (name, Some(u64::from_str_radix(hex, 16).map_err(|_| wrong())?)),
            None => (text, None),
        };
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let named = name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(letter);
        let known = raw.is_some() || KNOWN.contains(&name);
        if named && known && name.len() <= 32 {
            Ok(Self { name: name.to_owned(), raw })
        } else {
            Err(wrong())
        }
    }
}

const TIMES: ReadFormat = ReadFormat::TOTAL_TIME_ENABLED.union(ReadFormat::TOTAL_TIME_RUNNING);

/// How this event can be counted here, or why not.
pub fn usable(event: &Event) -> Result<Source, String> {
    if event.meaning().is_none() {
        return Err(
            "the kernel has no event of that name for this CPU; give its number as NAME=rHEX".to_owned()
        );
    }
    let open = |source| event.open(source, None, TIMES).map(|_| source);
    if event.is_software() {
        // With the kernel left out a switch is never counted, since all happen there: zero would be
        // wrong.
        return open(Source::Software).or_else(|error| match event.name.as_str() {
            "switches" | "faults" => Ok(Source::Usage),
            _ => Err(reason(&error)),
        });
    }
    open(Source::Hardware).or_else(|_| open(Source::HardwareUser)).map_err(|error| reason(&error))
}

fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => "no PMU here counts it".to_owned(),
        Some(libc::EACCES | libc::EPERM) => "kernel.perf_event_paranoid does not allow it".to_owned(),
        Some(libc::ENOSYS) => "this kernel has no perf_event_open".to_owned(),
        _ => error.to_string(),
    }
}

/// The counters of one thread, open and running.
pub struct Meters {
    /// Position among the values, and the counter.
    hardware: Vec<(usize, Meter)>,
    /// Leader of the group that all software counters are in: one read(2) for them all.
    software: Option<Group>,
    /// Positions of the counts of getrusage(2): switches, faults.
    usage: [Option<usize>; 2],
    count: usize,
}

enum Meter {
    /// With its page mapped.
    Page(Sampler),
    File(Counter),
}

struct Group {
    leader: Counter,
    /// Kept open: a counter that is closed leaves the group.
    members: Vec<Counter>,
    positions: Vec<usize>,
}

/// Counter values at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    values: [Value; MOST],
}

/// A counter with the time it was enabled and the time it really counted, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Value {
    count: u64,
    enabled_ns: u64,
    running_ns: u64,
    /// The read failed.
    failed: bool,
}

impl Meters {
    /// Opens the counters for the calling thread. More than [`MOST`] are refused.
    pub fn open(chosen: &[Chosen]) -> io::Result<Self> {
        if chosen.len() > MOST {
            return Err(io::Error::other(format!("{} counters asked for, at most {MOST} fit", chosen.len())));
        }
        let mut meters = Self { hardware: Vec::new(), software: None, usage: [None; 2], count: chosen.len() };
        for (position, Chosen { event, source }) in chosen.iter().enumerate() {
            match source {
                Source::Usage => meters.usage[usize::from(event.name != "switches")] = Some(position),
                Source::Software => meters.join(position, event)?,
                Source::Hardware | Source::HardwareUser => {
                    meters.hardware.push((position, Meter::open(event, *source)?));
                }
            }
        }
        Ok(meters)
    }

    fn join(&mut self, position: usize, event: &Event) -> io::Result<()> {
        const FORMAT: ReadFormat = TIMES.union(ReadFormat::GROUP);
        match &mut self.software {
            None => {
                let leader = event.open(Source::Software, None, FORMAT)?;
                self.software = Some(Group { leader, members: Vec::new(), positions: vec![position] });
            }
            Some(group) => {
                group.members.push(event.open(Source::Software, Some(&mut group.leader), FORMAT)?);
                group.positions.push(position);
            }
        }
        Ok(())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many are read in user space, without a system call.
    pub fn in_user_space(&self) -> usize {
        self.hardware.iter().filter(|(_, meter)| matches!(meter, Meter::Page(_))).count()
    }

    /// Reads them all. No allocation.
    #[inline]
    pub fn read(&self, into: &mut Reading) {
        for (position, meter) in &self.hardware {
            into.values[*position] = meter.read();
        }
        if let Some(group) = &self.software {
            group.read(&mut into.values);
        }
        if self.usage.iter().any(Option::is_some) {
            let usage = clock::thread_usage();
            let failed = usage.is_err();
            let Usage { faults, switches } = usage.unwrap_or_default();
            let counts = [switches.voluntary + switches.involuntary, faults.minor + faults.major];
            for (position, count) in self.usage.iter().zip(counts) {
                if let Some(position) = position {
                    into.values[*position] = Value { count, failed, ..Value::default() };
                }
            }
        }
    }
}

impl Meter {
    /// By its page where user space may read it, else by its descriptor.
    fn open(event: &Event, source: Source) -> io::Result<Self> {
        match event.open(source, None, TIMES)?.sampled(0) {
            Ok(page) if page.read_user().count().is_some() => Ok(Self::Page(page)),
            Ok(page) => Ok(Self::File(page.into_counter())),
            Err(_) => event.open(source, None, TIMES).map(Self::File),
        }
    }

    #[inline]
    fn read(&self) -> Value {
        let counter = match self {
            Self::Page(page) => {
                let data = page.read_user();
                // No value: it is not on the PMU at the moment.
                if let Some(count) = data.count() {
                    let enabled_ns = data.time_enabled().as_nanos() as u64;
                    let running_ns = data.time_running().as_nanos() as u64;
                    return Value { count, enabled_ns, running_ns, failed: false };
                }
                page.as_counter()
            }
            Self::File(counter) => counter,
        };
        let mut words = [0u64; 3];
        let failed = !read_words(counter, &mut words);
        Value { count: words[0], enabled_ns: words[1], running_ns: words[2], failed }
    }
}

impl Group {
    /// `struct read_format` with PERF_FORMAT_GROUP: number, time enabled, time running, then the
    /// values in the order they joined, each with the id that perf-event2 requests.
    #[inline]
    fn read(&self, values: &mut [Value; MOST]) {
        let mut words = [0u64; 3 + 2 * MOST];
        let length = 3 + 2 * self.positions.len();
        let failed = !read_words(&self.leader, &mut words[..length]);
        for (position, pair) in self.positions.iter().zip(words[3..].chunks_exact(2)) {
            values[*position] = Value { count: pair[0], enabled_ns: words[1], running_ns: words[2], failed };
        }
    }
}

/// Reads as many words as there are; false where the kernel gives fewer.
#[inline]
fn read_words(counter: &Counter, words: &mut [u64]) -> bool {
    let bytes = size_of_val(words);
    // SAFETY: the counter owns its descriptor and outlives this borrow.
    let file = unsafe { BorrowedFd::borrow_raw(counter.as_raw_fd()) };
    // SAFETY: any bytes are valid words, and the slice covers exactly the words.
    let buffer = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), bytes) };
    rustix::io::read(file, buffer).is_ok_and(|read| read == bytes)
}

impl Reading {
    /// What counter `position` counted between two readings. None where it was not counting all
    /// that time, or could not be read.
    #[inline]
    pub fn since(&self, earlier: &Self, position: usize) -> Option<u64> {
        let (before, after) = (&earlier.values[position], &self.values[position]);
        let enabled_ns = after.enabled_ns.wrapping_sub(before.enabled_ns);
        let running_ns = after.running_ns.wrapping_sub(before.running_ns);
        let whole = enabled_ns == running_ns && !before.failed && !after.failed;
        whole.then(|| difference(before.count, after.count, u64::BITS))
    }
}

/// Growth of a counter of so many bits that may have wrapped around once.
///
/// Perf widens the PMU's own 32 or 48 bits to 64 by itself; a counter that is read raw is as wide
/// as its register. (The ERTS 2022 paper, §V-A, adds 2^32 where the 32-bit registers of its
/// Cortex-A53 wrapped.)
#[inline]
pub const fn difference(before: u64, after: u64, bits: u32) -> u64 {
    let mask = if bits >= u64::BITS { u64::MAX } else { (1 << bits) - 1 };
    after.wrapping_sub(before) & mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(name: &str) -> Event {
        name.parse().unwrap()
    }

    #[test]
    fn a_32_bit_counter_wraps_as_in_the_paper() {
        let (before, after) = (0xffff_ff00u64, 0x0000_0040u64);
        assert_eq!(difference(before, after, 32), 0x140);
        // The paper's own repair: add 2^32 to the negative difference.
        assert_eq!(after as i64 - before as i64 + (1 << 32), 0x140);
        assert_eq!(difference(5, 5, 32), 0);
    }

    proptest! {
        #[test]
        fn differences_survive_one_wrap_at_any_width(bits in 1u32..=64, before: u64, growth: u64) {
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            let (before, growth) = (before & mask, growth & mask);
            prop_assert_eq!(difference(before, before.wrapping_add(growth) & mask, bits), growth);
        }

        #[test]
        fn a_multiplexed_counter_is_refused(count in 0u64..1 << 60, ran in 0u64..1000, away in 1u64..1000) {
            let mut later = Reading::default();
            later.values[3] = Value { count, enabled_ns: ran + away, running_ns: ran, failed: false };
            prop_assert_eq!(later.since(&Reading::default(), 3), None);
            later.values[3].running_ns = ran + away;
            prop_assert_eq!(later.since(&Reading::default(), 3), Some(count));
            later.values[3].failed = true;
            prop_assert_eq!(later.since(&Reading::default(), 3), None);
        }
    }

    #[test]
    fn names_and_raw_events_are_distinguished() {
        assert_eq!(event("switches"), Event { name: "switches".to_owned(), raw: None });
        assert_eq!(event("l2=r3f24"), Event { name: "l2".to_owned(), raw: Some(0x3f24) });
        assert_eq!(event("l2=r3f24").to_string(), "l2=r3f24");
        for wrong in ["", "no_such", "a b=r1", "x=rzz", "1x=r1", "=r1", "x=r"] {
            assert!(wrong.parse::<Event>().is_err(), "{wrong:?}");
        }
        KNOWN.iter().for_each(|name| assert_eq!(event(name).name, **name));
    }

    #[test]
    fn what_is_said_to_be_usable_opens_and_counts() {
        let chosen: Vec<_> = KNOWN
            .iter()
            .filter_map(|name| Some(Chosen { event: event(name), source: usable(&event(name)).ok()? }))
            .collect();
        let at = |name: &str| chosen.iter().position(|one| one.event.name == name);
        // getrusage reports these two without any privilege.
        let (switches, faults) = (at("switches").unwrap(), at("faults").unwrap());
        let meters = Meters::open(&chosen).unwrap();
        let (mut before, mut after) = (Reading::default(), Reading::default());
        meters.read(&mut before);
        (0..5).for_each(|_| clock::sleep_until(clock::now_ns() + 1_000_000));
        // More than an allocator gives of what it has kept (glibc: at most 32 MiB,
        // M_MMAP_THRESHOLD).
        let fresh = std::hint::black_box(vec![1u8; 40 << 20]);
        meters.read(&mut after);
        assert!(fresh.len() > 1);
        assert!(after.since(&before, switches).unwrap() >= 5);
        assert!(after.since(&before, faults).unwrap() >= 1);
    }

    #[test]
    fn an_event_that_has_no_number_here_is_reported() {
        let reason = usable(&Event { name: "nothing".to_owned(), raw: None }).unwrap_err();
        assert!(reason.contains("NAME=rHEX"), "{reason}");
    }
}
