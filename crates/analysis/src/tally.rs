//! Sums of the events on one CPU in one window, while the trace streams by.
//!
//! Memory grows with classes, labels and samples, never with events. An event counts where it
//! touches the counted time: the probe's own span, and for noise only the stretches in which its
//! loop ran, because interference during the loop's own pauses is not interference with it. Raw
//! counts over the whole window are kept beside, for the kernel's counters.

use crate::overlap::Intervals;
use attribution::attribute::table::Table;
use attribution::count_ns::CountNs;
use attribution::decode::SOFTIRQS;
use attribution::labels::LabelId;
use attribution::spans::Span;
use attribution::view::{KernelEvent, What};
use model::EventClass;
use model::run::ProbeRecord;
use rustc_hash::FxHashMap;
use stats::stretches::Stretches;

/// Length of the blocks in which events are counted for their dispersion, ns.
pub(crate) const BLOCK_NS: i64 = 100_000_000;
/// The most blocks; longer windows get longer blocks.
const MOST_BLOCKS: i64 = 20_000;

/// One class in one window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassSum {
    /// Events and the time they took, nested ones excluded.
    pub total: CountNs,
    /// Longest net time of one span, ns.
    pub max_ns: u64,
    /// Events by block of the counted time.
    pub blocks: Vec<u32>,
}

/// Sums of one window on one CPU.
#[derive(Debug, Clone)]
pub struct Tally {
    /// The CPU.
    pub cpu: u32,
    /// By the class's place in `EventClass::ALL`.
    pub classes: Vec<ClassSum>,
    /// By place of the class and by label.
    pub(crate) labels: FxHashMap<(u32, LabelId), CountNs>,
    /// Raw events in the counted time, by number of the event.
    pub by_event: Vec<u64>,
    /// Raw events in the whole window, by number of the event.
    pub whole: Vec<u64>,
    /// Softirqs in the whole window, by vector.
    pub softirqs: [u64; SOFTIRQS.len()],
    /// NMIs in the whole window.
    pub nmis: u64,
    /// The samples, and what touched them.
    pub intervals: Intervals,
    /// Switches that are missing from the trace although the kernel counted none lost.
    pub breaks: u64,
    /// Who caused it.
    pub sources: Table,
    counted: Stretches,
    t0_ns: i64,
    block_ns: i64,
    block_exposure_ns: Vec<u64>,
}

impl Tally {
    /// Empty sums for what of a probe's window lies in the stretches `recorded`; all of it where
    /// they are `None`.
    pub fn new(
        record: &ProbeRecord,
        intervals: Intervals,
        events: usize,
        recorded: Option<&[[i64; 2]]>,
    ) -> Self {
        let counted = match record.noise() {
            Some(_) => record.slices(),
            None => vec![[record.t0_ns, record.t1_ns]],
        };
        let counted = Stretches::new(counted);
        let mut counted = recorded.map_or(counted.clone(), |recorded| counted.within(recorded));
        let length = record.t1_ns.saturating_sub(record.t0_ns).max(0);
        let block_ns = BLOCK_NS.max(length / MOST_BLOCKS);
        let blocks = length / block_ns;
        let exposure = |block: i64| {
            let t0_ns = record.t0_ns + block * block_ns;
            counted.overlap_ns(t0_ns, t0_ns + block_ns)
        };
        let block_exposure_ns: Vec<u64> = (0..blocks).map(exposure).collect();
        let class = ClassSum { blocks: vec![0; blocks as usize], ..ClassSum::default() };
        Self {
            cpu: record.cpu,
            classes: vec![class; EventClass::ALL.len()],
            labels: FxHashMap::default(),
            by_event: vec![0; events],
            whole: vec![0; events],
            softirqs: [0; SOFTIRQS.len()],
            nmis: 0,
            intervals,
            breaks: 0,
            sources: Table::timed(),
            counted,
            t0_ns: record.t0_ns,
            block_ns,
            block_exposure_ns,
        }
    }

    /// The time over which events count, ns.
    pub fn duration_ns(&self) -> u64 {
        self.counted.length_ns()
    }

    /// How much of each block is counted time, ns.
    pub fn block_exposure_ns(&self) -> &[u64] {
        &self.block_exposure_ns
    }

    /// Length of a block, ns.
    pub fn block_ns(&self) -> u64 {
        self.block_ns.max(0) as u64
    }

    /// The sums of one class.
    pub fn class(&self, class: EventClass) -> &ClassSum {
        &self.classes[class as usize]
    }

    /// A raw event of this CPU.
    pub fn event(&mut self, event: &KernelEvent) {
        let number = usize::from(event.event);
        if let Some(count) = self.whole.get_mut(number) {
            *count += 1;
        }
        if self.counted.contains(event.ts_ns)
            && let Some(count) = self.by_event.get_mut(number)
        {
            *count += 1;
        }
        if let What::Enter { class: EventClass::Softirq, key, .. } = event.what
            && let Some(count) = self.softirqs.get_mut(key as usize)
        {
            *count += 1;
        }
    }

    /// A span of this CPU.
    pub fn span(&mut self, span: &Span) {
        if span.class == EventClass::Nmi && span.counts {
            self.nmis += 1;
        }
        self.intervals.mark(span.class, span.t0_ns, span.t1_ns);
        let shared = self.counted.overlap_ns(span.t0_ns, span.t1_ns);
        if shared == 0 && !self.counted.contains(span.t0_ns) {
            return;
        }
        let net_ns = span.net_ns.min(shared);
        self.sources.add(span, net_ns);
        let sum = &mut self.classes[span.class as usize];
        sum.total.ns += net_ns;
        sum.max_ns = sum.max_ns.max(net_ns);
        let label = self.labels.entry((span.class as u32, span.label)).or_default();
        label.ns += net_ns;
        if span.counts {
            sum.total.count += 1;
            label.count += 1;
            let block = span.t0_ns.saturating_sub(self.t0_ns).max(0) / self.block_ns;
            if let Some(count) = sum.blocks.get_mut(block as usize) {
                *count += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, record, spun};
    use model::sample::ProbeKind;

    fn span(class: EventClass, t0_ns: i64, t1_ns: i64) -> Span {
        testing::span(1, class, [t0_ns, t1_ns])
    }

    fn tally() -> Tally {
        let noise = ProbeRecord { detail: spun(&[[100, 200], [300, 400]]), ..record(ProbeKind::Noise) };
        Tally::new(&noise, Intervals::default(), 1, None)
    }

    #[test]
    fn the_loops_own_pauses_do_not_count() {
        let mut tally = tally();
        assert_eq!(tally.duration_ns(), 200);
        tally.span(&span(EventClass::Irq, 210, 290));
        assert_eq!(tally.class(EventClass::Irq).total, CountNs::default());
        tally.span(&span(EventClass::Irq, 190, 310));
        assert_eq!(tally.class(EventClass::Irq).total, CountNs { count: 1, ns: 20 });
        tally.span(&span(EventClass::Irq, 350, 350));
        assert_eq!(tally.class(EventClass::Irq).total, CountNs { count: 2, ns: 20 });
        tally.span(&span(EventClass::Irq, 200, 200));
        assert_eq!(tally.class(EventClass::Irq).total.count, 2);
    }

    #[test]
    fn the_kernels_counters_are_met_with_the_whole_window() {
        let mut tally = tally();
        let what = What::Enter {
            class: EventClass::Softirq,
            context: attribution::view::Context::Preemptible,
            key: 9,
            label: 0,
        };
        for ts_ns in [150, 250] {
            tally.event(&KernelEvent {
                ts_ns,
                cpu: 1,
                pid: 0,
                level: attribution::view::Level::Hard,
                irqs_off: true,
                event: 0,
                what,
            });
        }
        assert_eq!((tally.by_event[0], tally.whole[0], tally.softirqs[9]), (1, 2, 2));
    }
}
