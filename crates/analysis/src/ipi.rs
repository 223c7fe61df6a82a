//! Results of the IPI probe: a distribution for every sending CPU and method.
//!
//! A samples file holds one target CPU; its own columns say who sent and how
//! (`docs/measure-ipi.md`).

use crate::distribution::{Distribution, distribution};
use attribution::Error;
use model::Sample;
use model::run::ProbeRecord;
use model::sample::OwnColumn;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The methods by their code in the column `method`.
pub const METHODS: [&str; 5] = ["futex", "eventfd", "pipe", "signal", "spin"];

/// The wake-ups of one CPU by another, by one method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Way {
    /// The CPU that sends.
    pub from: u32,
    /// The CPU that is woken.
    pub to: u32,
    /// How.
    pub method: String,
    /// Whether the values are halves of round trips, because the counters' offset is known too
    /// vaguely for the one way.
    pub half_round_trip: bool,
    /// Of the samples that count, those before which the target had gone to sleep.
    pub slept: u64,
    /// How far the target's counter is ahead of the sender's, ns.
    pub offset_ns: i64,
    /// The offset is at most so much more or less, ns.
    pub bound_ns: i64,
    /// Median of the answer's way, from the target back to the sender, ns.
    pub back_median_ns: Option<i64>,
    /// The values; without a timeline, since the ways take turns.
    pub figures: Distribution,
}

/// Columns of a probe's own by name.
pub(crate) struct Columns<'a> {
    all: &'a [OwnColumn],
    file: &'a str,
    rows: usize,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(columns: &'a [OwnColumn], record: &'a ProbeRecord, rows: usize) -> Self {
        Self { all: columns, file: &record.file, rows }
    }

    pub(crate) fn get(&self, name: &str) -> Result<&'a [i64], Error> {
        let found = self.all.iter().find(|one| one.name == name && one.values.len() == self.rows);
        let missing = || {
            let expected = format!("a column {name} of {} rows", self.rows);
            model::Error::invalid(self.file.to_owned(), "its columns", expected)
        };
        Ok(found.map(|one| one.values.as_slice()).ok_or_else(missing)?)
    }
}

/// One [`Way`] for every pair and method in a file, in the order of CPUs and methods.
pub fn ways(record: &ProbeRecord, samples: &[Sample], columns: &[OwnColumn]) -> Result<Vec<Way>, Error> {
    let columns = Columns::new(columns, record, samples.len());
    let [from, to, method] = [columns.get("from")?, columns.get("to")?, columns.get("method")?];
    let [how, back, slept] = [columns.get("how")?, columns.get("back_ns")?, columns.get("slept")?];
    let [offset, bound] = [columns.get("offset_ns")?, columns.get("bound_ns")?];
    let mut groups: BTreeMap<(i64, i64, i64), Vec<usize>> = BTreeMap::new();
    for row in 0..samples.len() {
        groups.entry((from[row], to[row], method[row])).or_default().push(row);
    }
    let way = |((from, to, method), rows): ((i64, i64, i64), Vec<usize>)| {
        let own: Vec<Sample> = rows.iter().map(|&row| samples[row]).collect();
        let counted = || rows.iter().filter(|&&row| samples[row].counts());
        let mut answers: Vec<i64> = counted().map(|&row| back[row]).collect();
        answers.sort_unstable();
        Way {
            from: from as u32,
            to: to as u32,
            method: METHODS
                .get(method as usize)
                .map_or_else(|| format!("method {method}"), ToString::to_string),
            half_round_trip: rows.iter().any(|&row| how[row] != 0),
            slept: counted().filter(|&&row| slept[row] != 0).count() as u64,
            offset_ns: rows.first().map_or(0, |&row| offset[row]),
            bound_ns: rows.iter().map(|&row| bound[row]).max().unwrap_or(0),
            back_median_ns: answers.get(answers.len().saturating_sub(1) / 2).copied(),
            figures: Distribution { timeline: Vec::new(), by_us: Vec::new(), ..distribution(record, &own) },
        }
    };
    Ok(groups.into_iter().map(way).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;
    use model::sample::{ProbeKind, flag};

    const NAMES: [&str; 9] =
        ["from", "to", "method", "how", "there_ns", "back_ns", "slept", "offset_ns", "bound_ns"];

    fn columns(rows: &[[i64; 9]]) -> Vec<OwnColumn> {
        let column = |(at, name): (usize, &&str)| OwnColumn {
            name: (*name).to_owned(),
            values: rows.iter().map(|row| row[at]).collect(),
        };
        NAMES.iter().enumerate().map(column).collect()
    }

    #[test]
    fn pairs_and_methods_are_separated_and_no_sample_is_left_out() {
        let mut rows = Vec::new();
        let mut samples = Vec::new();
        for seq in 0..60i64 {
            let (from, method) = (seq % 2, seq % 3);
            rows.push([
                from,
                3,
                method,
                i64::from(method == 2),
                100,
                7 * seq,
                i64::from(method != 2),
                5,
                2 + from,
            ]);
            let flags = if seq < 6 { flag::WARM_UP } else { 0 };
            samples.push(Sample {
                value_ns: 1000 * method + from,
                seq: seq as u64,
                flags,
                ..Sample::default()
            });
        }
        let ways = ways(&record(ProbeKind::Ipi), &samples, &columns(&rows)).unwrap();
        assert_eq!(ways.len(), 6);
        assert_eq!(ways.iter().map(|way| way.figures.n + way.figures.excluded).sum::<u64>(), 60);
        for way in &ways {
            let method = METHODS.iter().position(|&name| name == way.method).unwrap() as i64;
            assert_eq!(way.figures.min_ns, Some(1000 * method + i64::from(way.from)));
            assert_eq!((way.half_round_trip, way.bound_ns), (method == 2, 2 + i64::from(way.from)));
            assert_eq!(way.slept, if method == 2 { 0 } else { way.figures.n });
        }
    }

    #[test]
    fn a_file_without_its_columns_is_refused() {
        let samples = [Sample::default()];
        assert!(ways(&record(ProbeKind::Ipi), &samples, &columns(&[])).is_err());
        assert!(ways(&record(ProbeKind::Ipi), &samples, &[]).is_err());
    }
}
