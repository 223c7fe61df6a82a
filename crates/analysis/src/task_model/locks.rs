//! From the locks that a recording shows to those of the model: which thread requests which, how
//! often in a job, and for how long it executes meanwhile.
//!
//! Requests are those of recordings of every locking. Where only waits were recorded, a lock that
//! nobody had to wait for was not seen, and nothing follows but that sentence: waits are then
//! suspensions, as long as those observed.

use super::lock_shape::{Lock, Locks, Request, ThreadLocks, User};
use super::observe::separators;
use super::shape::{Suspension, TaskModel};
use crate::words::{count, time};
use attribution::Error;
use attribution::jobs::lock_shape::{LockUser, LockingThread, ProgramLocks};
use attribution::jobs::read::Source;
use attribution::jobs::shape::ProgramJobs;
use std::collections::BTreeMap;

/// Looks for the locks in the trace that the model is of.
pub fn find(source: &Source, jobs: &ProgramJobs, model: &TaskModel) -> Result<ProgramLocks, Error> {
    let prios = jobs.threads.iter().filter_map(|thread| Some((thread.tid, thread.prio?))).collect();
    source.locks(&separators(jobs, model), &prios)
}

/// Puts them into the model. `probe_ns`: what a locking and its release cost more while every one
/// is recorded.
pub fn add(model: &mut TaskModel, found: &ProgramLocks, probe_ns: Option<f64>) {
    let names: BTreeMap<i32, String> = model.threads.iter().map(|one| (one.pid, one.comm.clone())).collect();
    let name = |tid: i32| names.get(&tid).cloned().unwrap_or_default();
    let user = |user: &LockUser| User {
        pid: user.tid,
        comm: name(user.tid),
        is_followed: names.contains_key(&user.tid),
        taken: user.taken,
        requests: user.requests,
        held_ns: (user.measured > 0).then_some(user.held_ns),
        slept_ns: user.slept_ns,
        slept_in: user.slept_in.clone(),
        within: user.within.iter().map(|at| *at as u32).collect(),
        waits: user.waits,
        separates: user.separates,
    };
    let all: Vec<Lock> = found
        .locks
        .iter()
        .map(|lock| Lock {
            process: lock.process,
            address: lock.address,
            symbol: None,
            protocol: lock.protocol,
            is_shared: lock.is_shared,
            users: lock.users.iter().map(user).collect(),
        })
        .collect();
    let threads = found.threads.iter().map(|one| ThreadLocks {
        pid: one.tid,
        jobs: one.jobs,
        lockings: one.lockings,
        waiting: one.waiting,
        waited_ns: one.waited_ns,
        longest: one.longest.clone(),
    });
    model.locks = Locks { every: found.every, all, threads: threads.collect(), assumed: None };
    if found.every {
        for one in &found.threads {
            requests_of(model, one);
        }
    }
    let statement = statement(model, found, probe_ns);
    model.statements.extend(statement);
}

/// The requests of a thread, its suspensions without its waits for locks, and how late it is
/// dispatched beside sections of others.
fn requests_of(model: &mut TaskModel, found: &LockingThread) {
    let Some(thread) = model.threads.iter_mut().find(|one| one.pid == found.tid) else { return };
    if found.jobs > 0 {
        thread.dispatch_ns = thread.dispatch_ns.min(found.dispatch_ns);
        thread.kept = thread.kept.take().filter(|kept| kept.ns <= thread.dispatch_ns);
    }
    let suspending = found.suspending;
    thread.suspension = Suspension {
        total_ns: found.suspended_ns,
        most: found.suspensions,
        jobs: suspending.jobs,
        n: suspending.suspensions,
        sum_ns: suspending.total_ns,
    };
    let request = |(at, lock): (usize, &Lock)| {
        let user = lock.users.iter().find(|user| user.pid == found.tid && user.taken > 0)?;
        // One that took it outside of jobs alone may do so within one.
        let (count, length_ns) = (user.requests.max(1), user.held_ns.unwrap_or(0));
        Some(Request { lock: at as u32, count, length_ns })
    };
    thread.requests = model.locks.all.iter().enumerate().filter_map(request).collect();
}

fn statement(model: &TaskModel, found: &ProgramLocks, probe_ns: Option<f64>) -> Vec<String> {
    let mut all = Vec::new();
    if !found.every {
        let waits = || model.locks.all.iter().flat_map(|lock| &lock.users).map(|user| user.waits);
        let (n, locks) = (waits().sum::<u64>(), model.locks.all.len() as u64);
        if n > 0 {
            let locks = if locks == 1 { "1 lock".to_owned() } else { format!("{} locks", count(locks)) };
            all.push(format!(
                "{} waits for {locks} were seen, and count as suspensions as long as those observed; lockings without a wait were not recorded, so nothing is known of who may wait for whom (--locks=every records them)",
                count(n)
            ));
        }
        return all;
    }
    if !model.locks.all.is_empty() {
        let most = model.locks.threads.iter().map(|one| one.lockings).max().unwrap_or(0);
        let cost = probe_ns.map_or_else(
            || "an unknown time longer".to_owned(),
            |ns| {
                let (each, of_job) = (time(ns), time(ns * most as f64));
                format!("about {each} longer, and those of a job at most {of_job}")
            },
        );
        all.push(format!(
            "every locking was recorded: for that, one with its release took {cost}, which is part of the costs and of the times that locks were held"
        ));
    }
    if found.unpaired > 0 {
        all.push(format!(
            "{} lockings or releases have no other end in the recording: how long these locks were held is not known",
            count(found.unpaired)
        ));
    }
    all
}
