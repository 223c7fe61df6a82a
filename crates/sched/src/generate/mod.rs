//! Random task sets for schedulability studies: set i of a seed is the same set on every machine,
//! at any time and in any order.
//!
//! | file | idea |
//! |---|---|
//! | `stream` | random words by counting |
//! | `portable` | ln, exp and rounding with the same bits on every machine |
//! | `columns` | several sets at once: utilizations on the simplex, sorted periods |
//! | `fixed_sum` | utilizations with a sum above 1: RandFixedSum |
//! | `periods` | laws of periods |
//! | `sharing` | requests for resources |
//! | `text` | laws and times as users write them |
//!
//! Numbers that do not depend on the utilization are the same for every utilization, and jitter is
//! not drawn at all: studies that vary either compare the same sets (common random numbers).

pub(crate) mod columns;
mod fixed_sum;
mod periods;
pub(crate) mod portable;
mod sharing;
mod stream;
mod text;

use crate::system::{MAX_CORES, System, SystemTask};
use crate::task::{MAX_TASKS, Task, TaskError, TaskSet};
use columns::Columns;
use fixed_sum::FixedSum;
use periods::Law;
use stream::{Purpose, Stream};
use thiserror::Error;

pub use periods::Periods;
pub use sharing::{MAX_RESOURCES, Sharing};
pub use text::{read_periods, read_time};

/// Longest period: up to here products and quotients of times are exact in floating point.
pub(crate) const MAX_PERIOD_NS: u64 = 1 << 50;

/// Vectors discarded until a draw is given up.
const ATTEMPTS: u32 = 10_000;

/// How utilizations are drawn. Both laws are uniform over all vectors of the sum with no element
/// above 1, and identical for sums of at most 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Utilizations {
    /// On the simplex; vectors with an element above 1 are discarded (UUniFast-Discard: Davis and
    /// Burns, RTSS 2009).
    #[default]
    UUniFast,
    /// RandFixedSum, without discarding.
    RandFixedSum,
}

/// What to draw. Everything but the numbers themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Tasks of a set; of each core with [`Spec::per_core`].
    pub tasks: usize,
    /// Sum of C/T; of each core with [`Spec::per_core`]. Costs are whole ns, so sums differ from it
    /// by n/2T_min at most.
    pub utilization: f64,
    /// Its division.
    pub utilizations: Utilizations,
    /// Periods.
    pub periods: Periods,
    /// Deadlines as a share of the period, drawn uniformly between these two; `[1, 1]` is implicit.
    pub deadlines: [f64; 2],
    /// Release jitter of every task, ns.
    pub jitter_ns: u64,
    /// Cores of the system.
    pub cores: u32,
    /// Whether every core has its own tasks, of its own utilization, already assigned.
    pub per_core: bool,
    /// Requests for resources.
    pub sharing: Option<Sharing>,
}

impl Spec {
    /// Whether deadlines are periods.
    #[expect(clippy::float_cmp, reason = "exactly as given")]
    fn implicit(&self) -> bool {
        self.deadlines == [1.0, 1.0]
    }
}

impl Default for Spec {
    /// The setting of the papers: 40 tasks, periods uniform from 10 to 100 ms, implicit deadlines,
    /// one core.
    fn default() -> Self {
        Self {
            tasks: 40,
            utilization: 0.8,
            utilizations: Utilizations::default(),
            periods: Periods::Uniform { low_ns: 10_000_000, high_ns: 100_000_000, granularity_ns: 1 },
            deadlines: [1.0, 1.0],
            jitter_ns: 0,
            cores: 1,
            per_core: false,
            sharing: None,
        }
    }
}

/// Why nothing can be drawn.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GenerateError {
    /// A part of the specification makes no sense.
    #[error("{field}: {found}, expected {expected}")]
    Spec {
        /// Which.
        field: &'static str,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// Discarding never ended.
    #[error(
        "set {set}: {ATTEMPTS} vectors in a row had a utilization above 1, expected randfixedsum for such sums"
    )]
    Discarded {
        /// The set.
        set: u64,
    },
    /// A drawn task is out of range, as when a deadline is shorter than 1 ns.
    #[error("set {set}: {source}")]
    Task {
        /// The set.
        set: u64,
        /// Why.
        source: TaskError,
    },
}

fn wrong(field: &'static str, found: impl ToString, expected: impl ToString) -> GenerateError {
    GenerateError::Spec { field, found: found.to_string(), expected: expected.to_string() }
}

/// A checked specification with all that is worked out once.
#[derive(Debug, Clone)]
pub struct Generator {
    spec: Spec,
    seed: u64,
    law: Law,
    table: Option<FixedSum>,
}

impl Generator {
    /// Checks `spec`.
    pub fn new(spec: Spec, seed: u64) -> Result<Self, GenerateError> {
        check(&spec)?;
        let table = (spec.utilizations == Utilizations::RandFixedSum)
            .then(|| FixedSum::new(spec.tasks, spec.utilization));
        Ok(Self { law: spec.periods.law(), table, spec, seed })
    }

    /// What is drawn.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Set `set` as a system, in deadline-monotonic order, which is rate-monotonic for implicit
    /// deadlines.
    pub fn system(&self, set: u64) -> Result<System, GenerateError> {
        let cores = if self.spec.per_core { self.spec.cores } else { 1 };
        let mut drawn = Vec::with_capacity(self.spec.tasks * cores as usize);
        for core in 0..cores {
            drawn.extend(self.on_core(set, core)?.into_iter().map(|task| SystemTask { core, ..task.into() }));
        }
        drawn.sort_by_key(|task| task.task.deadline_ns);
        if let Some(sharing) = &self.spec.sharing {
            let mut stream = Stream::new(stream::key(self.seed, set, 0, Purpose::Requests));
            for task in &mut drawn {
                task.requests = sharing.draw(task.task.cost_ns, &mut stream);
            }
        }
        Ok(System { cores: self.spec.cores, tasks: drawn })
    }

    /// Set `set` as the tasks of one core, whatever [`Spec::cores`] is.
    pub fn set(&self, set: u64) -> Result<TaskSet, GenerateError> {
        let mut tasks = self.on_core(set, 0)?;
        tasks.sort_by_key(|task| task.deadline_ns);
        TaskSet::new(tasks).map_err(|source| GenerateError::Task { set, source })
    }

    /// Whether sixteen sets can be drawn side by side: nothing is discarded, nothing needs a walk
    /// or a sort.
    pub(crate) fn in_lanes(&self) -> bool {
        self.table.is_none() && self.spec.utilization <= 1.0 && self.spec.implicit()
    }

    /// Sets `first` to `first + L - 1` side by side. Only where [`Generator::in_lanes`].
    #[inline(always)]
    pub(crate) fn draw_lanes<const L: usize>(&self, first: u64, columns: &mut Columns<L>) {
        let keys: [u64; L] = std::array::from_fn(|l| {
            stream::key(self.seed, first.wrapping_add(l as u64), 0, Purpose::Tasks(0))
        });
        columns.draw_shares(&keys, self.spec.utilization);
        columns.draw_periods(&keys, &self.law);
        columns.scale_costs();
    }

    fn on_core(&self, set: u64, core: u32) -> Result<Vec<Task>, GenerateError> {
        let mut columns = Columns::<1>::new(self.spec.tasks);
        let mut key = [stream::key(self.seed, set, core, Purpose::Tasks(0))];
        if let Some(table) = &self.table {
            // Behind the words of the periods.
            let mut stream = Stream::new(stream::key(self.seed, set, core, Purpose::Tasks(ATTEMPTS)));
            for (row, share) in columns.costs.iter_mut().zip(table.draw(&mut stream)) {
                *row = [share];
            }
        } else {
            let mut attempt = 0;
            columns.draw_shares(&key, self.spec.utilization);
            while self.spec.utilization > 1.0 && columns.costs.iter().any(|[share]| *share > 1.0) {
                attempt += 1;
                if attempt >= ATTEMPTS {
                    return Err(GenerateError::Discarded { set });
                }
                key = [stream::key(self.seed, set, core, Purpose::Tasks(attempt))];
                columns.draw_shares(&key, self.spec.utilization);
            }
        }
        columns.draw_periods(&key, &self.law);
        columns.scale_costs();
        let [low, high] = self.spec.deadlines;
        let mut stream = Stream::new(stream::key(self.seed, set, core, Purpose::Deadlines));
        let task = |([period], [cost]): (&[f64; 1], &[f64; 1])| {
            let share = if low < high { low + (high - low) * stream.unit() } else { low };
            Task {
                deadline_ns: (portable::nearest(share * period) as u64).max(1),
                jitter_ns: self.spec.jitter_ns,
                ..Task::implicit(*period as u64, *cost as u64)
            }
        };
        Ok(columns.periods.iter().zip(&columns.costs).map(task).collect())
    }
}

fn check(spec: &Spec) -> Result<(), GenerateError> {
    let cores = if spec.per_core { spec.cores as usize } else { 1 };
    if spec.tasks == 0 || spec.tasks.saturating_mul(cores) > MAX_TASKS {
        return Err(wrong("tasks", spec.tasks, format!("1 to {MAX_TASKS} in all")));
    }
    if spec.cores == 0 || spec.cores > MAX_CORES {
        return Err(wrong("cores", spec.cores, format!("1 to {MAX_CORES}")));
    }
    if !(spec.utilization > 0.0 && spec.utilization <= spec.tasks as f64) {
        return Err(wrong("utilization", spec.utilization, "above 0, at most the number of tasks"));
    }
    let [low, high] = spec.deadlines;
    if !(low > 0.0 && low <= high && high <= 10.0) {
        return Err(wrong(
            "deadlines",
            format!("{low} to {high}"),
            "shares of the period, above 0, at most 10",
        ));
    }
    if spec.jitter_ns > MAX_PERIOD_NS {
        return Err(wrong("jitter", spec.jitter_ns, "at most 2^50 ns"));
    }
    if matches!(&spec.periods, Periods::List(values) if values.is_empty()) {
        return Err(wrong("periods", "none", "at least one"));
    }
    if let Some((found, expected)) = spec.periods.wrong() {
        return Err(wrong("periods", found, expected));
    }
    match spec.sharing.as_ref().and_then(Sharing::wrong) {
        Some((field, found, expected)) => Err(wrong(field, found, expected)),
        None => Ok(()),
    }
}
