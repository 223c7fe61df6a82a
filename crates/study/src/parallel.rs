//! The loop of [`crate::run()`] for independent cells (guests, remote machines), several at a time;
//! it continues past a cell that fails.

use crate::cell::Cell;
use crate::store::{Found, Store, StoreError};
use serde_json::Value;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What became of the cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempted<E> {
    /// The result of each cell, in the order of the cells. A failure is not stored: the next call
    /// tries again.
    pub cells: Vec<(Cell, Result<Value, E>)>,
    /// How many were run now, failures included.
    pub ran: usize,
    /// How many had a result already.
    pub resumed: usize,
    /// Cells whose checkpoint was not theirs, and why; they were run anew.
    pub stale: Vec<(Cell, String)>,
}

/// Runs those of `cells` that have no result, `jobs` at a time, each in a thread of its own that lives as long as the cell runs.
pub fn run_parallel<E: Send>(
    cells: &[Cell],
    store: &Store,
    jobs: NonZeroUsize,
    runner: impl Fn(&Cell) -> Result<Value, E> + Sync,
) -> Result<Attempted<E>, StoreError> {
    let mut found = Vec::with_capacity(cells.len());
    let mut stale = Vec::new();
    for cell in cells {
        found.push(match store.find(cell)? {
            Found::Done(result) => Some(result),
            Found::Absent => None,
            Found::Stale(reason) => {
                stale.push((cell.clone(), reason));
                None
            }
        });
    }
    let todo: Vec<usize> = (0..cells.len()).filter(|&at| found[at].is_none()).collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(todo.len()));
    let worker = || {
        while let Some(&at) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = runner(&cells[at]);
            let saved = result.as_ref().map_or(Ok(()), |result| store.save(&cells[at], result.clone()));
            // A thread that panicked has pushed whole or not at all.
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, result, saved));
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.get().min(todo.len()) {
            scope.spawn(worker);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(at, ..)| *at);
    let (ran, resumed) = (done.len(), cells.len() - todo.len());
    let mut results: Vec<Option<Result<Value, E>>> = found.into_iter().map(|found| found.map(Ok)).collect();
    for (at, result, saved) in done {
        saved?;
        results[at] = Some(result);
    }
    let cells = cells.iter().cloned().zip(results).filter_map(|(cell, result)| Some((cell, result?)));
    Ok(Attempted { cells: cells.collect(), ran, resumed, stale })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{STUDY_SCHEMA, Study};
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::sync::Barrier;

    fn cells() -> Vec<Cell> {
        let study = Study {
            schema: STUDY_SCHEMA.to_owned(),
            name: "s".to_owned(),
            runner: String::new(),
            seed: 1,
            factors: BTreeMap::from([("x".to_owned(), (0..6).map(Value::from).collect())]),
            repetitions: 1,
        };
        study.cells().unwrap()
    }

    const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

    #[test]
    fn a_failure_is_reported_not_stored_and_tried_again() {
        let (cells, directory) = (cells(), tempfile::tempdir().unwrap());
        let store = Store::new(directory.path());
        let odd = |cell: &Cell| cell.factors["x"].as_i64().unwrap() % 2 == 1;
        let first =
            run_parallel(
                &cells,
                &store,
                TWO,
                |cell| {
                    if odd(cell) { Err("odd") } else { Ok(json!(cell.seed)) }
                },
            );
        let first = first.unwrap();
        assert_eq!((first.ran, first.resumed), (6, 0));
        for (cell, (same, result)) in cells.iter().zip(&first.cells) {
            assert_eq!(cell, same, "in the order of the cells");
            assert_eq!(*result, if odd(cell) { Err("odd") } else { Ok(json!(cell.seed)) });
        }
        let tried = Mutex::new(Vec::new());
        let second = run_parallel(&cells, &store, TWO, |cell| {
            tried.lock().unwrap().push(cell.factors["x"].as_i64().unwrap());
            Ok::<_, &str>(json!(cell.seed))
        });
        let second = second.unwrap();
        let mut tried = tried.into_inner().unwrap();
        tried.sort_unstable();
        assert_eq!((tried.as_slice(), second.ran, second.resumed), (&[1, 3, 5][..], 3, 3));
        assert!(second.cells.iter().all(|(cell, result)| *result == Ok(json!(cell.seed))));
    }

    /// Each of two waits for the other: one at a time would never end.
    #[test]
    fn two_run_at_once() {
        let (cells, directory) = (cells(), tempfile::tempdir().unwrap());
        let barrier = Barrier::new(2);
        let done = run_parallel(&cells, &Store::new(directory.path()), TWO, |_| {
            barrier.wait();
            Ok::<_, &str>(Value::Null)
        });
        assert_eq!(done.unwrap().ran, 6);
    }
}
