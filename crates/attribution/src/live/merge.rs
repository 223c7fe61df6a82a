//! Chunks of pages in the order of time, whatever the order in which CPUs were read.
//!
//! A reader takes one CPU after the other, so the last events of those that it has read later may
//! be overtaken by events of the others in the next chunk. What is later than the time up to which
//! every CPU was read waits for the next chunk.

use crate::Error;
use crate::holes::Hole;
use ftrace::{Event, Formats, Item, stream_pages};
use std::collections::{BTreeMap, VecDeque};

/// What comes out.
#[derive(Debug)]
pub enum Merged<'a> {
    /// An event.
    Event(Event<'a>),
    /// Events are missing.
    Lost(Hole),
}

/// An event that waits, or a loss.
#[derive(Debug)]
struct Held {
    /// Of a loss, of the last event before it.
    ts_ns: u64,
    cpu: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    Event { id: u16, flags: u8, pid: i32, data: Vec<u8> },
    Lost(Hole),
}

impl Held {
    fn of(event: &Event<'_>) -> Self {
        let Event { ts_ns, cpu, id, flags, pid, data } = *event;
        Self { ts_ns, cpu, what: What::Event { id, flags, pid, data: data.to_vec() } }
    }

    fn merged(&self) -> Merged<'_> {
        let Self { ts_ns, cpu, .. } = *self;
        match &self.what {
            What::Event { id, flags, pid, data } => {
                Merged::Event(Event { ts_ns, cpu, id: *id, flags: *flags, pid: *pid, data })
            }
            What::Lost(hole) => Merged::Lost(*hole),
        }
    }

    /// The order of a finished trace: by time, then by CPU.
    fn key(&self) -> (u64, u32) {
        (self.ts_ns, self.cpu)
    }
}

/// What waits between two chunks.
#[derive(Debug, Default)]
pub struct Merge {
    held: VecDeque<Held>,
    /// Time of the last event of each CPU: where a hole at the beginning of a chunk begins.
    last_ns: BTreeMap<u32, u64>,
}

impl Merge {
    /// Passes on what is not later than `until_ns`, and keeps the rest.
    pub fn pass(
        &mut self,
        formats: &Formats,
        cpus: Vec<(u32, Vec<u8>)>,
        until_ns: i64,
        sink: &mut impl FnMut(Merged<'_>),
    ) -> Result<(), Error> {
        let until_ns = until_ns.max(0).cast_unsigned();
        let mut stream = stream_pages(formats, cpus);
        let mut later = VecDeque::new();
        while let Some(item) = stream.next()? {
            match item {
                Item::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                    let known = self.last_ns.get(&cpu).copied().unwrap_or(0);
                    let after_ns = after_ts_ns.max(known);
                    let hole = Hole::new(cpu, after_ns, before_ts_ns);
                    if after_ns > until_ns {
                        later.push_back(Held { ts_ns: after_ns, cpu, what: What::Lost(hole) });
                        continue;
                    }
                    self.before((after_ns, cpu), sink);
                    sink(Merged::Lost(hole));
                }
                Item::Event(event) => {
                    self.last_ns.insert(event.cpu, event.ts_ns);
                    if event.ts_ns > until_ns {
                        later.push_back(Held::of(&event));
                        continue;
                    }
                    self.before((event.ts_ns, event.cpu), sink);
                    sink(Merged::Event(event));
                }
            }
        }
        self.before((until_ns, u32::MAX), sink);
        let mixes = !self.held.is_empty() && !later.is_empty();
        self.held.append(&mut later);
        if mixes {
            // Stable: the events of one CPU stay in their order.
            self.held.make_contiguous().sort_by_key(Held::key);
        }
        Ok(())
    }

    /// Passes on what waits and comes not behind this time and CPU.
    fn before(&mut self, key: (u64, u32), sink: &mut impl FnMut(Merged<'_>)) {
        while let Some(first) = self.held.front()
            && first.key() <= key
        {
            sink(first.merged());
            self.held.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftrace::TraceFile;
    use proptest::prelude::*;
    use std::path::Path;

    /// Time and CPU of an event, or the hole.
    type Seen = Result<(u64, u32), Hole>;

    fn file() -> TraceFile {
        let trace = "../../fixtures/runs/small/trace.dat";
        TraceFile::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(trace)).unwrap()
    }

    /// The pages of each CPU; before some of them events are missing.
    fn lanes(file: &TraceFile, missed: &[usize]) -> Vec<(u32, Vec<u8>)> {
        let (layout, endian) = (*file.formats().page(), file.formats().endian());
        let bytes = std::fs::read(file.path()).unwrap();
        let all = file.buffers().iter().flat_map(|buffer| buffer.cpus.iter().filter(|cpu| cpu.size > 0));
        let lane = |cpu: &ftrace::CpuData| {
            let mut pages = bytes[cpu.offset as usize..][..cpu.size as usize].to_vec();
            for (at, page) in pages.chunks_mut(layout.page_size()).enumerate() {
                if missed.contains(&at) {
                    layout.mark_missed(page, endian);
                }
            }
            (cpu.cpu, pages)
        };
        all.map(lane).collect()
    }

    fn whole(file: &TraceFile, lanes: &[(u32, Vec<u8>)]) -> Vec<Seen> {
        let mut stream = stream_pages(file.formats(), lanes.to_vec());
        let mut all = Vec::new();
        while let Some(item) = stream.next().unwrap() {
            all.push(match item {
                Item::Event(event) => Ok((event.ts_ns, event.cpu)),
                Item::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                    Err(Hole::new(cpu, after_ts_ns, before_ts_ns))
                }
            });
        }
        all
    }

    fn in_chunks(file: &TraceFile, lanes: &[(u32, Vec<u8>)], sizes: &[usize]) -> Vec<Seen> {
        let (formats, page_bytes) = (file.formats(), file.formats().page().page_size());
        let (mut merge, mut all, mut at) = (Merge::default(), Vec::new(), vec![0; lanes.len()]);
        for turn in 0.. {
            let (mut chunk, mut until_ns) = (Vec::new(), i64::MAX - 1);
            for (lane, (cpu, bytes)) in lanes.iter().enumerate() {
                let more = sizes[(turn + lane) % sizes.len()] * page_bytes;
                let to = (at[lane] + more).min(bytes.len());
                chunk.push((*cpu, bytes[at[lane]..to].to_vec()));
                at[lane] = to;
                if to < bytes.len() {
                    let header = formats.page().header(&bytes[to..], formats.endian()).unwrap();
                    until_ns = until_ns.min(header.timestamp.cast_signed() - 1);
                }
            }
            let mut sink = |merged: Merged<'_>| {
                all.push(match merged {
                    Merged::Event(event) => Ok((event.ts_ns, event.cpu)),
                    Merged::Lost(hole) => Err(hole),
                });
            };
            merge.pass(formats, chunk, until_ns, &mut sink).unwrap();
            if until_ns == i64::MAX - 1 {
                break;
            }
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_order_is_that_of_the_finished_trace(
            sizes in prop::collection::vec(0usize..6, 1..6),
            missed in prop::collection::vec(0usize..12, 0..4),
        ) {
            let sizes: Vec<usize> = sizes.into_iter().chain([1]).collect();
            let file = file();
            let lanes = lanes(&file, &missed);
            let whole = whole(&file, &lanes);
            prop_assert!(whole.iter().any(Result::is_err) || missed.is_empty());
            prop_assert_eq!(in_chunks(&file, &lanes, &sizes), whole);
        }
    }
}
