//! What the threads of a load share: when it begins and ends, messages, mutexes, barriers, and what
//! each has done.

use super::{PlayedThread, unpoisoned};
use model::load::Load;
use model::sample::Policy;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use sys::{clock, pipes};

/// All of it.
#[derive(Debug)]
pub(super) struct Shared {
    /// CLOCK_MONOTONIC, ns; 0 before the start.
    start_ns: Mutex<i64>,
    started: Condvar,
    /// The same; may come nearer at any time.
    end_ns: AtomicI64,
    threads: usize,
    channels: Vec<(PipeReader, PipeWriter)>,
    locks: Vec<Mutex<()>>,
    barriers: Vec<Barrier>,
    pub(super) accounts: Vec<Account>,
}

#[derive(Debug)]
struct Barrier {
    expected: usize,
    /// How many are there, and how often all were.
    state: Mutex<(usize, u64)>,
    all: Condvar,
}

/// What a thread has done so far.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) rounds: AtomicU64,
    pub(super) missed: AtomicU64,
    pub(super) cpu_ns: AtomicU64,
}

impl Account {
    /// Without what the thread itself cannot know.
    pub(super) fn read(&self) -> PlayedThread {
        PlayedThread {
            tid: 0,
            policy: Policy::other(),
            rounds: self.rounds.load(Relaxed),
            missed: self.missed.load(Relaxed),
            cpu_ns: self.cpu_ns.load(Relaxed),
            stuck: false,
        }
    }
}

impl Shared {
    pub(super) fn new(load: &Load) -> io::Result<Self> {
        let channel = |_| {
            let (read, write) = io::pipe()?;
            // Whoever sends to a thread that is 65,536 messages behind does not wait for it.
            pipes::never_wait(&write)?;
            Ok((read, write))
        };
        let barrier = |(_, expected): &(String, usize)| Barrier {
            expected: *expected,
            state: Mutex::new((0, 0)),
            all: Condvar::new(),
        };
        Ok(Self {
            start_ns: Mutex::new(0),
            started: Condvar::new(),
            end_ns: AtomicI64::new(i64::MAX),
            threads: load.threads.len(),
            channels: load.channels.iter().map(channel).collect::<io::Result<_>>()?,
            locks: load.locks.iter().map(|_| Mutex::new(())).collect(),
            barriers: load.barriers.iter().map(barrier).collect(),
            accounts: load.threads.iter().map(|_| Account::default()).collect(),
        })
    }

    /// Lets all begin.
    pub(super) fn start(&self, start_ns: i64, end_ns: i64) {
        self.end_ns.store(end_ns, Relaxed);
        *unpoisoned(self.start_ns.lock()) = start_ns;
        self.started.notify_all();
    }

    /// Ends all: those too that wait for a message, at a barrier, or for the start.
    pub(super) fn end(&self) {
        self.end_ns.store(0, Relaxed);
        drop(unpoisoned(self.start_ns.lock()));
        self.started.notify_all();
        for (at, _) in self.channels.iter().enumerate() {
            self.send(at, self.threads as u64);
        }
        for barrier in &self.barriers {
            drop(unpoisoned(barrier.state.lock()));
            barrier.all.notify_all();
        }
    }

    /// When it begins; `None` where it is over before.
    pub(super) fn wait_for_start(&self) -> Option<i64> {
        let start_ns = unpoisoned(self.start_ns.lock());
        let waits = |start_ns: &mut i64| *start_ns == 0 && self.end_ns.load(Relaxed) != 0;
        let start_ns = *unpoisoned(self.started.wait_while(start_ns, waits));
        (start_ns != 0).then_some(start_ns)
    }

    pub(super) fn is_over(&self) -> bool {
        clock::now_ns() >= self.end_ns.load(Relaxed)
    }

    /// When it ends, as far as is known, ns.
    pub(super) fn end_ns(&self) -> i64 {
        self.end_ns.load(Relaxed)
    }

    pub(super) fn send(&self, channel: usize, messages: u64) {
        for _ in 0..messages {
            // A channel that is full has as many messages as it needs.
            if (&self.channels[channel].1).write(&[0]).is_err() {
                return;
            }
        }
    }

    pub(super) fn receive(&self, channel: usize) {
        let _ = (&self.channels[channel].0).read(&mut [0]);
    }

    pub(super) fn lock(&self, lock: usize) -> MutexGuard<'_, ()> {
        unpoisoned(self.locks[lock].lock())
    }

    pub(super) fn locks(&self) -> usize {
        self.locks.len()
    }

    pub(super) fn meet(&self, barrier: usize) {
        let barrier = &self.barriers[barrier];
        let mut state = unpoisoned(barrier.state.lock());
        state.0 += 1;
        if state.0 >= barrier.expected {
            *state = (0, state.1 + 1);
            barrier.all.notify_all();
            return;
        }
        let since = state.1;
        drop(unpoisoned(barrier.all.wait_while(state, |state| state.1 == since && !self.is_over())));
    }
}
