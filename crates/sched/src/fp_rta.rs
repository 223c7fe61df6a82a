//! Response times of fixed-priority preemptive tasks on one processor, with release jitter and
//! blocking.
//!
//! D <= T: one job a window. w = C + B + sum ceil((w + J_k) / T_k) C_k, R = w + J (Joseph and
//! Pandya 1986; Audsley et al. 1993). The own jitter counts against the deadline: accepting w <= D
//! alone would be unsound.
//!
//! D > T: every job q of the longest busy window. w_q = (q + 1) C + B + interference, R = max (w_q + J -
//! q T), until a job ends before the next can be ready, w_q + J - q T <= T (Lehoczky 1990; Tindell, Burns
//! and Wellings, "An extendible approach for analyzing fixed priority hard real-time tasks", Real-Time
//! Systems 6, 1994).

use crate::fp_columns::{Columns, Question};
use crate::task::{Task, TaskSet};
use crate::verdict::{Verdict, meet_deadlines};
use crate::window::{Demand, Limits, Load, Window, Work};

/// Response times of every task. Each is analysed on its own, also below one that failed.
pub fn response_times(set: &TaskSet, limits: Limits) -> Verdict {
    response_times_within(set, &mut Work::of(limits))
}

/// The same as part of a larger question. Tasks for which no work is left are undecided.
pub(crate) fn response_times_within(set: &TaskSet, work: &mut Work) -> Verdict {
    let mut found = Found::default();
    found.analyse(set.tasks(), work);
    let Found { schedulable, response_times, rounds, undecided, .. } = found;
    Verdict { schedulable, response_times, rounds, undecided, ..Verdict::unanswered(set.tasks()) }
}

/// What came out for each task of a set, in memory that the next set may use.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Every response time is known and within its deadline.
    pub(crate) schedulable: bool,
    pub(crate) response_times: Vec<Option<u64>>,
    pub(crate) rounds: u64,
    pub(crate) undecided: Vec<usize>,
    columns: Columns,
}

impl Found {
    /// Response times of tasks in priority order, whose fields are in range.
    pub(crate) fn analyse(&mut self, tasks: &[Task], work: &mut Work) {
        let mut load = Load::default();
        let in_columns = self.columns.take(tasks);
        self.response_times.clear();
        self.response_times.resize(tasks.len(), None);
        self.undecided.clear();
        self.rounds = 0;
        // Of the task before, if it is known: the last window, and what blocks it.
        let mut above: Option<(u64, u64)> = None;
        for (index, task) in tasks.iter().enumerate() {
            let Some(limits) = work.rounds_of(index + 1) else {
                self.undecided.push(index);
                continue;
            };
            let level = Level { tasks, index, extra_jitter: 0, load: &load, limits, want_slack: false };
            let response = if in_columns { level.in_columns(&self.columns, above) } else { None };
            let response = response.unwrap_or_else(|| level.response());
            above = match response.outcome {
                Outcome::Within { response_ns, .. } if task.deadline_ns <= task.period_ns => {
                    Some((response_ns - task.jitter_ns, task.blocking_ns))
                }
                _ => None,
            };
            work.spend(response.rounds, index + 1);
            self.rounds += response.rounds;
            match response.outcome {
                Outcome::Within { response_ns, .. } => self.response_times[index] = Some(response_ns),
                Outcome::Beyond => {}
                Outcome::Undecided => self.undecided.push(index),
            }
            load.add(task, 0);
        }
        self.schedulable = meet_deadlines(&self.response_times, tasks);
    }
}

/// One task among those above it: the question that every fixed-priority test here answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level<'a> {
    /// The whole set; only `tasks[..=index]` matter.
    pub(crate) tasks: &'a [Task],
    /// The task analysed.
    pub(crate) index: usize,
    /// Release jitter on top of every task's own, ns.
    pub(crate) extra_jitter: u64,
    /// Sums over `tasks[..index]` with that jitter.
    pub(crate) load: &'a Load,
    /// Cap on the work.
    pub(crate) limits: Limits,
    /// Whether to work out the slack, which costs about one more round a window.
    pub(crate) want_slack: bool,
}

/// What came out for one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every window w_q ended within q T + D.
    Within {
        /// R from arrival, own and extra jitter included, ns.
        response_ns: u64,
        /// By how much the jitter of all tasks may grow while R grows by exactly as much, ns; 0
        /// unless [`Level::want_slack`].
        jitter_slack: u64,
    },
    /// Some window outgrew its deadline, or the queue grows without end.
    Beyond,
    /// The cap came first.
    Undecided,
}

/// An outcome and its price.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Response {
    pub(crate) outcome: Outcome,
    pub(crate) rounds: u64,
}

impl Level<'_> {
    /// Analyses the task.
    pub(crate) fn response(&self) -> Response {
        let mut rounds = 0;
        let task = self.tasks[self.index];
        let outcome = if task.deadline_ns <= task.period_ns {
            self.single_job(&task, &mut rounds)
        } else {
            self.busy_window(&task, &mut rounds)
        };
        Response { outcome, rounds }
    }

    /// The same for D <= T through vector units, if its numbers fit. The next task below has all
    /// terms of a task's f, and its cost: where it is blocked no less, its window is longer by C at
    /// least.
    fn in_columns(&self, columns: &Columns, above: Option<(u64, u64)>) -> Option<Response> {
        let task = &self.tasks[self.index];
        if task.deadline_ns > task.period_ns {
            return None;
        }
        let base = task.cost_ns + task.blocking_ns;
        let after = above.filter(|above| above.1 <= task.blocking_ns);
        let longer =
            after.map_or(0, |(window, blocking)| window + task.cost_ns + (task.blocking_ns - blocking));
        let start = self.load.lower_bound(base).max(longer);
        let question = Question { base, start, limit: task.deadline_ns, higher: self.index };
        let mut rounds = 0;
        let window = columns.least(question, &mut rounds, self.limits.rounds_per_task)?;
        let outcome = match window {
            Window::Exact(window) => {
                Outcome::Within { response_ns: window.saturating_add(self.jitter(task)), jitter_slack: 0 }
            }
            Window::Beyond => Outcome::Beyond,
            Window::Undecided => Outcome::Undecided,
        };
        Some(Response { outcome, rounds })
    }

    /// Whether the task meets its deadline; undecided counts as no.
    pub(crate) fn meets_deadline(&self) -> bool {
        let deadline_ns = self.tasks[self.index].deadline_ns;
        matches!(self.response().outcome, Outcome::Within { response_ns, .. } if response_ns <= deadline_ns)
    }

    pub(crate) fn demand(&self, base: u64) -> Demand<'_> {
        Demand { base, higher: &self.tasks[..self.index], extra_jitter: self.extra_jitter }
    }

    fn slack(&self, demand: Demand<'_>, window: u64) -> u64 {
        if self.want_slack { demand.jitter_slack(window) } else { 0 }
    }

    fn jitter(&self, task: &Task) -> u64 {
        task.jitter_ns.saturating_add(self.extra_jitter)
    }

    fn single_job(&self, task: &Task, rounds: &mut u64) -> Outcome {
        let demand = self.demand(task.cost_ns + task.blocking_ns);
        let start = self.load.lower_bound(demand.base);
        match demand.least(start, task.deadline_ns, rounds, self.limits.rounds_per_task) {
            Window::Exact(window) => Outcome::Within {
                response_ns: window.saturating_add(self.jitter(task)),
                jitter_slack: self.slack(demand, window),
            },
            Window::Beyond => Outcome::Beyond,
            Window::Undecided => Outcome::Undecided,
        }
    }

    fn busy_window(&self, task: &Task, rounds: &mut u64) -> Outcome {
        let mut with_own = *self.load;
        with_own.add(task, self.extra_jitter);
        if with_own.overloaded() {
            return Outcome::Beyond;
        }
        let last_job = jobs_until_repetition(&self.tasks[..=self.index]);
        let (mut worst, mut slack, mut previous) = (0, u64::MAX, 0);
        for job in 0.. {
            let Some((arrival, base, limit)) = job_window(task, job) else { return Outcome::Undecided };
            let demand = self.demand(base);
            // A later job ends later by at least its own cost.
            let start = self.load.lower_bound(base).max(previous + task.cost_ns);
            let window = match demand.least(start, limit, rounds, self.limits.rounds_per_task) {
                Window::Exact(window) => window,
                Window::Beyond => return Outcome::Beyond,
                Window::Undecided => return Outcome::Undecided,
            };
            // With J > T a job can end before q T, but not before its arrival at q T - J: the job
            // before it ended after that, or the busy window had ended there.
            let response = window.saturating_add(self.jitter(task)).saturating_sub(arrival);
            worst = worst.max(response);
            slack = slack.min(self.slack(demand, window));
            if response <= task.period_ns {
                // More jitter than this and one more job joins the window.
                slack = slack.min(task.period_ns - response);
                break;
            }
            if last_job.is_some_and(|last| job >= last) {
                break;
            }
            previous = window;
        }
        Outcome::Within { response_ns: worst, jitter_slack: slack }
    }
}

/// Arrival of job `q` after the first, demand of the jobs up to it, and the window at which it
/// would be late.
fn job_window(task: &Task, job: u64) -> Option<(u64, u64, u64)> {
    let arrival = job.checked_mul(task.period_ns)?;
    let own = job.checked_add(1)?.checked_mul(task.cost_ns)?;
    Some((arrival, own.checked_add(task.blocking_ns)?, arrival.checked_add(task.deadline_ns)?))
}

/// Index of the last job to check when utilization is exactly 1 and a busy window may never end.
///
/// With hyperperiod H, w_(q + H/T) = w_q + H: shifting the window by H adds exactly H of demand,
/// and no solution for a job from H/T on is below H. So the jobs before H/T show every response
/// time there is. `None` where utilization is not 1, or H does not fit; then the cap on rounds ends
/// the search.
pub(crate) fn jobs_until_repetition(tasks: &[Task]) -> Option<u64> {
    let mut hyperperiod: u128 = 1;
    for task in tasks {
        let period = u128::from(task.period_ns);
        hyperperiod = hyperperiod.checked_mul(period / gcd(hyperperiod, period))?;
    }
    let demand = tasks.iter().try_fold(0u128, |sum, task| {
        sum.checked_add((hyperperiod / u128::from(task.period_ns)).checked_mul(u128::from(task.cost_ns))?)
    })?;
    let own_period = u128::from(tasks.last()?.period_ns);
    (demand == hyperperiod).then(|| u64::try_from(hyperperiod / own_period - 1).ok())?
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_NS;
    use proptest::prelude::*;

    fn task(period_ns: u64, deadline_ns: u64, cost_ns: u64, jitter_ns: u64, blocking_ns: u64) -> Task {
        Task { period_ns, deadline_ns, cost_ns, jitter_ns, blocking_ns }
    }

    fn analyse(tasks: &[Task]) -> Verdict {
        response_times(&TaskSet::new(tasks.to_vec()).unwrap(), Limits::default())
    }

    #[test]
    fn own_jitter_counts_against_the_deadline() {
        // w = 8 <= D = 10, but a job released 3 late ends at 11.
        let verdict = analyse(&[task(20, 10, 8, 3, 0)]);
        assert_eq!(verdict.response_times, [Some(11)]);
        assert!(!verdict.schedulable);
        assert!(analyse(&[task(20, 10, 8, 2, 0)]).schedulable);
    }

    #[test]
    fn null_from_the_first_window_beyond_the_deadline() {
        assert_eq!(analyse(&[task(20, 10, 10, 0, 0)]).response_times, [Some(10)]);
        assert_eq!(analyse(&[task(20, 10, 10, 0, 1)]).response_times, [None]);
        assert_eq!(analyse(&[task(20, 10, 11, 0, 0)]).response_times, [None]);
        assert_eq!(analyse(&[]).response_times, []);
        assert!(analyse(&[]).schedulable);
    }

    #[test]
    fn tasks_below_a_failure_are_still_analysed() {
        let verdict = analyse(&[task(10, 2, 3, 0, 0), task(100, 100, 7, 0, 0)]);
        assert_eq!(verdict.response_times, [None, Some(10)]);
        assert!(!verdict.schedulable);
    }

    #[test]
    fn later_jobs_of_a_busy_window_can_be_the_worst() {
        // Lehoczky's classical example (RTSS 1990): jobs respond in 114, 102, 116, 104, 118, 106,
        // 94.
        let verdict = analyse(&[task(70, 70, 26, 0, 0), task(100, 120, 62, 0, 0)]);
        assert_eq!(verdict.response_times, [Some(26), Some(118)]);
        assert!(verdict.schedulable);
    }

    #[test]
    fn jitter_beyond_the_period_releases_several_jobs_at_once() {
        // Arrivals at -9, -1 and 7: two jobs ready at 0 end at 1 and 2.
        assert_eq!(analyse(&[task(8, 10, 1, 9, 0)]).response_times, [Some(10)]);
        // Arrivals at -9, -5 and -1: three ready at 0 end at 3, 6 and 9, so R = 12, 11 and 10, then
        // 9, 8 ... 4.
        assert_eq!(analyse(&[task(4, 12, 3, 9, 0)]).response_times, [Some(12)]);
    }

    #[test]
    fn overload_and_full_load_end() {
        assert_eq!(analyse(&[task(10, 10, 6, 0, 0), task(10, MAX_NS, 5, 0, 0)]).response_times[1], None);
        // U = 1 with jitter: the busy window never ends, its responses repeat every hyperperiod.
        let full = analyse(&[task(10, 10, 5, 0, 0), task(14, 1000, 7, 3, 0)]);
        assert!(full.schedulable && full.undecided.is_empty());
        let more = analyse(&[task(10, 10, 5, 0, 0), task(14, 1000, 7, 3, 4)]);
        assert!(more.response_times[1] > full.response_times[1]);
    }

    #[test]
    fn the_cap_is_reported_and_never_reads_as_schedulable() {
        let set = TaskSet::new(vec![
            task(1_000_003, MAX_NS, 500_001, 7, 0),
            task(1_000_033, MAX_NS, 500_015, 0, 1),
        ])
        .unwrap();
        let verdict = response_times(&set, Limits { rounds_per_task: 3 });
        assert_eq!(verdict.undecided, [1]);
        assert!(!verdict.schedulable);
    }

    #[test]
    fn so_many_tasks_that_no_work_is_left_end_undecided() {
        // Five rounds per task allow 15,000 task visits in all. Each of some 120 levels takes a
        // round and the turn of the next task.
        let crowd = TaskSet::new(vec![task(1_000_000, 1_000_000, 1, 0, 0); 300]).unwrap();
        let verdict = response_times(&crowd, Limits { rounds_per_task: 5 });
        assert!(!verdict.schedulable);
        let first = verdict.undecided[0];
        assert!((110..130).contains(&first), "{first}");
        assert_eq!(verdict.undecided, (first..300).collect::<Vec<_>>());
        assert_eq!(verdict.response_times[..first], (1..=first as u64).map(Some).collect::<Vec<_>>());
        assert!(response_times(&crowd, Limits::default()).schedulable);
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let extreme = task(1, MAX_NS, MAX_NS, MAX_NS, MAX_NS);
        let slow = task(MAX_NS, MAX_NS, MAX_NS, MAX_NS, MAX_NS);
        for set in [vec![extreme; 3], vec![slow; 3], vec![slow, extreme], vec![extreme, slow]] {
            assert!(!analyse(&set).schedulable);
        }
    }

    fn tasks(deadline_factor: u64) -> impl Strategy<Value = Vec<Task>> {
        let one = (5u64..60, 1u64..20, 1u64..100, 0u64..20, 0u64..8).prop_map(move |(period, c, d, j, b)| {
            task(period, 1 + period * deadline_factor * d / 100, c.min(period), j, b)
        });
        prop::collection::vec(one, 1..6)
    }

    fn grow(tasks: &[Task], at: usize, field: usize, by: u64) -> Vec<Task> {
        let mut grown = tasks.to_vec();
        let task = &mut grown[at % tasks.len()];
        match field {
            0 => task.cost_ns += by,
            1 => task.jitter_ns += by,
            _ => task.blocking_ns += by,
        }
        grown
    }

    proptest! {
        #[test]
        fn monotone_in_cost_jitter_and_blocking(
            tasks in (1u64..4).prop_flat_map(tasks), at in 0usize..6, field in 0usize..3, by in 1u64..10,
        ) {
            let before = analyse(&tasks);
            let after = analyse(&grow(&tasks, at, field, by));
            prop_assert!(before.schedulable || !after.schedulable);
            prop_assert!(before.undecided.is_empty() && after.undecided.is_empty());
            for (old, new) in before.response_times.iter().zip(&after.response_times) {
                match (old, new) {
                    (Some(old), Some(new)) => prop_assert!(new >= old),
                    (None, Some(_)) => prop_assert!(false, "a harder set gained a response time"),
                    (_, None) => {}
                }
            }
        }

        #[test]
        fn scales_with_the_unit(tasks in tasks(3), factor in 2u64..1000) {
            let scale = |t: &Task| task(t.period_ns * factor, t.deadline_ns * factor, t.cost_ns * factor,
                                        t.jitter_ns * factor, t.blocking_ns * factor);
            let scaled: Vec<Task> = tasks.iter().map(scale).collect();
            let expected: Vec<Option<u64>> =
                analyse(&tasks).response_times.iter().map(|r| r.map(|r| r * factor)).collect();
            prop_assert_eq!(analyse(&scaled).response_times, expected);
        }
    }
}
