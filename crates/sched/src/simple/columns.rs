//! Sets as columns of integers, a row a task: what NumPy, Arrow and Parquet hold. Columns are
//! borrowed; only the tasks of the set at hand are taken out of them.
//!
//! A set that is not simple, or not valid, is written as a line of JSON and read as such: there is
//! one reader that judges, and its sentences are the same for lines and columns.

use super::SimpleSet;
use crate::asked::Unit;
use crate::question::QuestionError;
use crate::task::{MAX_NS, MAX_TASKS, Task};
use std::fmt::Write as _;
use std::ops::Range;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// To which set the task of the row belongs; ascends.
    Set,
    /// Cores of the set, the same in all its rows.
    Cores,
    /// The key of a task of that name, as the rest.
    Period,
    /// See there.
    Cost,
    /// See there.
    Deadline,
    /// See there.
    Jitter,
    /// See there.
    Blocking,
    /// See there.
    Core,
    /// See there.
    Priority,
    /// See there.
    Suspension,
    /// See there.
    NonPreemptive,
    /// See there.
    LockPriority,
    /// See there.
    ResponseTime,
}

/// Number of keys.
const KEYS: usize = Key::ALL.len();

impl Key {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 13] = [
        ("set", Self::Set),
        ("cores", Self::Cores),
        ("period", Self::Period),
        ("cost", Self::Cost),
        ("deadline", Self::Deadline),
        ("jitter", Self::Jitter),
        ("blocking", Self::Blocking),
        ("core", Self::Core),
        ("priority", Self::Priority),
        ("suspension", Self::Suspension),
        ("non_preemptive", Self::NonPreemptive),
        ("lock_priority", Self::LockPriority),
        ("response_time", Self::ResponseTime),
    ];

    /// The key of one name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, key)| key)
    }

    /// Its name in columns and lines.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    /// A value a row.
    pub values: &'a [i64],
    /// Which of them are there; none where all are. A value that is not there is a key left out.
    pub present: Option<&'a [bool]>,
}

/// Columns of one length.
#[derive(Debug, Clone, Copy)]
pub struct TaskColumns<'a> {
    columns: [Option<Column<'a>>; KEYS],
    rows: usize,
    unit: Unit,
}

impl<'a> TaskColumns<'a> {
    /// No column yet, for so many rows with times in this unit.
    pub const fn new(rows: usize, unit: Unit) -> Self {
        Self { columns: [None; KEYS], rows, unit }
    }

    /// Adds a column; false where it has not as many rows.
    #[must_use]
    pub fn add(&mut self, key: Key, column: Column<'a>) -> bool {
        let fits = column.values.len() == self.rows
            && column.present.is_none_or(|present| present.len() == self.rows);
        if fits {
            self.columns[key as usize] = Some(column);
        }
        fits
    }

    /// Number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The unit of the times.
    pub const fn unit(&self) -> Unit {
        self.unit
    }

    fn column(&self, key: Key) -> Option<Column<'a>> {
        self.columns[key as usize]
    }

    /// The rows of the set that begins at `from`, and the name of that set; all the rest without a
    /// column of sets.
    pub fn set_from(&self, from: usize) -> (Range<usize>, Option<i64>) {
        let names = self.column(Key::Set).and_then(|sets| sets.values.get(from..));
        let Some(&[name, ref others @ ..]) = names else { return (from..self.rows, None) };
        let length = 1 + others.iter().take_while(|&&other| other == name).count();
        (from..from + length, Some(name))
    }

    /// Takes the set of these rows. False where it is not simple or not valid: [`Self::line`] has
    /// it then.
    pub fn take(&self, rows: Range<usize>, set: &mut SimpleSet) -> bool {
        self.take_if_simple(rows, set).is_some()
    }

    fn take_if_simple(&self, rows: Range<usize>, set: &mut SimpleSet) -> Option<()> {
        let most = MAX_NS / self.unit.ns();
        let count = rows.len();
        (count <= MAX_TASKS).then_some(())?;
        set.unit = self.unit;
        set.tasks.clear();
        let nothing = Task { period_ns: 0, deadline_ns: 0, cost_ns: 0, jitter_ns: 0, blocking_ns: 0 };
        set.tasks.resize(count, nothing);
        let of = |key| self.column(key).and_then(|column| column.part(&rows));
        let all = |key| of(key).and_then(Column::whole);
        self.fill(set, all(Key::Period)?, 1, most, |task| &mut task.period_ns)?;
        self.fill(set, all(Key::Cost)?, 1, most, |task| &mut task.cost_ns)?;
        match of(Key::Deadline) {
            None => set.tasks.iter_mut().for_each(|task| task.deadline_ns = task.period_ns),
            Some(column) => {
                self.fill(set, column.whole()?, 1, most, |task| &mut task.deadline_ns)?;
            }
        }
        if let Some(column) = of(Key::Jitter) {
            self.fill(set, column.whole()?, 0, most, |task| &mut task.jitter_ns)?;
        }
        if let Some(column) = of(Key::Blocking) {
            self.fill(set, column.whole()?, 0, most, |task| &mut task.blocking_ns)?;
        }
        if let Some(column) = of(Key::Priority) {
            let ranks = column.whole()?;
            let in_range = ranks.iter().all(|rank| u32::try_from(*rank).is_ok());
            (in_range && ranks.is_sorted_by(|one, other| one < other)).then_some(())?;
        }
        let same =
            |key, value: i64| of(key).is_none_or(|column| column.values_there().all(|one| one == value));
        let one_core = of(Key::Cores)
            .is_none_or(|column| column.whole().is_some_and(|cores| cores.iter().all(|&cores| cores == 1)));
        let simple = one_core
            && same(Key::Core, 0)
            && same(Key::Suspension, 0)
            && same(Key::NonPreemptive, 0)
            && [Key::LockPriority, Key::ResponseTime]
                .into_iter()
                .all(|key| of(key).is_none_or(|column| column.values_there().next().is_none()));
        set.placed = of(Key::Core).is_some_and(|column| column.values_there().next().is_some());
        simple.then_some(())
    }

    /// Puts times in range into one field of every task.
    #[inline]
    fn fill(
        &self,
        set: &mut SimpleSet,
        values: &[i64],
        least: u64,
        most: u64,
        field: impl Fn(&mut Task) -> &mut u64,
    ) -> Option<()> {
        let (unit_ns, mut in_range) = (self.unit.ns(), true);
        for (task, &value) in set.tasks.iter_mut().zip(values) {
            // A negative value is above every limit.
            let value = value as u64;
            in_range &= least <= value && value <= most;
            *field(task) = value.wrapping_mul(unit_ns);
        }
        in_range.then_some(())
    }

    /// The set of these rows as a line of JSON, or what keeps it from being one.
    pub fn line(&self, rows: Range<usize>) -> Result<String, QuestionError> {
        let mut line = format!("{{\"unit\":\"{}\",", self.unit.name());
        if let Some(column) = self.column(Key::Cores) {
            let first = column.value(rows.start);
            if let Some(at) = rows.clone().position(|row| column.value(row) != first) {
                let shown =
                    |value: Option<i64>| value.map_or("nothing".to_owned(), |value| value.to_string());
                return Err(QuestionError {
                    field: format!("tasks[{at}].cores"),
                    found: shown(column.value(rows.start + at)),
                    expected: format!("{}, as in the first row of the set", shown(first)),
                });
            }
            if let Some(cores) = first {
                let _ = write!(line, "\"cores\":{cores},");
            }
        }
        line.push_str("\"tasks\":[");
        for row in rows.clone() {
            line.push_str(if row == rows.start { "{" } else { ",{" });
            let mut before = "";
            for (name, key) in Key::ALL {
                let of_task = !matches!(key, Key::Set | Key::Cores);
                let value = self.column(key).filter(|_| of_task).and_then(|column| column.value(row));
                if let Some(value) = value {
                    let _ = write!(line, "{before}\"{name}\":{value}");
                    before = ",";
                }
            }
            line.push('}');
        }
        line.push_str("]}");
        Ok(line)
    }
}

impl<'a> Column<'a> {
    fn part(self, rows: &Range<usize>) -> Option<Self> {
        let present = match self.present {
            Some(present) => Some(present.get(rows.clone())?),
            None => None,
        };
        Some(Self { values: self.values.get(rows.clone())?, present })
    }

    /// Its values where all are there.
    fn whole(self) -> Option<&'a [i64]> {
        self.present.is_none_or(|present| present.iter().all(|&there| there)).then_some(self.values)
    }

    fn value(self, row: usize) -> Option<i64> {
        let there = self.present.is_none_or(|present| present.get(row) == Some(&true));
        self.values.get(row).copied().filter(|_| there)
    }

    fn values_there(self) -> impl Iterator<Item = i64> + 'a {
        (0..self.values.len()).filter_map(move |row| self.value(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question;
    use proptest::prelude::*;

    #[test]
    fn keys_are_found_by_their_names_and_places() {
        for (at, (name, key)) in Key::ALL.into_iter().enumerate() {
            assert_eq!((key as usize, key.name(), Key::by_name(name)), (at, name, Some(key)));
        }
        assert_eq!(Key::by_name("deadine"), None);
    }

    #[test]
    fn sets_are_the_runs_of_one_name() {
        let mut columns = TaskColumns::new(5, Unit::Ns);
        assert_eq!(columns.set_from(0), (0..5, None));
        assert!(columns.add(Key::Set, Column { values: &[3, 3, 4, 9, 9], present: None }));
        assert_eq!(columns.set_from(0), (0..2, Some(3)));
        assert_eq!(columns.set_from(2), (2..3, Some(4)));
        assert_eq!(columns.set_from(3), (3..5, Some(9)));
        assert!(!columns.add(Key::Cost, Column { values: &[1], present: None }));
        assert!(!columns.add(Key::Cost, Column { values: &[1; 5], present: Some(&[true]) }));
    }

    #[test]
    fn cores_that_differ_within_a_set_are_refused() {
        let mut columns = TaskColumns::new(3, Unit::Ns);
        assert!(columns.add(Key::Cores, Column { values: &[2, 2, 3], present: None }));
        let error = columns.line(0..3).unwrap_err().to_string();
        assert_eq!(error, "tasks[2].cores: 3, expected 2, as in the first row of the set");
        assert_eq!(columns.line(0..2).unwrap(), r#"{"unit":"ns","cores":2,"tasks":[{},{}]}"#);
    }

    fn value() -> impl Strategy<Value = i64> {
        prop_oneof![6 => 1i64..50, 1 => -1i64..1, 1 => prop::sample::select(vec![i64::MIN, i64::MAX, 9_007_199_254_740_991, 9_007_199_254_740, 1 << 32])]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        /// What is taken is what the line says; no valid simple set is left out.
        #[test]
        fn a_set_is_taken_as_its_line_says_or_not_at_all(
            rows in prop::collection::vec(prop::collection::vec(value(), KEYS), 0..6),
            with in prop::collection::vec(0u8..8, KEYS),
            absent in prop::collection::vec(0u8..40, KEYS * 6),
            us in any::<bool>(), from in 0usize..2,
        ) {
            let columns: Vec<Vec<i64>> = (0..KEYS).map(|key| rows.iter().map(|row| match with[key] {
                0 => row[key],
                // Mostly in order and in range.
                _ => match Key::ALL[key].1 {
                    Key::Core | Key::Suspension | Key::NonPreemptive => 0,
                    Key::Cores => 1,
                    _ => row[key].clamp(1, 1 << 20),
                },
            }).collect()).collect();
            let present: Vec<Vec<bool>> =
                (0..KEYS).map(|key| (0..rows.len()).map(|row| absent[key * 6 + row] > 0).collect()).collect();
            let unit = if us { Unit::Us } else { Unit::Ns };
            let mut all = TaskColumns::new(rows.len(), unit);
            for (at, (_, key)) in Key::ALL.into_iter().enumerate() {
                let wanted = matches!(key, Key::Period | Key::Cost) || with[at] < 5;
                let rare = matches!(key, Key::LockPriority | Key::ResponseTime | Key::Priority);
                if wanted && (!rare || with[at] == 1) {
                    let present = (with[at] % 2 == 1).then_some(&present[at][..]);
                    let fits = all.add(key, Column { values: &columns[at], present });
                    prop_assert!(fits);
                }
            }
            let part = from.min(rows.len())..rows.len();
            let mut set = SimpleSet { tasks: vec![Task::implicit(5, 5)], placed: true, unit: Unit::Ms };
            let taken = all.take(part.clone(), &mut set);
            let read = all.line(part).and_then(question::read);
            if taken {
                prop_assert_eq!(Ok(set.question()), read);
            }
        }
    }
}
