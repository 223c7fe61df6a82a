//! Global EDF by total density: sum C/D <= m - (m - 1) max C/D.
//!
//! Goossens, Funk and Baruah, "Priority-driven scheduling of periodic task systems on
//! multiprocessors", Real-Time Systems 25, 2003; with densities for deadlines below periods.

use super::{Case, densest};
use crate::fractions::{Fraction, Open, at_most_zero};

/// Whether the bound holds.
pub(super) fn schedulable(case: Case<'_>) -> Result<bool, Open> {
    let Some(densest) = densest(case.tasks) else { return Ok(true) };
    let total = case.tasks.iter().map(|task| Fraction::new(task.cost_ns, task.deadline_ns));
    let others = i128::from(case.cores) - 1;
    let largest = Fraction::new(others * i128::from(densest.cost_ns), densest.deadline_ns);
    at_most_zero(total.chain([largest, Fraction::whole(-i128::from(case.cores))]))
}
