//! Locks of the kernel.

use super::*;
use crate::attribute::watch::event::Owner;
use model::kernel_locks::OwnedKind;

const LOCK: u64 = 0xffff_8000;
/// A task of nobody's program.
const STRANGER: i32 = 99;

fn contends(ts_ns: i64, tid: i32, kind: OwnedKind) -> WatchEvent {
    event(ts_ns, 0, tid, What::Contends { lock: LOCK, kind, name: Some(3) })
}

fn owner(ts_ns: i64, tid: i32, kind: OwnedKind, owner: Owner) -> WatchEvent {
    event(ts_ns, 0, tid, What::KernelOwner { lock: LOCK, kind, name: Some(3), owner })
}

fn has(ts_ns: i64, tid: i32, result: i64) -> WatchEvent {
    event(ts_ns, 0, tid, What::Contended { lock: LOCK, result })
}

/// LOGGER runs on CPU 1; CONTROL waits on CPU 0, from 1,000 to 5,000, when `by` releases the lock
/// and the kernel looks `first` and `second` into its memory.
fn waits(kind: OwnedKind, first: &[WatchEvent], by: i32, second: &[WatchEvent]) -> Vec<WatchEvent> {
    let begin = [switch(100, 1, 0, Leaves::Runnable, LOGGER), switch(200, 0, 0, Leaves::Runnable, CONTROL)];
    let sleeps = [
        contends(1_000, CONTROL, kind),
        switch(1_100, 0, CONTROL, Leaves::Sleeps, 0),
        // LOGGER is preempted by UI for a while.
        switch(2_000, 1, LOGGER, Leaves::Runnable, UI),
        switch(4_000, 1, UI, Leaves::Sleeps, LOGGER),
    ];
    let end = [waking(5_000, 1, by, CONTROL), switch(5_100, 0, 0, Leaves::Runnable, CONTROL)];
    [&begin[..], first, &sleeps, &end, second, &[has(5_300, CONTROL, 0)]].concat()
}

#[test]
fn a_mutex_is_held_by_whom_its_memory_names_and_who_releases_it() {
    let seen = [owner(1_000, CONTROL, OwnedKind::Mutex, Owner::Task(LOGGER))];
    let section = section(9_000, &waits(OwnedKind::Mutex, &seen, LOGGER, &[]));
    let wait = only(&section);
    assert_eq!((wait.kind, wait.name.as_deref()), (LockKind::KernelMutex, Some("label 3")));
    assert_eq!([wait.t0_ns, wait.t1_ns], [1_000, 5_000]);
    assert_eq!(wait.holders[0].thread.tid, LOGGER);
    assert_eq!(wait.holders[0].evidence, [Evidence::Memory, Evidence::Order]);
    assert_eq!(parts(wait), ["LOGGER preempted by UI 2000!", "LOGGER ran 2000"]);
    assert!(section.kernel_owners && section.locks[0].tgid.is_none());
}

#[test]
fn without_the_memory_only_a_mutex_shows_its_owner() {
    let all = waits(OwnedKind::Mutex, &[], LOGGER, &[]);
    let wait = only(&section(9_000, &all)).clone();
    assert_eq!((wait.holders[0].thread.tid, &wait.holders[0].evidence[..]), (LOGGER, &[Evidence::Order][..]));
    for kind in [OwnedKind::RwSemaphore, OwnedKind::RtMutex, OwnedKind::RwBase] {
        let section = section(9_000, &waits(kind, &[], LOGGER, &[]));
        let wait = only(&section);
        assert!(wait.holders.is_empty() && wait.unknown.as_deref().unwrap().contains("not read"), "{wait:?}");
    }
}

#[test]
fn readers_are_not_named_and_a_writer_is() {
    let of = |seen: Owner, by: i32| {
        let first = [owner(1_000, CONTROL, OwnedKind::RwSemaphore, seen)];
        let section = section(9_000, &waits(OwnedKind::RwSemaphore, &first, by, &[]));
        let wait = only(&section);
        (wait.holders.first().map(|held| held.thread.tid), wait.unknown.clone().unwrap_or_default())
    };
    assert_eq!(of(Owner::Task(LOGGER), LOGGER), (Some(LOGGER), String::new()));
    let (none, why) = of(Owner::Readers, LOGGER);
    assert!(none.is_none() && why.contains("readers held it"), "{why}");
    // It changed hands unseen.
    let (none, why) = of(Owner::Task(STRANGER), LOGGER);
    assert!(none.is_none() && why.contains("LOGGER[11] released it first"), "{why}");
    let (none, why) = of(Owner::Nobody, LOGGER);
    assert!(none.is_none() && why.contains("showed no owner"), "{why}");
}

#[test]
fn a_lock_that_is_taken_before_the_waiter_has_its_next_owner() {
    // LOGGER releases it; UI has it by the time that CONTROL looks, sleeps on, and is woken by UI.
    let mut all = waits(
        OwnedKind::Mutex,
        &[owner(1_000, CONTROL, OwnedKind::Mutex, Owner::Task(LOGGER))],
        LOGGER,
        &[owner(5_200, CONTROL, OwnedKind::Mutex, Owner::Task(STRANGER))],
    );
    all.pop();
    all.extend([
        switch(5_250, 0, CONTROL, Leaves::Sleeps, 0),
        waking(7_000, 1, STRANGER, CONTROL),
        switch(7_100, 0, 0, Leaves::Runnable, CONTROL),
        has(7_200, CONTROL, 0),
    ]);
    let section = section(9_000, &all);
    let wait = only(&section);
    let held: Vec<_> = wait.holders.iter().map(|held| (held.thread.tid, held.t0_ns, held.t1_ns)).collect();
    assert_eq!(held, [(LOGGER, 1_000, 5_000), (STRANGER, 5_200, 7_000)]);
    assert_eq!(wait.t1_ns, 7_000);
}

#[test]
fn a_wait_without_sleep_lasts_until_the_lock_is_there() {
    let all = [
        switch(200, 0, 0, Leaves::Runnable, CONTROL),
        owner(1_000, CONTROL, OwnedKind::Mutex, Owner::Task(LOGGER)),
        contends(1_001, CONTROL, OwnedKind::Mutex),
        has(3_000, CONTROL, 0),
    ];
    let section = section(9_000, &all);
    let wait = only(&section);
    assert_eq!(([wait.t0_ns, wait.t1_ns], wait.holders[0].thread.tid), ([1_000, 3_000], LOGGER));
    assert_eq!(wait.holders[0].evidence, [Evidence::Memory]);
}

#[test]
fn what_the_holder_of_a_programs_lock_waits_for_is_the_kernels() {
    // LOGGER holds WORD, and waits for LOCK, which a stranger holds.
    let all = [
        switch(100, 1, 0, Leaves::Runnable, LOGGER),
        switch(200, 0, 0, Leaves::Runnable, CONTROL),
        call(1_000, 0, CONTROL, WAIT, WORD, 2),
        words(1_010, 0, CONTROL, LOGGER),
        switch(1_100, 0, CONTROL, Leaves::Sleeps, 0),
        event(2_000, 1, LOGGER, What::Contends { lock: LOCK, kind: OwnedKind::Mutex, name: None }),
        owner(2_001, LOGGER, OwnedKind::Mutex, Owner::Task(STRANGER)),
        switch(2_100, 1, LOGGER, Leaves::Sleeps, STRANGER),
        waking(6_000, 1, STRANGER, LOGGER),
        switch(6_100, 1, STRANGER, Leaves::Sleeps, LOGGER),
        has(6_200, LOGGER, 0),
        waking(7_000, 1, LOGGER, CONTROL),
        switch(7_100, 0, 0, Leaves::Runnable, CONTROL),
        returns(7_200, 0, CONTROL, 0),
    ];
    // The waker is in its futex call.
    let mut with_call = all.to_vec();
    with_call.insert(11, call(6_900, 1, LOGGER, WAKE, WORD, 1));
    let section = section(9_000, &with_call);
    let wait = section.worst.iter().find(|wait| wait.waiter.tid == CONTROL).unwrap();
    let through = wait.parts.iter().find(|part| part.holder.tid == STRANGER).unwrap();
    assert_eq!((&through.through[..], through.ns), (&[LOCK][..], 3_900));
}

#[test]
fn waits_of_strangers_are_not_reported_and_those_that_end_in_vain_are_no_release() {
    let strange = [contends(1_000, STRANGER, OwnedKind::Mutex), has(3_000, STRANGER, 0)];
    assert!(locks(9_000, &strange).section(&name, &label).is_none());
    let mut killed = waits(OwnedKind::Mutex, &[], STRANGER, &[]);
    killed.pop();
    killed.push(has(5_300, CONTROL, -4));
    let section = section(9_000, &killed);
    let wait = only(&section);
    assert_eq!(wait.end, WaitEnd::Interrupted);
    assert!(wait.holders.is_empty(), "who sent the signal holds nothing: {wait:?}");
    // Where the memory was read, the holder is known all the same.
    killed.insert(2, owner(1_000, CONTROL, OwnedKind::Mutex, Owner::Task(LOGGER)));
    let section = super::section(9_000, &killed);
    assert_eq!(only(&section).holders[0].thread.tid, LOGGER);
}

#[test]
fn an_owner_that_changes_more_often_than_is_remembered_is_unknown() {
    let looks = |at: i64| {
        let tid = if at % 2 == 0 { LOGGER } else { STRANGER };
        owner(1_000 + at, CONTROL, OwnedKind::Mutex, Owner::Task(tid))
    };
    let many: Vec<WatchEvent> = (0..70).map(looks).collect();
    let section = section(9_000, &waits(OwnedKind::Mutex, &many, LOGGER, &[]));
    assert!(only(&section).unknown.as_deref().unwrap().contains("than are remembered"));
}

#[test]
fn a_wait_whose_end_is_missing_does_not_go_on_in_the_next_one() {
    let mut all = waits(OwnedKind::Mutex, &[], LOGGER, &[]);
    // It has the lock, and that is not recorded; later it waits for it again.
    all.pop();
    all.extend([
        call(6_000, 0, CONTROL, WAKE, WORD, 1),
        returns(6_100, 0, CONTROL, 0),
        contends(8_000, CONTROL, OwnedKind::Mutex),
        switch(8_100, 0, CONTROL, Leaves::Sleeps, 0),
        waking(8_500, 1, LOGGER, CONTROL),
        has(8_700, CONTROL, 0),
        // The same end in another buffer.
        has(8_700, CONTROL, 0),
    ]);
    let section = section(9_000, &all);
    assert_eq!([only(&section).t0_ns, only(&section).t1_ns], [8_000, 8_500]);
    assert_eq!(section.withheld, 1);
}
