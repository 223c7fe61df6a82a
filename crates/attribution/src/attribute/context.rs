//! Who acts on a CPU at a moment: the current task, or in an interrupt, what runs there.
//!
//! An event in an interrupt names the interrupted task, which does not act. The innermost entry
//! without its exit shows what runs in the interrupt; if no entry was recorded, it is
//! [`Who::SomeInterrupt`].

use super::cause::Who;
use crate::by_cpu::ByCpu;
use crate::labels::LabelId;
use crate::view::{At, KernelEvent, What};
use model::EventClass;

/// Deepest nesting that is followed: hard interrupt, softirq, timer, and some entries whose exit
/// was lost.
const DEEPEST: usize = 8;

/// What runs on each CPU.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    /// By CPU number: what was entered and not yet left, as number of the event and label.
    open: Vec<Vec<(u16, LabelId)>>,
    /// By CPU number: address and function of the timer that expired last.
    expired: ByCpu<(u64, LabelId)>,
}

impl Contexts {
    /// A CPU switches from one task to another: no interrupt lasts beyond that.
    #[inline(always)]
    pub(crate) fn switched(&mut self, cpu: u32) {
        if let Some(open) = self.open.get_mut(cpu as usize) {
            open.clear();
        }
    }

    /// Takes note of entries and exits.
    pub(crate) fn event(&mut self, event: &KernelEvent) {
        match event.what {
            What::Enter { label, key, class, .. } => {
                let timer = matches!(
                    class,
                    EventClass::TimerTick | EventClass::TimerHrtimer | EventClass::TimerWheel
                );
                if timer && key != 0 {
                    self.expired.insert(event.cpu, (key, label));
                }
                let open = self.of(event.cpu);
                if open.len() == DEEPEST {
                    open.remove(0);
                }
                open.push((event.event, label));
            }
            What::Exit { of, .. } => {
                let open = self.of(event.cpu);
                if let Some(at) = open.iter().rposition(|(entered, _)| *entered == of) {
                    open.truncate(at);
                }
            }
            What::Switch { .. } => self.switched(event.cpu),
            _ => {}
        }
    }

    fn of(&mut self, cpu: u32) -> &mut Vec<(u16, LabelId)> {
        let at = cpu as usize;
        if self.open.len() <= at {
            self.open.resize_with(at + 1, Vec::new);
        }
        &mut self.open[at]
    }

    /// Who causes this event.
    #[inline(always)]
    pub(crate) fn who(&self, at: At) -> Who {
        if at.in_task() { Who::Task(at.pid) } else { self.in_interrupt(at.cpu) }
    }

    #[inline(never)]
    fn in_interrupt(&self, cpu: u32) -> Who {
        let innermost = self.open.get(cpu as usize).and_then(|open| open.last());
        innermost.map_or(Who::SomeInterrupt, |(_, label)| Who::Interrupt(*label))
    }

    /// Who arms a timer. A periodic one is rearmed after its expiry, by its function.
    pub(crate) fn who_arms(&self, event: &KernelEvent, timer: u64) -> Who {
        match self.expired.get(event.cpu) {
            Some((expired, label)) if *expired == timer && !event.in_task() => Who::Interrupt(*label),
            _ => self.who(event.at()),
        }
    }

    /// Events of this CPU are missing.
    pub(crate) fn lost(&mut self, cpu: u32) {
        self.of(cpu).clear();
        self.expired.remove(cpu);
    }
}
