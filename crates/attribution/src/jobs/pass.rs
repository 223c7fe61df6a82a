//! A trace on its way: events decoded, threads followed, activations cut. A file and a recording
//! that goes on take the same steps, so that both have the same jobs.

use super::follow::Activation;
use super::kind::Kind;
use super::kinds::Kinds;
use super::program::Program;
use super::separate::Job;
use super::shape::{Dispatches, Kept, KindJobs, ObservedJob, ProgramJobs, Releaser, ThreadJobs};
use super::stretch::Seen;
use super::sums::JobSums;
use crate::attribute::watch::decode::Decoder;
use crate::attribute::watch::program::Watch;
use crate::attribute::watch::read;
use crate::attribute::watch::thread::Thread;
use crate::attribute::watch::waker::By;
use crate::names::Names;
use crate::prio::Prio;
use ftrace::{Event, Formats, Symbols};
use model::watch::WatchedTask;
use std::cmp::Reverse;

/// What is known of a trace so far.
pub(super) struct Pass {
    pub(super) names: Names,
    pub(super) watch: Watch,
    pub(super) program: Program,
    /// Of the first event and the last, ns.
    pub(super) extent_ns: Option<[i64; 2]>,
    /// Places where events are missing.
    pub(super) holes: u64,
    decoder: Decoder,
}

/// A thread, and who it is.
#[derive(Clone, Copy)]
pub(super) struct Who<'a> {
    /// Its place among all that are watched.
    pub(super) place: usize,
    pub(super) thread: &'a Thread,
    pub(super) names: &'a Names,
}

impl Who<'_> {
    /// Its name, as the last event gave it.
    pub(super) fn comm(&self) -> &str {
        let name = self.thread.comm.or_else(|| self.names.of(self.thread.tid));
        name.map_or("", |name| self.names.labels.text(name))
    }
}

impl Pass {
    pub(super) fn new(formats: &Formats, symbols: Symbols, arch: &str, watch: Watch) -> Self {
        let mut names = Names::default();
        let decoder = Decoder::new(formats, symbols, &mut names.labels);
        let program = Program::new(arch, &mut names.labels);
        Self { names, watch, program, extent_ns: None, holes: 0, decoder }
    }

    /// Takes the next event. `observe` gets it, `sink` each activation that it ends.
    pub(super) fn event(
        &mut self,
        event: &Event<'_>,
        observe: impl FnOnce(Seen<'_>, &Program, &Watch),
        mut sink: impl FnMut(Who<'_>, &Activation),
    ) {
        let Self { names, watch, program, extent_ns, decoder, .. } = self;
        let ts_ns = i64::try_from(event.ts_ns).unwrap_or(i64::MAX);
        if let Some([_, last_ns]) = extent_ns {
            *last_ns = ts_ns;
        } else {
            watch.begin(ts_ns);
            *extent_ns = Some([ts_ns; 2]);
        }
        let event = decoder.decode(event, names);
        watch.event(&event, names);
        observe(Seen::Event(&event, names), program, watch);
        program.event(&event, watch, |place, activation| {
            if let Some(thread) = watch.threads.get(place) {
                sink(Who { place, thread, names }, activation);
            }
        });
    }

    /// Events of this CPU are missing.
    pub(super) fn lost(&mut self, cpu: u32) {
        self.holes += 1;
        self.watch.lost(cpu);
        self.program.lost(cpu);
    }

    /// Who kept a CPU.
    pub(super) fn kept(&self, (pid, ns): (i32, u64)) -> Kept {
        kept(&self.names, pid, ns)
    }

    /// What is known by now of all threads, `kinds` by place. `tasks`: those of the program; `None`
    /// where all are.
    pub(super) fn jobs(&self, kinds: &[Kinds], tasks: Option<&[WatchedTask]>) -> ProgramJobs {
        let none = Kinds::default();
        let places = self.watch.threads.iter().enumerate();
        let mut threads: Vec<ThreadJobs> = places
            .map(|(place, thread)| self.thread(place, kinds.get(place).unwrap_or(&none), thread, tasks))
            .collect();
        threads.sort_by_key(|thread| thread.tid);
        let demands = self.program.interrupts.demands();
        ProgramJobs {
            extent_ns: self.extent_ns.unwrap_or_default(),
            threads,
            interrupts: demands.map(|(cpu, demand)| (cpu, demand.clone())).collect(),
            dispatches: self.dispatches(),
            holes: self.holes,
            missing_switches: self.program.missing,
            has_calls: self.program.has_calls,
        }
    }

    fn dispatches(&self) -> Vec<Dispatches> {
        let of_cpu = |(cpu, one): (u32, &super::dispatched::OfCpu)| Dispatches {
            cpu,
            n: one.n,
            longest_ns: one.longest.ns,
            kept: one.longest.kept.map(|kept| self.kept(kept)),
            timers: one.timers,
            late_ns: one.late_ns,
        };
        self.program.dispatched.iter().map(of_cpu).collect()
    }

    fn thread(
        &self,
        place: usize,
        kinds: &Kinds,
        thread: &Thread,
        tasks: Option<&[WatchedTask]>,
    ) -> ThreadJobs {
        let task = tasks.and_then(|tasks| tasks.iter().find(|task| task.tid == thread.tid));
        let name = thread.comm.or_else(|| self.names.of(thread.tid));
        let comm = name.map(|name| self.names.labels.text(name).to_owned());
        let follower = self.program.followers.get(place);
        let is_deadline = follower.is_some_and(|one| one.is_deadline);
        let prio = if is_deadline { Prio::DEADLINE } else { thread.prio };
        let mut found: Vec<KindJobs> =
            kinds.all.iter().filter_map(|(separator, sums)| self.kind(separator.kind, sums)).collect();
        found.sort_by_key(|one| (Reverse(one.n), one.kind));
        ThreadJobs {
            tid: thread.tid,
            comm: comm.or_else(|| task.map(|task| task.comm.clone())).unwrap_or_default(),
            prio: prio.number(),
            policy: read::policy(task.map(|task| task.policy.as_str()), prio),
            reservation: task.and_then(|task| task.reservation),
            is_of_program: task.is_some() || tasks.is_none(),
            cpus: follower.iter().flat_map(|one| one.cpus.iter().copied()).collect(),
            executed_ns: follower.map_or(0, |one| one.executed_ns),
            dispatch_ns: follower.map_or(0, |one| one.dispatch.ns),
            kept: follower.and_then(|one| one.dispatch.kept).map(|kept| self.kept(kept)),
            demand: kinds.demand.clone(),
            in_order: !kinds.disorder,
            kinds: found,
            unkept: kinds.unkept,
        }
    }

    fn kind(&self, kind: Kind, sums: &JobSums) -> Option<KindJobs> {
        let mut releasers: Vec<(Releaser, u64)> =
            sums.wakers.iter().map(|(by, n)| (self.releaser(*by), *n)).collect();
        releasers.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        Some(KindJobs {
            kind,
            n: sums.n,
            uncertain: sums.uncertain,
            regular: sums.regular.clone(),
            intended: sums.intended.clone(),
            lime: sums.lime.model(),
            shortest_ns: sums.shortest.curve().to_vec(),
            costs: sums.costs.curve(),
            demand: sums.demand.clone(),
            suspended_ns: sums.suspended_ns,
            suspensions: sums.suspensions,
            suspending: sums.suspending,
            response_ns: sums.response_ns,
            late_ns: sums.late_ns,
            extent_ns: sums.extent_ns?,
            releasers,
        })
    }

    fn releaser(&self, by: By) -> Releaser {
        let text = |label| self.names.labels.text(label).to_owned();
        match by {
            By::Timer { function } => Releaser::Timer(text(function)),
            By::Interrupt(label) => Releaser::Interrupt(text(label)),
            By::SomeInterrupt => Releaser::Interrupt(String::new()),
            By::Thread(tid) => Releaser::Thread(tid),
            By::Unknown => Releaser::Unknown,
        }
    }
}

pub(super) fn kept(names: &Names, pid: i32, ns: u64) -> Kept {
    let name = names.of(pid).map(|name| names.labels.text(name).to_owned());
    Kept { by: name.unwrap_or_else(|| format!("task {pid}")), ns }
}

pub(super) fn observed(tid: i32, job: &Job) -> ObservedJob {
    let response_ns = job.response_ns();
    ObservedJob {
        tid,
        release_ns: job.ended_ns.saturating_sub_unsigned(response_ns),
        ended_ns: job.ended_ns,
        response_ns,
        executed_ns: job.executed_ns,
        suspended_ns: job.suspended_ns,
        dispatch_ns: job.dispatch.ns,
        kept: job.dispatch.kept,
        woken_ns: job.release.window.latest_ns,
        released_by: match job.release.by {
            By::Thread(tid) => Some(tid),
            _ => None,
        },
    }
}
