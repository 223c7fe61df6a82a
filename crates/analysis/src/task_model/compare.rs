//! A model against another of what should be the same program: the relative difference of each
//! quantity.

use super::shape::{ReleaseKind, TaskModel, ThreadModel};
use serde::{Deserialize, Serialize};

/// Values below this count as this much, ns or per second.
const LEAST: f64 = 1.0;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Threads that both models have.
    pub threads: usize,
    /// Of these, those that both release alike: by a period, apart, in bursts.
    pub alike: usize,
    /// The quantities.
    pub quantities: Vec<Quantity>,
    /// Threads that only one of them has, or one has more than once, by name.
    pub unmatched: Vec<String>,
}

/// How much one quantity differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quantity {
    /// In words.
    pub what: String,
    /// Threads for which both models have it.
    pub n: usize,
    /// The median over these of the relative difference, absolute.
    pub median: f64,
    /// The largest.
    pub largest: f64,
    /// Of this thread,
    pub thread: String,
    /// which has this in the first model, ns, or per second where the quantity is a rate,
    pub before: f64,
    /// and this in the second.
    pub after: f64,
}

impl Quantity {
    /// Whether it is per second, and no time.
    pub fn is_rate(&self) -> bool {
        self.what == RATE
    }
}

const RATE: &str = "releases per second";

/// Names a quantity and finds it in a thread.
type Row = (&'static str, fn(&ThreadModel) -> Option<f64>);

const ROWS: [Row; 8] = [
    ("period", |one| periodic(one).map(|one| one.release.period_ns as f64)),
    ("jitter without timers' lateness", |one| periodic(one)?.release.own_jitter_ns.map(|ns| ns as f64)),
    ("shortest of 2 releases", |one| Some(apart(one)?.release.curve.first()?.0 as f64)),
    (RATE, rate),
    ("cost, mean", |one| (one.cost.n > 0).then(|| one.cost.total_ns as f64 / one.cost.n as f64)),
    ("cost, longest", |one| (one.cost.n > 0).then(|| one.cost.most_ns() as f64)),
    ("asleep, mean", |one| {
        let sleeps = one.suspension;
        (sleeps.jobs > 0).then(|| sleeps.sum_ns as f64 / sleeps.jobs as f64)
    }),
    ("asleep, longest", |one| (one.suspension.jobs > 0).then_some(one.suspension.total_ns as f64)),
];

fn periodic(one: &ThreadModel) -> Option<&ThreadModel> {
    (one.release.kind == ReleaseKind::Periodic).then_some(one)
}

fn apart(one: &ThreadModel) -> Option<&ThreadModel> {
    matches!(one.release.kind, ReleaseKind::Sporadic | ReleaseKind::Curve).then_some(one)
}

fn rate(one: &ThreadModel) -> Option<f64> {
    let release = &one.release;
    let length_ns = release.to_ns.saturating_sub(release.from_ns);
    let distances = release.n.checked_sub(1).filter(|n| *n > 0 && length_ns > 0)?;
    Some(distances as f64 * 1e9 / length_ns as f64)
}

/// Compares the threads of two programs that have a name alone.
pub fn compare(before: &TaskModel, after: &TaskModel) -> Compared {
    let (before, after) = (known(before), known(after));
    let mut names: Vec<&str> = before.iter().chain(&after).map(|one| one.comm.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let (mut pairs, mut unmatched) = (Vec::new(), Vec::new());
    for name in names {
        match (only(&before, name), only(&after, name)) {
            (Some(one), Some(other)) => pairs.push((one, other)),
            _ => unmatched.push(name.to_owned()),
        }
    }
    let alike = pairs.iter().filter(|(one, other)| one.release.kind == other.release.kind).count();
    let quantities = ROWS.iter().filter_map(|row| quantity(*row, &pairs)).collect();
    Compared { threads: pairs.len(), alike, quantities, unmatched }
}

/// The threads of the program of which something is known.
fn known(model: &TaskModel) -> Vec<&ThreadModel> {
    model.threads.iter().filter(|one| one.of_program && one.release.n > 0).collect()
}

/// The one that has this name, where no other has.
fn only<'a>(all: &[&'a ThreadModel], name: &str) -> Option<&'a ThreadModel> {
    let mut named = all.iter().filter(|one| one.comm == name);
    named.next().filter(|_| named.next().is_none()).copied()
}

fn quantity((what, of): Row, pairs: &[(&ThreadModel, &ThreadModel)]) -> Option<Quantity> {
    let mut all: Vec<(f64, &str, f64, f64)> = pairs
        .iter()
        .filter_map(|(one, other)| {
            let (before, after) = (of(one)?, of(other)?);
            Some((relative(before, after), one.comm.as_str(), before, after))
        })
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (largest, thread, before, after) = *all.last()?;
    let median = all[all.len() / 2].0;
    let thread = thread.to_owned();
    Some(Quantity { what: what.to_owned(), n: all.len(), median, largest, thread, before, after })
}

/// Of the first value, or of 1 where that is less: of times that small only a part is measured.
fn relative(before: f64, after: f64) -> f64 {
    (after - before).abs() / before.abs().max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task_model::tests::{program, thread};

    #[test]
    fn quantities_are_compared_by_name_and_the_largest_difference_is_named() {
        let before = program(vec![thread(1, 20, 1_000_000, 2_000), thread(2, 30, 1_000_000, 2_000)], vec![]);
        let mut after = before.clone();
        after.threads[0].cost.curve_ns = vec![2_100];
        (after.threads[0].pid, after.threads[1].release.kind) = (9, ReleaseKind::Sporadic);
        let found = compare(&before, &after);
        assert_eq!((found.threads, found.alike, found.unmatched.len()), (2, 1, 0));
        let of = |what: &str| found.quantities.iter().find(|one| one.what == what);
        assert_eq!(of("period").map(|one| (one.n, one.largest)), Some((1, 0.0)));
        let longest = of("cost, longest").unwrap();
        assert_eq!((longest.n, longest.thread.as_str()), (2, "t1"));
        assert!((longest.largest - 0.05).abs() < 1e-9);
        assert_eq!(longest.median.to_bits(), longest.largest.to_bits());
        assert_eq!(of("asleep, mean"), None);
        after.threads[1].comm = "t1".to_owned();
        assert_eq!(compare(&before, &after).unmatched, ["t1", "t2"]);
    }
}
