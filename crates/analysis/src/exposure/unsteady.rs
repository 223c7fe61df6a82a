//! Classes that a machine changes by itself as soon as anything runs: nothing seen in them need
//! come from a stressor.
//!
//! The negative control makes no system call. Where it changes the rate of a class all the same, up
//! or down, that class is *unsteady*: on a kernel that ticks, each tick takes part in grace periods
//! that anything may have begun, so that softirqs follow every load, and on PREEMPT_RT switches to
//! `rcuc`; an emulator that runs CPUs in turn gives fewer ticks to each, the more of them are busy;
//! and where no CPU is isolated, busy neighbours send tasks over. Such a class is left out of every
//! row; those that the control did not change stand.

use super::coefficient::{Coefficient, coefficient};
use super::facts::Count;
use crate::exposure::row::{ClassCoefficient, Row};
use model::EventClass;
use stats::rates::holm;

/// A class counts as changed below this probability, adjusted for all classes of the control. A
/// class left out by chance costs less than one that is believed by chance.
const CHANGED_P: f64 = 0.05;

/// The classes whose rate a negative control changed, upwards or downwards, all its classes
/// considered (Holm).
pub(super) fn changed(control: &Row) -> Vec<ClassCoefficient> {
    let adjusted = holm(&control.classes.iter().map(|one| one.coefficient.p).collect::<Vec<_>>());
    let changed = control.classes.iter().zip(adjusted).filter(|(_, p)| *p < CHANGED_P);
    changed.map(|(one, _)| *one).collect()
}

/// The row without some classes: `all` counted anew from those that are left.
pub(super) fn steady(mut row: Row, unsteady: &[EventClass], cpus: u64) -> Row {
    if unsteady.is_empty() || row.all.is_none() {
        return row;
    }
    row.classes.retain(|one| !unsteady.contains(&one.class));
    row.sources.retain(|source| !unsteady.contains(&source.class));
    let events = row.classes.iter().map(|one| one.coefficient.events).sum();
    let background: f64 = row.classes.iter().map(|one| one.coefficient.background).sum();
    // The background is that of the disturbed time; counted it was over the idle controls.
    let idle = (background / row.disturbed_s * row.idle_s).round() as u64;
    let count = |count: u64| Count { count, ..Count::default() };
    let all =
        coefficient(row.operations, cpus, (&count(events), row.disturbed_s), (&count(idle), row.idle_s));
    let seen = row.classes.iter().any(|one| one.coefficient.seen);
    row.all = Some(Coefficient { seen, ..all });
    row
}
