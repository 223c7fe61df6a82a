//! Switches that were not recorded.

use super::*;

const HOG: i32 = 90;
const NAMED: LabelId = 1000 + HOG as LabelId;

impl Stream {
    /// Another task runs from here on, without an event.
    fn unseen(self, pid: i32) -> Self {
        Self { pid, ..self }
    }

    fn tick(self, t: i64) -> Self {
        self.enter(t, TIMER_IRQ, TimerHrtimer, PLAIN).exit(t + 10, TIMER_IRQ)
    }

    fn breaks(&self) -> u64 {
        let mut builder = builder(&[MeasuredCpu { cpu: 2, tid: PROBE }]);
        for event in &self.events {
            builder.event(event, &CpuSets::default(), &mut |_| {});
        }
        builder.breaks().map(|(_, breaks)| breaks).sum()
    }

    fn switches(&self) -> Vec<Span> {
        self.spans().into_iter().filter(|span| span.class == Switch).collect()
    }
}

/// Idle does nothing else once a task has been woken for its CPU.
#[test]
fn from_idle_who_was_woken_runs_at_once() {
    let stream = Stream::new(PROBE).switch(100, 0).timer(200, TimerHrtimer, OTHER_TIMER, Some(HOG));
    let stream = stream.unseen(HOG).tick(700).switch(900, PROBE);
    assert_eq!(stream.breaks(), 1);
    // From the end of the timer's interrupt, and without the tick inside.
    assert_eq!(stream.switches(), [span(Switch, 240, 900, 650, NAMED)]);
}

#[test]
fn a_switch_away_is_enough() {
    let stream = Stream::new(PROBE).switch(100, 0).wake(200, HOG).unseen(HOG).switch(900, 0);
    assert_eq!((stream.breaks(), stream.switches()), (1, vec![span(Switch, 200, 900, 700, NAMED)]));
}

/// No wake-up explains why idle left: the time before the new task's first event is unattributed.
#[test]
fn who_was_not_woken_in_sight_runs_from_its_first_event() {
    let stream = Stream::new(PROBE).switch(100, 0).tick(200).unseen(HOG).tick(700).switch(900, PROBE);
    assert_eq!((stream.breaks(), stream.switches()), (1, vec![span(Switch, 700, 900, 190, NAMED)]));
}

#[test]
fn who_was_left_unseen_ran_until_its_last_event() {
    let stream = Stream::new(PROBE).switch(100, KTHREAD).tick(200).unseen(PROBE).tick(700);
    let left = span(Switch, 100, 210, 100, 1000 + KTHREAD as LabelId);
    assert_eq!((stream.breaks(), stream.switches()), (1, vec![left]));
}

#[test]
fn who_neither_came_nor_left_in_sight_has_no_name() {
    let stream = Stream::new(PROBE).switch(100, 0).unseen(HOG).tick(300).unseen(PROBE).tick(700);
    assert_eq!((stream.breaks(), stream.switches()), (2, vec![span(Switch, 300, 310, 0, UNSEEN)]));
}

/// The scheduler records a switch before it switches: what happens in between belongs to the task
/// that leaves.
#[test]
fn what_a_switch_itself_does_is_no_omission() {
    let flush = What::Instant { class: EventClass::Tlb, label: PLAIN, length_ns: 0 };
    let stream = Stream::new(PROBE).switch(100, KTHREAD).unseen(PROBE).push(101, 60, flush);
    let stream = stream.unseen(KTHREAD).tick(200).switch(300, PROBE);
    assert_eq!(stream.breaks(), 0);
    // Once an event named the next task, the other must have come back.
    let stream = stream.tick(400).unseen(KTHREAD).tick(500);
    assert_eq!(stream.breaks(), 1);
}

/// Both switches, there and back, are missing, and nothing else was recorded.
#[test]
fn who_leaves_again_has_come() {
    let stream = Stream::new(PROBE).switch(100, 0).unseen(PROBE).switch(200, KTHREAD);
    assert_eq!(stream.breaks(), 1);
    assert_eq!(stream.switches(), [span(Switch, 200, 10_000, 9_800, 1000 + KTHREAD as LabelId)]);
}

/// A work item that sleeps resumes when its task comes back unseen.
#[test]
fn what_was_interrupted_goes_on() {
    let stream = Stream::new(KTHREAD).enter(100, WORK, Work, PLAIN).switch(200, 0);
    let stream = stream.wake(300, KTHREAD).unseen(KTHREAD).exit(400, WORK);
    let works: Vec<Span> = stream.spans().into_iter().filter(|span| span.class == Work).collect();
    assert_eq!(
        works,
        [span(Work, 100, 200, 100, PLAIN), Span { counts: false, ..span(Work, 300, 400, 100, PLAIN) }]
    );
}
