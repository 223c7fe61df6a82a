//! The jobs of a recording while it goes on: the same threads, activations and jobs as of the
//! finished trace, one by one as they are known.
//!
//! Which kind of sleep separates the jobs of a thread shows in the end only. So every kind that may
//! do so has its jobs, and whoever takes them keeps what it needs of each.
//!
//! Memory: a fixed number of threads, of each what [`Kinds`] keeps. The names of the machine's
//! tasks grow with what is seen; [`LiveJobs::is_full`] says when to forget them.

use super::follow::Activation;
use super::kind::Kind;
use super::kinds::Kinds;
use super::pass::{Pass, observed};
use super::program::Program;
use super::read::watched;
use super::shape::{Kept, ObservedJob, ProgramJobs};
use super::stretch::Seen;
use crate::Error;
use crate::attribute::watch::event::What;
use crate::attribute::watch::program::Watch;
use crate::attribute::watch::thread::State;
use crate::live::merge::{Merge, Merged};
use ftrace::{Formats, Symbols};
use model::watch::WatchedTask;
use std::collections::BTreeSet;

/// Threads whose jobs are kept.
const MOST_THREADS: usize = 512;
/// Texts, or names of tasks, after which all begins anew.
const MOST_TEXTS: usize = 1 << 17;
/// The same of threads that are followed, those that have ended among them.
const MOST_WATCHED: usize = 1 << 14;

/// A job that has ended, if sleeps of this kind separate those of its thread.
#[derive(Debug, Clone, Copy)]
pub struct LiveJob<'a> {
    /// The name of its thread by now.
    pub comm: &'a str,
    /// The kind.
    pub kind: Kind,
    /// The job.
    pub job: ObservedJob,
}

/// A recording that goes on.
pub struct LiveJobs {
    pass: Pass,
    merge: Merge,
    formats: Formats,
    arch: String,
    from_ns: i64,
    /// Names of the threads whose jobs are wanted.
    names: BTreeSet<String>,
    threads: Threads,
    events: u64,
    /// Holes before the last renewal.
    holes: u64,
    renewals: u64,
}

/// The threads whose jobs are kept.
#[derive(Default)]
struct Threads {
    /// By place.
    kinds: Vec<Kinds>,
    /// How many of these are used.
    used: usize,
    left_out: u64,
}

impl Threads {
    /// Where the next activation of a thread goes; `None` where that is one too many.
    fn of(&mut self, place: usize, activation: &Activation) -> Option<&mut Kinds> {
        if self.kinds.len() <= place {
            self.kinds.resize_with(place + 1, Kinds::default);
        }
        let Self { kinds, used, left_out } = self;
        let kinds = &mut kinds[place];
        if kinds.all.is_empty() && activation.kind.is_some() {
            if *used == MOST_THREADS {
                *left_out += 1;
                return None;
            }
            *used += 1;
        }
        Some(kinds)
    }
}

impl LiveJobs {
    /// Of a program with these threads, from `from_ns` on; by CLOCK_MONOTONIC. `names`: those of
    /// the threads whose jobs are wanted.
    pub fn new(
        formats: Formats,
        symbols: Symbols,
        arch: &str,
        tasks: &[WatchedTask],
        from_ns: i64,
        names: BTreeSet<String>,
    ) -> Self {
        Self {
            pass: Pass::new(&formats, symbols, arch, watched(arch, tasks)),
            merge: Merge::default(),
            formats,
            arch: arch.to_owned(),
            from_ns,
            names,
            threads: Threads::default(),
            events: 0,
            holes: 0,
            renewals: 0,
        }
    }

    /// Takes pages that have come, by CPU, and where a CPU has several buffers in their order in a
    /// file; all events up to `until_ns` have. `sink` gets the jobs that have ended.
    pub fn pages(
        &mut self,
        cpus: Vec<(u32, Vec<u8>)>,
        until_ns: i64,
        mut sink: impl FnMut(LiveJob<'_>),
    ) -> Result<(), Error> {
        let Self { pass, merge, formats, from_ns, names, threads, events, .. } = self;
        merge.pass(formats, cpus, until_ns, &mut |merged| match merged {
            Merged::Event(event) => {
                if i64::try_from(event.ts_ns).unwrap_or(i64::MAX) < *from_ns {
                    return;
                }
                *events += 1;
                let mut made = None;
                let observe = |seen: Seen<'_>, _: &Program, _: &Watch| {
                    if let Seen::Event(event, _) = seen
                        && let What::Fork { parent, child } = event.what
                    {
                        made = Some([parent, child]);
                    }
                };
                pass.event(&event, observe, |who, activation| {
                    let comm = who.comm();
                    if !names.contains(comm) {
                        return;
                    }
                    let Some(kinds) = threads.of(who.place, activation) else { return };
                    let tid = who.thread.tid;
                    kinds.add(activation, |kind, job| sink(LiveJob { comm, kind, job: observed(tid, job) }));
                });
                // What a finished recording knows from the start: who is new in the program.
                if let Some([parent, child]) = made
                    && pass.watch.place(parent).is_some()
                {
                    pass.watch.expect([child]);
                }
            }
            Merged::Lost(hole) => {
                if hole.touches([*from_ns, i64::MAX]) {
                    pass.lost(hole.cpu);
                }
            }
        })
    }

    /// Whether names and numbers of tasks have grown so much that all should begin anew.
    pub fn is_full(&self) -> bool {
        self.pass.names.labels.len().max(self.pass.names.comms.len()) > MOST_TEXTS
            || self.pass.watch.threads.len() > MOST_WATCHED
    }

    /// Forgets the names and numbers of tasks that are no more. The sums over the threads that
    /// there are remain; jobs that are open are left out. `tasks`: those of the program.
    pub fn renew(&mut self, symbols: Symbols, tasks: &[WatchedTask]) {
        let tasks: Vec<WatchedTask> =
            tasks.iter().map(|task| WatchedTask { before: true, ..task.clone() }).collect();
        let pass = Pass::new(&self.formats, symbols, &self.arch, watched(&self.arch, &tasks));
        let before = std::mem::replace(&mut self.pass, pass);
        self.holes += before.holes;
        self.renewals += 1;
        let kinds = std::mem::take(&mut self.threads.kinds);
        self.threads.used = 0;
        for (mut kinds, thread) in kinds.into_iter().zip(&before.watch.threads) {
            let is_there = thread.state != State::Gone;
            let place = self.pass.watch.place(thread.tid).filter(|_| is_there && !kinds.all.is_empty());
            let Some(place) = place else { continue };
            kinds.all.iter_mut().for_each(|(separator, _)| separator.forget());
            if self.threads.kinds.len() <= place {
                self.threads.kinds.resize_with(place + 1, Kinds::default);
            }
            self.threads.kinds[place] = kinds;
            self.threads.used += 1;
        }
    }

    /// What is known by now. `tasks`: those of the program.
    pub fn jobs(&self, tasks: &[WatchedTask]) -> ProgramJobs {
        self.pass.jobs(&self.threads.kinds, Some(tasks))
    }

    /// Who kept a CPU.
    pub fn kept(&self, kept: (i32, u64)) -> Kept {
        self.pass.kept(kept)
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Places where events are missing, so far.
    pub fn holes(&self) -> u64 {
        self.holes + self.pass.holes
    }

    /// Activations of threads beyond the most whose jobs are kept.
    pub fn left_out(&self) -> u64 {
        self.threads.left_out
    }

    /// How often all began anew.
    pub fn renewals(&self) -> u64 {
        self.renewals
    }
}
