//! What the model guarantees: a bound of each response time, and how far the program is from its
//! first late job.

use super::shape::{ReleaseKind, TaskModel, ThreadModel};
use super::system::{Assumed, Of, Tasks, tasks};
use sched::{Ask, Limits, MAX_NS, SystemTask, Test, Verdict};
use serde::{Deserialize, Serialize};

/// The test behind every bound.
pub(super) const TEST: Test = Test::FpRta;
/// Growth beyond which nothing is looked for: a hundredfold.
const MOST_PPM: u64 = 100_000_000;
/// As fine as growth is looked for.
const STEP_PPM: u64 = 1_000;

/// The guarantee, under the model and what is assumed beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guarantee {
    /// What is assumed.
    pub assumed: Assumed,
    /// The threads that are analysed, by place in the model.
    pub bounds: Vec<Bound>,
    /// Whether every deadline is met; `None` where no thread has one.
    pub schedulable: Option<bool>,
    /// By how much all costs can grow until a deadline may be missed, parts per million; `None`
    /// where one may be missed now.
    pub spare_ppm: Option<u64>,
    /// The thread whose growth alone is the first to make some job late.
    pub first: Option<First>,
    /// The release jitter on top of every thread's own that makes some job late, ns.
    pub jitter_ns: Option<u64>,
    /// The longest release jitter of a periodic thread, without the margin, ns; `None` where no
    /// analysed thread is periodic.
    #[serde(default)]
    pub worst_jitter_ns: Option<u64>,
}

/// The bound of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The thread.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// Its CPU.
    pub cpu: u32,
    /// Its deadline, ns.
    pub deadline_ns: Option<u64>,
    /// Whether that is only assumed to be its period.
    pub is_assumed: bool,
    /// From its nominal release to the end of a job at most, ns; `None` where there is no bound.
    pub bound_ns: Option<u64>,
    /// The release jitter that is part of it, ns.
    #[serde(default)]
    pub jitter_ns: u64,
    /// How long it counts a job as blocked: by sections of less urgent threads, and by the kernel,
    /// ns.
    #[serde(default)]
    pub blocking_ns: u64,
    /// Why there is none, where locks are the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The longest response that was observed, ns.
    pub observed_ns: u64,
}

impl Bound {
    /// Whether its deadline is met; `None` where it has none.
    pub fn in_time(&self) -> Option<bool> {
        Some(
            self.bound_ns.is_some_and(|bound_ns| Some(bound_ns) <= self.deadline_ns)
                && self.deadline_ns.is_some(),
        )
        .filter(|_| self.deadline_ns.is_some())
    }
}

/// Whose growth makes whom late first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct First {
    /// Who grows.
    pub grows: String,
    /// By how much at least, parts per million of its cost.
    pub by_ppm: u64,
    /// Who is late then.
    pub late: String,
}

/// Bounds the response times of a model; `None` where no thread of it can be analysed.
pub fn guarantee(model: &TaskModel, assumed: &Assumed) -> Option<Guarantee> {
    let tasks = tasks(model, assumed)?;
    let verdict = answer(&tasks)?;
    let bounds: Vec<Bound> = analysed(model, &tasks)
        .map(|(at, thread)| {
            let deadline = assumed.deadline_ns(thread);
            Bound {
                pid: thread.pid,
                comm: thread.comm.clone(),
                cpu: tasks.cpus[tasks.question.system.tasks[at].core as usize],
                deadline_ns: deadline.map(|(ns, _)| ns),
                is_assumed: deadline.is_some_and(|(_, is_assumed)| is_assumed),
                bound_ns: verdict.response_times[at].filter(|_| !tasks.unbounded.contains_key(&thread.pid)),
                blocking_ns: verdict.blocking[at],
                why: tasks.unbounded.get(&thread.pid).cloned(),
                jitter_ns: tasks.question.system.tasks[at].task.jitter_ns,
                observed_ns: thread.response_ns,
            }
        })
        .collect();
    let verdicts: Vec<bool> = bounds.iter().filter_map(Bound::in_time).collect();
    let schedulable = (!verdicts.is_empty()).then(|| verdicts.iter().all(|in_time| *in_time));
    let margins = Margins { model, assumed, tasks: &tasks };
    let has_margin = schedulable == Some(true);
    Some(Guarantee {
        assumed: assumed.clone(),
        bounds,
        schedulable,
        spare_ppm: has_margin.then(|| margins.spare_ppm()).flatten(),
        first: has_margin.then(|| margins.first()).flatten(),
        jitter_ns: has_margin.then(|| margins.jitter_ns()).flatten(),
        worst_jitter_ns: analysed(model, &tasks)
            .filter(|(_, thread)| thread.release.kind == ReleaseKind::Periodic)
            .map(|(_, thread)| thread.release.jitter_ns)
            .max(),
    })
}

fn answer(tasks: &Tasks) -> Option<Verdict> {
    let ask = Ask { locks: tasks.locks.map(Into::into), ..Ask::of(TEST) };
    ask.verdict(&tasks.question, Limits::default()).ok()
}

fn analysed<'m>(model: &'m TaskModel, tasks: &Tasks) -> impl Iterator<Item = (usize, &'m ThreadModel)> {
    tasks.of.iter().enumerate().filter_map(|(at, of)| match of {
        Of::Thread(place) => Some((at, &model.threads[*place])),
        Of::Interference(_) | Of::Holder(_) => None,
    })
}

struct Margins<'a> {
    model: &'a TaskModel,
    assumed: &'a Assumed,
    tasks: &'a Tasks,
}

impl<'a> Margins<'a> {
    /// The first thread that may be late in a system; the first of all where it has no answer.
    fn late(&self, tasks: &Tasks) -> Option<&'a ThreadModel> {
        let verdict = answer(tasks);
        let may_be_late = |(at, thread): &(usize, &ThreadModel)| {
            let bound_ns = verdict.as_ref().and_then(|verdict| verdict.response_times[*at]);
            let deadline = self.assumed.deadline_ns(thread);
            deadline.is_some_and(|(deadline_ns, _)| bound_ns.is_none_or(|bound_ns| bound_ns > deadline_ns))
        };
        analysed(self.model, tasks).find(may_be_late).map(|(_, thread)| thread)
    }

    /// The least growth, in steps, with which some job may be late, and whose; `None` where none is
    /// up to the most that is looked for.
    fn least(&self, most: u64, grown: impl Fn(&mut Tasks, u64)) -> Option<(u64, &'a ThreadModel)> {
        let late = |steps: u64| {
            let mut tasks = self.tasks.clone();
            grown(&mut tasks, steps);
            self.late(&tasks)
        };
        let mut found = late(most)?;
        let (mut in_time, mut beyond) = (0, most);
        while beyond - in_time > 1 {
            let middle = in_time + (beyond - in_time) / 2;
            match late(middle) {
                Some(thread) => (beyond, found) = (middle, thread),
                None => in_time = middle,
            }
        }
        Some((beyond, found))
    }

    fn spare_ppm(&self) -> Option<u64> {
        let grown = |tasks: &mut Tasks, steps| {
            tasks.question.system.tasks.iter_mut().for_each(|task| grow(task, steps));
        };
        self.least(MOST_PPM / STEP_PPM, grown).map(|(steps, _)| (steps - 1) * STEP_PPM)
    }

    fn first(&self) -> Option<First> {
        let of_one = |(at, thread): (usize, &ThreadModel)| {
            let grown = |tasks: &mut Tasks, steps| {
                grow(&mut tasks.question.system.tasks[at], steps);
            };
            let (steps, late) = self.least(MOST_PPM / STEP_PPM, grown)?;
            Some(First { grows: thread.comm.clone(), by_ppm: steps * STEP_PPM, late: late.comm.clone() })
        };
        analysed(self.model, self.tasks).filter_map(of_one).min_by_key(|one| one.by_ppm)
    }

    /// In steps of 1 µs.
    fn jitter_ns(&self) -> Option<u64> {
        let periods = self.model.threads.iter().filter(|one| one.release.kind == ReleaseKind::Periodic);
        let most_ns = periods.map(|thread| thread.release.period_ns).max()?;
        let threads: Vec<usize> = analysed(self.model, self.tasks).map(|(at, _)| at).collect();
        let grown = |tasks: &mut Tasks, steps: u64| {
            for at in &threads {
                let task = &mut tasks.question.system.tasks[*at].task;
                task.jitter_ns = task.jitter_ns.saturating_add(steps * 1_000).min(MAX_NS);
            }
        };
        self.least(most_ns.div_ceil(1_000), grown).map(|(steps, _)| steps * 1_000)
    }
}

/// A task whose costs grow, those with a lock among them.
fn grow(task: &mut SystemTask, steps: u64) {
    task.task.cost_ns = more(task.task.cost_ns, steps);
    for request in &mut task.requests {
        request.length_ns = more(request.length_ns, steps);
    }
}

fn more(cost_ns: u64, steps: u64) -> u64 {
    let ns = u128::from(cost_ns) * u128::from(1_000_000 + steps * STEP_PPM);
    u64::try_from(ns.div_ceil(1_000_000)).unwrap_or(MAX_NS).min(MAX_NS)
}
