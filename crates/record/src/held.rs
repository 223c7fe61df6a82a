//! The last pages of a recording that goes on, in memory, for whoever may want to keep a stretch of
//! them later.

use super::fifo::Fifo;
use super::live::Chunk;
use super::ring::{Pages, begins_ns};
use ftrace::Formats;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use sys::Error;

/// Behind the records of a page may stand how many events are missing before it.
const MISSED_BYTES: usize = size_of::<u64>();

/// Pages by CPU, oldest first.
#[derive(Debug)]
pub struct Held {
    pages: Pages,
    cpus: BTreeMap<u32, Lane>,
    bytes: usize,
    most_bytes: usize,
    most_ns: i64,
}

#[derive(Debug, Default)]
struct Lane {
    pages: VecDeque<Page>,
    /// Of all of them, without their empty rests.
    data: Fifo,
    /// Whether any has been given up.
    gave_up: bool,
}

#[derive(Debug)]
struct Page {
    begins_ns: i64,
    events: u64,
    /// Its bytes in the lane.
    bytes: usize,
    /// Whether events are missing before it.
    missed: bool,
}

impl Lane {
    /// Gives up the oldest. Returns its bytes.
    fn give_up_oldest(&mut self) -> usize {
        let bytes = self.pages.pop_front().map_or(0, |page| page.bytes);
        self.data.pop(bytes);
        self.gave_up = true;
        bytes
    }
}

/// The pages of one CPU that were cut out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CutPages {
    pub(crate) cpu: u32,
    pub(crate) path: PathBuf,
    pub(crate) pages: u64,
    pub(crate) events: u64,
}

impl Held {
    /// Of events with these formats: at most so many bytes, of at most so long, ns.
    pub fn new(formats: &Formats, most_bytes: usize, most_ns: i64) -> Self {
        let pages = Pages::of(formats);
        Self { pages, cpus: BTreeMap::new(), bytes: 0, most_bytes, most_ns }
    }

    /// Adds what has come. A page that is damaged is the end of what is known of its CPU: those
    /// before it are given up.
    pub fn push(&mut self, chunk: &Chunk) {
        let size = self.pages.layout.page_size();
        for (cpu, bytes) in &chunk.cpus {
            for page in bytes.chunks_exact(size) {
                self.add(*cpu, page);
            }
        }
        self.give_up(chunk.until_ns);
    }

    fn add(&mut self, cpu: u32, page: &[u8]) {
        let lane = self.cpus.entry(cpu).or_default();
        let Ok(header) = self.pages.layout.header(page, self.pages.endian) else {
            self.bytes -= lane.data.len();
            *lane = Lane { gave_up: true, ..Lane::default() };
            return;
        };
        let used = (self.pages.layout.data_offset + header.length + MISSED_BYTES).min(page.len());
        let (begins_ns, events) = (begins_ns(header), self.pages.events(page, &header));
        let missed = header.missed != ftrace::Missed::None;
        lane.pages.push_back(Page { begins_ns, events, bytes: used, missed });
        lane.data.push(&page[..used]);
        self.bytes += used;
    }

    /// Of every CPU the pages that end before what is to be held.
    fn give_up(&mut self, now_ns: i64) {
        let from_ns = now_ns.saturating_sub(self.most_ns);
        for lane in self.cpus.values_mut() {
            // A page ends where the next one begins.
            while lane.pages.get(1).is_some_and(|next| next.begins_ns < from_ns) {
                self.bytes -= lane.give_up_oldest();
            }
        }
        while self.bytes > self.most_bytes {
            let oldest = self.cpus.values_mut().filter(|lane| lane.pages.len() > 1);
            let Some(lane) = oldest.min_by_key(|lane| lane.pages.front().map(|page| page.begins_ns)) else {
                return;
            };
            self.bytes -= lane.give_up_oldest();
        }
    }

    /// Since when everything is there, CLOCK_MONOTONIC, ns; `None` where nothing was given up.
    pub fn reaches_to_ns(&self) -> Option<i64> {
        let lanes = self.cpus.values().filter(|lane| lane.gave_up);
        lanes.map(|lane| lane.pages.front().map_or(i64::MAX, |page| page.begins_ns)).max()
    }

    /// Whether the kernel or this process lost events in that time.
    pub fn is_torn(&self, [from_ns, to_ns]: [i64; 2]) -> bool {
        self.cpus.values().any(|lane| {
            // What is missing before a page was lost after the one before it began.
            let befores = std::iter::once(i64::MIN).chain(lane.pages.iter().map(|page| page.begins_ns));
            lane.pages
                .iter()
                .zip(befores)
                .any(|(page, before_ns)| before_ns <= to_ns && page.begins_ns >= from_ns && page.missed)
        })
    }

    /// Writes the pages that have events of that time to new files in a directory, one a CPU.
    pub(crate) fn cut(&self, [from_ns, to_ns]: [i64; 2], dir: &Path) -> Result<Vec<CutPages>, Error> {
        let size = self.pages.layout.page_size();
        let cut = |(cpu, lane): (&u32, &Lane)| {
            let path = dir.join(format!("cpu{cpu}.raw"));
            let writing = |source| Error::os("write", path.display(), source);
            let mut to = File::create(&path).map_err(writing)?;
            let mut cut = CutPages { cpu: *cpu, path: path.clone(), pages: 0, events: 0 };
            let nexts = lane.pages.iter().skip(1).map(|page| page.begins_ns).chain([i64::MAX]);
            let mut at = 0;
            for (page, next_ns) in lane.pages.iter().zip(nexts) {
                let place = at..at + page.bytes;
                at = place.end;
                if page.begins_ns <= to_ns && next_ns > from_ns {
                    lane.data.pieces(place).try_for_each(|piece| to.write_all(piece)).map_err(writing)?;
                    to.write_all(&vec![0; size - page.bytes]).map_err(writing)?;
                    cut.pages += 1;
                    cut.events += page.events;
                }
            }
            Ok(cut)
        };
        self.cpus.iter().map(cut).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftrace::{Endian, PageLayout};
    use proptest::prelude::*;

    const PAGES: fn() -> Pages = || Pages { layout: PageLayout::classic(8), endian: Endian::Little };

    /// A page that begins at a time, with so many events of four bytes.
    fn page(begins_ns: u64, events: u64) -> Vec<u8> {
        let mut page = vec![0; PAGES().layout.page_size()];
        page[..8].copy_from_slice(&begins_ns.to_le_bytes());
        page[8..16].copy_from_slice(&(events * 8).to_le_bytes());
        for event in 0..events as usize {
            page[16 + event * 8..][..4].copy_from_slice(&1u32.to_le_bytes());
        }
        page
    }

    fn held(most_bytes: usize, most_ns: i64) -> Held {
        Held { pages: PAGES(), cpus: BTreeMap::new(), bytes: 0, most_bytes, most_ns }
    }

    fn push(held: &mut Held, cpu: u32, times: &[u64]) {
        let bytes = times.iter().flat_map(|time| page(*time, 3)).collect();
        let until_ns = times.last().map_or(0, |time| *time as i64);
        held.push(&Chunk { until_ns, cpus: [(cpu, bytes)].into(), dropped_pages: 0 });
    }

    #[test]
    fn what_is_cut_out_covers_the_time_and_no_page_more() {
        let dir = tempfile::tempdir().unwrap();
        let mut held = held(usize::MAX, 1_000);
        push(&mut held, 2, &[100, 200, 300, 400]);
        push(&mut held, 3, &[50, 450]);
        let cut = held.cut([250, 300], dir.path()).unwrap();
        assert_eq!(
            cut.iter().map(|one| (one.cpu, one.pages, one.events)).collect::<Vec<_>>(),
            [(2, 2, 6), (3, 1, 3)]
        );
        let stored = std::fs::read(&cut[0].path).unwrap();
        assert_eq!(stored, [page(200, 3), page(300, 3)].concat());
        assert_eq!(held.reaches_to_ns(), None);
    }

    #[test]
    fn a_gap_is_between_two_pages() {
        let mut held = held(usize::MAX, 1_000);
        push(&mut held, 2, &[100, 200]);
        let mut torn = page(300, 1);
        PAGES().layout.mark_missed(&mut torn, Endian::Little);
        held.push(&Chunk { until_ns: 300, cpus: [(2, torn)].into(), dropped_pages: 0 });
        push(&mut held, 2, &[400]);
        assert!(held.is_torn([250, 260]) && held.is_torn([100, 200]) && held.is_torn([300, 900]));
        assert!(!held.is_torn([301, 900]) && !held.is_torn([0, 199]));
    }

    proptest! {
        /// However pages come, the bounds hold, and everything since `reaches_to_ns` is there.
        #[test]
        fn bounds_hold(
            chunks in prop::collection::vec((0u32..3, prop::collection::vec(0u64..50, 1..5)), 1..20),
            most_bytes in 40usize..2_000,
            most_ns in 1i64..300,
        ) {
            let mut held = held(most_bytes, most_ns);
            let mut all: Vec<(u32, u64)> = Vec::new();
            let mut now = 0;
            for (cpu, steps) in &chunks {
                let times: Vec<u64> = steps.iter().map(|step| { now += step; now }).collect();
                all.extend(times.iter().map(|time| (*cpu, *time)));
                push(&mut held, *cpu, &times);
            }
            prop_assert_eq!(held.bytes, held.cpus.values().flat_map(|lane| &lane.pages).map(|page| page.bytes).sum::<usize>());
            // One page of each CPU is always held.
            prop_assert!(held.bytes <= most_bytes.max(3 * PAGES().layout.page_size()));
            let since_ns = held.reaches_to_ns().unwrap_or(i64::MIN);
            let there: Vec<(u32, u64)> = held.cpus.iter()
                .flat_map(|(cpu, lane)| lane.pages.iter().map(|page| (*cpu, page.begins_ns as u64))).collect();
            for (cpu, time) in all.iter().filter(|(_, time)| *time as i64 > since_ns) {
                prop_assert!(there.contains(&(*cpu, *time)), "{cpu} {time} since {since_ns}");
            }
            let dir = tempfile::tempdir().unwrap();
            for cut in held.cut([i64::MIN, i64::MAX], dir.path()).unwrap() {
                let times = there.iter().filter(|(cpu, _)| *cpu == cut.cpu);
                let pages: Vec<u8> = times.flat_map(|(_, time)| page(*time, 3)).collect();
                prop_assert_eq!(std::fs::read(&cut.path).unwrap(), pages);
            }
        }
    }
}
