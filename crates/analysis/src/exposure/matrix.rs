//! Studies of exposure side by side, one a kernel and way of isolating: what changed from a kernel to the next of its flavour.
//!
//! A study is void where its negative control is seen at all. Here that is asked class by class: a kernel without `CONFIG_NO_HZ_FULL` ticks,
//! and each tick takes part in grace periods that anything may have begun, so that softirqs follow every load, also one that makes no
//! system call; and an emulator that runs CPUs in turn gives fewer ticks to each, the more of them are busy. Such a class is *unsteady* there
//! and left out; those that the negative control did not change stand.
//!
//! Two coefficients differ where their 95 % intervals have no point in common and at least one was seen; that is stricter than a test of
//! their difference at 5 % (Schenker and Gentleman, "On judging the significance of differences by examining the overlap between
//! confidence intervals", 2001). A change names what was counted; that it is the version's doing, and not the configuration's, is for
//! who has both kernels' build options.

use super::coefficient::{Coefficient, coefficient};
use super::conclude::{ClassCoefficient, Control, Exposure, Row, RowState};
use super::facts::Count;
use crate::rates::holm;
use model::EventClass;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a class of the negative control must fall below to count as changed.
const CHANGED_P: f64 = 0.05;

/// One kernel under one way of isolating.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name in the matrix, such as `6.1-rt`.
    pub kernel: String,
    /// The way of isolating.
    pub profile: String,
    /// Whether it is a PREEMPT_RT kernel: changes are told within a flavour.
    pub realtime: bool,
    /// Why there is nothing; absent where there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// Whether nothing here says anything: the positive control was not seen, or there was no control.
    pub void: bool,
    /// Classes whose rate the negative control changed, up or down: their events come from the machine's own doing.
    pub unsteady: Vec<EventClass>,
    /// What the controls told, in words.
    pub verdict: Vec<String>,
    /// Events a second on each measured CPU while nothing was done, over all idle controls, of classes that there were any of.
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

/// What changed between neighbours. `columns` are in the order in which to compare: of one profile and flavour, each with the one before.
/// A column that is absent or void is passed over: its neighbours are compared with each other.
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
    /// The column of a study that measured so many CPUs.
    pub fn of(kernel: &str, profile: &str, realtime: bool, found: Exposure, cpus: u64) -> Self {
        let unsteady = unsteady(&found);
        let blind = |seen: bool| {
            let ours: Vec<&Control> =
                found.controls.iter().filter(|control| control.expected.seen == seen).collect();
            let failed = ours.iter().any(|control| control.held == Some(false));
            (seen && failed) || ours.iter().all(|control| control.held.is_none())
        };
        let void = blind(true) || blind(false);
        Self {
            kernel: kernel.to_owned(),
            profile: profile.to_owned(),
            realtime,
            absent: None,
            void,
            verdict: found.verdict,
            idle_per_s: idle_per_s(&found.rows, cpus),
            rows: found.rows.into_iter().map(|row| steady(row, &unsteady, cpus)).collect(),
            unsteady,
        }
    }

    /// The row of a stressor that has coefficients.
    pub fn row(&self, stressor: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.stressor == stressor && row.state == RowState::Ok)
    }
}

/// Classes whose rate a negative control changed, upwards or downwards, all its classes considered (Holm).
fn unsteady(found: &Exposure) -> Vec<EventClass> {
    let mut classes = BTreeSet::new();
    for control in found.controls.iter().filter(|control| !control.expected.seen) {
        let row = found.rows.iter().find(|row| row.stressor == control.expected.stressor);
        let its: &[ClassCoefficient] = row.map_or(&[], |row| &row.classes);
        let adjusted = holm(&its.iter().map(|one| one.coefficient.p).collect::<Vec<_>>());
        classes.extend(its.iter().zip(adjusted).filter(|(_, p)| *p < CHANGED_P).map(|(one, _)| one.class));
    }
    classes.into_iter().collect()
}

/// The idle controls of all rows together. Each row has what they would give in the time of its operations.
fn idle_per_s(rows: &[Row], cpus: u64) -> BTreeMap<EventClass, f64> {
    let measured = rows.iter().filter(|row| row.all.is_some() && row.disturbed_s > 0.0);
    let mut events: BTreeMap<EventClass, f64> = BTreeMap::new();
    let mut seconds = 0.0;
    for row in measured {
        seconds += row.idle_s;
        for one in row.classes.iter().filter(|one| one.coefficient.background > 0.0) {
            *events.entry(one.class).or_default() +=
                one.coefficient.background / row.disturbed_s * row.idle_s;
        }
    }
    events.values_mut().for_each(|count| *count /= seconds * cpus as f64);
    events
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
    use super::super::conclude::Expectation;
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

    fn control(stressor: &str, seen: bool, held: Option<bool>) -> Control {
        Control { expected: Expectation { stressor: stressor.to_owned(), seen }, held, told: String::new() }
    }

    #[test]
    fn a_class_that_the_negative_control_changed_is_left_out_and_no_other() {
        let seen = coefficient(2.0, 3.0, 4.0, true);
        let [mut negative, mut ours] = ["calc_pi", "bpf_filter"]
            .map(|name| Row { stressor: name.to_owned(), ..column("x", "boot", seen).rows.remove(0) });
        let softirq = ClassCoefficient {
            class: EventClass::Softirq,
            coefficient: Coefficient { events: 70, background: 10.0, ..seen },
        };
        let tick = ClassCoefficient {
            class: EventClass::TimerTick,
            coefficient: Coefficient { events: 250, background: 550.0, ..coefficient(0.0, -3.0, 0.0, false) },
        };
        let still = ClassCoefficient {
            class: EventClass::IpiCall,
            coefficient: Coefficient { p: 1.0, ..coefficient(0.0, 0.0, 0.3, false) },
        };
        negative.classes = vec![tick, softirq, still];
        ours.classes[0].coefficient = Coefficient { events: 30, background: 0.0, ..seen };
        ours.classes.extend([tick, softirq]);
        let found = |held| Exposure {
            void: true,
            verdict: Vec::new(),
            controls: vec![control("tlb_span", true, held), control("calc_pi", false, Some(false))],
            rows: vec![negative.clone(), ours.clone()],
        };
        let column = Column::of("5.10", "boot", false, found(Some(true)), 1);
        assert_eq!(
            (column.void, column.unsteady.as_slice()),
            (false, &[EventClass::TimerTick, EventClass::Softirq][..])
        );
        let [calm, kept] =
            [&column.rows[0], &column.rows[1]].map(|row| (row.all.unwrap(), row.classes.len()));
        assert_eq!((calm.0.events, calm.0.seen, calm.1), (1, false, 1));
        // 30 events in 10 operations, and none of the softirqs.
        assert!(kept.0.seen && (kept.0.per_operation - 3.0).abs() < 1e-9 && kept.1 == 1, "{kept:?}");
        // Two rows with 550 ticks and 10 softirqs in a second of operations each: so many a second.
        let idle = [(EventClass::TimerTick, 550.0), (EventClass::Softirq, 10.0)];
        assert_eq!(column.idle_per_s, BTreeMap::from(idle));
        for blind in [Some(false), None] {
            assert!(Column::of("5.10", "boot", false, found(blind), 1).void, "{blind:?}");
        }
    }

    const SEEN: (f64, f64, f64) = (2.0, 3.0, 4.0);

    fn told(columns: &[Column]) -> Vec<(String, String, Direction)> {
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
        assert_eq!(told(&columns), expected.map(|(from, to, direction)| (from.into(), to.into(), direction)));
    }

    #[test]
    fn a_column_that_says_nothing_is_passed_over() {
        let (seen, unseen) = (coefficient(2.0, 3.0, 4.0, true), coefficient(0.0, 0.0, 0.3, false));
        let void = Column { void: true, ..column("6.1", "boot", unseen) };
        let absent = Column { absent: Some("no guest".to_owned()), rows: Vec::new(), ..void.clone() };
        for between in [void, absent] {
            let columns = [column("5.10", "boot", seen), between, column("6.12", "boot", unseen)];
            assert_eq!(told(&columns), [("5.10".to_owned(), "6.12".to_owned(), Direction::Gone)]);
        }
    }

    #[test]
    fn intervals_that_touch_tell_nothing() {
        let seen = coefficient(2.0, 3.0, 4.0, true);
        for (other, expected) in [
            (coefficient(3.9, 5.0, 6.0, true), None),
            (coefficient(4.1, 5.0, 6.0, true), Some(Direction::More)),
            (coefficient(0.5, 1.0, 1.9, true), Some(Direction::Less)),
            // Too few operations to exclude what was seen before.
            (coefficient(0.0, 0.0, 3.0, false), None),
            (coefficient(0.0, 0.0, 1.9, false), Some(Direction::Gone)),
        ] {
            assert_eq!(direction(&seen, &other), expected, "{other:?}");
        }
    }
}
