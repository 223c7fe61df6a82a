//! From a run of `trace watch`, or any trace, to the jobs in it: one pass.

use super::follow::Activation;
use super::kind::Kind;
use super::lock_known::{At, Known};
use super::lock_shape::ProgramLocks;
use super::locks::Locks;
use super::program::Program;
use super::separate::{Job, Separator};
use super::shape::{Kept, KindJobs, ObservedJob, ProgramJobs, Releaser, ThreadJobs};
use super::stretch::{Observer, Seen, Stretch};
use super::sums::JobSums;
use crate::Error;
use crate::any_trace::{arch, clock};
use crate::attribute::watch::decode::Decoder;
use crate::attribute::watch::program::{Follow, Watch};
use crate::attribute::watch::read;
use crate::attribute::watch::thread::Thread;
use crate::attribute::watch::waker::By;
use crate::holes::Hole;
use crate::names::Names;
use crate::prio::Prio;
use ftrace::{Item, TraceFile};
use infer::bucket::Buckets;
use model::Cpus;
use model::locking;
use model::run::Run;
use model::watch::WatchRecord;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

/// Kinds of sleep that are kept of a thread.
const MOST_KINDS: usize = 12;
/// As far behind a stretch, at least a quarter of it, ends of its jobs are looked for, ns.
const LEAST_BEHIND_NS: i64 = 250_000_000;

/// Where the events are.
#[derive(Debug)]
pub struct Source {
    file: TraceFile,
    buffers: Vec<String>,
    window_ns: [i64; 2],
    arch: String,
    /// Whether its clock is CLOCK_MONOTONIC.
    is_monotonic: bool,
    record: Option<WatchRecord>,
    recorded: Cpus,
}

impl Source {
    /// The CPUs that were recorded in full; empty where that is not known.
    pub fn recorded(&self) -> &Cpus {
        &self.recorded
    }

    /// Opens a run directory; an error where no program was watched.
    pub fn of_run(dir: &Path, run: &Run) -> Result<Self, Error> {
        let expected = "a run directory of trace watch or model";
        let missing =
            || Error::from(model::Error::invalid(dir.display(), "no program was watched", expected));
        let record = read::record(dir)?.ok_or_else(missing)?;
        let trace = run.trace.as_ref().ok_or_else(missing)?;
        let phase = run.phases.first().ok_or_else(missing)?;
        let beside = [&trace.sender, &trace.watched].into_iter().flatten().map(|one| one.buffer.clone());
        Ok(Self {
            file: TraceFile::open(&dir.join(&trace.file))?,
            buffers: std::iter::once(String::new()).chain(beside).collect(),
            window_ns: [phase.t0_ns, phase.t1_ns],
            arch: record.arch.clone(),
            is_monotonic: true,
            record: Some(record),
            recorded: run.measured_cpus.clone(),
        })
    }

    /// Any trace; its threads under real-time policies are followed.
    pub fn of_trace(file: TraceFile) -> Result<Self, Error> {
        let is_monotonic = clock(&file)? == "mono";
        Ok(Self {
            arch: arch(&file).to_owned(),
            buffers: file.buffers().iter().map(|buffer| buffer.name.clone()).collect(),
            window_ns: [i64::MIN, i64::MAX],
            is_monotonic,
            record: None,
            recorded: Cpus::default(),
            file,
        })
    }

    /// The same source, in part: events from one time to another, both included, ns.
    #[must_use]
    pub fn within(self, [from_ns, to_ns]: [i64; 2]) -> Self {
        let [first_ns, last_ns] = self.window_ns;
        Self { window_ns: [first_ns.max(from_ns), last_ns.min(to_ns)], ..self }
    }

    fn watch(&self) -> Watch {
        let tasks = self.record.iter().flat_map(|record| &record.tasks);
        let (before, later): (Vec<_>, Vec<_>) = tasks.partition(|task| task.before);
        let before = before.into_iter().map(|task| (task.tid, task.syscall.map(Into::into)));
        let mut watch = Watch::new(&self.arch, 0, before).following(Follow::RealTime);
        watch.wakeups = None;
        watch.expect(later.into_iter().map(|task| task.tid));
        if !self.is_monotonic {
            watch.by_another_clock();
        }
        watch
    }

    /// Reads the events up to a time, ns. `observe` gets each event, `sink` the thread of each
    /// activation, by place and number.
    fn read(
        &self,
        until_ns: i64,
        mut observe: impl FnMut(Seen<'_>, &Program, &Watch),
        mut sink: impl FnMut(usize, i32, &Activation),
    ) -> Result<Reading, Error> {
        let mut names = Names::default();
        let mut decoder = Decoder::new(self.file.formats(), self.file.symbols()?, &mut names.labels);
        let (mut watch, mut program) = (self.watch(), Program::new(&self.arch, &mut names.labels));
        let buffers: Vec<&str> = self.buffers.iter().map(String::as_str).collect();
        let mut stream = self.file.stream_buffers(&buffers)?;
        let (mut extent_ns, mut holes) = (None::<[i64; 2]>, 0);
        while let Some(item) = stream.next()? {
            match item {
                Item::Event(event) => {
                    let ts_ns = i64::try_from(event.ts_ns).unwrap_or(i64::MAX);
                    if ts_ns < self.window_ns[0] {
                        continue;
                    }
                    if ts_ns > self.window_ns[1].min(until_ns) {
                        break;
                    }
                    if let Some([_, last_ns]) = &mut extent_ns {
                        *last_ns = ts_ns;
                    } else {
                        watch.begin(ts_ns);
                        extent_ns = Some([ts_ns; 2]);
                    }
                    let event = decoder.decode(&event, &mut names);
                    watch.event(&event, &names);
                    observe(Seen::Event(&event, &names), &program, &watch);
                    program.event(&event, &watch, |place, activation| {
                        if let Some(thread) = watch.threads.get(place) {
                            sink(place, thread.tid, activation);
                        }
                    });
                }
                Item::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                    if Hole::new(cpu, after_ts_ns, before_ts_ns).touches(self.window_ns) {
                        holes += 1;
                        observe(Seen::Lost, &program, &watch);
                        watch.lost(cpu);
                        program.lost(cpu);
                    }
                }
            }
        }
        let what = "no event of it is in the time that is asked for";
        let expected = "a window in which something was recorded";
        let missing = || model::Error::invalid(self.file.path().display(), what, expected);
        Ok(Reading { extent_ns: extent_ns.ok_or_else(missing)?, holes, names, watch, program })
    }

    /// The jobs of all threads, for every kind of sleep that may separate them.
    pub fn jobs(&self) -> Result<ProgramJobs, Error> {
        let mut threads: Vec<Kinds> = Vec::new();
        let reading = self.read(
            i64::MAX,
            |_, _, _| {},
            |place, _, activation| {
                if threads.len() <= place {
                    threads.resize_with(place + 1, Kinds::default);
                }
                threads[place].add(activation);
            },
        )?;
        threads.resize_with(reading.watch.threads.len(), Kinds::default);
        let mut jobs: Vec<ThreadJobs> = threads
            .into_iter()
            .zip(&reading.watch.threads)
            .enumerate()
            .map(|(place, (kinds, thread))| reading.thread(place, kinds, thread, self.record.as_ref()))
            .collect();
        jobs.sort_by_key(|thread| thread.tid);
        let demands = reading.program.interrupts.demands();
        Ok(ProgramJobs {
            extent_ns: reading.extent_ns,
            threads: jobs,
            interrupts: demands.map(|(cpu, demand)| (cpu, demand.clone())).collect(),
            holes: reading.holes,
            missing_switches: reading.program.missing,
            has_calls: reading.program.has_calls,
        })
    }

    /// The locks of the program. `prios`: what threads have where they inherit none
    /// (`task_struct.prio`).
    pub fn locks(
        &self,
        separators: &BTreeMap<i32, Kind>,
        prios: &BTreeMap<i32, i16>,
    ) -> Result<ProgramLocks, Error> {
        let record = self.record.as_ref();
        let known = Known {
            arch: self.arch.clone(),
            processes: record
                .into_iter()
                .flat_map(|one| &one.tasks)
                .map(|task| (task.tid, task.tgid))
                .collect(),
            glibc: record.into_iter().flat_map(|one| one.glibc.iter().copied()).collect(),
            prios: prios.iter().map(|(tid, prio)| (*tid, Prio::new(i64::from(*prio)))).collect(),
            every: self.file.formats().iter().any(|format| format.full_name() == locking::ASK),
            separators: separators.clone(),
        };
        let locks = RefCell::new(Locks::new(known));
        self.read(
            i64::MAX,
            |seen, program, watch| match seen {
                Seen::Event(event, _) => locks.borrow_mut().event(At { event, program, watch }),
                Seen::Lost => locks.borrow_mut().lost(),
            },
            |_, tid, activation| locks.borrow_mut().activation(tid, activation),
        )?;
        Ok(locks.into_inner().finish())
    }

    /// The jobs of these threads one by one, each when the next job of its thread begins; then the
    /// names of all tasks.
    pub fn each_job(
        &self,
        separators: &BTreeMap<i32, Kind>,
        sink: impl FnMut(&ObservedJob),
    ) -> Result<TaskNames, Error> {
        self.each_job_until(i64::MAX, separators, |_| {}, sink)
    }

    /// What these threads did in a stretch of the trace, ns of its clock, and their jobs that lie
    /// in it at least in part.
    pub fn stretch(
        &self,
        separators: &BTreeMap<i32, Kind>,
        [from_ns, to_ns]: [i64; 2],
    ) -> Result<Stretch, Error> {
        let mut observer = Observer::new(separators.keys().copied(), [from_ns, to_ns]);
        let mut jobs = Vec::new();
        // A job is known to have ended when the next begins.
        let length_ns = to_ns.saturating_sub(from_ns).max(LEAST_BEHIND_NS);
        let until_ns = to_ns.saturating_add(length_ns.saturating_mul(4));
        self.each_job_until(
            until_ns,
            separators,
            |seen| observer.take(seen),
            |job| {
                if job.release_ns <= to_ns && job.ended_ns >= from_ns {
                    jobs.push(*job);
                }
            },
        )?;
        Ok(observer.finish(jobs))
    }

    fn each_job_until(
        &self,
        until_ns: i64,
        separators: &BTreeMap<i32, Kind>,
        observe: impl FnMut(Seen<'_>),
        mut sink: impl FnMut(&ObservedJob),
    ) -> Result<TaskNames, Error> {
        let mut open: BTreeMap<usize, Separator> = BTreeMap::new();
        let mut observe = observe;
        let reading = self.read(
            until_ns,
            |seen, _, _| observe(seen),
            |place, tid, activation| {
                let Some(kind) = separators.get(&tid) else { return };
                let separator = open.entry(place).or_insert_with(|| Separator::new(*kind));
                if let Some(job) = separator.add(activation) {
                    sink(&observed(tid, &job));
                }
            },
        )?;
        Ok(TaskNames(reading.names))
    }
}

/// Who tasks of a trace are.
#[derive(Debug)]
pub struct TaskNames(Names);

impl TaskNames {
    /// Who kept a CPU.
    pub fn kept(&self, (pid, ns): (i32, u64)) -> Kept {
        kept(&self.0, pid, ns)
    }
}

fn kept(names: &Names, pid: i32, ns: u64) -> Kept {
    let name = names.of(pid).map(|name| names.labels.text(name).to_owned());
    Kept { by: name.unwrap_or_else(|| format!("task {pid}")), ns }
}

fn observed(tid: i32, job: &Job) -> ObservedJob {
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

/// The kinds of sleep of one thread.
#[derive(Debug, Default)]
struct Kinds {
    all: Vec<(Separator, JobSums)>,
    unkept: u64,
    demand: Buckets,
    /// A release came before the one that it should follow.
    disorder: bool,
}

impl Kinds {
    fn add(&mut self, activation: &Activation) {
        self.demand.add(activation.release.window.latest_ns, activation.executed_ns);
        if let Some(kind) = activation.kind
            && !self.all.iter().any(|(separator, _)| separator.kind == kind)
        {
            if self.all.len() < MOST_KINDS {
                self.all.push((Separator::new(kind), JobSums::default()));
            } else {
                self.unkept += 1;
            }
        }
        for (separator, sums) in &mut self.all {
            if let Some(job) = separator.add(activation) {
                self.disorder |= sums.add(&job).is_err();
            }
        }
    }
}

/// What a pass has found.
struct Reading {
    extent_ns: [i64; 2],
    holes: u64,
    names: Names,
    watch: Watch,
    program: Program,
}

impl Reading {
    fn thread(
        &self,
        place: usize,
        kinds: Kinds,
        thread: &Thread,
        record: Option<&WatchRecord>,
    ) -> ThreadJobs {
        let task = record.and_then(|record| record.tasks.iter().find(|task| task.tid == thread.tid));
        let name = thread.comm.or_else(|| self.names.of(thread.tid));
        let comm = name.map(|name| self.names.labels.text(name).to_owned());
        let follower = self.program.followers.get(place);
        let is_deadline = follower.is_some_and(|one| one.is_deadline);
        let prio = if is_deadline { Prio::DEADLINE } else { thread.prio };
        let mut found: Vec<KindJobs> =
            kinds.all.into_iter().filter_map(|(separator, sums)| self.kind(separator.kind, &sums)).collect();
        found.sort_by_key(|one| (Reverse(one.n), one.kind));
        ThreadJobs {
            tid: thread.tid,
            comm: comm.or_else(|| task.map(|task| task.comm.clone())).unwrap_or_default(),
            prio: prio.number(),
            policy: read::policy(task.map(|task| task.policy.as_str()), prio),
            reservation: task.and_then(|task| task.reservation),
            is_of_program: task.is_some() || record.is_none(),
            cpus: follower.iter().flat_map(|one| one.cpus.iter().copied()).collect(),
            executed_ns: follower.map_or(0, |one| one.executed_ns),
            dispatch_ns: follower.map_or(0, |one| one.dispatch.ns),
            kept: follower.and_then(|one| one.dispatch.kept).map(|(pid, ns)| kept(&self.names, pid, ns)),
            demand: kinds.demand,
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
