//! Rows of one matrix in the place of those of another: what a defect since mended has made void is
//! measured anew, and nothing else.
//!
//! A row is steadied by the controls it was measured beside, and by those of the table it goes
//! into: its own machine may have done by itself what that one did not, and the other way round. So
//! a class counts in it only where neither negative control changed it. A column of which every row
//! is measured anew is the new one, with its own controls.

use super::matrix::{Change, Column, changes, usable};
use super::unsteady::steady;
use crate::exposure::row::Row;

/// Why rows do not go into a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{stressor} of {kernel} {profile}: {lacking}; expected a result for every kernel that the table has one of in this way of isolating"
)]
pub struct NoRow {
    /// The stressor.
    pub stressor: String,
    /// The column's kernel.
    pub kernel: String,
    /// The column's way of isolating.
    pub profile: String,
    /// What there is instead.
    pub lacking: &'static str,
}

/// Replaces the rows of some stressors by those of `newer`, in the columns with its ways of
/// isolating, each of `cpus` measured CPUs. Then recomputes their changes from kernel to kernel.
/// The rest of the table stays as it was; on failure all of it does.
pub fn graft(
    columns: &mut [Column],
    all_changes: &mut Vec<Change>,
    newer: &[Column],
    stressors: &[String],
    cpus: u64,
) -> Result<(), NoRow> {
    let asked = |profile: &str| newer.iter().any(|new| new.profile == profile);
    let mut fresh: Vec<Column> = Vec::new();
    for column in columns.iter().filter(|column| column.absent.is_none() && asked(&column.profile)) {
        let found = newer.iter().find(|new| same(new, column));
        let rows = stressors.iter().map(|stressor| row_for(column, found, stressor, cpus));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let whole = column.rows.iter().all(|row| stressors.contains(&row.stressor));
        fresh.push(match found {
            Some(new) if whole => new.clone(),
            _ => Column { rows, ..column.clone() },
        });
    }
    all_changes.retain(|change| !(stressors.contains(&change.stressor) && asked(&change.profile)));
    all_changes.extend(changes(&fresh));
    let place = |change: &Change| {
        columns.iter().position(|one| one.kernel == change.to && one.profile == change.profile)
    };
    all_changes.sort_by_key(place);
    for new in fresh {
        if let Some(column) = columns.iter_mut().find(|column| same(&new, column)) {
            put(column, new);
        }
    }
    Ok(())
}

fn same(one: &Column, other: &Column) -> bool {
    one.kernel == other.kernel && one.profile == other.profile
}

/// The new column's rows over the old ones, and all that it is besides.
fn put(column: &mut Column, new: Column) {
    let mut rows = std::mem::take(&mut column.rows);
    for row in new.rows {
        match rows.iter_mut().find(|old| old.stressor == row.stressor) {
            Some(old) => *old = row,
            None => rows.push(row),
        }
    }
    *column = Column { rows, ..new };
}

fn row_for(column: &Column, found: Option<&Column>, stressor: &str, cpus: u64) -> Result<Row, NoRow> {
    let none = |lacking: &'static str| NoRow {
        stressor: stressor.to_owned(),
        kernel: column.kernel.clone(),
        profile: column.profile.clone(),
        lacking,
    };
    let new = found.ok_or_else(|| none("nothing was measured"))?;
    if !usable(new) {
        return Err(none(if new.void { "its controls failed" } else { "there is no result" }));
    }
    let row = new.rows.iter().find(|row| row.stressor == stressor);
    let mut row = steady(row.ok_or_else(|| none("it was not run"))?.clone(), &column.unsteady, cpus);
    let further = new.unsteady.iter().filter(|class| !column.unsteady.contains(class));
    let sentences = further.map(|class| {
        format!("{class} left out: the negative control beside which this row was measured changed it")
    });
    row.limits.extend(sentences);
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::super::matrix::Direction;
    use super::super::matrix::tests::{coefficient, column};
    use super::*;
    use crate::exposure::row::{ClassCoefficient, RowState};
    use model::EventClass;

    /// Two kernels in which `timer` was void and something changed in `bpf_filter`.
    fn table() -> (Vec<Column>, Vec<Change>) {
        let (seen, unseen) = (coefficient(2.0, 3.0, 4.0, true), coefficient(0.0, 0.0, 0.3, false));
        let mut columns = vec![column("5.10", "boot", seen), column("6.1", "boot", unseen)];
        for column in &mut columns {
            let void = Row {
                stressor: "timer".to_owned(),
                state: RowState::Void,
                all: None,
                classes: Vec::new(),
                ..column.rows[0].clone()
            };
            column.rows.push(void);
        }
        columns.push(Column {
            absent: Some("no guest".to_owned()),
            rows: Vec::new(),
            ..column("6.12", "boot", seen)
        });
        let changes = changes(&columns);
        (columns, changes)
    }

    fn measured(kernel: &str, low: f64, high: f64, seen: bool) -> Column {
        let mut found = column(kernel, "boot", coefficient(low, f64::midpoint(low, high), high, seen));
        found.rows[0].stressor = "timer".to_owned();
        found
    }

    #[test]
    fn rows_are_replaced_and_their_changes_are_computed_anew() {
        let (mut columns, mut all_changes) = table();
        let kept = columns[0].rows[0].clone();
        let newer = [measured("6.1", 5.0, 6.0, true), measured("5.10", 0.0, 0.2, false)];
        graft(&mut columns, &mut all_changes, &newer, &["timer".to_owned()], 1).unwrap();
        assert_eq!(columns[0].rows, [kept, newer[1].rows[0].clone()]);
        assert_eq!(columns[1].rows[1], newer[0].rows[0]);
        let directions: Vec<_> =
            all_changes.iter().map(|change| (change.stressor.as_str(), change.direction)).collect();
        assert_eq!(directions, [("bpf_filter", Direction::Gone), ("timer", Direction::New)]);
    }

    #[test]
    fn a_class_counts_only_where_neither_control_changed_it() {
        let (mut columns, mut all_changes) = table();
        columns[0].unsteady = vec![EventClass::TimerTick];
        let mut new = measured("5.10", 1.0, 2.0, true);
        new.unsteady = vec![EventClass::Softirq];
        let tick = ClassCoefficient { class: EventClass::TimerTick, ..new.rows[0].classes[0] };
        new.rows[0].classes.push(tick);
        let newer = [new, measured("6.1", 1.0, 2.0, true)];
        graft(&mut columns, &mut all_changes, &newer, &["timer".to_owned()], 1).unwrap();
        let row = &columns[0].rows[1];
        assert_eq!(row.classes.iter().map(|one| one.class).collect::<Vec<_>>(), [EventClass::IpiCall]);
        assert!(row.limits.len() == 1 && row.limits[0].starts_with("softirq left out"), "{:?}", row.limits);
        assert!(columns[1].rows[1].limits.is_empty());
    }

    #[test]
    fn a_column_all_measured_anew_has_its_own_controls_and_other_profiles_stay() {
        let (mut columns, mut all_changes) = table();
        columns[0].unsteady = vec![EventClass::TimerTick];
        columns.push(Column { profile: "none".to_owned(), ..columns[0].clone() });
        let before = columns.clone();
        let newer = ["5.10", "6.1"].map(|kernel| {
            let mut new = measured(kernel, 1.0, 2.0, true);
            new.rows.extend(column(kernel, "boot", coefficient(7.0, 8.0, 9.0, true)).rows);
            Column { unsteady: vec![EventClass::Softirq], ..new }
        });
        let all = ["timer", "bpf_filter"].map(str::to_owned);
        graft(&mut columns, &mut all_changes, &newer, &all, 1).unwrap();
        assert_eq!(columns[0].unsteady, [EventClass::Softirq]);
        assert_eq!(columns[0].rows[0].stressor, "bpf_filter", "in the order of the table");
        assert!((columns[0].rows[0].all.unwrap().per_operation - 8.0).abs() < 1e-12);
        assert!(all_changes.is_empty(), "{all_changes:?}");
        assert_eq!(columns[2..], before[2..]);
    }

    #[test]
    fn a_column_without_a_new_result_is_an_error_that_names_it_and_changes_nothing() {
        let good = || measured("5.10", 1.0, 2.0, true);
        let void = Column { void: true, ..measured("6.1", 1.0, 2.0, true) };
        let absent = Column { absent: Some("no time".to_owned()), ..void.clone() };
        for (newer, lacking) in [
            (vec![good()], "nothing was measured"),
            (vec![good(), void], "its controls failed"),
            (vec![good(), Column { void: false, ..absent }], "there is no result"),
            (vec![good(), column("6.1", "boot", coefficient(0.0, 0.0, 1.0, false))], "it was not run"),
        ] {
            let (mut columns, mut all_changes) = table();
            let error = graft(&mut columns, &mut all_changes, &newer, &["timer".to_owned()], 1)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(&format!("timer of 6.1 boot: {lacking}")), "{error}");
            assert_eq!((columns, all_changes), table());
        }
    }
}
