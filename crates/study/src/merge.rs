//! Merges several stores into one: results of shards that ran on different machines.

use std::path::PathBuf;

use crate::store::{Entry, Found, Store, StoreError};

/// One cell with two different results. The one already in the target is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The cell.
    pub id: String,
    /// The file kept.
    pub kept: PathBuf,
    /// The file left out.
    pub left_out: PathBuf,
}

/// What a merge did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergeReport {
    /// Checkpoints copied.
    pub copied: usize,
    /// Checkpoints the target held already, with the same contents.
    pub identical: usize,
    /// Cells on which two stores disagree.
    pub conflicts: Vec<Conflict>,
    /// Files that are not checkpoints, and why; left out.
    pub invalid: Vec<(PathBuf, String)>,
}

/// Copies every checkpoint of `sources`, in that order, into `target`. A checkpoint in `target` is
/// never replaced by a different one: a conflict is for a person to decide.
pub fn merge(sources: &[Store], target: &Store) -> Result<MergeReport, StoreError> {
    let mut report = MergeReport::default();
    for source in sources {
        for Entry { path, checkpoint } in source.all()? {
            let checkpoint = match checkpoint {
                Ok(checkpoint) => checkpoint,
                Err(reason) => {
                    report.invalid.push((path, reason));
                    continue;
                }
            };
            let cell = &checkpoint.cell;
            match target.find(cell)? {
                Found::Absent => {
                    target.save(cell, checkpoint.result)?;
                    report.copied += 1;
                }
                Found::Done(result) if result == checkpoint.result => report.identical += 1,
                Found::Done(_) | Found::Stale(_) => report.conflicts.push(Conflict {
                    id: cell.id.clone(),
                    kept: target.path(&cell.id),
                    left_out: path,
                }),
            }
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shard, Study, run};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::convert::Infallible;
    use std::fs;

    fn study() -> Study {
        let factors = BTreeMap::from([("x".to_owned(), (0..5).map(Value::from).collect())]);
        Study { name: "s".to_owned(), seed: 3, factors, repetitions: 3 }
    }

    #[test]
    fn merged_shards_are_the_whole() {
        let cells = study().cells().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let shards: Vec<Store> = (1..=4u32)
            .map(|i| {
                let store = Store::new(directory.path().join(i.to_string()));
                let shard = Shard::new(i, 4).unwrap();
                run(shard.of(&cells), &store, |cell| Ok::<_, Infallible>(json!(cell.seed))).unwrap();
                store
            })
            .collect();
        let target = Store::new(directory.path().join("all"));
        let report = merge(&shards, &target).unwrap();
        assert_eq!(report, MergeReport { copied: 15, ..MergeReport::default() });
        let again = merge(&shards, &target).unwrap();
        assert_eq!(again, MergeReport { identical: 15, ..MergeReport::default() });
        let rerun =
            run(&cells, &target, |_| Err::<Value, _>(std::io::Error::other("nothing is left to run")));
        assert_eq!(rerun.unwrap().resumed, 15);
    }

    #[test]
    fn disagreement_and_damage_are_reported_and_nothing_is_replaced() {
        let cells = study().cells().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let [left, right, target] = ["l", "r", "t"].map(|name| Store::new(directory.path().join(name)));
        left.save(&cells[0], json!(1)).unwrap();
        right.save(&cells[0], json!(2)).unwrap();
        right.save(&cells[1], json!(3)).unwrap();
        let damaged = right.path(&cells[1].id);
        fs::write(&damaged, "{").unwrap();

        let report = merge(&[left.clone(), right.clone()], &target).unwrap();
        assert_eq!(report.copied, 1);
        assert_eq!(
            report.conflicts,
            [Conflict {
                id: cells[0].id.clone(),
                kept: target.path(&cells[0].id),
                left_out: right.path(&cells[0].id),
            }]
        );
        assert_eq!(report.invalid.len(), 1);
        assert_eq!(report.invalid[0].0, damaged);
        assert_eq!(target.find(&cells[0]).unwrap(), Found::Done(json!(1)));
    }
}
