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
