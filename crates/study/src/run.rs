//! The loop: skip the cells that have a result, run the others, checkpoint each as soon as it ends.

use serde_json::Value;
use thiserror::Error;

use crate::cell::Cell;
use crate::store::{Found, Store, StoreError};

/// What became of the cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// Every result in the order of the cells, run now or before.
    pub results: Vec<(Cell, Value)>,
    /// How many were run now.
    pub ran: usize,
    /// How many had a result already.
    pub resumed: usize,
    /// Cells whose checkpoint was not theirs, and why; they were run anew and it was replaced.
    pub stale: Vec<(Cell, String)>,
}

/// Why the loop ended early. Checkpoints written until then stay, and the next run resumes from
/// them.
#[derive(Debug, Error)]
pub enum RunError<E: std::error::Error + 'static> {
    /// A checkpoint could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The cell itself failed.
    #[error("cell {}: {source}", .cell.id)]
    Cell {
        /// Which.
        cell: Box<Cell>,
        /// Why, in the runner's words.
        source: E,
    },
}

/// Runs `cells` in the order given, each by `runner`, which returns what is to be stored.
pub fn run<E: std::error::Error + 'static>(
    cells: &[Cell],
    store: &Store,
    mut runner: impl FnMut(&Cell) -> Result<Value, E>,
) -> Result<Progress, RunError<E>> {
    let mut progress = Progress::default();
    for cell in cells {
        match store.find(cell)? {
            Found::Done(result) => {
                progress.resumed += 1;
                progress.results.push((cell.clone(), result));
                continue;
            }
            Found::Stale(reason) => progress.stale.push((cell.clone(), reason)),
            Found::Absent => {}
        }
        let result =
            runner(cell).map_err(|source| RunError::Cell { cell: Box::new(cell.clone()), source })?;
        store.save(cell, result.clone())?;
        progress.ran += 1;
        progress.results.push((cell.clone(), result));
    }
    Ok(progress)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Study;
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    #[derive(Debug, Error)]
    #[error("interrupted")]
    struct Interrupted;

    fn study(seed: u64) -> Study {
        let factors = BTreeMap::from([("x".to_owned(), vec![json!(1), json!(2), json!("a")])]);
        Study { name: "s".to_owned(), seed, factors, repetitions: 2 }
    }

    fn value(cell: &Cell) -> Value {
        json!({ "x": cell.factors["x"], "seed": cell.seed })
    }

    #[test]
    fn an_interrupted_study_ends_as_an_uninterrupted_one() {
        let cells = study(1).cells().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let whole =
            run(&cells, &Store::new(directory.path().join("a")), |c| Ok::<_, Infallible>(value(c))).unwrap();
        assert_eq!((whole.ran, whole.resumed), (6, 0));

        let store = Store::new(directory.path().join("b"));
        let mut left = 4;
        let broken = run(&cells, &store, |cell| {
            left -= 1;
            if left == 0 { Err(Interrupted) } else { Ok(value(cell)) }
        });
        assert_eq!(broken.unwrap_err().to_string(), format!("cell {}: interrupted", cells[3].id));
        let rest = run(&cells, &store, |cell| Ok::<_, Infallible>(value(cell))).unwrap();
        assert_eq!((rest.ran, rest.resumed), (3, 3));
        assert_eq!(rest.results, whole.results);
    }

    #[test]
    fn a_stale_checkpoint_is_reported_and_run_anew() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let run_with = |seed| {
            run(&study(seed).cells().unwrap(), &store, |cell| Ok::<_, Infallible>(value(cell))).unwrap()
        };
        run_with(1);
        let other_seed = run_with(2);
        assert_eq!((other_seed.ran, other_seed.stale.len()), (6, 6));
        assert_eq!(run_with(2).resumed, 6);
    }
}
