//! What a bound is put together from, while the trace streams by.

use super::demand::{Demand, LONGEST_NS, Most};
use super::shape::{BoundStep, BoundStretch, WakeBound};
use crate::attribute::blocking::Stretch;
use crate::attribute::delay::Blocking;
use crate::attribute::path::{Path, Taker};
use crate::attribute::step::Step;
use crate::labels::{LabelId, Labels};
use std::collections::{BTreeMap, BTreeSet};

/// What can be switched off for a time, and the step that waits for it.
const OFF: [(Blocking, Step); 2] =
    [(Blocking::InterruptsOff, Step::TimerLate), (Blocking::PreemptionOff, Step::Switch)];

/// The longest of something, and when it was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Longest {
    ns: u64,
    t_ns: i64,
    /// Who switched it off.
    label: Option<LabelId>,
}

impl Longest {
    fn or(self, other: Self) -> Self {
        if other.ns > self.ns { other } else { self }
    }
}

/// The pieces of one window.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// By step, without interference and without what is in `off`.
    steps: BTreeMap<Step, Longest>,
    /// The steps that a wake-up had: where its switch is not in the trace, another one stands in
    /// for those around it.
    ways: BTreeSet<BTreeSet<Step>>,
    /// Stretches with interrupts or preemption off.
    off: BTreeMap<Blocking, Longest>,
    most: Most,
    seen: Longest,
    /// Wake-ups that could not be taken apart, and places where events of the CPU are missing.
    missing: u64,
    /// Stretches of the window that were recorded.
    recorded: u64,
}

impl Gathered {
    /// Those of another stretch of the same window.
    pub(crate) fn append(&mut self, other: Self) {
        for (step, longest) in other.steps {
            let known = self.steps.entry(step).or_default();
            *known = known.or(longest);
        }
        self.ways.extend(other.ways);
        for (blocking, longest) in other.off {
            let known = self.off.entry(blocking).or_default();
            *known = known.or(longest);
        }
        self.most = self.most.or(other.most);
        self.seen = self.seen.or(other.seen);
        self.missing += other.missing;
        self.recorded += other.recorded;
    }

    /// The bound of a window, or why there is none.
    pub(crate) fn bound(&self, labels: &Labels) -> WakeBound {
        let way = self.ways.iter().max_by_key(|way| self.steps_ns(way));
        let is_of_it = |step: &Step| way.is_some_and(|way| way.contains(step));
        let step = |(step, longest): (&Step, &Longest)| BoundStep {
            step: *step,
            ns: longest.ns,
            t_ns: longest.t_ns,
        };
        let stretch = |(blocking, longest): (&Blocking, &Longest)| BoundStretch {
            blocking: *blocking,
            ns: longest.ns,
            t_ns: longest.t_ns,
            label: longest.label.map(|label| labels.text(label).to_owned()),
        };
        let not_recorded = OFF.iter().map(|(blocking, _)| *blocking);
        let mut bound = WakeBound {
            ns: None,
            withheld: None,
            seen_ns: self.seen.ns,
            seen_t_ns: self.seen.t_ns,
            steps: self.steps.iter().filter(|(step, _)| is_of_it(step)).map(step).collect(),
            stretches: self.off.iter().map(stretch).collect(),
            interference_ns: 0,
            within_ns: 0,
            not_recorded: not_recorded.filter(|blocking| !self.off.contains_key(blocking)).collect(),
        };
        if self.missing > 0 {
            // Its CPU's, or others' where a wake-up waited.
            bound.withheld = Some("events are missing from the trace".to_owned());
        } else if self.recorded > 1 {
            bound.withheld = Some("only stretches of the window were recorded".to_owned());
        } else if let Some((ns, interference_ns, within_ns)) =
            way.and_then(|way| self.most.ends(self.steps_ns(way)))
        {
            (bound.ns, bound.interference_ns, bound.within_ns) = (Some(ns), interference_ns, within_ns);
        } else {
            bound.withheld = Some(format!(
                "interference leaves no room for a wake-up within {} ms",
                LONGEST_NS / 1_000_000
            ));
        }
        bound
    }

    /// The longest of each step of a way, with what may have been off meanwhile; one nanosecond
    /// more, because the steps of a wake-up that has not ended are shorter than their sum.
    fn steps_ns(&self, way: &BTreeSet<Step>) -> u64 {
        let steps = way.iter().filter_map(|step| self.steps.get(step));
        steps.chain(self.off.values()).map(|longest| longest.ns).fold(1, u64::saturating_add)
    }
}

/// The pieces of a window that is open.
#[derive(Debug, Default)]
pub(in crate::attribute) struct Gathering {
    demand: Demand,
    gathered: Gathered,
}

impl Gathering {
    /// Something ran that may delay the thread. `needed_ns`: no wake-up from before is open.
    #[inline(always)]
    pub(in crate::attribute) fn ran(&mut self, time: [i64; 2], needed_ns: i64) {
        self.demand.add(time, needed_ns);
    }

    /// Interrupts or preemption were off. `switched_ns`: the CPU's last switch, which the scheduler
    /// makes with preemption off.
    pub(in crate::attribute) fn was_off(&mut self, stretch: &Stretch, switched_ns: i64) {
        let is_off = OFF.iter().any(|(blocking, _)| *blocking == stretch.blocking);
        let switches = stretch.blocking == Blocking::PreemptionOff && switched_ns >= stretch.t0_ns;
        if !is_off || switches {
            return;
        }
        let time = [stretch.t0_ns, stretch.t1_ns];
        let ns = stretch.t1_ns.abs_diff(stretch.t0_ns).saturating_sub(self.demand.inside(time));
        let known = self.gathered.off.entry(stretch.blocking).or_default();
        *known = known.or(Longest { ns, t_ns: stretch.t0_ns, label: Some(stretch.label) });
    }

    /// A wake-up taken apart.
    pub(in crate::attribute) fn woke(&mut self, path: &Path) {
        let Self { demand, gathered } = self;
        let mut steps: BTreeMap<(Step, Option<Blocking>), u64> = BTreeMap::new();
        for piece in &path.pieces {
            let part = &path.parts[piece.part];
            let time = [piece.t0_ns, piece.t1_ns];
            let ns = piece.t1_ns.abs_diff(piece.t0_ns) - demand.inside(time);
            let taker = part.taken.map(|taken| taken.taker);
            let off =
                OFF.iter().find(|(off, step)| taker == Some(Taker::Blocking(*off)) && part.step == *step);
            *steps.entry((part.step, off.map(|(off, _)| *off))).or_default() += ns;
        }
        gathered.ways.insert(steps.keys().map(|(step, _)| *step).collect());
        for ((step, off), ns) in steps {
            let longest = Longest { ns, t_ns: path.t_ns, label: None };
            let known = match off {
                Some(off) => gathered.off.entry(off).or_default(),
                None => gathered.steps.entry(step).or_default(),
            };
            *known = known.or(longest);
        }
        gathered.seen =
            gathered.seen.or(Longest { ns: path.value_ns.unsigned_abs(), t_ns: path.t_ns, label: None });
    }

    /// A wake-up is not taken apart, or events of the CPU are missing.
    pub(in crate::attribute) fn missed(&mut self) {
        self.gathered.missing += 1;
    }

    /// Ends the window.
    pub(in crate::attribute) fn finish(self) -> Gathered {
        Gathered { most: self.demand.most(), recorded: 1, ..self.gathered }
    }
}
