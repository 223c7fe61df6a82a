//! Stretches with interrupts or preemption off, and calls of probed functions, counted by what began
//! them: how many, how long, and the longest with its stack.
//!
//! A pair of probes shows when a CPU was in a function ([`model::off`]). A call lasts until the
//! function returns, or until the CPU is given up inside it, where preemption is on: on a preemptible
//! kernel that is how calls end that keep a real-time task waiting. The scheduler's own stretch, in
//! which it switches, is no stretch of anybody.

use super::cause::{Source, Who};
use super::spread::Spread;
use super::table;
use crate::attribute::delay::Blocking;
use crate::attribute::section::SourceText;
use crate::labels::{LabelId, Labels};
use crate::view::{KernelEvent, What};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rows that are stored of one CPU: the longest.
const MOST_ROWS: usize = 100;

/// Calls that are open on one CPU at a time: of nested functions, in a task and in a softirq.
const DEEPEST: usize = 32;

/// What a CPU did with interrupts or preemption off, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OffSection {
    /// Phase of the windows.
    pub phase: String,
    /// The CPU.
    pub cpu: u32,
    /// The longest first; at most 100.
    pub rows: Vec<OffRow>,
}

/// Stretches that one function began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OffRow {
    /// What was off; of a probed function that is not recorded.
    pub blocking: Blocking,
    /// The function that turned it off, or that was probed.
    pub function: String,
    /// How many ended with a known length.
    pub count: u64,
    /// Of these, calls in which the CPU was given up: there they end.
    pub gave_up: u64,
    /// Their time, ns.
    pub total_ns: u64,
    /// Median length, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    /// When the longest began, CLOCK_MONOTONIC, ns.
    pub max_t_ns: i64,
    /// Who was on the CPU in the longest, and, where stacks were recorded, how it came there.
    pub by: Option<SourceText>,
}

/// One that has not ended.
#[derive(Debug, Clone, Copy)]
struct Open {
    blocking: Blocking,
    label: LabelId,
    /// As in [`What::Blocked`].
    key: u64,
    t0_ns: i64,
    by: Source,
    /// Whether the CPU was switched since.
    switched: bool,
}

/// Stretches of one function so far.
#[derive(Debug, Default)]
struct Row {
    spread: Spread,
    count: u64,
    gave_up: u64,
    total_ns: u64,
    longest: Option<(u64, i64, Source)>,
}

/// One CPU of one phase.
#[derive(Debug, Default)]
struct OnCpu {
    open: Vec<Open>,
    /// The event before was the entry of a probed function: its stack may follow.
    stack_may_follow: bool,
    rows: BTreeMap<(Blocking, LabelId), Row>,
}

/// The stretches of a run, while its trace streams by.
#[derive(Debug, Default)]
pub struct Offs {
    by_place: BTreeMap<(String, u32), OnCpu>,
}

/// What is counted here: a lock has its own account.
fn counts(blocking: Blocking) -> bool {
    matches!(blocking, Blocking::InterruptsOff | Blocking::PreemptionOff | Blocking::ProbedFunction)
}

impl Offs {
    /// The next event of a measured CPU in a window of a phase.
    pub fn event(&mut self, phase: &str, event: &KernelEvent) {
        let begins = matches!(event.what, What::Blocked { blocking, .. } if counts(blocking));
        if self.by_place.is_empty() && !begins {
            return;
        }
        let known =
            self.by_place.iter_mut().find(|(place, _)| (place.0.as_str(), place.1) == (phase, event.cpu));
        match known {
            Some((_, on_cpu)) => on_cpu.event(event),
            None if begins => {
                self.by_place.entry((phase.to_owned(), event.cpu)).or_default().event(event);
            }
            None => {}
        }
    }

    /// Events of a CPU are missing, or its window ends: what is open there has no length.
    pub fn lost(&mut self, cpu: Option<u32>) {
        let of_it = |place: &&mut (&(String, u32), &mut OnCpu)| cpu.is_none_or(|cpu| place.0.1 == cpu);
        let mut all: Vec<_> = self.by_place.iter_mut().collect();
        all.iter_mut().filter(|place| of_it(place)).for_each(|(_, on_cpu)| on_cpu.open.clear());
    }

    /// What is stored.
    pub fn sections(self, labels: &Labels, comm: &dyn Fn(i32) -> Option<String>) -> Vec<OffSection> {
        let section = |((phase, cpu), on_cpu): ((String, u32), OnCpu)| {
            let mut rows: Vec<OffRow> = on_cpu
                .rows
                .into_iter()
                .map(|((blocking, label), row)| row.stored(blocking, labels.text(label), labels, comm))
                .collect();
            rows.sort_by(|a, b| (b.max_ns, &a.function).cmp(&(a.max_ns, &b.function)));
            rows.truncate(MOST_ROWS);
            OffSection { phase, cpu, rows }
        };
        self.by_place.into_iter().map(section).collect()
    }
}

impl OnCpu {
    fn event(&mut self, event: &KernelEvent) {
        let follows = std::mem::take(&mut self.stack_may_follow);
        match event.what {
            What::Blocked { blocking, label, lock, .. } if counts(blocking) => {
                if self.open.len() == DEEPEST {
                    self.open.remove(0);
                }
                // Interrupts and preemption are on or off; a second event of the same kind means
                // that the first end is missing.
                if blocking != Blocking::ProbedFunction {
                    self.open.retain(|open| open.blocking != blocking);
                }
                let who = if event.in_task() { Who::Task(event.pid) } else { Who::SomeInterrupt };
                let by = Source::new(event.cpu, who);
                let t0_ns = event.ts_ns;
                self.open.push(Open { blocking, label, key: lock, t0_ns, by, switched: false });
                self.stack_may_follow = blocking == Blocking::ProbedFunction;
            }
            What::Stack { act, .. } if follows => {
                if let Some(open) = self.open.last_mut() {
                    open.by = open.by.by_way(act);
                }
            }
            What::Unblocked { blocking, lock } if counts(blocking) => {
                let is_it = |open: &Open| open.blocking == blocking && open.key == lock;
                if let Some(at) = self.open.iter().rposition(is_it) {
                    let open = self.open.remove(at);
                    self.ended(open, event.ts_ns);
                }
            }
            What::Switch { .. } => {
                for open in &mut self.open {
                    open.switched = true;
                }
                // A task takes the functions that it is in along; it may come back elsewhere.
                let is_left = |open: &Open| open.blocking == Blocking::ProbedFunction;
                let (left, stay): (Vec<Open>, _) =
                    std::mem::take(&mut self.open).into_iter().partition(is_left);
                self.open = stay;
                for open in left {
                    self.ended(open, event.ts_ns);
                    self.rows.entry((open.blocking, open.label)).or_default().gave_up += 1;
                }
            }
            _ => {}
        }
    }

    fn ended(&mut self, open: Open, t1_ns: i64) {
        if open.blocking == Blocking::PreemptionOff && open.switched {
            return;
        }
        let ns = t1_ns.abs_diff(open.t0_ns);
        let row = self.rows.entry((open.blocking, open.label)).or_default();
        row.count += 1;
        row.total_ns = row.total_ns.saturating_add(ns);
        row.spread.add(ns);
        if row.longest.is_none_or(|(longest_ns, ..)| ns > longest_ns) {
            row.longest = Some((ns, open.t0_ns, open.by));
        }
    }
}

impl Row {
    fn stored(
        self,
        blocking: Blocking,
        function: &str,
        labels: &Labels,
        comm: &dyn Fn(i32) -> Option<String>,
    ) -> OffRow {
        let histogram = self.spread.histogram();
        let (max_ns, max_t_ns, by) = match self.longest {
            Some((ns, t_ns, by)) => (ns, t_ns, Some(table::source_text(&by, labels, comm))),
            None => (0, 0, None),
        };
        OffRow {
            blocking,
            function: function.to_owned(),
            count: self.count,
            gave_up: self.gave_up,
            total_ns: self.total_ns,
            p50_ns: histogram.value_at_quantile(0.5).min(max_ns),
            p99_ns: histogram.value_at_quantile(0.99).min(max_ns),
            max_ns,
            max_t_ns,
            by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Level, Task, Way};

    const TASK: i32 = 7;

    fn at(ts_ns: i64, what: What) -> KernelEvent {
        KernelEvent { ts_ns, cpu: 2, pid: TASK, what, ..KernelEvent::NOTHING }
    }

    fn enters(ts_ns: i64, label: LabelId) -> KernelEvent {
        let (blocking, lock) = (Blocking::ProbedFunction, u64::from(label));
        at(ts_ns, What::Blocked { blocking, label, lock, sleeps: false })
    }

    fn returns(ts_ns: i64, label: LabelId) -> KernelEvent {
        at(ts_ns, What::Unblocked { blocking: Blocking::ProbedFunction, lock: u64::from(label) })
    }

    fn off(ts_ns: i64, blocking: Blocking, label: LabelId) -> KernelEvent {
        at(ts_ns, What::Blocked { blocking, label, lock: 0, sleeps: false })
    }

    fn on(ts_ns: i64, blocking: Blocking) -> KernelEvent {
        at(ts_ns, What::Unblocked { blocking, lock: 0 })
    }

    fn switch(ts_ns: i64) -> KernelEvent {
        let to = |pid| Task::unnamed(pid, 0);
        at(ts_ns, What::Switch { prev: to(TASK), runnable: true, next: to(8) })
    }

    fn rows(labels: &Labels, events: &[KernelEvent]) -> Vec<OffRow> {
        let mut offs = Offs::default();
        events.iter().for_each(|event| offs.event("idle", event));
        let comm = |pid| Some(format!("task{pid}"));
        offs.sections(labels, &comm).into_iter().flat_map(|section| section.rows).collect()
    }

    #[test]
    fn calls_are_counted_by_function_and_the_longest_has_its_stack() {
        let mut labels = Labels::default();
        let [outer, inner, frames] = ["outer", "inner", "inner < outer < x"].map(|name| labels.id(name));
        let act = Way { began: None, site: None, frames: Some(frames) };
        let stack = |ts_ns| {
            let what = What::Stack {
                at_switch: false,
                code: None,
                in_user_space: false,
                high_resolution: false,
                act,
            };
            at(ts_ns, what)
        };
        let events = [
            enters(100, outer),
            enters(110, inner),
            stack(111),
            returns(190, inner),
            enters(200, inner),
            // Of another event: not its stack.
            at(205, What::Other),
            stack(206),
            returns(210, inner),
            returns(300, outer),
        ];
        let rows = rows(&labels, &events);
        let short: Vec<_> =
            rows.iter().map(|row| (row.function.as_str(), row.count, row.max_ns, row.max_t_ns)).collect();
        assert_eq!(short, [("outer", 1, 200, 100), ("inner", 2, 80, 110)]);
        assert_eq!((rows[1].total_ns, rows[1].p50_ns, rows[1].p99_ns), (90, 10, 80));
        let by = rows[1].by.as_ref().unwrap();
        assert_eq!((by.who.as_str(), by.pid, by.frames.len()), ("task7", Some(TASK), 3));
        assert!(rows[0].by.as_ref().unwrap().frames.is_empty(), "no stack came behind it");
    }

    #[test]
    fn a_call_lasts_until_it_gives_the_cpu_up() {
        let mut labels = Labels::default();
        let sleeps = labels.id("sleeps");
        let rows = rows(&labels, &[enters(100, sleeps), switch(150), returns(900, sleeps)]);
        assert_eq!((rows[0].count, rows[0].gave_up, rows[0].max_ns), (1, 1, 50));
    }

    #[test]
    fn the_schedulers_own_stretch_is_nobodys_and_interrupts_off_count_through_a_switch() {
        use Blocking::{InterruptsOff, PreemptionOff};
        let mut labels = Labels::default();
        let by = labels.id("schedule");
        let events = [
            off(100, PreemptionOff, by),
            off(110, InterruptsOff, by),
            switch(150),
            on(180, InterruptsOff),
            on(200, PreemptionOff),
            off(300, PreemptionOff, by),
            on(340, PreemptionOff),
        ];
        let short: Vec<_> =
            rows(&labels, &events).iter().map(|row| (row.blocking, row.count, row.max_ns)).collect();
        assert_eq!(short, [(InterruptsOff, 1, 70), (PreemptionOff, 1, 40)]);
    }

    #[test]
    fn what_has_lost_an_end_has_no_length() {
        let mut labels = Labels::default();
        let by = labels.id("x");
        let mut offs = Offs::default();
        for event in [enters(100, by), off(110, Blocking::InterruptsOff, by)] {
            offs.event("idle", &event);
        }
        offs.lost(Some(2));
        for event in [returns(190, by), on(200, Blocking::InterruptsOff)] {
            offs.event("idle", &event);
        }
        assert!(offs.sections(&labels, &|_| None)[0].rows.is_empty());
        let interrupt = KernelEvent { level: Level::Hard, ..enters(100, by) };
        let of_interrupt = rows(&labels, &[interrupt, returns(150, by)]);
        assert_eq!(
            of_interrupt[0].by.as_ref().unwrap().pid,
            None,
            "the task that it interrupts is not who did it"
        );
    }
}
