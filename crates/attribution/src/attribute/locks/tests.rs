//! Contention made by hand: each case has one right answer.
//!
//! Long because: each case is a whole story of events, and all share the same words.

use super::shape::{Activity, Evidence, LockKind, LockSection, LockWait, WaitEnd};
use super::waits::Locks;
use crate::attribute::watch::event::{Leaves, WatchEvent, What};
use crate::labels::LabelId;
use crate::prio::Prio;
use model::watch::LockWords;

mod kernel;

/// Threads of one process: FIFO 80, 20, 25, and another one of 10.
const CONTROL: i32 = 10;
const LOGGER: i32 = 11;
const UI: i32 = 12;
const STORE: i32 = 13;
const PROCESS: i32 = 10;
const WORD: u64 = 0x7f00;
const OTHER_WORD: u64 = 0x8f00;
/// futex on x86-64, and what it is to do.
const FUTEX: u64 = 202;
const WAIT: u64 = 128;
const WAKE: u64 = 128 | 1;
const LOCK_PI: u64 = 128 | 6;
const UNLOCK_PI: u64 = 128 | 7;
const SLEEP: u64 = 230;

fn prio(tid: i32) -> Prio {
    Prio::new(match tid {
        CONTROL => 19,
        LOGGER => 79,
        UI => 74,
        STORE => 89,
        _ => 120,
    })
}

fn event(ts_ns: i64, cpu: u32, pid: i32, what: What) -> WatchEvent {
    WatchEvent { ts_ns, cpu, pid, in_task: true, what }
}

fn switch(ts_ns: i64, cpu: u32, prev: i32, leaves: Leaves, next: i32) -> WatchEvent {
    let prios = [prio(prev), prio(next)];
    event(ts_ns, cpu, prev, What::Switch { prev: (prev, 0), leaves, next: (next, 0), prios })
}

fn waking(ts_ns: i64, cpu: u32, by: i32, task: i32) -> WatchEvent {
    event(ts_ns, cpu, by, What::Waking { task: (task, 0), prio: prio(task) })
}

fn call(ts_ns: i64, cpu: u32, tid: i32, operation: u64, word: u64, value: u64) -> WatchEvent {
    event(ts_ns, cpu, tid, What::CallEnter { number: FUTEX, arguments: [word, operation, value] })
}

fn returns(ts_ns: i64, cpu: u32, tid: i32, result: i64) -> WatchEvent {
    event(ts_ns, cpu, tid, What::CallExit { result })
}

fn words(ts_ns: i64, cpu: u32, tid: i32, owner: i32) -> WatchEvent {
    event(ts_ns, cpu, tid, What::LockWords([2, 0, owner.cast_unsigned(), 2, 0]))
}

fn locks(t1_ns: i64, events: &[WatchEvent]) -> Locks {
    let threads = [CONTROL, LOGGER, UI, STORE].map(|tid| (tid, PROCESS));
    let mut locks = Locks::new("x86_64", threads, [PROCESS]).were_there([CONTROL, LOGGER, UI, STORE]);
    events.iter().for_each(|event| locks.event(event));
    locks.finish(t1_ns);
    locks
}

fn name(tid: i32) -> String {
    match tid {
        CONTROL => "CONTROL",
        LOGGER => "LOGGER",
        UI => "UI",
        STORE => "STORE",
        _ => "other",
    }
    .to_owned()
}

fn label(label: LabelId) -> String {
    format!("label {label}")
}

fn section(t1_ns: i64, events: &[WatchEvent]) -> LockSection {
    locks(t1_ns, events).section(&name, &label).unwrap_or_default()
}

fn only(section: &LockSection) -> &LockWait {
    assert_eq!(section.worst.len(), 1, "{section:?}");
    &section.worst[0]
}

/// What the holders did, as `who what ns`, an inversion with `!`.
fn parts(wait: &LockWait) -> Vec<String> {
    let part = |part: &super::shape::Part| {
        let what = match &part.doing {
            Activity::Ran => "ran".to_owned(),
            Activity::Preempted { by: None } => "preempted by ?".to_owned(),
            Activity::Preempted { by: Some(by) } => format!("preempted by {}", by.comm),
            Activity::Slept { call } => format!("slept in {}", call.as_deref().unwrap_or("?")),
            Activity::Unknown => "unknown".to_owned(),
        };
        let through = if part.through.is_empty() { "" } else { "through " };
        let mark = if part.inversion { "!" } else { "" };
        format!("{through}{} {what} {}{mark}", part.holder.comm, part.ns)
    };
    wait.parts.iter().map(part).collect()
}

/// LOGGER holds the lock on CPU 0, CONTROL on CPU 1 waits for it; UI preempts LOGGER.
fn inversion(memory: Option<i32>) -> Vec<WatchEvent> {
    let mut events = vec![
        switch(0, 0, 0, Leaves::Runnable, LOGGER),
        switch(0, 1, 0, Leaves::Runnable, CONTROL),
        call(1_000, 1, CONTROL, WAIT, WORD, 2),
        switch(1_100, 1, CONTROL, Leaves::Sleeps, 0),
        waking(1_200, 0, LOGGER, UI),
        switch(1_300, 0, LOGGER, Leaves::Runnable, UI),
        switch(4_300, 0, UI, Leaves::Sleeps, LOGGER),
        call(4_400, 0, LOGGER, WAKE, WORD, 1),
        waking(4_400, 0, LOGGER, CONTROL),
        switch(4_500, 1, 0, Leaves::Runnable, CONTROL),
        returns(4_600, 1, CONTROL, 0),
    ];
    if let Some(owner) = memory {
        events.insert(3, words(1_010, 1, CONTROL, owner));
    }
    events
}

#[test]
fn the_holder_is_preempted_by_a_third_one() {
    let section = section(9_000, &inversion(None));
    let wait = only(&section);
    assert_eq!(parts(wait), ["LOGGER preempted by UI 3000!", "LOGGER ran 400"]);
    assert_eq!((wait.inversion_ns, wait.kind, wait.end), (3_000, LockKind::ByValue, WaitEnd::Released));
    assert_eq!(wait.holders[0].evidence, [Evidence::Order]);
    assert_eq!((wait.holders[0].thread.prio, wait.waiter.prio), (Some(79), Some(19)));
    assert_eq!((section.inversions, section.locks[0].known, section.locks[0].n), (1, 1, 1));
}

#[test]
fn the_lock_s_memory_names_its_owner_unless_another_one_releases_it() {
    let section_of = |owner| section(9_000, &inversion(Some(owner)));
    let agreed = section_of(LOGGER);
    assert_eq!(only(&agreed).holders[0].evidence, [Evidence::Memory, Evidence::Order]);
    assert_eq!(only(&agreed).kind, LockKind::GlibcMutex);
    let disagreed = section_of(STORE);
    let wait = only(&disagreed);
    assert_eq!((wait.holders.len(), wait.parts.len(), wait.inversion_ns), (0, 0, 0));
    assert!(wait.unknown.as_ref().unwrap().contains("named STORE[13], but LOGGER[11] released it first"));
    assert_eq!((disagreed.locks[0].known, disagreed.inversions), (0, 0));
}

#[test]
fn who_had_the_cpu_is_unknown_where_a_switch_is_missing() {
    let mut events = inversion(None);
    // UI came, and STORE leaves.
    let left = events.iter_mut().find(|event| event.ts_ns == 4_300).unwrap();
    *left = switch(4_300, 0, STORE, Leaves::Sleeps, LOGGER);
    let section = section(9_000, &events);
    let wait = only(&section);
    assert_eq!(parts(wait), ["LOGGER preempted by ? 3000", "LOGGER ran 400"]);
    assert_eq!(wait.inversion_ns, 0);
}

#[test]
fn who_had_the_cpu_is_unknown_of_a_holder_that_moved() {
    let mut events = inversion(None);
    // LOGGER comes back on CPU 2, where UI had run meanwhile.
    let back = events.iter_mut().find(|event| event.ts_ns == 4_300).unwrap();
    *back = switch(4_300, 2, UI, Leaves::Sleeps, LOGGER);
    let section = section(9_000, &events);
    assert_eq!(parts(only(&section)), ["LOGGER preempted by ? 3000", "LOGGER ran 400"]);
}

#[test]
fn a_futex_of_the_program_s_own_is_no_lock_whatever_its_value() {
    let mut events = inversion(None);
    events.insert(3, event(1_010, 1, CONTROL, What::LockWords([2, 7, 8, 9, 10])));
    assert!(locks(9_000, &events).section(&name, &label).is_none());
}

#[test]
fn a_more_urgent_thread_and_the_holder_s_own_work_are_no_inversion() {
    // CONTROL holds the lock and is preempted by nobody; then UI waits, and CONTROL preempts LOGGER.
    let section = section(
        9_000,
        &[
            switch(0, 0, 0, Leaves::Runnable, LOGGER),
            switch(0, 1, 0, Leaves::Runnable, UI),
            call(1_000, 1, UI, WAIT, WORD, 2),
            switch(1_100, 1, UI, Leaves::Sleeps, 0),
            switch(2_000, 0, LOGGER, Leaves::Runnable, CONTROL),
            switch(5_000, 0, CONTROL, Leaves::Sleeps, LOGGER),
            call(6_000, 0, LOGGER, WAKE, WORD, 1),
            waking(6_000, 0, LOGGER, UI),
            switch(6_100, 1, 0, Leaves::Runnable, UI),
            returns(6_200, 1, UI, 0),
        ],
    );
    let wait = only(&section);
    assert_eq!(parts(wait), ["LOGGER preempted by CONTROL 3000", "LOGGER ran 2000"]);
    assert_eq!((wait.inversion_ns, section.inversions), (0, 0));
}

#[test]
fn a_less_urgent_thread_that_is_about_to_be_replaced_is_no_inversion() {
    // STORE still runs while LOGGER, more urgent, is woken.
    let section = section(
        9_000,
        &[
            switch(0, 0, 0, Leaves::Runnable, LOGGER),
            switch(10, 0, LOGGER, Leaves::Sleeps, STORE),
            switch(0, 1, 0, Leaves::Runnable, CONTROL),
            call(1_000, 1, CONTROL, WAIT, WORD, 2),
            switch(1_100, 1, CONTROL, Leaves::Sleeps, 0),
            waking(2_000, 0, STORE, LOGGER),
            switch(2_200, 0, STORE, Leaves::Runnable, LOGGER),
            call(3_000, 0, LOGGER, WAKE, WORD, 1),
            waking(3_000, 0, LOGGER, CONTROL),
            returns(3_200, 1, CONTROL, 0),
        ],
    );
    let wait = only(&section);
    assert_eq!(
        parts(wait),
        ["LOGGER slept in ? 1000", "LOGGER ran 800", "LOGGER preempted by STORE 200"],
        "{wait:?}"
    );
    assert_eq!(wait.inversion_ns, 0);
}

#[test]
fn a_chain_of_three_ends_at_the_one_that_is_kept_from_running() {
    // CONTROL waits for LOGGER, which waits for STORE, which UI preempts.
    let section = section(
        20_000,
        &[
            switch(0, 0, 0, Leaves::Runnable, STORE),
            switch(0, 1, 0, Leaves::Runnable, CONTROL),
            switch(0, 2, 0, Leaves::Runnable, LOGGER),
            call(1_000, 2, LOGGER, WAIT, OTHER_WORD, 2),
            switch(1_100, 2, LOGGER, Leaves::Sleeps, 0),
            call(2_000, 1, CONTROL, WAIT, WORD, 2),
            switch(2_100, 1, CONTROL, Leaves::Sleeps, 0),
            switch(3_000, 0, STORE, Leaves::Runnable, UI),
            switch(8_000, 0, UI, Leaves::Sleeps, STORE),
            call(8_500, 0, STORE, WAKE, OTHER_WORD, 1),
            waking(8_500, 0, STORE, LOGGER),
            switch(8_600, 2, 0, Leaves::Runnable, LOGGER),
            returns(8_700, 2, LOGGER, 0),
            call(9_000, 2, LOGGER, WAKE, WORD, 1),
            waking(9_000, 2, LOGGER, CONTROL),
            switch(9_100, 1, 0, Leaves::Runnable, CONTROL),
            returns(9_200, 1, CONTROL, 0),
        ],
    );
    let wait = section.worst.iter().find(|wait| wait.waiter.tid == CONTROL).unwrap();
    assert_eq!(
        parts(wait),
        [
            "through STORE preempted by UI 5000!",
            "through STORE ran 1500",
            "LOGGER ran 400",
            "LOGGER preempted by other 100"
        ]
    );
    assert_eq!((wait.parts[0].through.clone(), wait.inversion_ns), (vec![OTHER_WORD], 5_000));
}

#[test]
fn inheritance_names_the_owner_and_leaves_no_inversion() {
    let boosted = |tid: i32| if tid == LOGGER { prio(CONTROL) } else { prio(tid) };
    let switch = |ts_ns, cpu, prev, leaves, next| {
        let prios = [boosted(prev), boosted(next)];
        event(ts_ns, cpu, prev, What::Switch { prev: (prev, 0), leaves, next: (next, 0), prios })
    };
    let section = section(
        9_000,
        &[
            switch(0, 0, 0, Leaves::Runnable, LOGGER),
            switch(0, 1, 0, Leaves::Runnable, CONTROL),
            switch(500, 0, LOGGER, Leaves::Runnable, UI),
            call(1_000, 1, CONTROL, LOCK_PI, WORD, 0),
            event(1_050, 1, CONTROL, What::Boost { pid: LOGGER, raised: true }),
            switch(1_100, 1, CONTROL, Leaves::Sleeps, 0),
            switch(1_200, 0, UI, Leaves::Runnable, LOGGER),
            call(3_000, 0, LOGGER, UNLOCK_PI, WORD, 1),
            waking(3_000, 0, LOGGER, CONTROL),
            switch(3_100, 1, 0, Leaves::Runnable, CONTROL),
            returns(3_200, 1, CONTROL, 0),
        ],
    );
    let wait = only(&section);
    assert_eq!(parts(wait), ["LOGGER ran 1800", "LOGGER preempted by UI 200"]);
    assert_eq!((wait.inherited, wait.inversion_ns, wait.kind), (true, 0, LockKind::Inheriting));
    assert_eq!(wait.holders[0].evidence, [Evidence::Boost, Evidence::Order]);
}

#[test]
fn a_holder_that_sleeps_has_its_call() {
    let section = section(
        9_000,
        &[
            switch(0, 0, 0, Leaves::Runnable, LOGGER),
            switch(0, 1, 0, Leaves::Runnable, CONTROL),
            call(1_000, 1, CONTROL, WAIT, WORD, 2),
            switch(1_100, 1, CONTROL, Leaves::Sleeps, 0),
            event(1_500, 0, LOGGER, What::CallEnter { number: SLEEP, arguments: [0; 3] }),
            switch(1_600, 0, LOGGER, Leaves::Sleeps, 0),
            WatchEvent { in_task: false, ..waking(5_600, 0, 0, LOGGER) },
            switch(5_700, 0, 0, Leaves::Runnable, LOGGER),
            returns(5_800, 0, LOGGER, 0),
            call(6_000, 0, LOGGER, WAKE, WORD, 1),
            waking(6_000, 0, LOGGER, CONTROL),
            returns(6_200, 1, CONTROL, 0),
        ],
    );
    let found = parts(only(&section));
    assert_eq!(found[0], "LOGGER slept in clock_nanosleep 4000", "{found:?}");
}

#[test]
fn the_lock_changes_hands_while_one_waits() {
    // LOGGER releases to STORE, STORE to CONTROL.
    let section = section(
        9_000,
        &[
            switch(0, 0, 0, Leaves::Runnable, LOGGER),
            switch(0, 1, 0, Leaves::Runnable, CONTROL),
            switch(0, 2, 0, Leaves::Runnable, STORE),
            call(900, 2, STORE, WAIT, WORD, 2),
            switch(950, 2, STORE, Leaves::Sleeps, 0),
            call(1_000, 1, CONTROL, WAIT, WORD, 2),
            switch(1_100, 1, CONTROL, Leaves::Sleeps, 0),
            call(2_000, 0, LOGGER, WAKE, WORD, 1),
            waking(2_000, 0, LOGGER, STORE),
            switch(2_100, 2, 0, Leaves::Runnable, STORE),
            returns(2_200, 2, STORE, 0),
            call(4_000, 2, STORE, WAKE, WORD, 1),
            waking(4_000, 2, STORE, CONTROL),
            returns(4_200, 1, CONTROL, 0),
        ],
    );
    let wait = section.worst.iter().find(|wait| wait.waiter.tid == CONTROL).unwrap();
    let holders: Vec<_> = wait.holders.iter().map(|one| (one.thread.tid, one.t0_ns, one.t1_ns)).collect();
    assert_eq!(holders, [(LOGGER, 1_000, 2_000), (STORE, 2_000, 4_000)]);
    assert_eq!(section.locks[0].holders.len(), 2);
}

#[test]
fn waits_without_an_owner_are_no_locks_and_time_outs_have_none() {
    let condition = |value, result| {
        section(
            9_000,
            &[
                switch(0, 1, 0, Leaves::Runnable, CONTROL),
                call(1_000, 1, CONTROL, WAIT, WORD, value),
                switch(1_100, 1, CONTROL, Leaves::Sleeps, 0),
                WatchEvent { in_task: false, ..waking(4_000, 1, 0, CONTROL) },
                switch(4_100, 1, 0, Leaves::Runnable, CONTROL),
                returns(4_200, 1, CONTROL, result),
            ],
        )
    };
    assert_eq!(condition(0, 0), LockSection::default());
    let timed_out = condition(2, -110);
    assert_eq!((only(&timed_out).end, only(&timed_out).holders.len()), (WaitEnd::TimedOut, 0));
    // It did not sleep: the word had changed.
    let events = [call(1_000, 1, CONTROL, WAIT, WORD, 2), returns(1_100, 1, CONTROL, -11)];
    assert_eq!(section(9_000, &events), LockSection::default());
}

#[test]
fn whoever_ends_the_program_is_no_holder() {
    let section = section(
        9_000,
        &[
            switch(0, 1, 0, Leaves::Runnable, CONTROL),
            call(1_000, 1, CONTROL, WAIT, WORD, 2),
            switch(1_100, 1, CONTROL, Leaves::Sleeps, 0),
            // By a signal, or the end of the process; or it releases another lock.
            waking(4_000, 0, LOGGER, CONTROL),
            call(4_500, 0, LOGGER, WAKE, OTHER_WORD, 1),
            waking(4_600, 0, LOGGER, CONTROL),
            switch(4_700, 1, 0, Leaves::Runnable, CONTROL),
            returns(4_800, 1, CONTROL, -512),
        ],
    );
    let wait = only(&section);
    assert_eq!((wait.end, wait.holders.len(), wait.unknown.is_some()), (WaitEnd::Interrupted, 0, true));
}

#[test]
fn threads_that_wait_for_one_another_are_a_circle() {
    let section = section(
        9_000,
        &[
            switch(0, 0, 0, Leaves::Runnable, LOGGER),
            switch(0, 1, 0, Leaves::Runnable, CONTROL),
            call(1_000, 1, CONTROL, WAIT, WORD, 2),
            words(1_010, 1, CONTROL, LOGGER),
            switch(1_100, 1, CONTROL, Leaves::Sleeps, 0),
            call(2_000, 0, LOGGER, WAIT, OTHER_WORD, 2),
            words(2_010, 0, LOGGER, CONTROL),
            switch(2_100, 0, LOGGER, Leaves::Sleeps, 0),
        ],
    );
    let wait = section.worst.iter().find(|wait| wait.waiter.tid == CONTROL).unwrap();
    let circle: Vec<i32> = wait.circle.iter().map(|thread| thread.tid).collect();
    assert_eq!((circle, wait.end), (vec![CONTROL, LOGGER], WaitEnd::Lasts));
    assert_eq!(section.locks.iter().map(|lock| lock.waiters[0].lasting).sum::<u64>(), 2);
}

#[test]
fn the_memory_of_locks_at_the_end_shows_who_holds_them() {
    // STORE had it, and released it to LOGGER, which waits for CONTROL's.
    let events = [
        switch(0, 0, 0, Leaves::Runnable, LOGGER),
        switch(0, 1, 0, Leaves::Runnable, CONTROL),
        switch(0, 2, 0, Leaves::Runnable, STORE),
        call(900, 0, LOGGER, WAIT, WORD, 2),
        switch(950, 0, LOGGER, Leaves::Sleeps, 0),
        call(1_000, 1, CONTROL, WAIT, WORD, 2),
        switch(1_100, 1, CONTROL, Leaves::Sleeps, 0),
        call(2_000, 2, STORE, WAKE, WORD, 1),
        waking(2_010, 2, STORE, LOGGER),
        switch(2_100, 0, 0, Leaves::Runnable, LOGGER),
        returns(2_200, 0, LOGGER, 0),
        call(3_000, 0, LOGGER, WAIT, OTHER_WORD, 2),
        switch(3_100, 0, LOGGER, Leaves::Sleeps, 0),
    ];
    let threads = [CONTROL, LOGGER, STORE].map(|tid| (tid, PROCESS));
    let mut locks = Locks::new("x86_64", threads, [PROCESS]).were_there([CONTROL, LOGGER, UI, STORE]);
    events.iter().for_each(|event| locks.event(event));
    let words = |tid, word, owner: i32| LockWords { tid, word, words: [2, 0, owner.cast_unsigned(), 2, 0] };
    locks.at_the_end(&words(CONTROL, WORD, LOGGER), 0);
    locks.at_the_end(&words(LOGGER, OTHER_WORD, CONTROL), 0);
    // No lock that it waits for.
    locks.at_the_end(&words(STORE, WORD, 0), 0);
    locks.finish(9_000);
    let section = locks.section(&name, &label).unwrap();
    let wait = section.worst.iter().find(|wait| wait.waiter.tid == CONTROL).unwrap();
    let holders: Vec<_> = wait.holders.iter().map(|one| (one.thread.tid, one.evidence.clone())).collect();
    assert_eq!(holders, [(STORE, vec![Evidence::Order]), (LOGGER, vec![Evidence::Memory])]);
    let circle: Vec<i32> = wait.circle.iter().map(|thread| thread.tid).collect();
    assert_eq!((circle, wait.end), (vec![CONTROL, LOGGER], WaitEnd::Lasts));
}

#[test]
fn a_holder_is_unknown_where_releases_are_forgotten() {
    // STORE and LOGGER hand another lock to and fro, while CONTROL waits for long.
    let mut events = vec![
        switch(0, 1, 0, Leaves::Runnable, CONTROL),
        call(10, 1, CONTROL, WAIT, WORD, 2),
        switch(20, 1, CONTROL, Leaves::Sleeps, 0),
    ];
    for turn in 0..5_000 {
        let t = 1_000 + turn * 100;
        events.extend([
            call(t, 2, STORE, WAIT, OTHER_WORD, 2),
            switch(t + 10, 2, STORE, Leaves::Sleeps, 0),
            call(t + 20, 0, LOGGER, WAKE, OTHER_WORD, 1),
            waking(t + 30, 0, LOGGER, STORE),
            switch(t + 40, 2, 0, Leaves::Runnable, STORE),
            returns(t + 50, 2, STORE, 0),
        ]);
    }
    events.extend([
        call(900_000, 0, LOGGER, WAKE, WORD, 1),
        waking(900_010, 0, LOGGER, CONTROL),
        returns(900_020, 1, CONTROL, 0),
    ]);
    let section = section(1_000_000, &events);
    let wait = section.worst.iter().find(|wait| wait.waiter.tid == CONTROL).unwrap();
    assert!(wait.holders.is_empty() && wait.unknown.as_ref().unwrap().contains("remembered"), "{wait:?}");
    let other = section.locks.iter().find(|lock| lock.word == OTHER_WORD).unwrap();
    assert_eq!((other.n, other.known), (5_000, 5_000));
}

#[test]
fn threads_that_were_stuck_before_the_recording_began_are_a_circle_too() {
    let threads = [CONTROL, LOGGER].map(|tid| (tid, PROCESS));
    // Of a mutex that inherits, the word is the owner.
    for [first, second] in
        [[2, CONTROL.cast_unsigned()], [0x8000_0000 | CONTROL.cast_unsigned(), CONTROL.cast_unsigned()]]
    {
        let mut locks = Locks::new("x86_64", threads, [PROCESS]).were_there([CONTROL, LOGGER]);
        let kind = if first == 2 { 0 } else { 32 };
        let other = first & 0x8000_0000 | if first == 2 { 2 } else { LOGGER.cast_unsigned() };
        locks.at_the_end(&LockWords { tid: LOGGER, word: WORD, words: [first, 0, second, 2, kind] }, 100);
        let words = [other, 0, LOGGER.cast_unsigned(), 2, kind];
        locks.at_the_end(&LockWords { tid: CONTROL, word: OTHER_WORD, words }, 100);
        locks.finish(9_000);
        let section = locks.section(&name, &label).unwrap();
        assert_eq!(section.worst.len(), 2, "{section:?}");
        assert!(section.worst.iter().all(|wait| wait.circle.len() == 2 && wait.t0_ns == 100), "{section:?}");
    }
}

#[test]
fn a_new_thread_that_the_c_library_holds_back_waits_for_no_lock() {
    let threads = [CONTROL, LOGGER].map(|tid| (tid, PROCESS));
    let mut locks = Locks::new("x86_64", threads, [PROCESS]).were_there([LOGGER]);
    inversion(None).iter().for_each(|event| locks.event(event));
    locks.finish(9_000);
    assert!(locks.section(&name, &label).is_none());
}

#[test]
fn where_events_are_lost_nothing_is_concluded() {
    let events = inversion(None);
    let mut locks = Locks::new("x86_64", [CONTROL, LOGGER, UI].map(|tid| (tid, PROCESS)), [PROCESS])
        .were_there([CONTROL, LOGGER, UI]);
    for event in &events {
        if event.ts_ns == 4_300 {
            locks.lost(4_250);
        }
        locks.event(event);
    }
    locks.finish(9_000);
    let section = locks.section(&name, &label).unwrap();
    assert_eq!((section.worst.len(), section.inversions, section.withheld), (0, 0, 1));
}

#[test]
fn one_that_never_gets_the_cpu_again_is_not_asleep() {
    // UI runs on for ever on LOGGER's CPU, since before CONTROL waits.
    let section = section(
        9_000,
        &[
            switch(0, 0, 0, Leaves::Runnable, LOGGER),
            switch(500, 0, LOGGER, Leaves::Runnable, UI),
            switch(600, 1, 0, Leaves::Runnable, CONTROL),
            call(1_000, 1, CONTROL, WAIT, WORD, 2),
            words(1_010, 1, CONTROL, LOGGER),
            switch(1_100, 1, CONTROL, Leaves::Sleeps, 0),
        ],
    );
    let wait = only(&section);
    assert_eq!(parts(wait), ["LOGGER preempted by UI 8000!"]);
    assert!(wait.circle.is_empty());
}

#[test]
fn where_the_lock_was_asked_for_is_where_the_call_was_made() {
    let mut events = inversion(Some(LOGGER));
    events.insert(4, event(1_020, 1, CONTROL, What::Callers(7)));
    // The stack behind the end of the call, and one of another thread.
    events.push(event(4_700, 1, CONTROL, What::Callers(8)));
    events.insert(0, event(900, 1, CONTROL, What::Callers(9)));
    let section = section(9_000, &events);
    assert_eq!(only(&section).callers.as_deref(), Some("label 7"));
}
