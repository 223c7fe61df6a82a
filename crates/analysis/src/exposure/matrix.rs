//! Studies of exposure side by side, one a kernel and way of isolating: what changed from a kernel
//! to the next of its flavour.
//!
//! Two coefficients differ where their 95 % intervals have no point in common and at least one was
//! seen; that is stricter than a test of their difference at 5 % (Schenker and Gentleman, "On
//! judging the significance of differences by examining the overlap between confidence intervals",
//! 2001). A change names what was counted; to attribute it to the version, and not to the
//! configuration, needs both kernels' build options.

use super::coefficient::Coefficient;
use super::conclude::Exposure;
use crate::exposure::row::{Row, RowState};
use model::EventClass;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One kernel under one way of isolating.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name in the matrix, such as `6.1-rt`.
    pub kernel: String,
    /// The way of isolating.
    pub profile: String,
    /// Whether it is a PREEMPT_RT kernel: changes are computed within a flavour.
    pub realtime: bool,
    /// Why there is nothing; absent where there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// Whether this column is void, see [`Exposure::void`].
    pub void: bool,
    /// Classes whose rate the negative control changed, up or down: their events come from the
    /// machine's own doing.
    pub unsteady: Vec<EventClass>,
    /// Result of the controls, in words.
    pub verdict: Vec<String>,
    /// Events per second on each measured CPU during all idle controls, of the classes that
    /// occurred.
    pub idle_per_s: BTreeMap<EventClass, f64>,
    /// One a stressor, without the unsteady classes.
    pub rows: Vec<Row>,
}

/// How a coefficient changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// It was seen before and is not now.
    Gone,
    /// It was seen before, and is less now.
    Less,
    /// It was seen before, and is more now.
    More,
    /// It was not seen before, and is now.
    New,
}

/// One class of one stressor, in two kernels that follow one another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The stressor.
    pub stressor: String,
    /// The class.
    pub class: EventClass,
    /// The way of isolating.
    pub profile: String,
    /// The older kernel.
    pub from: String,
    /// The newer one.
    pub to: String,
    /// How it changed.
    pub direction: Direction,
    /// In the older kernel.
    pub before: Coefficient,
    /// In the newer one.
    pub after: Coefficient,
}

/// What changed between neighbours. `columns` are in the order in which to compare: of one profile
/// and flavour, each with the one before. A column that is absent or void is passed over: its
/// neighbours are compared with each other.
pub fn changes(columns: &[Column]) -> Vec<Change> {
    let mut found = Vec::new();
    for (at, newer) in columns.iter().enumerate() {
        let of_kind = |older: &&Column| {
            older.profile == newer.profile && older.realtime == newer.realtime && usable(older)
        };
        let older = columns[..at].iter().rev().find(of_kind);
        if let Some(older) = older.filter(|_| usable(newer)) {
            found.extend(
                newer
                    .rows
                    .iter()
                    .filter_map(|row| Some((row, older.row(&row.stressor)?)))
                    .flat_map(|(after, before)| row_changes(older, newer, before, after)),
            );
        }
    }
    found
}

impl Column {
    /// The column of a study.
    pub fn of(kernel: &str, profile: &str, realtime: bool, found: Exposure) -> Self {
        Self {
            kernel: kernel.to_owned(),
            profile: profile.to_owned(),
            realtime,
            absent: None,
            void: found.void,
            unsteady: found.unsteady,
            verdict: found.verdict,
            idle_per_s: found.idle_per_s,
            rows: found.rows,
        }
    }

    /// The row of a stressor that has coefficients.
    pub fn row(&self, stressor: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.stressor == stressor && row.state == RowState::Ok)
    }
}

pub(super) fn usable(column: &Column) -> bool {
    column.absent.is_none() && !column.void
}

fn row_changes(older: &Column, newer: &Column, before: &Row, after: &Row) -> Vec<Change> {
    let changed = after.classes.iter().filter(|_| after.state == RowState::Ok).filter_map(|now| {
        let was = before.classes.iter().find(|was| was.class == now.class)?;
        let direction = direction(&was.coefficient, &now.coefficient)?;
        Some(Change {
            stressor: after.stressor.clone(),
            class: now.class,
            profile: newer.profile.clone(),
            from: older.kernel.clone(),
            to: newer.kernel.clone(),
            direction,
            before: was.coefficient,
            after: now.coefficient,
        })
    });
    changed.collect()
}

fn direction(was: &Coefficient, now: &Coefficient) -> Option<Direction> {
    let (fell, rose) = (now.high < was.low, was.high < now.low);
    match (was.seen, now.seen) {
        (true, false) if fell => Some(Direction::Gone),
        (false, true) if rose => Some(Direction::New),
        (true, true) if fell => Some(Direction::Less),
        (true, true) if rose => Some(Direction::More),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::row::ClassCoefficient;
    use super::*;

    pub(in super::super) fn coefficient(low: f64, value: f64, high: f64, seen: bool) -> Coefficient {
        Coefficient { events: 1, background: 0.0, per_operation: value, low, high, p: 0.0, seen }
    }

    pub(in super::super) fn column(kernel: &str, profile: &str, value: Coefficient) -> Column {
        let row = Row {
            stressor: "bpf_filter".to_owned(),
            state: RowState::Ok,
            reason: None,
            cells: 1,
            asked: None,
            operations: 10,
            failed: BTreeMap::new(),
            disturbed_s: 1.0,
            idle_s: 2.0,
            all: Some(value),
            classes: vec![ClassCoefficient { class: EventClass::IpiCall, coefficient: value }],
            each: Vec::new(),
            sources: Vec::new(),
            idle_apart: Vec::new(),
            contaminated: Vec::new(),
            left_out: Vec::new(),
            limits: Vec::new(),
        };
        Column {
            kernel: kernel.to_owned(),
            profile: profile.to_owned(),
            realtime: kernel.ends_with("-rt"),
            absent: None,
            void: false,
            unsteady: Vec::new(),
            verdict: Vec::new(),
            idle_per_s: BTreeMap::new(),
            rows: vec![row],
        }
    }

    const SEEN: (f64, f64, f64) = (2.0, 3.0, 4.0);

    fn directions(columns: &[Column]) -> Vec<(String, String, Direction)> {
        changes(columns).into_iter().map(|change| (change.from, change.to, change.direction)).collect()
    }

    #[test]
    fn neighbours_of_one_flavour_and_profile_are_compared() {
        let (low, value, high) = SEEN;
        let (seen, unseen) = (coefficient(low, value, high, true), coefficient(0.0, 0.0, 0.3, false));
        let columns = [
            column("5.10", "boot", seen),
            column("5.10-rt", "boot", unseen),
            column("6.1", "none", unseen),
            column("6.1", "boot", unseen),
            column("6.1-rt", "boot", seen),
            column("6.12", "boot", seen),
        ];
        let expected = [
            ("5.10", "6.1", Direction::Gone),
            ("5.10-rt", "6.1-rt", Direction::New),
            ("6.1", "6.12", Direction::New),
        ];
        assert_eq!(
            directions(&columns),
            expected.map(|(from, to, direction)| (from.into(), to.into(), direction))
        );
    }

    #[test]
    fn a_column_that_says_nothing_is_passed_over() {
        let (seen, unseen) = (coefficient(2.0, 3.0, 4.0, true), coefficient(0.0, 0.0, 0.3, false));
        let void = Column { void: true, ..column("6.1", "boot", unseen) };
        let absent = Column { absent: Some("no guest".to_owned()), rows: Vec::new(), ..void.clone() };
        for between in [void, absent] {
            let columns = [column("5.10", "boot", seen), between, column("6.12", "boot", unseen)];
            assert_eq!(directions(&columns), [("5.10".to_owned(), "6.12".to_owned(), Direction::Gone)]);
        }
    }

    #[test]
    fn intervals_that_touch_show_no_change() {
        let seen = coefficient(2.0, 3.0, 4.0, true);
        for (other, expected) in [
            (coefficient(3.9, 5.0, 6.0, true), None),
            (coefficient(4.1, 5.0, 6.0, true), Some(Direction::More)),
            (coefficient(0.5, 1.0, 1.9, true), Some(Direction::Less)),
            // Too few operations to exclude the earlier coefficient.
            (coefficient(0.0, 0.0, 3.0, false), None),
            (coefficient(0.0, 0.0, 1.9, false), Some(Direction::Gone)),
        ] {
            assert_eq!(direction(&seen, &other), expected, "{other:?}");
        }
    }
}
