//! A program watched through events made by hand: each case has one right answer.

use super::event::{Leaves, WatchEvent, What};
use super::program::{Follow, Wakeup, Watch};
use super::thread::{State, Thread};
use super::waker::By;
use crate::names::Names;
use crate::prio::Prio;
use proptest::prelude::*;

const A: i32 = 10;
const B: i32 = 11;
const C: i32 = 12;
const OTHER: i32 = 99;
/// x86-64.
const FUTEX: u64 = 202;

fn event(ts_ns: i64, cpu: u32, pid: i32, what: What) -> WatchEvent {
    WatchEvent { ts_ns, cpu, pid, in_task: true, what }
}

fn switch(ts_ns: i64, cpu: u32, prev: i32, leaves: Leaves, next: i32) -> WatchEvent {
    let named = |pid: i32| (pid, pid.cast_unsigned());
    event(
        ts_ns,
        cpu,
        prev,
        What::Switch { prev: named(prev), leaves, next: named(next), prios: [Prio::UNKNOWN; 2] },
    )
}

fn waking(ts_ns: i64, cpu: u32, by: i32, task: i32) -> WatchEvent {
    event(ts_ns, cpu, by, What::Waking { task: (task, task.cast_unsigned()), prio: Prio::UNKNOWN })
}

fn woken(ts_ns: i64, cpu: u32, by: i32, pid: i32) -> WatchEvent {
    event(ts_ns, cpu, by, What::Woken { pid, new: false })
}

fn interrupt(ts_ns: i64, cpu: u32, what: What) -> WatchEvent {
    WatchEvent { in_task: false, ..event(ts_ns, cpu, 0, what) }
}

/// Gives an event, which names its tasks.
fn give(watch: &mut Watch, tasks: &mut Names, event: &WatchEvent) {
    let named = match event.what {
        What::Switch { prev, next, .. } => [Some(prev), Some(next)],
        What::Waking { task, .. } => [Some(task), None],
        _ => [None; 2],
    };
    named.into_iter().flatten().for_each(|(tid, name)| tasks.comms.set(tid, name));
    watch.event(event, tasks);
}

fn give_all(watch: &mut Watch, events: &[WatchEvent]) {
    let mut tasks = Names::default();
    events.iter().for_each(|event| give(watch, &mut tasks, event));
}

/// The program of A, B and C from 0 to `t1_ns`.
fn watched(t1_ns: i64, events: &[WatchEvent]) -> Watch {
    let mut watch = Watch::new("x86_64", 0, [(A, None), (B, None), (C, None)]);
    give_all(&mut watch, events);
    watch.finish(t1_ns);
    watch
}

fn of(watch: &Watch, tid: i32) -> &Thread {
    watch.threads.iter().rfind(|thread| thread.tid == tid).unwrap()
}

fn sum(thread: &Thread) -> u64 {
    let times = thread.times;
    times.on_cpu_ns + times.waiting_ns + times.preempted_ns + times.asleep_ns + times.unknown_ns
}

#[test]
fn a_timer_is_late_and_the_thread_waits() {
    let (timer, function) = (0xf00, 7);
    let watch = watched(
        5_000,
        &[
            switch(100, 0, A, Leaves::Sleeps, 0),
            event(100, 1, OTHER, What::Armed { timer, expires_ns: 1_000 }),
            interrupt(1_030, 0, What::Expires { timer, now_ns: 1_020, function }),
            interrupt(1_040, 0, What::Waking { task: (A, 1), prio: Prio::UNKNOWN }),
            interrupt(1_050, 0, What::Woken { pid: A, new: false }),
            interrupt(1_060, 0, What::Exit),
            switch(1_100, 0, 0, Leaves::Runnable, A),
            switch(2_000, 0, A, Leaves::Sleeps, 0),
        ],
    );
    let thread = of(&watch, A);
    let (key, sums) = thread.releases.iter().next().unwrap();
    assert_eq!((key.by, sums.n, thread.activations), (By::Timer { function }, 1, 1));
    assert_eq!(sums.lateness.summary().unwrap().max_ns, 40);
    assert_eq!(sums.total.summary().unwrap().max_ns, 100);
    assert_eq!(thread.run_latency.summary().unwrap().max_ns, 60);
    // It left the CPU first, so it had been running since the beginning.
    assert_eq!((thread.times.on_cpu_ns, thread.times.waiting_ns), (100 + 900, 60));
    assert_eq!((thread.times.asleep_ns, thread.times.unknown_ns), (940 + 3_000, 0));
}

#[test]
fn a_timer_of_another_clock_is_late_by_that_clock() {
    let timer = 0xf00;
    let start = 1_700_000_000_000_000_000;
    let watch = watched(
        5_000,
        &[
            event(100, 1, OTHER, What::Armed { timer, expires_ns: start }),
            interrupt(1_030, 0, What::Expires { timer, now_ns: start + 25, function: 7 }),
            interrupt(1_040, 0, What::Waking { task: (A, 1), prio: Prio::UNKNOWN }),
            interrupt(1_060, 0, What::Exit),
            switch(1_100, 0, 0, Leaves::Runnable, A),
        ],
    );
    let sums = of(&watch, A).releases.values().next().unwrap();
    assert_eq!(sums.lateness.summary().unwrap().max_ns, 1_040 - 1_030 + 25);
}

#[test]
fn wake_ups_run_from_thread_to_thread() {
    let round = |t: i64| {
        vec![
            waking(t + 10, 3, OTHER, A),
            woken(t + 11, 3, OTHER, A),
            switch(t + 20, 0, 0, Leaves::Runnable, A),
            waking(t + 30, 0, A, B),
            woken(t + 31, 1, 0, B),
            switch(t + 40, 1, 0, Leaves::Runnable, B),
            waking(t + 50, 1, B, C),
            woken(t + 51, 2, 0, C),
            switch(t + 70, 2, 0, Leaves::Runnable, C),
            // C answers A, which does not extend the chain.
            switch(t + 75, 0, A, Leaves::Sleeps, 0),
            waking(t + 80, 2, C, A),
            switch(t + 85, 0, 0, Leaves::Runnable, A),
            switch(t + 90, 0, A, Leaves::Sleeps, 0),
            switch(t + 91, 1, B, Leaves::Sleeps, 0),
            switch(t + 92, 2, C, Leaves::Sleeps, 0),
        ]
    };
    let watch = watched(3_000, &(0..3).flat_map(|k| round(k * 1_000)).collect::<Vec<_>>());
    let chains: Vec<_> = watch
        .chains
        .iter()
        .map(|(way, node)| (way, node.n, node.latency.summary().unwrap().max_ns))
        .collect();
    assert_eq!(chains, [(vec![A, B], 3, 30), (vec![A, B, C], 3, 60)]);
    assert_eq!(watch.chains.dropped, 0);
}

#[test]
fn preemption_names_the_preemptor_and_what_woke_it() {
    let watch = watched(
        1_000,
        &[
            switch(10, 0, 0, Leaves::Runnable, A),
            waking(20, 1, B, OTHER),
            switch(30, 0, A, Leaves::Runnable, OTHER),
            switch(80, 0, OTHER, Leaves::Sleeps, A),
        ],
    );
    let (key, sums) = of(&watch, A).preemptions.iter().next().unwrap();
    assert_eq!((key.by, sums.tid, sums.n), (OTHER.cast_unsigned(), Some(OTHER), 1));
    assert_eq!(sums.lost.summary().unwrap().max_ns, 50);
    assert_eq!(of(&watch, A).times.preempted_ns, 50);
    // No switch named B, but B does something: so it runs.
    assert_eq!((key.woken, of(&watch, B).state), (None, State::Running));
}

#[test]
fn a_wake_up_of_a_thread_that_runs_is_no_release() {
    let watch = watched(
        1_000,
        &[
            switch(10, 0, 0, Leaves::Runnable, A),
            waking(20, 1, OTHER, A),
            woken(21, 1, OTHER, A),
            switch(30, 0, A, Leaves::Sleeps, 0),
        ],
    );
    assert_eq!((of(&watch, A).early_wakes, of(&watch, A).state), (1, State::Asleep));
}

#[test]
fn a_wake_up_that_overtakes_the_switch_is_a_release() {
    let watch = watched(
        1_000,
        &[
            switch(10, 0, 0, Leaves::Runnable, A),
            waking(29, 1, OTHER, A),
            switch(30, 0, A, Leaves::Sleeps, 0),
            woken(31, 0, 0, A),
            switch(40, 0, 0, Leaves::Runnable, A),
        ],
    );
    let thread = of(&watch, A);
    assert_eq!((thread.early_wakes, thread.activations), (0, 1));
    assert_eq!((thread.run_latency.summary().unwrap().max_ns, thread.times.waiting_ns), (11, 10 + 10));
}

#[test]
fn a_signal_is_known_after_its_wake_up_and_a_futex_from_the_call() {
    let watch = watched(
        1_000,
        &[
            switch(5, 0, 0, Leaves::Runnable, A),
            event(6, 0, A, What::CallEnter { number: FUTEX, arguments: [0xabc, 0, 0] }),
            switch(7, 0, A, Leaves::Sleeps, 0),
            waking(20, 1, OTHER, A),
            switch(25, 0, 0, Leaves::Runnable, A),
            // The thread may run before its waker records the signal.
            event(26, 1, OTHER, What::Signal { signal: 10, pid: A }),
            event(27, 0, A, What::CallExit { result: 0 }),
            event(28, 0, A, What::CallEnter { number: FUTEX, arguments: [0xdef, 0, 0] }),
            switch(30, 0, A, Leaves::Sleeps, 0),
            waking(40, 1, OTHER, A),
            switch(45, 0, 0, Leaves::Runnable, A),
        ],
    );
    let mut keys: Vec<_> = of(&watch, A).releases.keys().map(|key| (key.signal, key.call)).collect();
    keys.sort();
    assert_eq!(keys, [(None, Some(("futex", 0))), (Some(10), Some(("futex", 0)))]);
}

#[test]
fn threads_that_are_made_are_watched_and_ends_are_seen() {
    let child = 50;
    let watch = watched(
        1_000,
        &[
            event(10, 0, A, What::Fork { parent: A, child }),
            event(11, 0, A, What::Woken { pid: child, new: true }),
            switch(20, 1, 0, Leaves::Runnable, child),
            event(25, 0, OTHER, What::Fork { parent: OTHER, child: 51 }),
            switch(30, 1, child, Leaves::Ended, 0),
        ],
    );
    let thread = of(&watch, child);
    assert!(thread.releases.keys().all(|key| key.start && key.by == By::Thread(A)));
    assert_eq!((thread.state, thread.times.observed_ns, thread.times.on_cpu_ns), (State::Gone, 20, 10));
    assert!(watch.threads.iter().all(|thread| thread.tid != 51));
}

#[test]
fn the_first_run_of_a_thread_that_is_asked_for_by_number_is_a_wake_up() {
    // No event shows who made it: other tools may not record that.
    let events =
        [event(40, 0, OTHER, What::Woken { pid: A, new: true }), switch(60, 1, 0, Leaves::Runnable, A)];
    let watch = watched(100, &events);
    let thread = of(&watch, A);
    assert_eq!((thread.activations, thread.run_latency.summary().unwrap().max_ns), (1, 20));
    assert_eq!(thread.times.observed_ns, 60, "before that it was nowhere");
}

#[test]
fn a_switch_that_the_trace_leaves_out_is_missed_not_guessed() {
    let watch = watched(
        1_000,
        &[
            switch(10, 0, A, Leaves::Sleeps, 0),
            waking(20, 0, 0, A),
            // The switch from idle to A is missing: A does something.
            event(29, 0, A, What::CallExit { result: 0 }),
            switch(40, 0, A, Leaves::Sleeps, 0),
        ],
    );
    let thread = of(&watch, A);
    assert_eq!((watch.missing, thread.activations, thread.unseen_switches), (1, 1, 1));
    // At most until it did something.
    assert_eq!(thread.run_latency.summary().unwrap().max_ns, 9);
    assert_eq!((thread.times.unknown_ns, thread.times.on_cpu_ns), (9, 10 + 11));
}

#[test]
fn a_thread_only_seen_to_leave_has_no_latency() {
    let events =
        [switch(10, 0, A, Leaves::Sleeps, 0), waking(20, 0, 0, A), switch(40, 0, A, Leaves::Sleeps, 0)];
    let watch = watched(1_000, &events);
    assert_eq!((of(&watch, A).activations, of(&watch, A).times.unknown_ns), (1, 20));
    assert!(of(&watch, A).run_latency.summary().is_none());
    // It is unknown, but has an upper limit.
    assert_eq!((of(&watch, A).only_left, of(&watch, A).only_left_most_ns), (1, 20));
}

#[test]
fn lost_events_make_time_unknown() {
    let mut watch = Watch::new("x86_64", 0, [(A, None), (B, None)]);
    let events = [
        switch(10, 0, 0, Leaves::Runnable, A),
        switch(11, 1, 0, Leaves::Runnable, B),
        switch(40, 0, A, Leaves::Sleeps, 0),
    ];
    give_all(&mut watch, &events);
    watch.lost(0);
    give_all(&mut watch, &[switch(70, 0, 0, Leaves::Runnable, A)]);
    watch.finish(100);
    assert_eq!((of(&watch, A).times.unknown_ns, of(&watch, A).activations), (30, 0));
    // B ran all the time on a CPU without losses.
    assert_eq!((of(&watch, B).times.unknown_ns, of(&watch, B).times.on_cpu_ns), (0, 89));
}

#[test]
fn time_on_a_cpu_that_is_not_recorded_is_unknown() {
    let mut watch = Watch::new("x86_64", 0, [(A, None)]);
    watch.recorded_on(&model::Cpus::one(0));
    let call = What::CallEnter { number: FUTEX, arguments: [0, 0, 0] };
    let events = [
        switch(10, 0, 0, Leaves::Runnable, A),
        switch(40, 0, A, Leaves::Sleeps, 0),
        event(60, 1, A, call),
        waking(80, 0, 0, A),
        event(90, 1, A, call),
    ];
    give_all(&mut watch, &events);
    watch.finish(100);
    let thread = of(&watch, A);
    assert_eq!((thread.times.on_cpu_ns, thread.activations, sum(thread)), (30, 0, 100));
    // It waited for the first switch, not after the wake-up.
    assert_eq!((thread.times.unknown_ns, thread.times.waiting_ns), (60, 10));
    assert_eq!(thread.cpus, [0, 1]);
}

/// Any event, also impossible ones.
fn any_event() -> impl Strategy<Value = (i64, WatchEvent)> {
    let pid = prop_oneof![Just(0), Just(A), Just(B), Just(C), Just(OTHER), Just(50)];
    let leaves = prop_oneof![Just(Leaves::Runnable), Just(Leaves::Sleeps), Just(Leaves::Ended)];
    let parts = (0i64..500, 0u32..3, pid.clone(), any::<bool>(), 0u8..11, pid, leaves);
    parts.prop_map(|(step, cpu, pid, in_task, kind, other, leaves)| {
        let what = match kind {
            0..=2 => What::Switch { prev: (pid, 1), leaves, next: (other, 2), prios: [Prio::UNKNOWN; 2] },
            3 | 4 => What::Waking { task: (other, 2), prio: Prio::UNKNOWN },
            5 => What::Woken { pid: other, new: step % 7 == 0 },
            6 => What::Migrate { pid: other, to: cpu },
            7 => What::Fork { parent: pid, child: other },
            8 => What::Expires { timer: 1, now_ns: step, function: 9 },
            9 => What::Exit,
            _ => What::Signal { signal: 1, pid: other },
        };
        (step, WatchEvent { ts_ns: 0, cpu, pid, in_task, what })
    })
}

proptest! {
    /// For any events, every nanosecond is in exactly one state, and only what occurred is counted.
    #[test]
    fn times_add_up(events in prop::collection::vec(any_event(), 0..300), lost in prop::option::of(0usize..300)) {
        let mut watch = Watch::new("x86_64", 0, [(A, None), (B, None), (C, None)]);
        let (mut now, mut tasks) = (0, Names::default());
        for (at, (step, event)) in events.iter().enumerate() {
            now += step;
            give(&mut watch, &mut tasks, &WatchEvent { ts_ns: now, ..*event });
            if lost == Some(at) {
                watch.lost(event.cpu);
            }
        }
        watch.finish(now + 1_000);
        for thread in &watch.threads {
            prop_assert_eq!(sum(thread), thread.times.observed_ns);
            let booked: u64 = thread.releases.values().map(|sums| sums.n).sum();
            prop_assert!(booked <= thread.activations);
            let latencies = thread.run_latency.summary().map_or(0, |summary| summary.n);
            prop_assert!(latencies <= thread.activations);
        }
        for tid in [A, B, C] {
            let first = watch.threads.iter().find(|thread| thread.tid == tid).unwrap();
            let whole_ns = (now + 1_000 - first.first_ns).unsigned_abs();
            prop_assert!(first.state == State::Gone || first.times.observed_ns == whole_ns);
        }
    }
}

#[test]
fn threads_are_met_by_name_or_by_priority_and_their_wake_ups_are_kept() {
    let named = |pid: i32| (pid, pid.cast_unsigned());
    let to = |ts_ns: i64, prev: i32, next: i32, prio: i64| {
        let prios = [Prio::UNKNOWN, Prio::new(prio)];
        let what = What::Switch { prev: named(prev), leaves: Leaves::Sleeps, next: named(next), prios };
        event(ts_ns, 1, prev, what)
    };
    let events = [
        waking(100, 0, OTHER, A),
        to(130, 0, A, 19),
        waking(200, 0, OTHER, B),
        to(210, A, B, 120),
        waking(300, 0, OTHER, A),
        to(350, B, A, 19),
    ];
    let followed = |follow: Follow| {
        let mut watch = Watch::new("x86_64", 0, []).following(follow);
        give_all(&mut watch, &events);
        watch.finish(1_000);
        let of = |one: &Wakeup| (one.tid, one.cpu, one.release_ns, one.ran_ns);
        watch.wakeups.unwrap().iter().map(of).collect::<Vec<_>>()
    };
    // The priority of A is known from its first switch on: what came before is not known.
    assert_eq!(followed(Follow::RealTime), [(A, 1, 300, 350)]);
    assert_eq!(followed(Follow::Named(B.cast_unsigned())), [(B, 1, 200, 210)]);
    assert_eq!(followed(Follow::Nobody), []);
}

#[test]
fn a_timer_s_lateness_by_another_clock_is_what_the_interrupt_saw_of_it() {
    let (timer, function) = (0xf00, 7);
    let wakeups = |other: bool| {
        let mut watch = Watch::new("x86_64", 0, [(A, None)]).following(Follow::Nobody);
        if other {
            watch.by_another_clock();
        }
        // The timer's clock is 500 ahead of the trace's.
        let events = [
            event(0, 0, A, What::Armed { timer, expires_ns: 1_500 }),
            switch(10, 0, A, Leaves::Sleeps, 0),
            interrupt(1_040, 0, What::Expires { timer, now_ns: 1_530, function }),
            interrupt(1_045, 0, What::Waking { task: (A, 1), prio: Prio::UNKNOWN }),
            interrupt(1_050, 0, What::Exit),
            switch(1_060, 0, 0, Leaves::Runnable, A),
        ];
        give_all(&mut watch, &events);
        watch.wakeups.unwrap()[0].release_ns
    };
    assert_eq!(wakeups(true), 1_010, "30 late when the interrupt looked at the clock");
    assert_eq!(wakeups(false), 1_500);
}
