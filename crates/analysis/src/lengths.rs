//! The cost of the kernel's own work by its tracepoints: how long interrupts, timers and softirqs
//! ran on one CPU, and how long it took from a wake-up to the switch, and from a wake-up on another
//! CPU to the interrupt here.
//!
//! These are the terms that Feather-Trace measures inside the kernel (B. Brandenburg and J.
//! Anderson, "Feather-Trace: a light-weight event tracing toolkit", OSPERT 2007; Cerqueira and
//! Brandenburg, OSPERT 2013), as far as mainline has tracepoints for them. Lengths hold what is
//! nested in them and the recording of every event in between, which is counted. Entry and exit
//! code lies outside of the tracepoints, so that without recording they would be lower bounds.

use crate::taskset::{Spread, spread};
use attribution::decode::Decoder;
use attribution::labels::CpuSets;
use attribution::view::{KernelEvent, Target, What};
use model::EventClass;
use serde::{Deserialize, Serialize};
use stats::nearest_rank;
use std::collections::BTreeMap;

/// One term by tracepoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TracedTerm {
    /// Which: see [`TERMS`].
    pub term: String,
    /// The lengths.
    pub lengths: Spread,
    /// 99th percentile, where at least ten lie above it.
    pub p99_ns: Option<i64>,
    /// Median of the events that were recorded within: each adds what recording one costs.
    pub events_within: u64,
}

/// The terms, and what each is.
pub const TERMS: [(&str, &str); 10] = [
    ("timer-interrupt", "interrupt of the local timer that was no tick"),
    ("tick", "interrupt of the local timer with the tick in it"),
    ("hrtimer", "function of a high-resolution timer that is no tick"),
    ("ipi-resched", "interrupt that asks for a scheduling decision"),
    ("ipi-call", "interrupt that brings a function to call"),
    ("irq", "interrupt handler of a device"),
    ("softirq", "softirq"),
    ("wake-to-switch", "from sched_wakeup of a measuring thread on this CPU to the switch to it"),
    ("waking-to-ipi", "from sched_waking on another CPU to the interrupt here"),
    ("ipi-delivery", "from sending an interrupt on another CPU to its entry here"),
];

/// The numbers of the events that matter.
#[derive(Debug, Clone, Default)]
struct Numbers {
    /// Term of each event that starts something, by its number.
    starts: Vec<Option<&'static str>>,
}

/// Something that has begun.
#[derive(Debug)]
struct Open {
    event: u16,
    key: u64,
    since_ns: i64,
    tick: bool,
    events: u64,
}

/// Lengths of what ran on one CPU, while the trace streams by.
#[derive(Debug, Default)]
pub(crate) struct Lengths {
    cpu: u32,
    /// The measuring threads: real-time tasks, so that nothing but the kernel is between their
    /// wake-up and their switch.
    tids: Vec<i32>,
    numbers: Numbers,
    open: Vec<Open>,
    /// Measuring threads that were woken here and have not run yet: since when, and the events
    /// recorded since.
    woken: BTreeMap<i32, (i64, u64)>,
    /// A wake-up on another CPU that no interrupt has followed yet.
    waking_ns: Option<i64>,
    /// An interrupt sent by another CPU that has not arrived yet, if the kernel reports it.
    sent_ns: Option<i64>,
    found: BTreeMap<&'static str, Vec<(i64, u64)>>,
}

impl Lengths {
    pub(crate) fn new(cpu: u32, tids: Vec<i32>, decoder: &Decoder) -> Self {
        let names = decoder.names();
        let numbers = Numbers { starts: names.iter().map(|name| term_of(name)).collect() };
        Self { cpu, tids, numbers, ..Self::default() }
    }

    /// The next event of the merged stream.
    pub(crate) fn event(&mut self, event: &KernelEvent, sets: &CpuSets) {
        if event.cpu != self.cpu {
            match event.what {
                What::Wake { target, done: false, .. } if target == self.cpu => {
                    self.waking_ns = Some(event.ts_ns);
                }
                What::Sent { target, .. } if is_for(target, self.cpu, sets) => {
                    self.sent_ns = Some(event.ts_ns);
                }
                _ => {}
            }
            return;
        }
        self.open.iter_mut().for_each(|open| open.events += 1);
        self.woken.values_mut().for_each(|(_, events)| *events += 1);
        match event.what {
            What::Enter { class, key, .. } => self.enter(event, class, key),
            What::Exit { of, key, .. } => self.exit(event.ts_ns, of, key),
            What::Wake { pid, target, done: true } if target == self.cpu && self.tids.contains(&pid) => {
                self.woken.insert(pid, (event.ts_ns, 0));
            }
            What::Switch { next, .. } => {
                // What was to interrupt this CPU has done so, or it polled and needed no interrupt.
                (self.waking_ns, self.sent_ns) = (None, None);
                if let Some((since_ns, events)) = self.woken.remove(&next.pid) {
                    self.add("wake-to-switch", event.ts_ns - since_ns, events);
                }
            }
            _ => {}
        }
    }

    /// Events are missing: nothing that is open can be trusted.
    pub(crate) fn lost(&mut self) {
        self.open.clear();
        self.woken.clear();
        (self.waking_ns, self.sent_ns) = (None, None);
    }

    fn enter(&mut self, event: &KernelEvent, class: EventClass, key: u64) {
        if class == EventClass::TimerTick {
            self.open.iter_mut().for_each(|open| open.tick = true);
        }
        let term = self.numbers.starts.get(usize::from(event.event)).copied().flatten();
        if term.is_some_and(|term| term.starts_with("ipi-")) {
            let since = [("waking-to-ipi", self.waking_ns.take()), ("ipi-delivery", self.sent_ns.take())];
            for (term, since_ns) in since {
                since_ns.into_iter().for_each(|since_ns| self.add(term, event.ts_ns - since_ns, 1));
            }
        }
        let tick = class == EventClass::TimerTick;
        self.open.push(Open { event: event.event, key, since_ns: event.ts_ns, tick, events: 0 });
    }

    fn exit(&mut self, ts_ns: i64, of: u16, key: u64) {
        let Some(at) = self.open.iter().rposition(|open| open.event == of && open.key == key) else { return };
        let open = self.open.remove(at);
        let term = self.numbers.starts.get(usize::from(of)).copied().flatten();
        let term = match term {
            Some("timer-interrupt") if open.tick => Some("tick"),
            // The interrupt around the tick's function already counts it.
            Some("hrtimer") if open.tick => None,
            term => term,
        };
        if let Some(term) = term {
            self.add(term, ts_ns - open.since_ns, open.events);
        }
    }

    fn add(&mut self, term: &'static str, length_ns: i64, events: u64) {
        self.found.entry(term).or_default().push((length_ns.max(0), events));
    }

    /// The terms that were seen, in the order of [`TERMS`].
    pub(crate) fn terms(&self) -> Vec<TracedTerm> {
        let of = |term: &str| {
            let found = self.found.get(term)?;
            let mut lengths: Vec<i64> = found.iter().map(|(length, _)| *length).collect();
            let mut events: Vec<u64> = found.iter().map(|(_, events)| *events).collect();
            lengths.sort_unstable();
            events.sort_unstable();
            let rank = nearest_rank(lengths.len(), 99_000);
            let p99_ns = (lengths.len() >= rank + 10).then(|| lengths[rank - 1]);
            let events_within = events[(events.len() - 1) / 2];
            Some(TracedTerm {
                term: term.to_owned(),
                lengths: spread(lengths.into_iter()),
                p99_ns,
                events_within,
            })
        };
        TERMS.iter().filter_map(|(term, _)| of(term)).collect()
    }
}

fn is_for(target: Target, cpu: u32, sets: &CpuSets) -> bool {
    match target {
        Target::One(one) => one == cpu,
        Target::Set(set) => sets.has(set, cpu),
    }
}

fn term_of(event: &str) -> Option<&'static str> {
    Some(match event {
        "irq_vectors:local_timer_entry" => "timer-interrupt",
        "timer:hrtimer_expire_entry" => "hrtimer",
        "irq_vectors:reschedule_entry" => "ipi-resched",
        "irq_vectors:call_function_entry" | "irq_vectors:call_function_single_entry" | "ipi:ipi_entry" => {
            "ipi-call"
        }
        "irq:irq_handler_entry" => "irq",
        "irq:softirq_entry" => "softirq",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use attribution::view::{Context, Level, Task};

    const TIMER: u16 = 0;
    const EXPIRE: u16 = 1;
    const RESCHED: u16 = 2;

    fn lengths() -> Lengths {
        let starts = vec![Some("timer-interrupt"), Some("hrtimer"), Some("ipi-resched"), None, None, None];
        let numbers = Numbers { starts };
        Lengths { cpu: 1, tids: vec![7], numbers, ..Lengths::default() }
    }

    fn event(ts_ns: i64, cpu: u32, event: u16, what: What) -> KernelEvent {
        KernelEvent { ts_ns, cpu, pid: 0, level: Level::Task, irqs_off: false, event, what }
    }

    fn switch(prev: i32, next: i32) -> What {
        What::Switch { prev: Task::unnamed(prev, 0), runnable: false, next: Task::unnamed(next, 0) }
    }

    fn enter(ts_ns: i64, number: u16, class: EventClass) -> KernelEvent {
        event(ts_ns, 1, number, What::Enter { class, context: Context::Hard, key: 0, label: 0 })
    }

    fn exit(ts_ns: i64, of: u16) -> KernelEvent {
        event(ts_ns, 1, 9, What::Exit { of, key: 0, class: EventClass::Irq, label: 0 })
    }

    fn feed(lengths: &mut Lengths, event: &KernelEvent) {
        lengths.event(event, &CpuSets::default());
    }

    fn rows(lengths: &Lengths) -> Vec<(String, u64, Option<i64>, u64)> {
        let row = |one: TracedTerm| (one.term, one.lengths.n, one.lengths.median_ns, one.events_within);
        lengths.terms().into_iter().map(row).collect()
    }

    #[test]
    fn a_tick_is_recognised_by_what_expires_in_it() {
        let mut lengths = lengths();
        for (start, class) in [(0, EventClass::TimerTick), (10_000, EventClass::TimerHrtimer)] {
            feed(&mut lengths, &enter(start, TIMER, EventClass::TimerHrtimer));
            feed(&mut lengths, &enter(start + 300, EXPIRE, class));
            feed(&mut lengths, &exit(start + 900, EXPIRE));
            feed(&mut lengths, &exit(start + 1_500, TIMER));
        }
        let expected = [("timer-interrupt", 1_500, 3), ("tick", 1_500, 3), ("hrtimer", 600, 1)];
        let expected = expected.map(|(term, length, events)| (term.to_owned(), 1, Some(length), events));
        assert_eq!(rows(&lengths), expected);
    }

    #[test]
    fn a_wake_up_from_another_cpu_is_followed_to_its_interrupt_and_its_switch() {
        let mut lengths = lengths();
        feed(&mut lengths, &event(100, 0, 3, What::Wake { pid: 7, target: 1, done: false }));
        let target = Target::One(1);
        let sent = What::Sent { target, class: EventClass::IpiResched, site: 0 };
        feed(&mut lengths, &event(400, 0, 6, sent));
        feed(&mut lengths, &enter(1_100, RESCHED, EventClass::IpiResched));
        feed(&mut lengths, &event(1_300, 1, 4, What::Wake { pid: 7, target: 1, done: true }));
        // An ordinary task has to wait for its turn.
        feed(&mut lengths, &event(1_300, 1, 4, What::Wake { pid: 8, target: 1, done: true }));
        feed(&mut lengths, &exit(1_500, RESCHED));
        feed(&mut lengths, &event(2_300, 1, 5, switch(0, 7)));
        // Woken without an interrupt: it polled. The next interrupt has nothing to do with it.
        feed(&mut lengths, &event(3_000, 0, 3, What::Wake { pid: 7, target: 1, done: false }));
        feed(&mut lengths, &event(3_400, 1, 5, switch(0, 7)));
        feed(&mut lengths, &enter(9_000, RESCHED, EventClass::IpiResched));
        feed(&mut lengths, &event(60_000_000, 1, 5, switch(7, 8)));
        let expected = [
            ("ipi-resched", 400, 3),
            ("wake-to-switch", 1_000, 3),
            ("waking-to-ipi", 1_000, 1),
            ("ipi-delivery", 700, 1),
        ];
        let expected = expected.map(|(term, length, events)| (term.to_owned(), 1, Some(length), events));
        assert_eq!(rows(&lengths), expected);
    }

    #[test]
    fn what_was_open_when_events_got_lost_has_no_length() {
        let mut lengths = lengths();
        feed(&mut lengths, &enter(0, TIMER, EventClass::TimerHrtimer));
        lengths.lost();
        feed(&mut lengths, &exit(5_000_000, TIMER));
        assert!(rows(&lengths).is_empty());
    }
}
