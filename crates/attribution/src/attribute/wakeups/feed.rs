//! Decodes a trace for the thread that takes wake-ups apart in parallel.

use super::apart::{Apart, Naming};
use super::chosen::Chosen;
use super::layers::Layers;
use super::steps::{Rare, Step, Steps};
use crate::attribute::paths::Keep;
use crate::beside::Beside;
use crate::damage::remarks;
use crate::decode::{Decoder, Says};
use crate::holes::Hole;
use crate::labels::LabelId;
use crate::records::Record;
use crate::spans::Known;
use crate::view::{At, KernelEvent};
use ftrace::{Event, TraceFile};

/// Steps that are handed over together: few enough for the CPU's cache, and enough to make waking
/// the other thread cheap.
const TOGETHER: usize = 1 << 13;

/// The decoding side.
pub(crate) struct Feed {
    window: [i64; 2],
    unknown: u64,
    next: Steps,
    /// How many sets of CPUs were handed over.
    sets: usize,
    layers: Beside<Layers>,
}

impl Feed {
    /// For events inside a window.
    pub(crate) fn new(chosen: &Chosen, known: Known, window: [i64; 2], keep: Keep) -> Self {
        let layers = Beside::new(Layers::new(chosen, known, window, keep));
        Self { window, unknown: 0, next: Steps::default(), sets: 0, layers }
    }

    /// The next event, its record, and the names of the record's tasks. False where it is after
    /// the window, or the result is already invalid.
    #[inline(always)]
    pub(crate) fn event(
        &mut self,
        decoder: &mut Decoder,
        event: &Event<'_>,
        record: &Record<'_>,
        names: [LabelId; 2],
    ) -> bool {
        match decoder.of_record(event, record, names) {
            Some((at, _)) if at.ts_ns < self.window[0] || at.ts_ns > self.window[1] => {
                at.ts_ns <= self.window[1]
            }
            said => self.said(decoder, event, said),
        }
    }

    /// The same of an event that is known to be inside the window.
    #[inline(always)]
    pub(crate) fn event_inside(
        &mut self,
        decoder: &mut Decoder,
        event: &Event<'_>,
        record: &Record<'_>,
        names: [LabelId; 2],
    ) -> bool {
        let said = decoder.of_record(event, record, names);
        self.said(decoder, event, said)
    }

    #[inline(always)]
    fn said(&mut self, decoder: &mut Decoder, event: &Event<'_>, said: Option<(At, Says)>) -> bool {
        match said {
            Some((at, Says::Switch(switch))) => match Step::of_switch(at, switch) {
                Some(step) => self.step(step),
                None => self.large(at.says(switch.what())),
            },
            Some((at, Says::Wake(wake))) => self.step(Step::Wake(at, wake)),
            None => self.other(decoder, *event),
        }
    }

    #[inline(never)]
    fn other(&mut self, decoder: &mut Decoder, event: Event<'_>) -> bool {
        let Some(said) = decoder.decode(&event) else {
            self.unknown += 1;
            return true;
        };
        if said.ts_ns < self.window[0] || said.ts_ns > self.window[1] {
            return said.ts_ns <= self.window[1];
        }
        let new = decoder.sets().since(self.sets);
        self.next.sets.extend_from_slice(new);
        self.sets += new.len();
        self.large(said)
    }

    fn large(&mut self, event: KernelEvent) -> bool {
        self.next.events.push(event);
        self.step(Step::Other)
    }

    fn rare(&mut self, rare: Rare) -> bool {
        self.next.rare.push(rare);
        self.step(Step::Rare)
    }

    #[inline(always)]
    fn step(&mut self, step: Step) -> bool {
        self.next.all.push(step);
        self.next.all.len() < TOGETHER || self.give()
    }

    #[inline(never)]
    fn give(&mut self) -> bool {
        self.layers.give(&mut self.next)
    }

    /// Events are missing.
    pub(crate) fn lost(&mut self, hole: Hole) -> bool {
        !hole.touches(self.window) || self.rare(Rare::Lost(hole))
    }

    /// A thread whose wake-ups are not known in advance is to run from then on
    /// ([`crate::attribute::paths::Paths::released`]).
    pub(crate) fn released(&mut self, tid: i32, release_ns: i64) -> bool {
        self.rare(Rare::Released(tid, release_ns))
    }

    /// It runs, or does not ([`crate::attribute::paths::Paths::ran`]).
    pub(crate) fn ran(&mut self, tid: i32, ran: Option<(u32, i64)>) -> bool {
        self.rare(Rare::Ran(tid, ran))
    }

    /// The result for the chosen threads. `t1_ns`: time of the last event, if not known before;
    /// `damage`: of the trace. `None` if the result is invalid.
    pub(crate) fn finish(
        self,
        file: &TraceFile,
        decoder: &Decoder,
        chosen: &Chosen,
        t1_ns: Option<i64>,
        damage: Vec<String>,
    ) -> Option<Apart> {
        let Self { unknown, next, layers, .. } = self;
        let mut layers = layers.finish(next)?;
        t1_ns.into_iter().for_each(|t1_ns| layers.until(t1_ns));
        let statements = remarks(decoder, unknown).into_iter().chain(chosen.statement()).collect();
        let (paths, attribution) = layers.finish(&Naming { file, decoder }, chosen);
        Some(Apart { paths, attribution, damage, statements })
    }
}
