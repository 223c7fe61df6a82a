//! Locks of threads through events made by hand: each case has one right answer.

use super::kind::Kind;
use super::lock_known::{At, Known};
use super::lock_shape::{LockProtocol, LockUser, LockingThread, ProgramLocks};
use super::locks::Locks;
use super::program::Program;
use crate::attribute::watch::event::{Leaves, WatchEvent, What};
use crate::attribute::watch::program::Watch;
use crate::names::Names;
use crate::prio::Prio;

const URGENT: i32 = 10;
const LESS: i32 = 11;
const MIDDLE: i32 = 12;
const IDLE: i32 = 0;
const LOCK: u64 = 0x1000;
const OTHER: u64 = 0x2000;
const CONDITION: u64 = 0x3000;
/// x86-64; `FUTEX_LOCK_PI` and `FUTEX_UNLOCK_PI`, private.
const CLOCK_NANOSLEEP: u64 = 230;
const FUTEX: u64 = 202;
const LOCK_PI: u64 = 6 | 128;
const UNLOCK_PI: u64 = 7 | 128;
const INHERITS: u32 = 32;

fn prio(pid: i32) -> Prio {
    Prio::new(match pid {
        URGENT => 20,
        MIDDLE => 30,
        LESS => 50,
        _ => 120,
    })
}

/// A trace that is being made.
#[derive(Default)]
struct Made(Vec<WatchEvent>);

impl Made {
    fn add(&mut self, ts_ns: i64, pid: i32, what: What) {
        self.0.push(WatchEvent { ts_ns, cpu: 0, pid, in_task: true, what });
    }

    fn switch(&mut self, ts_ns: i64, prev: i32, leaves: Leaves, next: i32) {
        let named = |pid: i32| (pid, pid.cast_unsigned());
        let prios = [prio(prev), prio(next)];
        self.add(ts_ns, prev, What::Switch { prev: named(prev), leaves, next: named(next), prios });
    }

    fn call(&mut self, ts_ns: i64, pid: i32, number: u64, arguments: [u64; 3]) {
        self.add(ts_ns, pid, What::CallEnter { number, arguments });
    }

    fn returns(&mut self, ts_ns: i64, pid: i32) {
        self.add(ts_ns, pid, What::CallExit { result: 0 });
    }

    fn wakes(&mut self, ts_ns: i64, pid: i32, whom: i32) {
        self.add(ts_ns, pid, What::Waking { task: (whom, whom.cast_unsigned()), prio: prio(whom) });
    }

    fn asks(&mut self, ts_ns: i64, pid: i32, lock: u64) {
        self.add(ts_ns, pid, What::Asks { lock, condition: None, kind: Some(INHERITS) });
    }

    fn has(&mut self, ts_ns: i64, pid: i32) {
        self.add(ts_ns, pid, What::Asked { result: 0 });
    }

    fn releases(&mut self, ts_ns: i64, pid: i32, lock: u64) {
        self.add(ts_ns, pid, What::Releases { lock });
    }

    /// From idle to the thread that a timer woke; its job begins.
    fn begins(&mut self, ts_ns: i64, pid: i32) {
        self.wakes(ts_ns, IDLE, pid);
        self.switch(ts_ns, IDLE, Leaves::Runnable, pid);
        self.returns(ts_ns, pid);
    }

    /// The job ends: it sleeps until the next.
    fn ends(&mut self, ts_ns: i64, pid: i32, next: i32) {
        self.call(ts_ns, pid, CLOCK_NANOSLEEP, [1, 1, 0]);
        self.switch(ts_ns, pid, Leaves::Sleeps, next);
    }

    fn found(self) -> ProgramLocks {
        let call = model::syscalls::by_number("x86_64", CLOCK_NANOSLEEP).unwrap();
        let separator = Kind::of_call(call, [1, 1]);
        let mut locks = Locks::new(Known {
            arch: "x86_64".to_owned(),
            processes: [(URGENT, 1), (LESS, 1), (MIDDLE, 1)].into(),
            glibc: [1].into(),
            prios: [URGENT, LESS, MIDDLE].map(|tid| (tid, prio(tid))).into(),
            every: true,
            separators: [URGENT, LESS, MIDDLE].map(|tid| (tid, separator)).into(),
        });
        let mut watch = Watch::new("x86_64", 0, [(URGENT, None), (LESS, None), (MIDDLE, None)]);
        let mut names = Names::default();
        let mut program = Program::new("x86_64", &mut names.labels);
        for event in &self.0 {
            watch.event(event, &names);
            locks.event(At { event, program: &program, watch: &watch });
            program.event(event, &watch, |place, activation| {
                locks.activation(watch.threads[place].tid, activation);
            });
        }
        locks.finish()
    }
}

fn user(found: &ProgramLocks, lock: u64, tid: i32) -> &LockUser {
    let lock = found.locks.iter().find(|one| one.address == lock).unwrap();
    lock.users.iter().find(|one| one.tid == tid).unwrap_or_else(|| panic!("{found:#?}"))
}

fn thread(found: &ProgramLocks, tid: i32) -> &LockingThread {
    found.threads.iter().find(|one| one.tid == tid).unwrap()
}

#[test]
fn requests_are_counted_by_job_and_a_section_is_execution_alone() {
    let mut made = Made::default();
    made.begins(0, LESS);
    made.ends(5, LESS, IDLE);
    // Two lockings in the first job; the second is interrupted and preempted.
    made.begins(1_000, LESS);
    made.asks(1_010, LESS, LOCK);
    made.has(1_011, LESS);
    made.releases(1_021, LESS, LOCK);
    made.asks(1_030, LESS, LOCK);
    made.has(1_031, LESS);
    let interrupt = |ts_ns, what| WatchEvent { ts_ns, cpu: 0, pid: LESS, in_task: false, what };
    made.0.extend([interrupt(1_040, What::Enter(1)), interrupt(1_047, What::Exit)]);
    made.switch(1_050, LESS, Leaves::Runnable, URGENT);
    made.switch(1_090, URGENT, Leaves::Sleeps, LESS);
    made.releases(1_100, LESS, LOCK);
    made.ends(1_110, LESS, IDLE);
    made.begins(2_000, LESS);
    made.asks(2_010, LESS, LOCK);
    made.has(2_011, LESS);
    made.releases(2_012, LESS, LOCK);
    made.ends(2_020, LESS, IDLE);
    made.begins(3_000, LESS);
    made.ends(3_010, LESS, IDLE);
    let found = made.found();
    let lock = &found.locks[0];
    assert_eq!((lock.protocol, lock.process, lock.is_shared), (LockProtocol::Inherits, Some(1), false));
    let used = user(&found, LOCK, LESS);
    assert_eq!((used.taken, used.requests, used.measured, used.waits), (3, 2, 3, 0));
    // From 1031 to 1050 without 7 in the interrupt, and from 1090 to 1100.
    assert_eq!((used.held_ns, used.slept_ns, found.unpaired), (19 - 7 + 10, 0, 0));
    assert_eq!((thread(&found, LESS).lockings, thread(&found, LESS).jobs), (2, 2));
}

/// The urgent thread waits for the other, which a third of the machine keeps from running.
fn contended() -> Made {
    let mut made = Made::default();
    made.begins(0, URGENT);
    made.ends(5, URGENT, LESS);
    made.asks(10, LESS, LOCK);
    made.has(11, LESS);
    made.wakes(30, LESS, URGENT);
    made.switch(31, LESS, Leaves::Runnable, URGENT);
    made.returns(32, URGENT);
    made.asks(40, URGENT, LOCK);
    made.call(41, URGENT, FUTEX, [LOCK, LOCK_PI, 0]);
    made.switch(42, URGENT, Leaves::Sleeps, LESS);
    made.releases(52, LESS, LOCK);
    made.call(53, LESS, FUTEX, [LOCK, UNLOCK_PI, 0]);
    made.wakes(55, LESS, URGENT);
    made.switch(58, LESS, Leaves::Runnable, URGENT);
    made.returns(60, URGENT);
    made.has(61, URGENT);
    made.releases(71, URGENT, LOCK);
    made.ends(80, URGENT, LESS);
    made.returns(85, LESS);
    made
}

#[test]
fn a_wait_for_a_lock_is_no_suspension_and_the_holder_has_it_until_the_waiter_runs() {
    let mut made = contended();
    made.wakes(1_000, LESS, URGENT);
    made.switch(1_000, LESS, Leaves::Runnable, URGENT);
    made.returns(1_001, URGENT);
    made.ends(1_010, URGENT, LESS);
    let found = made.found();
    // To 31, and from 42 until it lost the CPU in its call.
    assert_eq!(user(&found, LOCK, LESS).held_ns, 20 + 16);
    // From when it had the CPU again.
    let used = user(&found, LOCK, URGENT);
    assert_eq!((used.held_ns, used.waits, used.requests), (71 - 58, 1, 1));
    let jobs = thread(&found, URGENT);
    assert_eq!((jobs.jobs, jobs.suspensions, jobs.suspended_ns), (1, 0, 0));
    assert_eq!((jobs.waiting, jobs.waited_ns), (1, 16));
    assert_eq!((jobs.longest[0].waited_ns, jobs.longest[0].blocked_ns), (16, 16));
}

#[test]
fn what_an_urgent_thread_executes_meanwhile_does_not_block() {
    let mut made = Made::default();
    made.begins(0, LESS);
    made.ends(5, LESS, IDLE);
    made.begins(100, LESS);
    made.asks(110, LESS, LOCK);
    made.call(111, LESS, FUTEX, [LOCK, LOCK_PI, 0]);
    made.switch(112, LESS, Leaves::Sleeps, URGENT);
    made.switch(150, URGENT, Leaves::Sleeps, IDLE);
    made.wakes(157, IDLE, LESS);
    made.switch(160, IDLE, Leaves::Runnable, LESS);
    made.returns(161, LESS);
    made.has(162, LESS);
    made.releases(170, LESS, LOCK);
    made.ends(180, LESS, IDLE);
    made.begins(1_000, LESS);
    made.ends(1_010, LESS, IDLE);
    let found = made.found();
    let waited = thread(&found, LESS).longest[0];
    assert_eq!((waited.waited_ns, waited.blocked_ns), (48, 10));
}

/// What a holder executes for a waiter counts as its section, not as dispatch of those in between.
#[test]
fn a_section_for_one_more_urgent_is_no_dispatch() {
    let made = |waits: bool| {
        let mut made = Made::default();
        made.begins(0, MIDDLE);
        made.ends(2, MIDDLE, IDLE);
        made.begins(3, URGENT);
        made.ends(5, URGENT, LESS);
        made.asks(10, LESS, LOCK);
        made.has(11, LESS);
        made.wakes(30, LESS, URGENT);
        made.switch(31, LESS, Leaves::Runnable, URGENT);
        made.returns(32, URGENT);
        if waits {
            made.asks(40, URGENT, LOCK);
            made.call(41, URGENT, FUTEX, [LOCK, LOCK_PI, 0]);
        } else {
            made.call(41, URGENT, 0, [3, 0, 0]);
        }
        made.switch(42, URGENT, Leaves::Sleeps, LESS);
        made.wakes(46, LESS, MIDDLE);
        made.releases(52, LESS, LOCK);
        made.call(53, LESS, FUTEX, [LOCK, UNLOCK_PI, 0]);
        made.wakes(55, LESS, URGENT);
        made.returns(57, LESS);
        made.switch(58, LESS, Leaves::Runnable, URGENT);
        made.returns(60, URGENT);
        made.ends(80, URGENT, MIDDLE);
        made.ends(90, MIDDLE, LESS);
        made.wakes(1_000, LESS, MIDDLE);
        made.switch(1_000, LESS, Leaves::Runnable, MIDDLE);
        made.ends(1_010, MIDDLE, LESS);
        made
    };
    // From its release to the switch.
    assert_eq!(thread(&made(true).found(), MIDDLE).dispatch_ns, 1);
    assert_eq!(thread(&made(false).found(), MIDDLE).dispatch_ns, 12);
}

#[test]
fn sleeping_with_a_lock_and_locks_within_locks_are_seen() {
    let mut made = Made::default();
    made.begins(0, LESS);
    made.ends(5, LESS, IDLE);
    made.begins(100, LESS);
    made.asks(110, LESS, LOCK);
    made.has(111, LESS);
    made.asks(112, LESS, OTHER);
    made.has(113, LESS);
    made.releases(120, LESS, OTHER);
    made.call(130, LESS, 0, [3, 0, 0]);
    made.switch(131, LESS, Leaves::Sleeps, IDLE);
    made.begins(231, LESS);
    made.releases(240, LESS, LOCK);
    made.ends(250, LESS, IDLE);
    made.begins(1_000, LESS);
    made.ends(1_010, LESS, IDLE);
    let found = made.found();
    let used = user(&found, LOCK, LESS);
    assert_eq!((used.slept_ns, used.slept_in.as_str(), used.held_ns), (100, "read", 20 + 9));
    let place = found.locks.iter().position(|one| one.address == LOCK).unwrap();
    assert_eq!((&user(&found, OTHER, LESS).within, &used.within), (&vec![place], &Vec::new()));
    let jobs = thread(&found, LESS);
    assert_eq!((jobs.suspensions, jobs.suspended_ns, jobs.waiting), (1, 100, 0));
}

#[test]
fn waiting_for_a_condition_is_a_suspension_without_the_lock() {
    let mut made = Made::default();
    made.begins(0, LESS);
    made.ends(5, LESS, IDLE);
    made.begins(100, LESS);
    made.asks(110, LESS, LOCK);
    made.has(111, LESS);
    made.add(121, LESS, What::Asks { lock: LOCK, condition: Some(CONDITION), kind: Some(INHERITS) });
    made.call(122, LESS, FUTEX, [CONDITION, 9 | 128, 0]);
    made.switch(123, LESS, Leaves::Sleeps, IDLE);
    made.begins(200, LESS);
    made.has(203, LESS);
    made.releases(210, LESS, LOCK);
    made.ends(220, LESS, IDLE);
    made.begins(1_000, LESS);
    made.ends(1_010, LESS, IDLE);
    let found = made.found();
    let used = user(&found, LOCK, LESS);
    assert_eq!((used.taken, used.requests, used.slept_ns, used.held_ns, used.waits), (2, 2, 0, 10, 0));
    let jobs = thread(&found, LESS);
    assert_eq!((jobs.suspensions, jobs.suspended_ns, jobs.waiting), (1, 77, 0));
}

#[test]
fn what_is_missing_is_not_made_up() {
    let mut made = Made::default();
    made.begins(0, LESS);
    made.releases(2, LESS, LOCK);
    made.has(3, LESS);
    made.asks(4, LESS, LOCK);
    made.has(5, LESS);
    // It was not seen to leave the CPU that another one leaves now.
    made.switch(50, URGENT, Leaves::Sleeps, LESS);
    made.releases(60, LESS, LOCK);
    made.asks(70, LESS, OTHER);
    made.has(71, LESS);
    let found = made.found();
    assert_eq!((user(&found, LOCK, LESS).taken, user(&found, LOCK, LESS).measured), (1, 0));
    // A release and a return without a beginning, and a lock that is never released.
    assert_eq!(found.unpaired, 3);
}

#[test]
fn a_call_that_inherits_shows_the_protocol_of_a_lock_whose_memory_does_not() {
    let mut made = contended();
    for event in &mut made.0 {
        if let What::Asks { kind, .. } = &mut event.what {
            *kind = None;
        }
    }
    assert_eq!(made.found().locks[0].protocol, LockProtocol::Inherits);
    let mut free = Made::default();
    free.begins(0, LESS);
    free.add(5, LESS, What::Asks { lock: LOCK, condition: None, kind: None });
    free.has(6, LESS);
    assert_eq!(free.found().locks[0].protocol, LockProtocol::Unknown);
}
