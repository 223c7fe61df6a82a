//! Kernel events of the CPUs, decoded while they come: for `top`, and for the view beside a
//! measurement.

use attribution::decode::Decoder;
use attribution::live::view::{LiveView, Ran};
use attribution::live::{Followed, Live};
use ftrace::{Constants, Formats, Symbols};
use model::Run;
use model::cpu_states::{FrequencyChanges, IdleStates};
use model::events::EventCatalogue;
use record::live::{Chunk, LivePages, LostEvents};
use record::recorder::Recorder;
use std::fs::File;
use std::io::BufReader;
use sys::clock;

/// What it takes to decode the events of a recorder, which may be in other hands.
pub(crate) struct Feed {
    pages: LivePages,
    losses: LostEvents,
    formats: Formats,
    symbols: Symbols,
    constants: Constants,
    events: EventCatalogue,
    idle_states: IdleStates,
    frequency_change_ns: FrequencyChanges,
}

impl Feed {
    /// Of a recorder that is ready, with what the run knows of its CPUs.
    pub(crate) fn of(recorder: &Recorder, events: EventCatalogue, run: &Run) -> Self {
        let symbols = std::fs::read_to_string(SYMBOLS).unwrap_or_default();
        Self::with(Symbols::of(symbols), recorder, events, run)
    }

    /// The same in less memory: without the names of the kernel's data, which only locks
    /// have.
    pub(crate) fn of_functions(recorder: &Recorder, events: EventCatalogue, run: &Run) -> Self {
        let functions = File::open(SYMBOLS).and_then(|file| Symbols::functions(BufReader::new(file)));
        Self::with(functions.unwrap_or_default(), recorder, events, run)
    }

    fn with(symbols: Symbols, recorder: &Recorder, events: EventCatalogue, run: &Run) -> Self {
        Self {
            pages: recorder.live(),
            losses: recorder.losses(),
            formats: recorder.formats().clone(),
            symbols,
            constants: recorder.constants(),
            events,
            idle_states: run.idle_states.clone(),
            frequency_change_ns: run.frequency_change_ns.clone(),
        }
    }

    fn decoder(&self) -> Decoder {
        let decoder = Decoder::new(&self.events, &self.formats, self.symbols.clone(), &self.constants);
        decoder.knowing(&self.idle_states, &self.frequency_change_ns)
    }
}

/// The kernel's table of symbols.
const SYMBOLS: &str = "/proc/kallsyms";

/// The events so far, in sums.
pub(crate) struct Engine {
    feed: Feed,
    live: Live,
    followed: Vec<Followed>,
    dropped: u64,
}

impl Engine {
    /// Begins now, on these CPUs.
    pub(crate) fn begin(feed: Feed, cpus: &[u32], followed: Vec<Followed>) -> Self {
        let live = Live::new(feed.decoder(), feed.formats.clone(), cpus, &followed, clock::now_ns());
        Self { feed, live, followed, dropped: 0 }
    }

    /// Takes in what has come.
    pub(crate) fn feed(&mut self) -> anyhow::Result<()> {
        self.feed_seen(|_| ()).map(drop)
    }

    /// The same, with somebody else who sees the pages. Returns until when all events have come,
    /// CLOCK_MONOTONIC, ns.
    pub(crate) fn feed_seen(&mut self, sees: impl FnOnce(&Chunk)) -> anyhow::Result<i64> {
        let chunk = self.feed.pages.take();
        sees(&chunk);
        self.dropped += chunk.dropped_pages;
        self.live.pages(chunk.cpus.into_iter().collect(), chunk.until_ns)?;
        Ok(chunk.until_ns)
    }

    /// What has been derived so far.
    pub(crate) fn live(&mut self) -> &mut Live {
        &mut self.live
    }

    /// Takes in what has come, and ends a second.
    pub(crate) fn second(&mut self) -> anyhow::Result<LiveView> {
        self.feed()?;
        Ok(self.end_second())
    }

    /// A second has ended.
    fn end_second(&mut self) -> LiveView {
        if self.live.is_full() {
            self.renew();
        }
        self.live.second()
    }

    /// The same, for who sums up what there was in it.
    pub(crate) fn end_second_by_row(&mut self, each: &mut dyn FnMut(Ran<'_>)) {
        if self.live.is_full() {
            self.renew();
        }
        self.live.second_by_row(each);
    }

    /// Follows these threads from here on.
    pub(crate) fn follow(&mut self, followed: Vec<Followed>) {
        if followed != self.followed {
            self.followed = followed;
            self.renew();
        }
    }

    fn renew(&mut self) {
        self.live.renew(self.feed.decoder(), &self.followed);
    }

    /// Events lost so far: by the kernel, and pages that were dropped here.
    pub(crate) fn lost(&self) -> u64 {
        self.feed.losses.count().unwrap_or(0) + self.dropped
    }

    /// Forgets maxima and the worst events.
    pub(crate) fn reset(&mut self) {
        self.live.reset();
    }
}
