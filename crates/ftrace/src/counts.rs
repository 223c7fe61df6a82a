//! How many events of each name on each CPU, and how many are missing: the data behind
//! `trace counts`.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::formats::Formats;
use crate::stream::{Event, EventStream, Item};

/// Counts of a whole stream. Names are without their system; equal names of two systems are counted
/// together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All events.
    pub total: u64,
    /// Events by name.
    pub events: BTreeMap<String, u64>,
    /// Events by CPU and name, for each CPU with data.
    pub per_cpu: BTreeMap<u32, BTreeMap<String, u64>>,
    /// What is missing, for each CPU with data.
    pub lost: BTreeMap<u32, LostCounts>,
    /// Events that are missing by the head of a text, which does not say from which CPU; holes in
    /// `lost` may be among them.
    pub lost_somewhere: u64,
}

/// What is missing from one CPU's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostCounts {
    /// Events the kernel said it overwrote.
    pub events: u64,
    /// Places where an unknown number is missing: then all totals are lower bounds.
    pub unknown_pages: u64,
}

/// Counts by number while the stream runs, so that no name is looked up per event.
#[derive(Default)]
struct PerCpu {
    by_id: Vec<u64>,
    lost: LostCounts,
}

impl Counts {
    /// Runs `stream` to its end.
    pub fn of(formats: &Formats, stream: &mut EventStream) -> Result<Self, Error> {
        // By rising number of the CPU, as the stream has them: of several buffers some more than
        // once.
        let mut tallies: Vec<(u32, PerCpu)> = stream.cpus().map(|cpu| (cpu, PerCpu::default())).collect();
        tallies.dedup_by_key(|(cpu, _)| *cpu);
        let mut at = 0;
        while let Some(item) = stream.next()? {
            let (Item::Event(Event { cpu, .. }) | Item::Lost { cpu, .. }) = item;
            // Events come in runs from one CPU.
            if tallies.get(at).is_none_or(|(last, _)| *last != cpu) {
                at = tallies.partition_point(|(other, _)| *other < cpu);
            }
            if let Some((_, tally)) = tallies.get_mut(at) {
                tally.add(&item);
            }
        }
        Ok(Self::named(formats, &tallies))
    }

    fn named(formats: &Formats, tallies: &[(u32, PerCpu)]) -> Self {
        let mut counts = Self::default();
        for (cpu, tally) in tallies {
            let named = counts.per_cpu.entry(*cpu).or_default();
            for (id, n) in tally.by_id.iter().enumerate().filter(|(_, n)| **n > 0) {
                let name = event_name(formats, id as u16);
                counts.total += n;
                *counts.events.entry(name.clone()).or_default() += n;
                *named.entry(name).or_default() += n;
            }
            counts.lost.insert(*cpu, tally.lost);
        }
        counts
    }

    /// Whether nothing is missing.
    pub fn is_complete(&self) -> bool {
        self.lost_somewhere == 0 && self.lost.values().all(|l| *l == LostCounts::default())
    }
}

impl PerCpu {
    fn add(&mut self, item: &Item) {
        match item {
            Item::Event(event) => {
                let id = usize::from(event.id);
                if id >= self.by_id.len() {
                    self.by_id.resize(id + 1, 0);
                }
                self.by_id[id] += 1;
            }
            Item::Lost { count: Some(n), .. } => self.lost.events = self.lost.events.saturating_add(*n),
            Item::Lost { count: None, .. } => self.lost.unknown_pages += 1,
        }
    }
}

/// The name of an event, or "#number" where the trace has no format for it.
pub fn event_name(formats: &Formats, id: u16) -> String {
    formats.by_id(id).map_or_else(|| format!("#{id}"), |f| f.name.clone())
}
