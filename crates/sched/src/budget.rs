//! Budgets of systems: the results of `jitter_margin` and `cost_margin` core by core, and those of
//! the whole.

use crate::analyze::{Refusal, Test};
use crate::cost_margin::{
    CostMargin, UNCHANGED_PPM, cost_margin, cost_margin_edf, cost_margin_where, with_costs,
};
use crate::jitter_margin::jitter_margin;
use crate::jitter_margin_edf::jitter_margin_edf;
use crate::overheads::{self, Overheads, meets_deadlines};
use crate::system::System;
use crate::task::{TaskError, TaskSet};
use crate::window::Limits;

/// The test that has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetTest {
    /// Fixed priorities, response times.
    FpRta,
    /// EDF, processor demand.
    EdfQpa,
}

impl BudgetTest {
    /// All of them with their names on the command line.
    pub const ALL: [(&'static str, Self); 2] = [("fp-rta", Self::FpRta), ("edf-qpa", Self::EdfQpa)];

    /// The test that gives its verdict.
    pub const fn verdict(self) -> Test {
        match self {
            Self::FpRta => Test::FpRta,
            Self::EdfQpa => Test::EdfQpa,
        }
    }

    /// The test of one name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, test)| *test)
    }
}

/// How much release jitter a system tolerates on top of its own. Times in ns, tasks by priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitterBudget {
    /// The most that may be added to every task; none where the system is late as given, or has no
    /// task.
    pub set_ns: Option<u64>,
    /// The task that is late first; none where the test gives no result per task.
    pub limiting: Option<usize>,
    /// For each task: how much jitter all tasks can gain while this one stays in time. None where
    /// the test gives no result per task.
    pub tasks_ns: Option<Vec<Option<u64>>>,
}

impl JitterBudget {
    /// Of a system some of whose tasks found no core.
    pub const fn not_placed() -> Self {
        Self { set_ns: None, limiting: None, tasks_ns: None }
    }

    /// The least of all cores.
    pub fn of(system: &System, test: BudgetTest, limits: Limits) -> Result<Self, TaskError> {
        match test {
            BudgetTest::FpRta => Self::fixed(system, |set| Ok(jitter_margin(set, limits).per_task_ns)),
            BudgetTest::EdfQpa => Self::edf(system, |set| Ok(jitter_margin_edf(set, limits))),
        }
    }

    /// The same with what the kernel costs.
    pub fn with_overheads(
        system: &System,
        test: BudgetTest,
        overheads: &Overheads,
        limits: Limits,
    ) -> Result<Self, Refusal> {
        match test {
            BudgetTest::FpRta => Self::fixed(system, |set| overheads::jitter_margins(set, overheads, limits)),
            BudgetTest::EdfQpa => {
                Self::edf(system, |set| overheads::jitter_margin_edf(set, overheads, limits))
            }
        }
    }

    fn fixed<E: From<TaskError>>(
        system: &System,
        margins: impl Fn(&TaskSet) -> Result<Vec<Option<u64>>, E>,
    ) -> Result<Self, E> {
        let mut tasks = vec![None; system.tasks.len()];
        for indices in system.by_core() {
            let margins = margins(&system.set_of(&indices)?)?;
            for (index, margin) in indices.into_iter().zip(margins) {
                tasks[index] = margin;
            }
        }
        // None, late as given, sorts before every number.
        let limiting = (0..tasks.len()).min_by_key(|&index| tasks[index]);
        Ok(Self { set_ns: limiting.and_then(|index| tasks[index]), limiting, tasks_ns: Some(tasks) })
    }

    fn edf<E: From<TaskError>>(
        system: &System,
        margin: impl Fn(&TaskSet) -> Result<Option<u64>, E>,
    ) -> Result<Self, E> {
        let mut cores = Vec::new();
        for indices in system.by_core().iter().filter(|indices| !indices.is_empty()) {
            cores.push(margin(&system.set_of(indices)?)?);
        }
        Ok(Self { set_ns: cores.into_iter().min().flatten(), limiting: None, tasks_ns: None })
    }
}

/// What one core tolerates.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreBudget {
    /// Its number.
    pub core: usize,
    /// Its tasks, by priority.
    pub indices: Vec<usize>,
    /// The factors.
    pub margin: CostMargin,
    /// Load as given.
    pub utilization: f64,
    /// Load with all costs at the largest factor.
    pub at_margin: Option<f64>,
}

/// How much more jobs of a system may cost.
#[derive(Debug, Clone, PartialEq)]
pub struct CostBudget {
    /// Cores that have tasks.
    pub cores: Vec<CoreBudget>,
    /// Of every task, by priority: the largest factor of its cost alone, in millionths.
    pub tasks_ppm: Vec<Option<u64>>,
}

impl CostBudget {
    /// Core by core.
    pub fn of(system: &System, test: BudgetTest, limits: Limits) -> Result<Self, TaskError> {
        Self::by_core(system, |set| {
            Ok(match test {
                BudgetTest::FpRta => cost_margin(set, limits),
                BudgetTest::EdfQpa => cost_margin_edf(set, limits),
            })
        })
    }

    /// The same with what the kernel costs.
    pub fn with_overheads(
        system: &System,
        test: BudgetTest,
        overheads: &Overheads,
        limits: Limits,
    ) -> Result<Self, Refusal> {
        overheads.check()?;
        let test = match test {
            BudgetTest::FpRta => Test::FpRta,
            BudgetTest::EdfQpa => Test::EdfQpa,
        };
        let holds = |set: &TaskSet| meets_deadlines(set, test, overheads, limits).is_ok_and(|all| all);
        Self::by_core(system, |set| Ok(cost_margin_where(set, holds)))
    }

    fn by_core<E: From<TaskError>>(
        system: &System,
        margin: impl Fn(&TaskSet) -> Result<CostMargin, E>,
    ) -> Result<Self, E> {
        let mut budget = Self::not_placed(system);
        for (core, indices) in system.by_core().into_iter().enumerate() {
            if indices.is_empty() {
                continue;
            }
            let set = system.set_of(&indices)?;
            let margin = margin(&set)?;
            for (&index, factor) in indices.iter().zip(&margin.per_task_ppm) {
                budget.tasks_ppm[index] = *factor;
            }
            let grown = margin.factor_ppm.and_then(|factor| with_costs(&set, None, factor));
            let at_margin = grown.map(|set| set.utilization());
            let utilization = set.utilization();
            budget.cores.push(CoreBudget { core, indices, margin, utilization, at_margin });
        }
        Ok(budget)
    }

    /// Of a system some of whose tasks found no core.
    pub fn not_placed(system: &System) -> Self {
        Self { cores: Vec::new(), tasks_ppm: vec![None; system.tasks.len()] }
    }

    /// The largest factor of all costs, in millionths: the least core counts.
    pub fn factor_ppm(&self) -> Option<u64> {
        self.cores.iter().map(|core| core.margin.factor_ppm).min().flatten()
    }

    /// Whether the system is late as given.
    pub fn late(&self) -> bool {
        !self.tasks_ppm.is_empty() && self.factor_ppm().is_none_or(|factor| factor < UNCHANGED_PPM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question;

    fn system(line: &str) -> System {
        question::read(line).unwrap().system
    }

    const TWO: &str = r#"{"cores":2,"tasks":[{"period":10,"cost":3,"core":1},{"period":20,"cost":5},{"period":40,"cost":10,"core":1}]}"#;

    #[test]
    fn the_least_core_counts() {
        let fixed = JitterBudget::of(&system(TWO), BudgetTest::FpRta, Limits::default()).unwrap();
        let tasks = fixed.tasks_ns.unwrap();
        assert_eq!((fixed.set_ns, fixed.limiting), (tasks[0].min(tasks[1]).min(tasks[2]), Some(0)));
        assert_eq!((tasks[0], tasks[1]), (Some(7), Some(15)));
        let edf = JitterBudget::of(&system(TWO), BudgetTest::EdfQpa, Limits::default()).unwrap();
        assert_eq!((edf.set_ns, edf.tasks_ns), (Some(7), None));
        let cost = CostBudget::of(&system(TWO), BudgetTest::FpRta, Limits::default()).unwrap();
        assert_eq!(cost.cores.iter().map(|core| core.core).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(cost.factor_ppm(), cost.cores[1].margin.factor_ppm);
        assert!(!cost.late());
    }

    #[test]
    fn late_as_given_and_nothing_at_all() {
        let late = system(r#"{"tasks":[{"period":10,"cost":8},{"period":10,"cost":8}]}"#);
        let budget = JitterBudget::of(&late, BudgetTest::FpRta, Limits::default()).unwrap();
        assert_eq!((budget.set_ns, budget.limiting), (None, Some(1)));
        assert!(CostBudget::of(&late, BudgetTest::EdfQpa, Limits::default()).unwrap().late());
        let none = system(r#"{"tasks":[]}"#);
        assert_eq!(JitterBudget::of(&none, BudgetTest::EdfQpa, Limits::default()).unwrap().set_ns, None);
        assert!(!CostBudget::of(&none, BudgetTest::FpRta, Limits::default()).unwrap().late());
    }
}
