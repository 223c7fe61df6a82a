//! Plays a synthetic load: one thread for each of its threads, in this process.
//!
//! `releases` and `jobs` draw what observed threads did, `thread` does the steps of one, `meeting`
//! is what threads share. This file starts them, waits, and ends them.

mod admit;
mod jobs;
mod meeting;
mod releases;
#[cfg(test)]
mod tests;
mod thread;

pub use admit::{admit, real_time_share};

use crate::Error;
use meeting::Shared;
use model::load::Load;
use model::sample::Policy;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use sys::{clock, memory};
use thread::Ready;

/// From the last thread's being ready to the start, ns.
const LEAD_NS: i64 = 20_000_000;
/// A thread that is not ready after so long has failed: a busy CPU does not let it run.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Threads end within this once the load is over, unless they wait for one another.
const END_WITHIN: Duration = Duration::from_secs(1);

/// How a load is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// For so long, ns.
    pub duration_ns: u64,
    /// What is drawn is the same for the same seed.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    /// From the start to the end, ns.
    pub duration_ns: u64,
    /// The threads, in the order of the load.
    pub threads: Vec<PlayedThread>,
    /// Why memory could not be locked.
    pub memory_unlocked: Option<String>,
    /// Whether it was ended before its time.
    pub interrupted: bool,
}

/// What a thread did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedThread {
    /// Its number in the system.
    pub tid: i32,
    /// What the kernel reported of its policy.
    pub policy: Policy,
    /// Rounds of its phases, each one job of a thread that has one phase.
    pub rounds: u64,
    /// Releases that passed altogether before it was done with those before.
    pub missed: u64,
    /// CPU time used, ns.
    pub cpu_ns: u64,
    /// Whether it had not ended when the load was over: it waited for another thread.
    pub stuck: bool,
}

/// Plays a load. `wait` sleeps for at most so long and returns whether to end at once; threads that
/// then still sleep end with the process, or when they wake. Fails where a thread cannot be put
/// onto its CPUs or under its policy; then none has begun.
pub fn play(load: &Load, options: Options, mut wait: impl FnMut(Duration) -> bool) -> Result<Played, Error> {
    let memory_unlocked = memory::lock_on_fault().err().map(|error| error.to_string());
    let shared = Arc::new(Shared::new(load).map_err(|error| Error::os("make", "a pipe", error))?);
    let (is_ready, ready) = mpsc::channel();
    let (has_ended, ended) = mpsc::channel::<usize>();
    for (at, thread) in load.threads.iter().enumerate() {
        let (of_thread, thread) = (shared.clone(), thread.clone());
        let (is_ready, has_ended) = (is_ready.clone(), has_ended.clone());
        let seed = options.seed.wrapping_add(at as u64);
        let name = thread.name.clone();
        let run = move || {
            thread::run(&of_thread, at, &thread, seed, &is_ready);
            let _ = has_ended.send(at);
        };
        let spawned = std::thread::Builder::new().name(name).spawn(run);
        spawned.map_err(|error| {
            shared.end();
            Error::os("start", "a thread", error)
        })?;
    }
    drop((is_ready, has_ended));
    let begun = all_ready(load, &ready).inspect_err(|_| shared.end())?;
    let start_ns = clock::now_ns() + LEAD_NS;
    let end_ns = start_ns.saturating_add(releases::signed(options.duration_ns));
    shared.start(start_ns, end_ns);
    let mut interrupted = false;
    while !interrupted && clock::now_ns() < end_ns {
        let rest_ns = (end_ns - clock::now_ns()).max(0).unsigned_abs();
        interrupted = wait(Duration::from_nanos(rest_ns));
    }
    let duration_ns = (clock::now_ns() - start_ns).max(0).unsigned_abs();
    shared.end();
    let stuck = if interrupted { Vec::new() } else { still_there(load.threads.len(), &ended) };
    let threads = begun.into_iter().zip(&shared.accounts).enumerate();
    let threads = threads.map(|(at, (ready, account))| PlayedThread {
        tid: ready.tid,
        policy: ready.policy,
        stuck: stuck.contains(&at),
        ..account.read()
    });
    Ok(Played { duration_ns, threads: threads.collect(), memory_unlocked, interrupted })
}

/// What each thread got, in their order.
fn all_ready(load: &Load, ready: &Receiver<(usize, Result<Ready, Error>)>) -> Result<Vec<Ready>, Error> {
    let mut all: Vec<Option<Ready>> = load.threads.iter().map(|_| None).collect();
    for _ in &load.threads {
        match ready.recv_timeout(READY_WITHIN) {
            Ok((at, one)) => all[at] = Some(one?),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Err(sys::Error::failed("a thread of the load", "it did not get ready").into());
            }
        }
    }
    Ok(all.into_iter().flatten().collect())
}

/// The threads that do not end.
fn still_there(count: usize, ended: &Receiver<usize>) -> Vec<usize> {
    let mut there: Vec<usize> = (0..count).collect();
    let until = Instant::now() + END_WITHIN;
    while !there.is_empty() {
        let Ok(at) = ended.recv_timeout(until.saturating_duration_since(Instant::now())) else { break };
        there.retain(|one| *one != at);
    }
    there
}

/// A mutex of which the holder has panicked protects nothing here.
fn unpoisoned<T>(locked: Result<T, PoisonError<T>>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}
