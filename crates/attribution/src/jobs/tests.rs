//! Threads followed through events made by hand: each case has one right answer.

use super::follow::{Activation, Follower, Released, Woken};
use super::interrupts::Interrupts;
use super::kind::Kind;
use super::program::Program;
use super::separate::{Job, Separator};
use crate::attribute::watch::event::{Leaves, WatchEvent, What};
use crate::attribute::watch::program::Watch;
use crate::attribute::watch::waker::By;
use crate::names::Names;
use crate::prio::Prio;
use infer::Window;

const A: i32 = 10;
const URGENT: i32 = 11;
const IDLE: i32 = 0;
/// x86-64.
const CLOCK_NANOSLEEP: u64 = 230;
const READ: u64 = 0;

fn event(ts_ns: i64, pid: i32, what: What) -> WatchEvent {
    WatchEvent { ts_ns, cpu: 0, pid, in_task: true, what }
}

fn prio(pid: i32) -> Prio {
    Prio::new(match pid {
        A => 50,
        URGENT => 20,
        _ => 120,
    })
}

fn switch(ts_ns: i64, prev: i32, leaves: Leaves, next: i32) -> WatchEvent {
    let named = |pid: i32| (pid, pid.cast_unsigned());
    let prios = [prio(prev), prio(next)];
    event(ts_ns, prev, What::Switch { prev: named(prev), leaves, next: named(next), prios })
}

/// The thread goes to sleep, or comes, beside idle.
fn sleeps(ts_ns: i64) -> WatchEvent {
    switch(ts_ns, A, Leaves::Sleeps, IDLE)
}

fn comes(ts_ns: i64) -> WatchEvent {
    switch(ts_ns, IDLE, Leaves::Runnable, A)
}

fn enters(ts_ns: i64, number: u64, arguments: [u64; 3]) -> WatchEvent {
    event(ts_ns, A, What::CallEnter { number, arguments })
}

fn returns(ts_ns: i64) -> WatchEvent {
    event(ts_ns, A, What::CallExit { result: 0 })
}

fn waking(ts_ns: i64) -> WatchEvent {
    event(ts_ns, IDLE, What::Waking { task: (A, A.cast_unsigned()), prio: prio(A) })
}

/// A timer that was to expire at `intended_ns` wakes the thread at `ts_ns`.
fn timer(intended_ns: i64, ts_ns: i64) -> [WatchEvent; 4] {
    let interrupt = |ts_ns, what| WatchEvent { in_task: false, ..event(ts_ns, IDLE, what) };
    let armed = What::Armed { timer: 7, expires_ns: intended_ns };
    let expires = What::Expires { timer: 7, now_ns: ts_ns, function: 3 };
    let wakes = What::Waking { task: (A, A.cast_unsigned()), prio: prio(A) };
    [
        event(ts_ns - 1, IDLE, armed),
        interrupt(ts_ns, expires),
        interrupt(ts_ns, wakes),
        interrupt(ts_ns, What::Exit),
    ]
}

/// What the events say of the thread: its activations, and the longest dispatch.
fn follow(events: &[WatchEvent]) -> (Vec<Activation>, u64) {
    let mut watch = Watch::new("x86_64", 0, [(A, None), (URGENT, None)]);
    let (mut names, mut found) = (Names::default(), Vec::new());
    let mut program = Program::new("x86_64", &mut names.labels);
    for event in events {
        watch.event(event, &names);
        program.event(event, &watch, |place, activation| {
            if watch.threads[place].tid == A {
                found.push(*activation);
            }
        });
    }
    (found, program.followers[0].dispatch.ns)
}

fn jobs(events: &[WatchEvent], kind: Kind) -> Vec<Job> {
    let mut separator = Separator::new(kind);
    follow(events).0.iter().filter_map(|activation| separator.add(activation)).collect()
}

fn absolute_sleep() -> Kind {
    let call = model::syscalls::by_number("x86_64", CLOCK_NANOSLEEP).unwrap();
    Kind::of_call(call, [1, 1])
}

/// It sleeps until each multiple of 1000 in a call, and works for 100 then.
fn periodic(count: i64) -> Vec<WatchEvent> {
    let mut events = vec![comes(10), enters(20, CLOCK_NANOSLEEP, [1, 1, 0]), sleeps(30)];
    for at in (1..=count).map(|index| index * 1000) {
        events.extend(timer(at, at + 5));
        events.extend([comes(at + 20), returns(at + 21)]);
        events.extend([enters(at + 115, CLOCK_NANOSLEEP, [1, 1, 0]), sleeps(at + 120)]);
    }
    events
}

#[test]
fn a_periodic_thread_has_a_job_for_each_sleep() {
    let found = jobs(&periodic(3), absolute_sleep());
    assert_eq!(found.len(), 2);
    let job = found[0];
    assert_eq!(job.release.window, Window { earliest_ns: 1000, latest_ns: 1005 });
    assert_eq!((job.executed_ns, job.ended_ns, job.response_ns(), job.suspensions), (100, 1120, 120, 0));
    assert!(matches!(job.release.by, By::Timer { .. }));
    assert_eq!(follow(&periodic(3)).1, 15);
}

#[test]
fn interrupts_and_preemption_are_no_execution() {
    let interrupt = |ts_ns, what| WatchEvent { in_task: false, ..event(ts_ns, A, what) };
    let mut events = periodic(1);
    events.truncate(events.len() - 2);
    events.extend([
        interrupt(1030, What::Enter(1)),
        interrupt(1032, What::Enter(2)),
        interrupt(1038, What::Exit),
        interrupt(1040, What::Exit),
        switch(1050, A, Leaves::Runnable, URGENT),
        switch(1090, URGENT, Leaves::Sleeps, A),
        enters(1110, CLOCK_NANOSLEEP, [1, 1, 0]),
        sleeps(1120),
    ]);
    let activation = *follow(&events).0.last().unwrap();
    assert_eq!((activation.executed_ns, activation.ended_ns), (30 - 10 + 30, 1120));
}

/// Under `PREEMPT_RT` a spinlock is a lock to sleep for, in the middle of any call.
#[test]
fn a_lock_of_the_kernel_is_not_what_a_call_waits_for() {
    let mut events = periodic(1);
    events.truncate(events.len() - 2);
    events.extend([enters(1030, CLOCK_NANOSLEEP, [1, 1, 0])]);
    events.extend([switch(1040, A, Leaves::Blocks, IDLE), waking(1050), comes(1060), sleeps(1070)]);
    events.extend(timer(2000, 2000));
    events.extend([comes(2010), returns(2011), sleeps(2020)]);
    let [job] = jobs(&events, absolute_sleep())[..] else { panic!("one job") };
    assert_eq!((job.suspensions, job.suspended_ns, job.ended_ns), (1, 10, 1070));
}

#[test]
fn another_sleep_is_a_suspension_of_the_job() {
    let mut events = periodic(1);
    events.truncate(events.len() - 2);
    events.extend([enters(1030, READ, [4, 0, 0]), sleeps(1040), waking(1200), comes(1210)]);
    events.extend([returns(1211), enters(1250, CLOCK_NANOSLEEP, [1, 1, 0]), sleeps(1260)]);
    events.extend(timer(2000, 2000));
    events.extend([comes(2010), returns(2011), sleeps(2020)]);
    let [job] = jobs(&events, absolute_sleep())[..] else { panic!("one job") };
    assert_eq!((job.executed_ns, job.suspended_ns, job.suspensions), (20 + 50, 160, 1));
    assert_eq!(job.response_ns(), 260);
}

#[test]
fn a_time_that_has_passed_begins_a_job_whose_release_is_uncertain() {
    let mut events = periodic(1);
    events.truncate(events.len() - 2);
    // The job takes until after the next release; the call returns at once.
    events.extend([enters(2300, CLOCK_NANOSLEEP, [1, 1, 0]), returns(2301)]);
    events.extend([enters(2400, CLOCK_NANOSLEEP, [1, 1, 0]), sleeps(2410)]);
    events.extend(timer(3000, 3000));
    events.extend([comes(3010), sleeps(3020)]);
    let found = jobs(&events, absolute_sleep());
    let [first, second] = found[..] else { panic!("{found:?}") };
    assert_eq!((first.response_ns(), first.executed_ns), (1300, 2300 - 1020 + 1));
    let Released { window, is_uncertain, .. } = second.release;
    assert_eq!((window, is_uncertain), (Window { earliest_ns: 1000, latest_ns: 2300 }, true));
    assert_eq!(second.response_ns(), 110);
}

#[test]
fn a_wake_up_before_the_sleep_begins_a_job_too() {
    let mut events = periodic(1);
    events.truncate(events.len() - 2);
    events.push(enters(1900, CLOCK_NANOSLEEP, [1, 1, 0]));
    let [armed, expires, wakes, exit] = timer(2000, 2001);
    let on_thread = |one: WatchEvent| WatchEvent { pid: A, ..one };
    events.extend([armed, expires, wakes, exit].map(on_thread));
    events.extend([returns(2010), enters(2100, CLOCK_NANOSLEEP, [1, 1, 0]), sleeps(2110)]);
    events.extend(timer(3000, 3000));
    events.extend([comes(3010), sleeps(3020)]);
    let found = jobs(&events, absolute_sleep());
    let [_, second] = found[..] else { panic!("{found:?}") };
    assert_eq!(second.release.window, Window { earliest_ns: 2000, latest_ns: 2001 });
    assert!(!second.release.is_uncertain);
}

#[test]
fn a_job_around_missing_events_is_left_out() {
    let mut watch = Watch::new("x86_64", 0, [(A, None)]);
    let mut names = Names::default();
    let mut program = Program::new("x86_64", &mut names.labels);
    let (mut separator, mut found) = (Separator::new(absolute_sleep()), Vec::new());
    for event in periodic(6) {
        // In the middle of the third job.
        if event.ts_ns == 3021 {
            watch.lost(0);
            program.lost(0);
        }
        watch.event(&event, &names);
        program.event(&event, &watch, |_, activation| found.extend(separator.add(activation)));
    }
    let releases: Vec<i64> = found.iter().map(|job| job.release.window.earliest_ns).collect();
    // The second is open when the third is lost.
    assert_eq!(releases, [1000, 4000, 5000]);
}

#[test]
fn a_reservation_separates_jobs_by_its_timer() {
    let mut names = Names::default();
    let function = names.labels.id("dl_task_timer");
    let deadline = |one: WatchEvent, prios| match one.what {
        What::Switch { prev, leaves, next, .. } => {
            WatchEvent { what: What::Switch { prev, leaves, next, prios }, ..one }
        }
        _ => one,
    };
    let mut events = Vec::new();
    for at in (0..5).map(|index| index * 1000) {
        events.push(deadline(comes(at + 10), [prio(IDLE), Prio::DEADLINE]));
        events.push(event(at + 60, A, What::Armed { timer: 9, expires_ns: at + 1000 }));
        events.push(deadline(switch(at + 70, A, Leaves::Runnable, IDLE), [Prio::DEADLINE, prio(IDLE)]));
        let expires = What::Expires { timer: 9, now_ns: at + 1002, function };
        events.push(WatchEvent { in_task: false, ..event(at + 1002, IDLE, expires) });
        events.push(WatchEvent { in_task: false, ..event(at + 1003, IDLE, What::Exit) });
    }
    let mut watch = Watch::new("x86_64", 0, [(A, None)]);
    let mut program = Program::new("x86_64", &mut names.labels);
    let (mut separator, mut found) = (Separator::new(Kind::Replenished), Vec::new());
    for event in &events {
        watch.event(event, &names);
        program.event(event, &watch, |_, activation| found.extend(separator.add(activation)));
    }
    let [first, ..] = found[..] else { panic!("{found:?}") };
    assert_eq!(found.len(), 3);
    assert_eq!(first.release.window, Window { earliest_ns: 1000, latest_ns: 1002 });
    assert_eq!((first.executed_ns, first.response_ns()), (60, 70));
}

#[test]
fn a_job_whose_switch_is_missing_executed_since_its_wake_up_at_most() {
    let mut events = periodic(3);
    events.retain(|one| !matches!(one.what, What::Switch { next: (A, _), .. }) || one.ts_ns < 1000);
    let found = jobs(&events, absolute_sleep());
    assert_eq!(found.iter().map(|job| job.executed_ns).collect::<Vec<_>>(), [115, 115]);
}

#[test]
fn who_runs_before_it_is_no_part_of_its_dispatch() {
    let mut events = vec![comes(10), sleeps(30), switch(40, IDLE, Leaves::Runnable, URGENT)];
    events.extend([waking(100), switch(180, URGENT, Leaves::Sleeps, IDLE), comes(190), sleeps(200)]);
    assert_eq!(follow(&events).1, 10);
}

#[test]
fn what_a_thread_waited_before_it_became_urgent_is_no_dispatch_of_its() {
    let fair = Prio::new(120);
    let as_fair = |one: WatchEvent| match one.what {
        What::Switch { prev, leaves, next, .. } => {
            WatchEvent { what: What::Switch { prev, leaves, next, prios: [fair; 2] }, ..one }
        }
        _ => one,
    };
    let mut events = vec![as_fair(comes(10)), as_fair(sleeps(30))];
    events.extend([waking(100), as_fair(comes(900)), sleeps(910), waking(1000), comes(1007), sleeps(1020)]);
    assert_eq!(follow(&events).1, 7);
    let mut watch = Watch::new("x86_64", 0, [(A, None)]);
    let mut names = Names::default();
    let mut program = Program::new("x86_64", &mut names.labels);
    for event in &events {
        watch.event(event, &names);
        program.event(event, &watch, |_, _| {});
    }
    // Of the CPU, too: one dispatch, and no timer.
    let of_cpu: Vec<_> =
        program.dispatched.iter().map(|(cpu, one)| (cpu, one.n, one.longest.ns, one.timers)).collect();
    assert_eq!(of_cpu, [(0, 1, 7, 0)]);
}

#[test]
fn a_cpu_knows_how_late_its_timers_were() {
    let mut watch = Watch::new("x86_64", 0, [(A, None)]);
    let mut names = Names::default();
    let mut program = Program::new("x86_64", &mut names.labels);
    for event in &periodic(4) {
        watch.event(event, &names);
        program.event(event, &watch, |_, _| {});
    }
    let of_cpu: Vec<_> =
        program.dispatched.iter().map(|(_, one)| (one.n, one.longest.ns, one.timers, one.late_ns)).collect();
    assert_eq!(of_cpu, [(4, 15, 4, 5)]);
}

/// Some kernels leave out switches from idle, and a thread that has not slept yet needs none.
#[test]
fn a_cpu_knows_of_late_timers_where_no_switch_follows_them() {
    let mut events = periodic(2);
    events.extend(timer(3000, 3450));
    events.extend([returns(3471), enters(3500, CLOCK_NANOSLEEP, [1, 1, 0]), sleeps(3510)]);
    let before = events.len();
    events.extend(timer(4000, 4005));
    events.push(comes(4006));
    events.push(enters(4010, CLOCK_NANOSLEEP, [1, 1, 0]));
    let [armed, expires, wakes, exit] = timer(4020, 4700);
    events.extend([armed, expires, wakes, exit, returns(4710), enters(4800, READ, [0, 0, 0]), sleeps(4810)]);
    for (end, timers, late_ns) in [(before, 3, 450), (events.len(), 5, 680)] {
        let mut watch = Watch::new("x86_64", 0, [(A, None)]);
        let mut names = Names::default();
        let mut program = Program::new("x86_64", &mut names.labels);
        for event in &events[..end] {
            watch.event(event, &names);
            program.event(event, &watch, |_, _| {});
        }
        let of_cpu: Vec<_> = program.dispatched.iter().map(|(_, one)| (one.timers, one.late_ns)).collect();
        assert_eq!(of_cpu, [(timers, late_ns)]);
    }
}

#[test]
fn where_a_new_thread_was_before_it_slept_for_the_first_time_does_not_count() {
    let (mut follower, interrupts) = (Follower::default(), Interrupts::default());
    let woken = |at_ns| Woken { at_ns, intended_ns: None, by: By::Unknown };
    follower.started(woken(0));
    follower.switch_in(1, 0, prio(A), &interrupts, |_| None);
    follower.switch_out(2, Leaves::Sleeps, &interrupts);
    for (at_ns, cpu) in [(10, 1), (20, 1), (30, 3)] {
        follower.waking(woken(at_ns));
        let _ = follower.switch_in(at_ns + 1, cpu, prio(A), &interrupts, |_| None);
        follower.switch_out(at_ns + 2, Leaves::Sleeps, &interrupts);
    }
    assert_eq!(follower.cpus, [1, 3]);
}

#[test]
fn where_a_thread_was_before_it_became_urgent_does_not_count_unless_it_was_only_boosted() {
    let (mut follower, interrupts) = (Follower::default(), Interrupts::default());
    let fair = Prio::new(120);
    for (at_ns, cpu, prio) in [(10, 1, fair), (20, 0, prio(A)), (30, 0, prio(A))] {
        let _ = follower.switch_in(at_ns, cpu, prio, &interrupts, |_| None);
        follower.switch_out(at_ns + 2, Leaves::Sleeps, &interrupts);
    }
    assert_eq!(follower.cpus, [0]);
    let _ = follower.switch_in(40, 2, fair, &interrupts, |_| None);
    assert_eq!(follower.cpus, [0, 1, 2]);
}
