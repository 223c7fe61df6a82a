//! The bounds held against the jobs of a program while it runs: what is known at any moment is what
//! a check of the trace up to then says.
//!
//! What separates the jobs of a thread is decided by all of them, so the jobs of every kind that
//! may do so are held against the bound, and what holds is that of the kind chosen so far. Memory:
//! a fixed number of rows a thread.

use super::{Beyond, Checked, CheckedThread, Longest, Match, Refutation, Row, matches};
use crate::task_model::choose::LEAST_JOBS;
use crate::task_model::shape::TaskModel;
use crate::task_model::verdict::{Bound, Guarantee};
use attribution::jobs::kind::Kind;
use attribution::jobs::live::LiveJob;
use attribution::jobs::shape::{Kept, ProgramJobs};
use std::collections::{BTreeMap, BTreeSet};

/// A thread's jobs of one kind against one bound.
#[derive(Debug)]
struct LiveRow {
    row: Row,
    longest: Longest,
    first: Option<Beyond>,
}

/// The check while jobs come.
#[derive(Debug)]
pub struct LiveCheck {
    model: TaskModel,
    guarantee: Guarantee,
    names: BTreeSet<String>,
    /// By thread, kind and place of the bound.
    rows: BTreeMap<(i32, Kind, usize), LiveRow>,
    /// Jobs of all kinds.
    order: u64,
    /// Whether a job of some kind took longer since the last call of [`LiveCheck::is_news`].
    news: bool,
}

/// What is known so far.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveState {
    /// As of the trace up to now.
    pub checked: Checked,
    /// The first job that took longer than its bound.
    pub first: Option<Refutation>,
    /// Threads that have too few jobs yet, by name, and how many.
    pub waiting: Vec<(String, u64)>,
}

impl LiveState {
    /// The thread whose longest response came nearest to its bound, or farthest beyond.
    pub fn nearest(&self) -> Option<&CheckedThread> {
        let share = |one: &CheckedThread| one.longest_ns as f64 / one.bound_ns.max(1) as f64;
        let threads = self.checked.threads.iter().filter(|one| one.jobs > 0);
        threads.max_by(|a, b| share(a).total_cmp(&share(b)))
    }
}

impl LiveCheck {
    /// Against these bounds of this model.
    pub fn new(model: TaskModel, guarantee: Guarantee) -> Self {
        let bounded = guarantee.bounds.iter().filter(|bound| bound.bound_ns.is_some());
        let names = bounded.map(|bound| bound.comm.clone()).collect();
        Self { model, guarantee, names, rows: BTreeMap::new(), order: 0, news: false }
    }

    /// The names of the threads that have a bound.
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Takes a job.
    pub fn add(&mut self, LiveJob { comm, kind, job }: LiveJob<'_>) {
        self.order += 1;
        let of_name = |(_, bound): &(usize, &Bound)| bound.comm == comm && bound.bound_ns.is_some();
        for (at, bound) in self.guarantee.bounds.iter().enumerate().filter(of_name) {
            let row = self.rows.entry((job.tid, kind, at)).or_insert_with(|| LiveRow {
                row: Row::new(job.tid, bound, &self.model, &self.guarantee),
                longest: Longest::default(),
                first: None,
            });
            if let Some(refutation) = row.row.add(&job) {
                let beyond = Beyond::new(refutation, &job, self.order);
                row.first.get_or_insert_with(|| beyond.clone());
                row.longest.add(beyond);
                self.news = true;
            }
        }
    }

    /// Whether a job took longer, by some kind, since the last call.
    pub fn is_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// What is known by now. `jobs`: of the same events; `name`: who kept a CPU.
    pub fn state(&self, jobs: &ProgramJobs, name: impl Fn((i32, u64)) -> Kept) -> LiveState {
        let (matches, unmatched) = matches(jobs, &self.model, &self.guarantee);
        let matched: BTreeSet<i32> = matches.values().map(|one| one.bound.pid).collect();
        let (mut threads, mut longest, mut first) = (Vec::new(), Longest::default(), None::<&Beyond>);
        for (tid, Match { bound, kind }) in matches {
            let at = self.guarantee.bounds.iter().position(|one| std::ptr::eq(one, bound));
            let Some(row) = at.and_then(|at| self.rows.get(&(tid, kind, at))) else {
                threads.push(Row::new(tid, bound, &self.model, &self.guarantee).thread);
                continue;
            };
            threads.push(row.row.thread.clone());
            row.longest.0.iter().for_each(|one| longest.add(one.clone()));
            let earlier = |one: &&Beyond| first.is_none_or(|first| one.order < first.order);
            first = row.first.as_ref().filter(earlier).or(first);
        }
        let without = self.guarantee.bounds.iter().filter(|one| !matched.contains(&one.pid));
        let waiting = without.filter_map(|bound| {
            let named = jobs.threads.iter().filter(|one| one.comm == bound.comm);
            let most = named.flat_map(|one| one.kinds.iter().map(|kind| kind.n)).max()?;
            (most < LEAST_JOBS).then(|| (bound.comm.clone(), most))
        });
        let waiting = waiting.collect();
        let refuted = threads.iter().map(|thread: &CheckedThread| thread.refuted).sum();
        LiveState {
            first: first.map(|first| first.named(&name)),
            waiting,
            checked: Checked { threads, refuting: longest.named(&name), refuted, unmatched },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task_model::build::build;
    use crate::task_model::check::check;
    use crate::task_model::system::Assumed;
    use crate::task_model::verdict::guarantee;
    use attribution::jobs::live::LiveJobs;
    use attribution::jobs::read::Source;
    use ftrace::TraceFile;
    use model::watch::WatchedTask;
    use proptest::prelude::*;
    use std::path::{Path, PathBuf};

    /// Of a run whose probes are real-time threads.
    fn trace() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small/trace.dat")
    }

    /// The pages of every CPU, of all buffers.
    fn pages(file: &TraceFile) -> Vec<(u32, Vec<u8>)> {
        let bytes = std::fs::read(file.path()).unwrap();
        let all = file.buffers().iter().flat_map(|buffer| buffer.cpus.iter().filter(|cpu| cpu.size > 0));
        all.map(|cpu| (cpu.cpu, bytes[cpu.offset as usize..][..cpu.size as usize].to_vec())).collect()
    }

    /// The bounds of a trace's own model, each made so short that some jobs take longer.
    fn bounds(trace: &Path) -> (Source, ProgramJobs, TaskModel, Guarantee) {
        let source = Source::of_trace(TraceFile::open(trace).unwrap()).unwrap();
        let jobs = source.jobs().unwrap();
        let model = build(&jobs);
        let assumed = Assumed { margin_ppm: 0, deadlines_ns: BTreeMap::new() };
        let mut guarantee = guarantee(&model, &assumed).unwrap();
        for bound in &mut guarantee.bounds {
            bound.bound_ns = Some((bound.observed_ns / 2).max(1));
        }
        (source, jobs, model, guarantee)
    }

    /// The same trace in chunks of so many pages, as a recording gives them: each CPU is ahead of
    /// the others by some. After as many chunks as `renewed` says, all begins anew.
    fn in_chunks(
        trace: &Path,
        (program, guarantee): (&TaskModel, &Guarantee),
        sizes: &[usize],
        renewed: Option<(usize, &[WatchedTask])>,
    ) -> (LiveState, LiveJobs) {
        let file = TraceFile::open(trace).unwrap();
        let (layout, lanes) = (*file.formats().page(), pages(&file));
        let mut check = LiveCheck::new(program.clone(), guarantee.clone());
        let (symbols, names) = (file.symbols().unwrap(), check.names().clone());
        let mut live = LiveJobs::new(file.formats().clone(), symbols, "x86_64", &[], i64::MIN, names);
        let mut at = vec![0; lanes.len()];
        for turn in 0.. {
            let (mut chunk, mut until_ns) = (Vec::new(), i64::MAX - 1);
            for (lane, (cpu, bytes)) in lanes.iter().enumerate() {
                let size = sizes[(turn + lane) % sizes.len()];
                let from = (at[lane] * layout.page_size()).min(bytes.len());
                let to = (from + size * layout.page_size()).min(bytes.len());
                at[lane] += size;
                if from < to {
                    chunk.push((*cpu, bytes[from..to].to_vec()));
                }
                if to < bytes.len() {
                    let header = layout.header(&bytes[to..], file.formats().endian()).unwrap();
                    until_ns = until_ns.min(header.timestamp.cast_signed() - 1);
                }
            }
            live.pages(chunk, until_ns, |job| check.add(job)).unwrap();
            if until_ns == i64::MAX - 1 {
                break;
            }
            if let Some((every, tasks)) = renewed
                && (turn + 1) % every == 0
            {
                live.renew(file.symbols().unwrap(), tasks);
            }
        }
        let tasks = renewed.map_or(&[][..], |(_, tasks)| tasks);
        (check.state(&live.jobs(tasks), |kept| live.kept(kept)), live)
    }

    #[test]
    fn the_jobs_of_a_recording_are_those_of_its_trace() {
        let (source, jobs, model, guarantee) = bounds(&trace());
        let offline = check(&source, &jobs, &model, &guarantee).unwrap();
        assert!(offline.refuted > 0 && offline.jobs() > 100, "{offline:?}");
        let (state, _) = in_chunks(&trace(), (&model, &guarantee), &[1, 2, 5], None);
        assert_eq!(state.checked, offline);
        let first = state.first.unwrap();
        let mut all = Vec::new();
        let (matches, _) = matches(&jobs, &model, &guarantee);
        let kinds = matches.iter().map(|(tid, one)| (*tid, one.kind)).collect();
        source.each_job(&kinds, |job| all.push(*job)).unwrap();
        let beyond = all.iter().find(|job| job.response_ns > matches[&job.tid].bound.bound_ns.unwrap());
        assert_eq!(Some((first.pid, first.release_ns)), beyond.map(|job| (job.tid, job.release_ns)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn however_it_is_cut(sizes in prop::collection::vec(1usize..9, 1..6)) {
            let (source, jobs, model, guarantee) = bounds(&trace());
            let offline = check(&source, &jobs, &model, &guarantee).unwrap();
            let (state, _) = in_chunks(&trace(), (&model, &guarantee), &sizes, None);
            prop_assert_eq!(state.checked, offline);
        }
    }

    #[test]
    fn names_that_are_forgotten_cost_some_jobs_and_refute_nothing() {
        let (_, jobs, model, mut guarantee) = bounds(&trace());
        guarantee.bounds.iter_mut().for_each(|bound| bound.bound_ns = Some(bound.observed_ns));
        let whole = in_chunks(&trace(), (&model, &guarantee), &[1], None).0.checked;
        let task = |thread: &attribution::jobs::shape::ThreadJobs| WatchedTask {
            tid: thread.tid,
            tgid: thread.tid,
            comm: thread.comm.clone(),
            policy: String::new(),
            reservation: None,
            before: true,
            syscall: None,
        };
        let tasks: Vec<WatchedTask> = jobs.threads.iter().map(task).collect();
        let (state, live) = in_chunks(&trace(), (&model, &guarantee), &[1], Some((4, &tasks)));
        assert!(live.renewals() > 1 && live.holes() == 0);
        assert_eq!((state.checked.refuted, whole.refuted), (0, 0));
        let most = whole.jobs() - live.renewals() * 3 * whole.threads.len() as u64;
        assert!((most..whole.jobs()).contains(&state.checked.jobs()), "{state:?} of {whole:?}");
    }

    #[test]
    fn what_has_too_few_jobs_yet_is_said() {
        let (_, _, model, guarantee) = bounds(&trace());
        let check = LiveCheck::new(model, guarantee.clone());
        let none = ProgramJobs {
            extent_ns: [0; 2],
            threads: Vec::new(),
            interrupts: Vec::new(),
            dispatches: Vec::new(),
            holes: 0,
            missing_switches: 0,
            has_calls: false,
        };
        let state = check.state(&none, |_| unreachable!());
        assert_eq!(state.checked.unmatched.len(), guarantee.bounds.len());
        assert_eq!((state.checked.jobs(), state.nearest(), &state.first), (0, None, &None));
    }
}
