//! Models with locks, made by hand: each has one right answer.

use super::change::{Change, changed};
use super::lock_check::check;
use super::lock_shape::{Lock, Locks, Request, ThreadLocks, User};
use super::locks::add;
use super::shape::{Suspension, TaskModel};
use super::system::{line, tasks};
use super::tests::{MS, assumed, program, thread};
use super::verdict::{Guarantee, guarantee};
use attribution::jobs::lock_shape::{
    JobWait, LockProtocol, LockUser, LockingThread, ObservedLock, ProgramLocks,
};
use model::Cpus;
use sched::locks::{Locks as Served, Protocol};
use sched::{Ask, Limits, Test, question};

fn user(pid: i32, held_ns: u64) -> User {
    User {
        pid,
        comm: format!("t{pid}"),
        is_followed: true,
        taken: 100,
        requests: 1,
        held_ns: Some(held_ns),
        slept_ns: 0,
        slept_in: String::new(),
        within: Vec::new(),
        waits: 0,
        separates: false,
    }
}

fn lock(address: u64, protocol: LockProtocol, users: Vec<User>) -> Lock {
    Lock { process: Some(7), address, symbol: None, protocol, is_shared: false, users }
}

/// The most urgent thread shares a lock with the least urgent one; a third is in between.
fn model(protocol: LockProtocol) -> TaskModel {
    let mut model = program(
        vec![thread(1, 20, 10 * MS, 2 * MS), thread(2, 30, 20 * MS, 5 * MS), thread(3, 40, 100 * MS, 4 * MS)],
        Vec::new(),
    );
    with_locks(&mut model, vec![lock(0x10, protocol, vec![user(1, MS / 2), user(3, MS)])]);
    model
}

fn with_locks(model: &mut TaskModel, all: Vec<Lock>) {
    for thread in &mut model.threads {
        let of = |(at, lock): (usize, &Lock)| {
            let user = lock.users.iter().find(|user| user.pid == thread.pid)?;
            Some(Request { lock: at as u32, count: user.requests, length_ns: user.held_ns.unwrap_or(0) })
        };
        thread.requests = all.iter().enumerate().filter_map(of).collect();
    }
    model.locks = Locks { every: true, all, threads: Vec::new(), assumed: None };
}

fn bounds(model: &TaskModel) -> Vec<Option<u64>> {
    guaranteed(model).bounds.iter().map(|one| one.bound_ns).collect()
}

fn guaranteed(model: &TaskModel) -> Guarantee {
    guarantee(model, &assumed(0)).unwrap()
}

/// Why the thread has no bound.
fn why(model: &TaskModel, pid: i32) -> String {
    let found = guaranteed(model);
    let bound = found.bounds.iter().find(|one| one.pid == pid).unwrap();
    assert_eq!(bound.bound_ns, None, "{bound:?}");
    bound.why.clone().unwrap_or_default()
}

#[test]
fn a_lock_that_inherits_blocks_for_one_section_who_uses_it_and_who_is_in_between() {
    let model = model(LockProtocol::Inherits);
    assert_eq!(bounds(&model), [Some(3 * MS), Some(8 * MS), Some(13 * MS)]);
    let found = guaranteed(&model);
    assert_eq!(found.bounds.iter().map(|one| one.blocking_ns).collect::<Vec<_>>(), [MS, MS, 0]);
    // 2 + 1 of 10, and with all costs c times as long c = 3.33; 7 + 1 of 10 at the latest: 1.25,
    // or 2 (2 c) + 5 c + c of 20: c = 2.
    assert_eq!((found.schedulable, found.spare_ppm), (Some(true), Some(1_000_000)));
    // How late the waiter gets the CPU is part of the section.
    let mut late = model.clone();
    late.threads[0].dispatch_ns = 100_000;
    assert_eq!(bounds(&late), [Some(3_200_000), Some(8_100_000), Some(13 * MS)]);
}

#[test]
fn what_is_exported_with_requests_gives_the_same_bounds() {
    let mut model = model(LockProtocol::Inherits);
    model.threads[0].suspension = Suspension { total_ns: MS, most: 2, ..Suspension::default() };
    let asked = tasks(&model, &assumed(0)).unwrap();
    assert_eq!(asked.locks, Some(Protocol::Pip));
    let mut question = question::read(line(&asked).to_string()).unwrap();
    let ask = Ask { locks: Some(Served::of(Protocol::Pip)), ..Ask::of(Test::FpRta) };
    let verdict = ask.answer(&mut question, Limits::default()).unwrap();
    let mut expected = bounds(&model);
    // Once on arrival, and once after each suspension.
    assert_eq!(expected[0], Some((2 + 1 + 3) * MS));
    let mut found = verdict.response_times.clone();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_plain_lock_has_no_bound_where_a_thread_is_in_between() {
    let mut plain = model(LockProtocol::Plain);
    let why_not = why(&plain, 1);
    assert!(
        why_not.starts_with(
            "lock 0x10: it does not inherit priorities, and t2[2] may run while t1[1] waits for t3[3]"
        ),
        "{why_not}"
    );
    assert_eq!(bounds(&plain), [None; 3]);
    assert_eq!(guaranteed(&plain).schedulable, Some(false));
    // A more urgent thread that does not use it keeps its bound.
    plain.threads.insert(0, thread(4, 10, 50 * MS, MS));
    assert_eq!(bounds(&plain), [Some(MS), None, None, None]);
    // Nothing in between: the holder runs whenever the waiter waits.
    let mut alone = model(LockProtocol::Plain);
    alone.threads.remove(1);
    assert_eq!(bounds(&alone), [Some(3 * MS), Some(6 * MS)]);
    // An equal of the holder may come before it.
    alone.threads.push(thread(5, 40, 100 * MS, MS));
    assert!(why(&alone, 1).contains("t5[5] may run"));
}

#[test]
fn a_plain_lock_of_a_thread_without_a_real_time_policy_has_no_bound() {
    let mut model = model(LockProtocol::Plain);
    model.threads.remove(1);
    model.threads[1].prio = Some(120);
    model.threads[1].why = Some("it is not under a real-time policy".to_owned());
    assert!(why(&model, 1).contains("any task of the machine"), "{}", why(&model, 1));
    // Its section counts where it inherits, though it has no model.
    model.locks.all[0].protocol = LockProtocol::Inherits;
    assert_eq!(bounds(&model), [Some(3 * MS)]);
    model.threads[1].cpus = [0, 1].into_iter().collect::<Cpus>();
    assert!(why(&model, 1).contains("t3[3] uses it, which ran on CPUs 0,1"), "{}", why(&model, 1));
}

#[test]
fn what_no_bound_covers_is_refused_by_name() {
    let refused = |change: &dyn Fn(&mut TaskModel)| {
        let mut model = model(LockProtocol::Inherits);
        change(&mut model);
        why(&model, 1)
    };
    let slept = refused(&|model| {
        let holder = &mut model.locks.all[0].users[1];
        (holder.slept_ns, holder.slept_in) = (2 * MS, "read".to_owned());
    });
    assert!(slept.contains("t3[3] slept in read for 2.00 ms while it held it"), "{slept}");
    let nested = refused(&|model| {
        let mut inner = lock(0x20, LockProtocol::Inherits, vec![user(3, 1)]);
        inner.users[0].within = vec![0];
        let outer = model.locks.all.remove(0);
        with_locks(model, vec![outer, inner]);
    });
    assert!(nested.contains("t3[3] took 0x20 while it held it; nested"), "{nested}");
    let unknown = refused(&|model| model.locks.all[0].protocol = LockProtocol::Unknown);
    assert!(unknown.contains("its protocol is not known"), "{unknown}");
    let length = refused(&|model| model.locks.all[0].users[1].held_ns = None);
    assert!(length.contains("how long t3[3] holds it"), "{length}");
    let begins = refused(&|model| model.locks.all[0].users[0].separates = true);
    assert!(begins.contains("the jobs of t1[1] begin when it gets it"), "{begins}");
    let elsewhere = refused(&|model| {
        let mut other = lock(0x10, LockProtocol::Inherits, vec![user(9, 1)]);
        other.process = None;
        model.locks.all[0].users.truncate(1);
        model.locks.all.push(other);
    });
    assert!(elsewhere.contains("a thread of an unknown process"), "{elsewhere}");
    let shared = refused(&|model| model.locks.all[0].is_shared = true);
    assert!(shared.contains("shared between processes"), "{shared}");
    let stranger = refused(&|model| {
        let stranger = User { is_followed: false, ..user(9, 1) };
        model.locks.all[0].users.push(stranger);
    });
    assert!(stranger.contains("not followed"), "{stranger}");
    // No set is exported without what is not known.
    let mut plain = model(LockProtocol::Plain);
    assert!(!tasks(&plain, &assumed(0)).unwrap().unbounded.is_empty());
    // One that was removed uses it no more.
    plain.threads.remove(2);
    assert_eq!(bounds(&plain), [Some(2 * MS), Some(7 * MS)]);
}

#[test]
fn other_protocols_are_a_change_of_all_locks() {
    let plain = model(LockProtocol::Plain);
    let with = |name: &str| {
        let change = Change::parse(&format!("locks={name}")).unwrap();
        assert_eq!(change.to_string(), format!("locks={name}"));
        bounds(&changed(&plain, &[change]).unwrap())
    };
    assert_eq!(with("pip"), bounds(&model(LockProtocol::Inherits)));
    // On one CPU, sections above all tasks block everyone once.
    assert_eq!(with("fmlp+"), [Some(3 * MS), Some(8 * MS), Some(13 * MS)]);
    assert!(with("mpcp")[0].is_some() && with("omlp")[0].is_some() && with("dpcp")[0].is_some());
    let unknown = Change::parse("locks=none").unwrap_err().to_string();
    assert!(unknown.contains("expected pip, mpcp, fmlp+, dpcp or omlp"), "{unknown}");
    // Requests that were not recorded are not made up.
    let mut contended = plain.clone();
    contended.locks.every = false;
    let refused = changed(&contended, &[Change::parse("locks=pip").unwrap()]).unwrap_err().to_string();
    assert!(refused.contains("--locks=every"), "{refused}");
    assert_eq!(bounds(&contended), [Some(2 * MS), Some(7 * MS), Some(13 * MS)]);
}

#[test]
fn between_cpus_inheritance_is_bounded_and_a_plain_lock_is_not() {
    let mut both = model(LockProtocol::Inherits);
    both.threads[2].cpus = [0].into_iter().collect();
    // The first waits for the section of the third, and is that much late for the second. The third
    // waits for all that is executed on the other CPU.
    assert_eq!(bounds(&both), [Some(3 * MS), Some(7 * MS), Some(11 * MS)]);
    both.threads[1].suspension = Suspension { total_ns: MS, most: 1, ..Suspension::default() };
    assert!(why(&both, 1).contains("knows no self-suspension, and t2 suspends itself"), "{}", why(&both, 1));
    both.threads[1].suspension = Suspension::default();
    both.locks.all[0].protocol = LockProtocol::Plain;
    assert!(why(&both, 1).contains("t1[1] on CPU 1 may wait for t3[3] on CPU 0"), "{}", why(&both, 1));
}

#[test]
fn every_wait_is_held_against_what_the_bound_counts() {
    let mut model = model(LockProtocol::Inherits);
    let job = |blocked_ns| JobWait { woken_ns: 0, waited_ns: 2 * MS, blocked_ns };
    let waits =
        |longest| ThreadLocks { pid: 1, jobs: 50, lockings: 1, waiting: 2, waited_ns: 2 * MS, longest };
    model.locks.threads = vec![waits(vec![job(MS), job(5)])];
    let found = guaranteed(&model);
    let rows = check(&model, &found);
    assert_eq!((rows[0].bound_ns, rows[0].blocked_ns, rows[0].refuted), (Some(MS), MS, 0));
    model.locks.threads = vec![waits(vec![job(MS + 1), job(5)])];
    assert_eq!(check(&model, &found)[0].refuted, 1);
    model.locks.all[0].protocol = LockProtocol::Plain;
    let rows = check(&model, &guaranteed(&model));
    assert_eq!((rows[0].bound_ns, rows[0].refuted), (None, 0));
}

#[test]
fn what_was_observed_becomes_requests_and_waits_are_no_suspensions() {
    let mut model =
        program(vec![thread(1, 20, 10 * MS, 2 * MS), thread(3, 40, 100 * MS, 4 * MS)], Vec::new());
    model.threads[0].suspension = Suspension { total_ns: 3 * MS, most: 3, ..Suspension::default() };
    let user = |tid, requests| LockUser {
        tid,
        taken: 10,
        requests,
        measured: 10,
        held_ns: MS,
        ..LockUser::default()
    };
    let found = ProgramLocks {
        every: true,
        locks: vec![ObservedLock {
            process: Some(7),
            address: 0x10,
            protocol: LockProtocol::Inherits,
            is_shared: false,
            users: vec![user(1, 2), user(3, 0)],
        }],
        threads: vec![LockingThread { tid: 1, jobs: 10, lockings: 2, ..LockingThread::default() }],
        unpaired: 0,
    };
    let mut every = model.clone();
    add(&mut every, &found, Some(3_000.0));
    let thread = &every.threads[0];
    assert_eq!(thread.requests, [Request { lock: 0, count: 2, length_ns: MS }]);
    assert_eq!((thread.suspension.total_ns, thread.suspension.most), (0, 0));
    let statement = every.statements.last().unwrap();
    assert!(statement.contains("about 3.00 us longer, and those of a job at most 6.00 us"), "{statement}");
    // Where only waits were recorded nothing is concluded from them.
    let mut waited = found;
    (waited.every, waited.locks[0].users[0].waits) = (false, 4);
    add(&mut model, &waited, None);
    assert_eq!((model.threads[0].suspension.most, model.threads[0].requests.len()), (3, 0));
    let statement = model.statements.last().unwrap();
    assert!(
        statement.starts_with("4 waits for 1 lock were seen") && statement.contains("--locks=every"),
        "{statement}"
    );
}
