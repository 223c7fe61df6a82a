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

/// An event that waits.
#[derive(Debug)]
struct Held {
    ts_ns: u64,
    cpu: u32,
    id: u16,
    flags: u8,
    pid: i32,
    data: Vec<u8>,
}

impl Held {
    fn of(event: &Event<'_>) -> Self {
        let Event { ts_ns, cpu, id, flags, pid, data } = *event;
        Self { ts_ns, cpu, id, flags, pid, data: data.to_vec() }
    }

    fn event(&self) -> Event<'_> {
        let Self { ts_ns, cpu, id, flags, pid, .. } = *self;
        Event { ts_ns, cpu, id, flags, pid, data: &self.data }
    }
}

/// The events that wait between two chunks.
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
                    sink(Merged::Lost(Hole::new(cpu, after_ts_ns.max(known), before_ts_ns)));
                }
                Item::Event(event) => {
                    self.last_ns.insert(event.cpu, event.ts_ns);
                    if event.ts_ns > until_ns {
                        later.push_back(Held::of(&event));
                        continue;
                    }
                    while let Some(first) = self.held.front()
                        && first.ts_ns <= event.ts_ns
                    {
                        sink(Merged::Event(first.event()));
                        self.held.pop_front();
                    }
                    sink(Merged::Event(event));
                }
            }
        }
        while let Some(first) = self.held.front()
            && first.ts_ns <= until_ns
        {
            sink(Merged::Event(first.event()));
            self.held.pop_front();
        }
        let mixes = !self.held.is_empty() && !later.is_empty();
        self.held.append(&mut later);
        if mixes {
            // Stable: the events of one CPU stay in their order.
            self.held.make_contiguous().sort_by_key(|held| held.ts_ns);
        }
        Ok(())
    }
}
