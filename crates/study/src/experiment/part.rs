//! The description of a directory of results, and how several of them are merged: every cell of the
//! plan once, none of another plan.
//!
//! A cell's id and seed are hashes of what it is, so that results of parts that ran on different
//! machines are those of one run of the whole.

use super::declared::Experiment;
use super::fault::Fault;
use super::plan::{Plan, Planned};
use super::published::Published;
use super::result::CellState;
use crate::spec::StudyError;
use crate::store::{Entry, Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use thiserror::Error;

/// Schema of [`Part`].
pub const PART_SCHEMA: &str = "stillcore.study-part/1";

/// `plan.json`: the plan, and which part of it is here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// [`PART_SCHEMA`].
    pub schema: String,
    /// Name of the experiment.
    pub name: String,
    /// Its file, whole.
    pub experiment: String,
    /// Kernels of the lab, or those that machines ran; none for machines where the file names none.
    pub kernels: Vec<String>,
    /// Whether they are those that machines ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_machines: bool,
    /// CPUs that are measured on a machine as it stands, so that its next boot measures the same
    /// ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// How often each combination is run.
    pub repetitions: u32,
    /// The scale.
    pub scale: f64,
    /// Which part: `1/1` is all of it.
    pub shard: String,
    /// Cells of the whole plan.
    pub cells: usize,
    /// `stillcore --version` of the program that began it.
    pub tool_version: String,
}

impl Part {
    /// The experiment, read anew; a fault where the published numbers have changed since.
    pub fn declared(&self, published: &Published) -> Result<Experiment, Fault> {
        Experiment::from_toml(&self.experiment, published)
    }

    /// The whole plan.
    pub fn plan(&self, experiment: &Experiment) -> Result<Plan, StudyError> {
        let plan = if self.on_machines { Plan::on_machines } else { Plan::of };
        plan(experiment, &self.kernels, self.repetitions, self.scale)
    }

    /// The same with the kernels of another part of it: parts of machines with different kernels
    /// have cells of their own each.
    #[must_use]
    pub fn with_kernels_of(mut self, other: &Self) -> Self {
        let new = other.kernels.iter().filter(|kernel| !self.kernels.contains(kernel));
        let new: Vec<String> = new.cloned().collect();
        self.kernels.extend(new);
        self.kernels.sort();
        self
    }

    /// The first difference of the plan from another's, if any: its value here and there.
    pub fn differs(&self, other: &Self) -> Option<(String, String)> {
        let pair = |what: &str, here: String, there: String| {
            (here != there).then(|| (format!("{what} {here}"), format!("{what} {there}")))
        };
        let kernels = |part: &Self| {
            if part.kernels.is_empty() { "of the machine".to_owned() } else { part.kernels.join(", ") }
        };
        pair("experiment", format!("{:?}", self.name), format!("{:?}", other.name))
            .or_else(|| pair("scale", self.scale.to_string(), other.scale.to_string()))
            .or_else(|| pair("repetitions", self.repetitions.to_string(), other.repetitions.to_string()))
            .or_else(|| {
                // Those of machines are cells beside one another.
                let apart = self.on_machines && other.on_machines;
                if apart { None } else { pair("kernels", kernels(self), kernels(other)) }
            })
            .or_else(|| {
                (self.experiment != other.experiment)
                    .then(|| ("another text of the experiment".to_owned(), "the same text".to_owned()))
            })
    }
}

/// Why parts do not come together.
#[derive(Debug, Error)]
pub enum PartsError {
    /// A file could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file that is not a result.
    #[error("{}: {reason}; expected the result of a cell", .path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A result of no cell of the plan.
    #[error("{}: a cell that the plan does not have; expected parts of one study", .path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
    },
    /// A cell twice, with the same result.
    #[error("{}: the cell is in {} as well; expected each part once", .path.display(), .other.display())]
    Doubled {
        /// Which.
        path: PathBuf,
        /// Where it was found first.
        other: PathBuf,
    },
    /// A cell twice, with different results.
    #[error("{}: another result than {}; expected one result a cell", .path.display(), .other.display())]
    Contradictory {
        /// Which.
        path: PathBuf,
        /// Where it was found first.
        other: PathBuf,
    },
}

/// Results of parts put together.
#[derive(Debug)]
pub struct Gathered<'a> {
    /// Cells with their results, in the order of the plan.
    pub found: Vec<(&'a Planned, Value)>,
    /// Cells without.
    pub missing: Vec<&'a Planned>,
}

/// Reads every result of `parts`, whose `plan` this is, and of `target`, which may hold some of
/// them already. Nothing is written.
pub fn gather<'a>(plan: &'a Plan, parts: &[Store], target: &Store) -> Result<Gathered<'a>, PartsError> {
    let planned: BTreeMap<&str, &Planned> =
        plan.cells.iter().map(|planned| (planned.cell.id.as_str(), planned)).collect();
    let mut taken: BTreeMap<String, (PathBuf, Value)> = BTreeMap::new();
    let whole = parts.iter().map(|part| (part, false)).chain(std::iter::once((target, true)));
    for (store, is_target) in whole {
        for Entry { path, checkpoint } in store.all()? {
            let checkpoint = match checkpoint {
                Ok(checkpoint) => checkpoint,
                Err(reason) => return Err(PartsError::Damaged { path, reason }),
            };
            let id = checkpoint.cell.id.clone();
            if planned.get(id.as_str()).is_none_or(|planned| planned.cell != checkpoint.cell) {
                return Err(PartsError::Foreign { path });
            }
            match taken.get(&id) {
                None => _ = taken.insert(id, (path, checkpoint.result)),
                // What one machine could not be, another was.
                Some((_, result)) if not_run(result) => _ = taken.insert(id, (path, checkpoint.result)),
                Some(_) if not_run(&checkpoint.result) => {}
                Some((other, result)) if *result != checkpoint.result => {
                    return Err(PartsError::Contradictory { path, other: other.clone() });
                }
                Some(_) if is_target => {}
                Some((other, _)) => return Err(PartsError::Doubled { path, other: other.clone() }),
            }
        }
    }
    let mut gathered = Gathered { found: Vec::new(), missing: Vec::new() };
    for planned in &plan.cells {
        match taken.remove(&planned.cell.id) {
            Some((_, result)) => gathered.found.push((planned, result)),
            None => gathered.missing.push(planned),
        }
    }
    Ok(gathered)
}

/// Whether a result says that the cell's machine was not what it needs.
fn not_run(result: &Value) -> bool {
    serde_json::from_value::<CellState>(result["state"].clone()).is_ok_and(|state| state == CellState::Needs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shard;
    use serde_json::json;
    use std::fs;
    use std::path::Path;

    const TEXT: &str = r#"
schema = "stillcore.experiment/1"
name = "small"
title = "t"
source = "s"
seed = 3
repetitions = 2
[[factor]]
name = "x"
levels = ["a", "b", "c"]
[[step]]
run = ["study", "list"]
[[value]]
name = "n"
title = "n"
at = "studies"
take = "count"
"#;

    fn part() -> Part {
        Part {
            schema: PART_SCHEMA.to_owned(),
            name: "small".to_owned(),
            experiment: TEXT.to_owned(),
            kernels: Vec::new(),
            on_machines: false,
            cpus: None,
            repetitions: 2,
            scale: 1.0,
            shard: "1/1".to_owned(),
            cells: 6,
            tool_version: "0".to_owned(),
        }
    }

    fn plan(part: &Part) -> Plan {
        part.plan(&part.declared(&Published::from_toml("").unwrap()).unwrap()).unwrap()
    }

    /// Every cell's seed as its result, in `count` stores.
    fn stores(plan: &Plan, directory: &Path, count: u32) -> Vec<Store> {
        let store = |index: u32| {
            let store = Store::new(directory.join(index.to_string()));
            for planned in Shard::new(index, count).unwrap().of(&plan.cells) {
                store.save(&planned.cell, json!(planned.cell.seed)).unwrap();
            }
            store
        };
        (1..=count).map(store).collect()
    }

    fn nowhere() -> Store {
        Store::new("/nowhere")
    }

    #[test]
    fn parts_are_the_whole_whatever_their_order() {
        let plan = plan(&part());
        for count in 1..=7 {
            let directory = tempfile::tempdir().unwrap();
            let mut stores = stores(&plan, directory.path(), count);
            stores.reverse();
            let gathered = gather(&plan, &stores, &nowhere()).unwrap();
            assert!(gathered.missing.is_empty());
            let found: Vec<_> = gathered.found.iter().map(|(planned, _)| *planned).collect();
            assert_eq!(found, plan.cells.iter().collect::<Vec<_>>());
            assert!(gathered.found.iter().all(|(planned, result)| *result == json!(planned.cell.seed)));
        }
    }

    #[test]
    fn a_part_that_is_not_given_is_missing() {
        let plan = plan(&part());
        let directory = tempfile::tempdir().unwrap();
        let stores = stores(&plan, directory.path(), 3);
        let gathered = gather(&plan, &stores[..2], &nowhere()).unwrap();
        assert_eq!((gathered.found.len(), gathered.missing.len()), (4, 2));
        assert_eq!(gathered.missing[0], &plan.cells[4]);
    }

    #[test]
    fn what_the_target_holds_already_must_be_the_same() {
        let plan = plan(&part());
        let directory = tempfile::tempdir().unwrap();
        let stores = stores(&plan, directory.path(), 3);
        // The target has the first part: the other two make it whole, and the first may come again.
        assert!(gather(&plan, &stores[1..], &stores[0]).unwrap().missing.is_empty());
        assert!(gather(&plan, &stores, &stores[0]).unwrap().missing.is_empty());
        let other = Store::new(directory.path().join("other"));
        other.save(&plan.cells[0].cell, json!("another")).unwrap();
        let message = gather(&plan, &stores, &other).unwrap_err().to_string();
        assert!(message.starts_with(other.path(&plan.cells[0].cell.id).to_str().unwrap()), "{message}");
        assert!(message.contains("another result than"), "{message}");
    }

    #[test]
    fn what_one_machine_could_not_be_another_was() {
        let plan = plan(&part());
        let directory = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| Store::new(directory.path().join(name)));
        for (at, planned) in plan.cells.iter().enumerate() {
            let needs = |me: usize| {
                if at % 2 == me { json!({ "state": "ok", "n": at }) } else { json!({ "state": "needs" }) }
            };
            first.save(&planned.cell, needs(0)).unwrap();
            second.save(&planned.cell, needs(1)).unwrap();
        }
        for stores in [[first.clone(), second.clone()], [second.clone(), first.clone()]] {
            let gathered = gather(&plan, &stores, &nowhere()).unwrap();
            assert!(
                gathered.found.iter().enumerate().all(|(at, (_, result))| result["n"] == at),
                "{gathered:?}"
            );
        }
        // Two that were not run are one that was not.
        let gathered = gather(&plan, &[first.clone(), first], &nowhere());
        assert!(matches!(gathered, Err(PartsError::Doubled { .. })), "{gathered:?}");
    }

    #[test]
    fn what_is_doubled_contradictory_foreign_or_damaged_is_refused() {
        let plan = plan(&part());
        let directory = tempfile::tempdir().unwrap();
        let stores = stores(&plan, directory.path(), 2);
        let message = |stores: &[Store]| gather(&plan, stores, &nowhere()).unwrap_err().to_string();
        let twice = [stores[0].clone(), stores[0].clone()];
        assert!(message(&twice).contains("expected each part once"), "{}", message(&twice));

        let extra = Store::new(directory.path().join("extra"));
        let all = [stores[0].clone(), stores[1].clone(), extra.clone()];
        extra.save(&plan.cells[0].cell, json!("another")).unwrap();
        assert!(message(&all).contains("another result than"), "{}", message(&all));
        fs::remove_file(extra.path(&plan.cells[0].cell.id)).unwrap();

        let other = Part { scale: 0.5, ..part() };
        let foreign = &super::tests::plan(&other).cells[0].cell.clone();
        extra.save(foreign, json!(1)).unwrap();
        assert!(message(&all).contains("a cell that the plan does not have"), "{}", message(&all));
        fs::write(extra.path(&foreign.id), "{").unwrap();
        assert!(message(&all).contains("expected the result of a cell"), "{}", message(&all));
    }

    #[test]
    fn plans_that_differ_say_in_what() {
        assert_eq!(part().differs(&Part { shard: "2/3".to_owned(), ..part() }), None);
        let difference = |other: Part| part().differs(&other).unwrap().1;
        assert_eq!(difference(Part { name: "b".to_owned(), ..part() }), "experiment \"b\"");
        assert_eq!(difference(Part { scale: 0.1, ..part() }), "scale 0.1");
        assert_eq!(difference(Part { repetitions: 1, ..part() }), "repetitions 1");
        assert_eq!(difference(Part { kernels: vec!["6.1".to_owned()], ..part() }), "kernels 6.1");
        let on = |kernel: &str| Part { kernels: vec![kernel.to_owned()], on_machines: true, ..part() };
        assert_eq!(
            on("6.1").differs(&on("6.12")),
            None,
            "cells of kernels that machines ran lie beside one another"
        );
        assert_eq!(on("6.12").with_kernels_of(&on("6.1")).kernels, ["6.1", "6.12"]);
        assert_eq!(difference(on("6.1")), "kernels 6.1");
        // The plan of both has the cells of each, and boots none of the lab.
        let text = TEXT.replace("[[factor]]", "[machine]\nkernels = [\"5.10\"]\n[[factor]]");
        let on = |kernel: &str| Part { experiment: text.clone(), ..on(kernel) };
        let both = plan(&on("6.12").with_kernels_of(&on("6.1")));
        for alone in ["6.1", "6.12"].map(|kernel| plan(&on(kernel))) {
            assert!(alone.cells.iter().all(|one| both.cells.contains(one) && one.boot.kernel.is_none()));
        }
        assert_eq!(difference(Part { experiment: String::new(), ..part() }), "the same text");
    }
}
