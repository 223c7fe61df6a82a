//! Takes wake-ups apart while they are found, so that a trace is read once.
//!
//! Only the end of the trace shows which threads to take apart: on each CPU, those that waited
//! longest in total. A few places of the trace mostly show the same threads, so these are guessed
//! and checked at the end. The trace is read again if the guess was wrong, or if a wake-up began
//! before the event that shows it (at its timer's intended expiry). The answer is the same.

use super::first::{First, Found, Place};
use super::{Wanted, choose};
use crate::Error;
use crate::attribute::paths::Keep;
use crate::attribute::wakeups::{Apart, Chosen, Feed};
use crate::attribute::watch::program::{Wakeup, Watch};
use crate::damage::damage;
use crate::decode::Decoder;
use crate::holes::Hole;
use crate::labels::LabelId;
use crate::names::Names;
use crate::records::{Record, Records};
use crate::spans::Known;
use ftrace::{Event, EventStream, Item, Next, Reader, TraceFile};
use model::Cpus;
use model::events::EventCatalogue;

/// Places of a trace that are sampled, evenly spread, including the beginning.
const PLACES: u64 = 4;
/// Events read at each.
const EVENTS: u64 = 1 << 13;

/// The threads that some places of a trace show; `None` where the whole trace may well show
/// others.
fn guess(file: &TraceFile, buffers: &[&str], wanted: &Wanted, mono: bool) -> Result<Option<Chosen>, Error> {
    if wanted.window != [i64::MIN, i64::MAX] {
        return Ok(None);
    }
    let mut streams = vec![file.stream_buffers_for(Reader::Beginning, buffers)?];
    if let Some([first, last]) = file.extent(buffers)? {
        for place in 1..PLACES {
            let from_ns = first + (last - first) / PLACES * place;
            streams.extend(file.stream_buffers_from(Reader::Beginning, buffers, from_ns)?);
        }
    }
    let recorded: Cpus = streams[0].cpus().collect();
    let records = Records::of(file.formats(), |_| true);
    let mut wakeups = Vec::new();
    for mut stream in streams {
        let mut tasks = Names::default();
        let first = First::new(file, wanted, mono, &mut tasks)?;
        wakeups.extend(some_wakeups(&mut stream, &records, first, tasks)?);
    }
    let chosen = choose(&wakeups, &recorded, wanted);
    Ok(Some(chosen.without_wakeups()).filter(Chosen::is_complete))
}

fn some_wakeups(
    stream: &mut EventStream,
    records: &Records,
    mut first: First<'_>,
    mut tasks: Names,
) -> Result<Vec<Wakeup>, Error> {
    let mut events = 0;
    while events < EVENTS
        && let Some(item) = stream.next()?
    {
        match item {
            Item::Event(event) => {
                events += 1;
                let record = records.read(&event);
                let names = tasks.of_record(&record, event.cpu);
                first.event(&event, &record, names, &mut tasks);
            }
            Item::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                first.lost(Hole::new(cpu, after_ts_ns, before_ts_ns));
            }
        }
    }
    Ok(first.watch.wakeups.take().unwrap_or_default())
}

/// The result of a reading.
pub(super) struct Reading {
    pub(super) found: Found,
    pub(super) chosen: Chosen,
    /// Their wake-ups, unless the guess was wrong.
    pub(super) apart: Option<Apart>,
    /// Its decoder.
    pub(super) decoder: Decoder,
}

/// Reads a trace; `None` at the first of the events that `end` it, by number.
pub(super) fn read(
    file: &TraceFile,
    buffers: &[&str],
    wanted: &Wanted,
    mono: bool,
    catalogue: &EventCatalogue,
    end: &[bool],
) -> Result<Option<Reading>, Error> {
    let mut guess = guess(file, buffers, wanted, mono)?;
    let mut decoder = Decoder::of(file, catalogue)?;
    let mut first = First::new(file, wanted, mono, decoder.tasks_mut())?.until(end);
    let (mut at_once, mut early): (Option<AtOnce>, Vec<Hole>) = (None, Vec::new());
    let records = decoder.records(file.formats());
    let mut stream = file.stream_buffers_for(Reader::Two, buffers)?;
    while let Some(next) = stream.advance()? {
        match next {
            Next::Event => {
                let Some(event) = stream.event() else { continue };
                let record = records.read(&event);
                let names = decoder.tasks_mut().of_record(&record, event.cpu);
                match first.event(&event, &record, names, decoder.tasks_mut()) {
                    Place::Before => continue,
                    Place::Inside => {}
                    Place::Behind => break,
                    Place::End => return Ok(None),
                }
                if let Some(chosen) = guess.take() {
                    let (known, early) = (decoder.known(), early.drain(..));
                    at_once = Some(AtOnce::new(chosen, known, event.ts_ns, wanted.keep, early));
                }
                if let Some(one) = &mut at_once
                    && !one.event(&mut decoder, &event, &record, names, &first.watch)
                {
                    at_once = None;
                }
            }
            Next::Lost => {
                let Some(Item::Lost { cpu, after_ts_ns, before_ts_ns, .. }) = stream.lost() else { continue };
                let hole = Hole::new(cpu, after_ts_ns, before_ts_ns);
                first.lost(hole);
                early.extend(guess.is_some().then_some(hole));
                at_once.take_if(|one| !one.lost(hole, &first.watch));
            }
        }
    }
    let damage = damage(&stream).collect();
    let found = first.finish(decoder.tasks())?;
    let chosen = choose(&found.wakeups, &found.cpus, wanted);
    let whole = at_once.filter(|one| one.is_whole(&found, &chosen));
    let apart = whole.and_then(|one| one.finish(file, &decoder, &chosen, found.t1_ns, damage));
    Ok(Some(Reading { found, chosen, apart, decoder }))
}

/// Takes apart the wake-ups of the guessed threads.
struct AtOnce {
    guess: Chosen,
    feed: Feed,
    /// By place of a thread, the wake-up after which it has not run yet, ns.
    awaited: Vec<Option<i64>>,
    /// The number of finished wake-ups.
    ran: usize,
    last_ns: u64,
}

impl AtOnce {
    /// Before the first event, at `t0_ns`. `early`: the holes before it.
    fn new(guess: Chosen, known: Known, t0_ns: u64, keep: Keep, early: impl Iterator<Item = Hole>) -> Self {
        let t0_ns = i64::try_from(t0_ns).unwrap_or(i64::MAX);
        let mut feed = Feed::new(&guess, known, [t0_ns, i64::MAX], keep);
        // Nothing can be wrong yet.
        early.for_each(|hole| _ = feed.lost(hole));
        Self { guess, feed, awaited: Vec::new(), ran: 0, last_ns: 0 }
    }

    /// The next event, which `watch` has processed. False once the result is invalid.
    #[inline(always)]
    fn event(
        &mut self,
        decoder: &mut Decoder,
        event: &Event<'_>,
        record: &Record<'_>,
        names: [LabelId; 2],
        watch: &Watch,
    ) -> bool {
        let in_order = event.ts_ns >= std::mem::replace(&mut self.last_ns, event.ts_ns);
        in_order && self.follow(watch) && self.feed.event_inside(decoder, event, record, names)
    }

    /// Events are missing, which `watch` has processed.
    fn lost(&mut self, hole: Hole, watch: &Watch) -> bool {
        self.follow(watch) && self.feed.lost(hole)
    }

    /// Begins and ends wake-ups with the event.
    #[inline(always)]
    fn follow(&mut self, watch: &Watch) -> bool {
        watch.touched.is_empty() || self.follow_touched(watch)
    }

    #[inline(never)]
    fn follow_touched(&mut self, watch: &Watch) -> bool {
        watch.touched.iter().all(|place| self.follow_one(watch, *place))
    }

    fn follow_one(&mut self, watch: &Watch, place: usize) -> bool {
        let (Some(thread), Some(wakeups)) = (watch.threads.get(place), &watch.wakeups) else { return false };
        if self.awaited.len() <= place {
            self.awaited.resize(place + 1, None);
        }
        let tid = thread.tid;
        let wake = thread.awaits();
        let now_ns = i64::try_from(self.last_ns).unwrap_or(i64::MAX);
        let known = std::mem::replace(&mut self.awaited[place], wake.map(|wake| wake.at_ns));
        let ended = wakeups.get(self.ran..).unwrap_or_default().iter().find(|one| one.tid == tid);
        let mut known = known;
        if let Some(wakeup) = ended {
            self.ran += 1;
            if known.take() != Some(wakeup.release_ns) || !self.guess.has(wakeup.cpu, tid) {
                return false;
            }
            self.feed.ran(tid, Some((wakeup.cpu, wakeup.ran_ns)));
        }
        if known == self.awaited[place] {
            return true;
        }
        if known.is_some() {
            self.feed.ran(tid, None);
        }
        // A wake-up by a timer began earlier.
        wake.is_none_or(|wake| {
            wake.intended_ns.is_none() && wake.at_ns == now_ns && self.feed.released(tid, wake.at_ns)
        })
    }

    /// Whether the guess was right, and every wake-up was seen.
    fn is_whole(&self, found: &Found, chosen: &Chosen) -> bool {
        self.ran == found.wakeups.len() && self.guess.is_measured_as(chosen)
    }

    fn finish(
        self,
        file: &TraceFile,
        decoder: &Decoder,
        chosen: &Chosen,
        t1_ns: i64,
        damage: Vec<String>,
    ) -> Option<Apart> {
        self.feed.finish(file, decoder, chosen, Some(t1_ns), damage)
    }
}

#[cfg(test)]
mod tests;
