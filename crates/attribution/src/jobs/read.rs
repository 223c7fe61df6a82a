//! From a run of `trace watch`, or any trace, to the jobs in it: one pass.

use super::follow::Activation;
use super::kind::Kind;
use super::kinds::Kinds;
use super::lock_known::{At, Known};
use super::lock_shape::ProgramLocks;
use super::locks::Locks;
use super::pass::{Pass, Who, kept, observed};
use super::program::Program;
use super::separate::Separator;
use super::shape::{Kept, ObservedJob, ProgramJobs};
use super::stretch::{Observer, Seen, Stretch};
use crate::Error;
use crate::any_trace::{arch, clock};
use crate::attribute::watch::program::{Follow, Watch};
use crate::attribute::watch::read;
use crate::holes::Hole;
use crate::names::Names;
use crate::prio::Prio;
use ftrace::{Item, TraceFile};
use model::Cpus;
use model::locking;
use model::run::Run;
use model::watch::{WatchRecord, WatchedTask};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

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
        let tasks = self.record.as_ref().map_or(&[][..], |record| &record.tasks);
        let mut watch = watched(&self.arch, tasks);
        if !self.is_monotonic {
            watch.by_another_clock();
        }
        watch
    }

    /// Reads the events up to a time, ns. `observe` gets each event, `sink` the thread of each
    /// activation.
    fn read(
        &self,
        until_ns: i64,
        mut observe: impl FnMut(Seen<'_>, &Program, &Watch),
        mut sink: impl FnMut(Who<'_>, &Activation),
    ) -> Result<Pass, Error> {
        let mut pass = Pass::new(self.file.formats(), self.file.symbols()?, &self.arch, self.watch());
        let buffers: Vec<&str> = self.buffers.iter().map(String::as_str).collect();
        let mut stream = self.file.stream_buffers(&buffers)?;
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
                    pass.event(&event, &mut observe, &mut sink);
                }
                Item::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                    if Hole::new(cpu, after_ts_ns, before_ts_ns).touches(self.window_ns) {
                        observe(Seen::Lost, &pass.program, &pass.watch);
                        pass.lost(cpu);
                    }
                }
            }
        }
        let what = "no event of it is in the time that is asked for";
        let expected = "a window in which something was recorded";
        let missing = || model::Error::invalid(self.file.path().display(), what, expected);
        if pass.extent_ns.is_some() { Ok(pass) } else { Err(missing().into()) }
    }

    /// The jobs of all threads, for every kind of sleep that may separate them.
    pub fn jobs(&self) -> Result<ProgramJobs, Error> {
        let mut threads: Vec<Kinds> = Vec::new();
        let pass = self.read(
            i64::MAX,
            |_, _, _| {},
            |who, activation| {
                if threads.len() <= who.place {
                    threads.resize_with(who.place + 1, Kinds::default);
                }
                threads[who.place].add(activation, |_, _| {});
            },
        )?;
        Ok(pass.jobs(&threads, self.record.as_ref().map(|record| record.tasks.as_slice())))
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
            |who, activation| locks.borrow_mut().activation(who.thread.tid, activation),
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
        let pass = self.read(
            until_ns,
            |seen, _, _| observe(seen),
            |who, activation| {
                let Some(kind) = separators.get(&who.thread.tid) else { return };
                let separator = open.entry(who.place).or_insert_with(|| Separator::new(*kind));
                if let Some(job) = separator.add(activation) {
                    sink(&observed(who.thread.tid, &job));
                }
            },
        )?;
        Ok(TaskNames(pass.names))
    }
}

/// The threads of a program, and all under real-time policies.
pub(super) fn watched(arch: &str, tasks: &[WatchedTask]) -> Watch {
    let (before, later): (Vec<_>, Vec<_>) = tasks.iter().partition(|task| task.before);
    let before = before.into_iter().map(|task| (task.tid, task.syscall.map(Into::into)));
    let mut watch = Watch::new(arch, 0, before).following(Follow::RealTime);
    watch.wakeups = None;
    watch.expect(later.into_iter().map(|task| task.tid));
    watch
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
