//! Pages on their way to whoever looks at a recording while it goes on.
//!
//! The reader of an instance puts in what it has taken out of the buffers; the other side takes all
//! of it at once, some times a second. Memory is bounded: where nobody takes, pages are dropped and
//! counted, and the page behind them is marked, so that their loss shows in the stream of events.

use super::instance::Instance;
use ftrace::{Endian, PageLayout};
use std::collections::BTreeMap;
use std::mem::replace;
use std::sync::{Arc, Mutex, PoisonError};
use sys::{Error, clock};

/// The most bytes that wait in one instance's tap, and what it may have for each CPU if that is
/// less: a tap that lives on for weeks is to be small.
const MOST: usize = 32 << 20;
const FOR_A_CPU: usize = 512 << 10;
/// It always has room for so many.
const LEAST: usize = 4 << 20;
/// Events are recorded shortly after their time has been read, ns.
const ON_THEIR_WAY_NS: i64 = 1_000_000;

/// What becomes of the pages of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// They make the run's `trace.dat`.
    #[default]
    File,
    /// They also go to who looks on.
    FileAndLive,
    /// The last so many bytes of each instance make the run's `trace.dat`; they also go to who
    /// looks on.
    LastAndLive(u64),
    /// They go to who looks on alone.
    Live,
}

impl Keep {
    /// Whether they go to a file.
    pub(crate) fn in_file(self) -> bool {
        self != Self::Live
    }

    /// The most bytes of an instance that are in the file.
    pub(crate) fn most_bytes(self) -> Option<u64> {
        if let Self::LastAndLive(bytes) = self { Some(bytes) } else { None }
    }

    /// The most bytes of an instance with so many CPUs that may wait for who looks on.
    pub(crate) fn most_waiting(self, cpus: usize) -> usize {
        if self == Self::Live { (FOR_A_CPU * cpus).clamp(LEAST, MOST) } else { MOST }
    }

    /// Whether somebody looks on.
    pub(crate) fn is_live(self) -> bool {
        self != Self::File
    }
}

/// What has come since the last time.
#[derive(Debug, Default)]
pub struct Chunk {
    /// All events up to then have come, of every CPU; CLOCK_MONOTONIC, ns. Some pages may hold
    /// later ones.
    pub until_ns: i64,
    /// Whole pages, by CPU.
    pub cpus: BTreeMap<u32, Vec<u8>>,
    /// Pages that were dropped because nobody took them.
    pub dropped_pages: u64,
}

/// What has come since the last time, of several buffers of a CPU.
#[derive(Debug)]
pub struct WatchedChunk {
    /// As [`Chunk::until_ns`].
    pub until_ns: i64,
    /// Whole pages, by CPU.
    pub cpus: Vec<(u32, Vec<u8>)>,
    /// As [`Chunk::dropped_pages`].
    pub dropped_pages: u64,
}

/// Where the reader of one instance puts its pages.
#[derive(Debug)]
pub(crate) struct Tap {
    layout: PageLayout,
    endian: Endian,
    /// The most bytes that wait in it.
    most: usize,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    chunk: Chunk,
    /// Bytes of each CPU that were taken last: as many are expected.
    before: BTreeMap<u32, usize>,
    bytes: usize,
    /// CPUs whose last page was dropped.
    cut: Vec<u32>,
}

impl Tap {
    pub(crate) fn new(layout: PageLayout, endian: Endian, most: usize) -> Self {
        Self { layout, endian, most, inside: Mutex::default() }
    }

    /// Adds pages of a CPU.
    pub(crate) fn put(&self, cpu: u32, pages: &[u8]) {
        if pages.is_empty() {
            return;
        }
        let page_bytes = self.layout.page_size();
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let Inside { chunk, before, bytes, cut } = &mut *inside;
        if *bytes + pages.len() > self.most {
            chunk.dropped_pages += (pages.len() / page_bytes.max(1)) as u64;
            if !cut.contains(&cpu) {
                cut.push(cpu);
            }
            return;
        }
        *bytes += pages.len();
        // At once: what grows again and again leaves room of each size behind.
        let room = || Vec::with_capacity(before.get(&cpu).map_or(0, |bytes| bytes + bytes / 4));
        let to = chunk.cpus.entry(cpu).or_insert_with(room);
        let at = to.len();
        to.extend_from_slice(pages);
        if cut.contains(&cpu) {
            cut.retain(|other| *other != cpu);
            if let Some(first) = to.get_mut(at..at + page_bytes) {
                self.layout.mark_missed(first, self.endian);
            }
        }
    }

    /// Every CPU has been read since `began_ns`.
    pub(crate) fn reached(&self, began_ns: i64) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.chunk.until_ns = began_ns - ON_THEIR_WAY_NS;
    }

    fn take(&self) -> Chunk {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.bytes = 0;
        // The time stays: it only grows.
        let empty = Chunk { until_ns: inside.chunk.until_ns, ..Chunk::default() };
        let chunk = replace(&mut inside.chunk, empty);
        inside.before = chunk.cpus.iter().map(|(cpu, pages)| (*cpu, pages.len())).collect();
        chunk
    }
}

/// The other side of a recorder's taps.
#[derive(Debug, Clone)]
pub struct LivePages {
    /// Of the instances that have each CPU once.
    pub(crate) taps: Vec<Arc<Tap>>,
    /// Of the watched program's own, on any CPU.
    pub(crate) watched: Option<Arc<Tap>>,
}

impl LivePages {
    /// The same with what the watched program's instance has: pages by CPU, several of one CPU in
    /// the order in which a file has its buffers.
    pub fn take_with_watched(&self) -> WatchedChunk {
        let Chunk { until_ns, cpus, dropped_pages } = self.take();
        let mut all = WatchedChunk { until_ns, cpus: cpus.into_iter().collect(), dropped_pages };
        if let Some(tap) = &self.watched {
            let Chunk { until_ns, cpus, dropped_pages } = tap.take();
            all.until_ns = all.until_ns.min(until_ns);
            all.cpus.extend(cpus);
            all.dropped_pages += dropped_pages;
        }
        all
    }

    /// What has come since the last call, of all instances but the watched program's.
    pub fn take(&self) -> Chunk {
        let mut all = Chunk { until_ns: i64::MAX, ..Chunk::default() };
        for tap in &self.taps {
            let Chunk { until_ns, cpus, dropped_pages } = tap.take();
            all.until_ns = all.until_ns.min(until_ns);
            all.cpus.extend(cpus);
            all.dropped_pages += dropped_pages;
        }
        if self.taps.is_empty() {
            all.until_ns = clock::now_ns();
        }
        all
    }
}

/// Counts the events that the kernel has lost.
#[derive(Debug, Clone)]
pub struct LostEvents {
    /// Instances and their CPUs.
    pub(crate) buffers: Vec<(Instance, Vec<u32>)>,
}

impl LostEvents {
    /// Events lost so far: overwritten, or without room.
    pub fn count(&self) -> Result<u64, Error> {
        let cpus =
            self.buffers.iter().flat_map(|(instance, cpus)| cpus.iter().map(move |cpu| (instance, cpu)));
        cpus.map(|(instance, cpu)| {
            let account = instance.account(*cpu)?;
            Ok(account.overrun + account.commit_overrun + account.dropped)
        })
        .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_takes_is_dropped_and_shows_in_the_next_page() {
        let layout = PageLayout::classic(8);
        let tap = Arc::new(Tap::new(layout, Endian::Little, LEAST));
        let page_bytes = tap.layout.page_size();
        let pages = LivePages { taps: vec![Arc::clone(&tap)], watched: None };
        tap.put(2, &vec![0; page_bytes]);
        tap.reached(5_000_000);
        let first = pages.take();
        assert_eq!((first.until_ns, first.cpus[&2].len(), first.dropped_pages), (4_000_000, page_bytes, 0));
        assert!(pages.take().cpus.is_empty() && pages.take().until_ns == 4_000_000);
        for _ in 0..LEAST / page_bytes + 3 {
            tap.put(2, &vec![0; page_bytes]);
        }
        let full = pages.take();
        assert_eq!((full.cpus[&2].len(), full.dropped_pages), (LEAST, 3));
        tap.put(2, &vec![0; page_bytes]);
        let behind = pages.take();
        let header = layout.header(&behind.cpus[&2], Endian::Little).unwrap();
        assert_ne!(header.missed, ftrace::Missed::None);
        assert_eq!(behind.dropped_pages, 0);
    }

    #[test]
    fn what_waits_is_bounded_by_the_cpus_where_it_goes_nowhere_else() {
        let rooms = [1, 16, 1_000].map(|cpus| Keep::Live.most_waiting(cpus) >> 20);
        assert_eq!(rooms, [4, 8, 32]);
        assert_eq!(Keep::File.most_waiting(1), MOST);
    }

    #[test]
    fn pages_of_the_program_come_behind_those_of_its_cpu() {
        let layout = PageLayout::classic(8);
        let [of_cpu, watched] = [1, 2].map(|_| Arc::new(Tap::new(layout, Endian::Little, LEAST)));
        let pages = LivePages { taps: vec![Arc::clone(&of_cpu)], watched: Some(Arc::clone(&watched)) };
        let page = |byte| vec![byte; layout.page_size()];
        watched.put(2, &page(9));
        of_cpu.put(2, &page(7));
        watched.reached(4_000_000);
        of_cpu.reached(9_000_000);
        let chunk = pages.take_with_watched();
        let first: Vec<(u32, u8)> = chunk.cpus.iter().map(|(cpu, bytes)| (*cpu, bytes[0])).collect();
        assert_eq!((first, chunk.until_ns), (vec![(2, 7), (2, 9)], 3_000_000));
    }
}
