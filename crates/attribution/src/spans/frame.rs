//! One thing that runs on a CPU, from start to end, and how its class is decided.

use crate::attribute::Causes;
use crate::labels::LabelId;
use crate::view::Context;
use model::EventClass;

/// How the rules treat a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The timer's own interrupt: what expires inside decides.
    TimerInterrupt,
    /// A high-resolution timer's function.
    Expiry,
    /// An IPI that may be the probe's own wake-up.
    Ipi,
    /// Anything else.
    Plain,
}

impl Kind {
    pub(super) fn of(class: EventClass, context: Context) -> Self {
        match (class, context) {
            (EventClass::TimerHrtimer | EventClass::TimerTick, Context::Hard) => Self::TimerInterrupt,
            (EventClass::TimerHrtimer | EventClass::TimerTick, Context::Preemptible) => Self::Expiry,
            (EventClass::IpiResched | EventClass::IpiCall, _) => Self::Ipi,
            _ => Self::Plain,
        }
    }
}

/// Timers that expired inside a timer interrupt, the first of each sort.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Expired {
    pub(super) tick: Option<LabelId>,
    pub(super) other: Option<LabelId>,
    pub(super) own: Option<LabelId>,
}

/// A span that is still open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) event: u16,
    pub(super) key: u64,
    pub(super) class: EventClass,
    pub(super) context: Context,
    pub(super) kind: Kind,
    pub(super) label: LabelId,
    pub(super) t0_ns: i64,
    /// Time inside that belongs to other spans.
    pub(super) nested_ns: u64,
    /// Its time and class go to the frame around it; it is no span.
    pub(super) absorbed: bool,
    /// Whether it is an event of its own; false if it resumes after an interruption.
    pub(super) counts: bool,
    /// Whether an IPI has the name of a function that it brought.
    pub(super) named: bool,
    pub(super) woke_probe: bool,
    pub(super) woke_other: bool,
    pub(super) expired: Expired,
    /// Its sources.
    pub(super) causes: Causes,
}

impl Frame {
    /// The class and label of an ended frame; `own_timer`: its key is a timer that the probe armed.
    pub(super) fn verdict(&self, own_timer: bool) -> (EventClass, LabelId) {
        let woke_only_probe = self.woke_probe && !self.woke_other;
        match self.kind {
            Kind::Expiry if self.class == EventClass::TimerHrtimer && (woke_only_probe || own_timer) => {
                (EventClass::SelfCaused, self.label)
            }
            Kind::Ipi if woke_only_probe => (EventClass::SelfCaused, self.label),
            Kind::TimerInterrupt => self.timer_verdict(woke_only_probe),
            _ => (self.class, self.label),
        }
    }

    fn timer_verdict(&self, woke_only_probe: bool) -> (EventClass, LabelId) {
        let Expired { tick, other, own } = self.expired;
        if let Some(label) = tick {
            (EventClass::TimerTick, label)
        } else if let Some(label) = other {
            (EventClass::TimerHrtimer, label)
        } else if let Some(label) = own {
            (EventClass::SelfCaused, label)
        } else if woke_only_probe {
            // A kernel that does not show expiries still shows their wake-ups.
            (EventClass::SelfCaused, self.label)
        } else {
            (self.class, self.label)
        }
    }

    /// Notes a timer that expired inside, and its source if the timer decides the class.
    pub(super) fn note_expiry(&mut self, (class, label): (EventClass, LabelId), causes: &Causes) {
        let decides = match class {
            EventClass::TimerTick => true,
            EventClass::SelfCaused => self.expired.tick.is_none() && self.expired.other.is_none(),
            _ => self.expired.tick.is_none(),
        };
        let place = match class {
            EventClass::TimerTick => &mut self.expired.tick,
            EventClass::SelfCaused => &mut self.expired.own,
            _ => &mut self.expired.other,
        };
        if decides && place.is_none() {
            self.causes = *causes;
        } else if decides {
            self.causes.join(causes);
        }
        place.get_or_insert(label);
    }
}
