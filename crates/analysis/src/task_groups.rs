//! Sources and takers in the control groups that their threads were in.

use crate::shape::Analysis;
use attribution::attribute::section::SourceText;
use model::groups::{TaskGroup, by_tid};

/// Names the group of every task that an analysis names, as far as one was seen.
pub(crate) fn fill(analysis: &mut Analysis, groups: &[TaskGroup]) {
    let groups = by_tid(groups);
    if groups.is_empty() {
        return;
    }
    let source = |one: &mut SourceText| one.find_group(&groups);
    let rows = analysis.attribution.iter_mut().flat_map(|one| &mut one.rows);
    rows.filter_map(|row| row.source.as_mut()).for_each(source);
    analysis.paths.iter_mut().for_each(|path| path.find_groups(&groups));
    let periods = analysis.time.iter_mut().flat_map(|one| &mut one.periods);
    let suspects = periods.flat_map(|period| &mut period.suspects);
    suspects.filter_map(|suspect| suspect.source.as_mut()).for_each(source);
}
