//! The declaration of a study: factors, their values, how often each combination is repeated.

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

use crate::cell::{Cell, canonical};
use crate::order;

/// Most cells a study may have: beyond it a declaration is taken for a mistake.
pub const MAX_CELLS: u64 = 1_000_000;

/// A declared matrix. Its cells are all combinations of one value a factor, each `repetitions`
/// times.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Name of the study; part of the identity of its cells.
    pub name: String,
    /// From which the order and the seed of every cell follow.
    pub seed: u64,
    /// Values of each factor, at least one, none twice.
    pub factors: BTreeMap<String, Vec<Value>>,
    /// How often each combination is run, at least once.
    pub repetitions: u32,
}

/// What is wrong with a declaration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StudyError {
    /// A study without a name.
    #[error("name is empty, expected a name for the study")]
    NoName,
    /// A factor without values leaves no cells.
    #[error("factor \"{factor}\" has no values, expected at least one")]
    NoValues {
        /// The factor.
        factor: String,
    },
    /// The same value twice would be the same cell twice.
    #[error("factor \"{factor}\" lists {value} twice, expected each value once")]
    Twice {
        /// The factor.
        factor: String,
        /// The value, as JSON.
        value: String,
    },
    /// Nothing to run.
    #[error("repetitions is 0, expected at least 1")]
    NoRepetitions,
    /// More cells than anybody means.
    #[error("the matrix has more than {MAX_CELLS} cells, expected at most that")]
    TooMany,
}

impl Study {
    /// Every cell, in the order in which to run them: each repetition is a block with every
    /// combination once, shuffled by the seed, so that slow changes of a machine fall on all
    /// combinations alike.
    pub fn cells(&self) -> Result<Vec<Cell>, StudyError> {
        self.check()?;
        let combinations = self.combinations();
        let block = |repetition| {
            let cell = |factors: &BTreeMap<String, Value>| {
                Cell::new(&self.name, self.seed, factors.clone(), repetition)
            };
            order::shuffled(self.seed, combinations.iter().map(cell).collect())
        };
        Ok((0..self.repetitions).flat_map(block).collect())
    }

    fn check(&self) -> Result<(), StudyError> {
        if self.name.is_empty() {
            return Err(StudyError::NoName);
        }
        if self.repetitions == 0 {
            return Err(StudyError::NoRepetitions);
        }
        for (factor, values) in &self.factors {
            check_factor(factor, values)?;
        }
        let sizes = self.factors.values().map(|values| values.len() as u64);
        let cells = sizes.fold(u64::from(self.repetitions), u64::saturating_mul);
        if cells > MAX_CELLS { Err(StudyError::TooMany) } else { Ok(()) }
    }

    fn combinations(&self) -> Vec<BTreeMap<String, Value>> {
        let mut combinations = vec![BTreeMap::new()];
        for (factor, values) in &self.factors {
            let extended = |partial: &BTreeMap<String, Value>| {
                let with = |value: &Value| {
                    let mut next = partial.clone();
                    next.insert(factor.clone(), value.clone());
                    next
                };
                values.iter().map(with).collect::<Vec<_>>()
            };
            combinations = combinations.iter().flat_map(extended).collect();
        }
        combinations
    }
}

fn check_factor(factor: &str, values: &[Value]) -> Result<(), StudyError> {
    if values.is_empty() {
        return Err(StudyError::NoValues { factor: factor.to_owned() });
    }
    let mut seen: Vec<String> = values.iter().map(canonical).collect();
    seen.sort_unstable();
    match seen.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(StudyError::Twice { factor: factor.to_owned(), value: pair[0].clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn study() -> Study {
        let factor = |values: [serde_json::Value; 2]| values.to_vec();
        Study {
            name: "wakeup-peers".to_owned(),
            seed: 7,
            factors: BTreeMap::from([
                ("probe".to_owned(), factor(["stillcore".into(), "cyclictest".into()])),
                ("interval_us".to_owned(), factor([250.into(), 1000.into()])),
            ]),
            repetitions: 3,
        }
    }

    #[test]
    fn every_combination_once_a_repetition() {
        let cells = study().cells().unwrap();
        assert_eq!(cells.len(), 12);
        for (repetition, block) in cells.chunks(4).enumerate() {
            assert!(block.iter().all(|cell| cell.repetition == repetition as u32));
            let combinations: BTreeSet<String> =
                block.iter().map(|cell| serde_json::to_string(&cell.factors).unwrap()).collect();
            assert_eq!(combinations.len(), 4);
        }
        let ids: BTreeSet<&String> = cells.iter().map(|cell| &cell.id).collect();
        assert_eq!(ids.len(), 12);
    }

    #[test]
    fn a_study_without_factors_is_its_repetitions() {
        let study = Study { factors: BTreeMap::new(), repetitions: 2, ..study() };
        assert_eq!(study.cells().unwrap().len(), 2);
    }

    #[test]
    fn bad_declarations_get_one_sentence() {
        let error = |study: Study| study.cells().unwrap_err().to_string();
        let with = |values: Vec<Value>| Study {
            factors: BTreeMap::from([("interval_us".to_owned(), values)]),
            ..study()
        };
        assert_eq!(error(Study { repetitions: 0, ..study() }), "repetitions is 0, expected at least 1");
        assert_eq!(error(with(Vec::new())), "factor \"interval_us\" has no values, expected at least one");
        assert_eq!(
            error(with(vec![250.into(), 250.into()])),
            "factor \"interval_us\" lists 250 twice, expected each value once"
        );
        assert_eq!(
            error(Study { name: String::new(), ..study() }),
            "name is empty, expected a name for the study"
        );
        assert_eq!(
            error(Study { repetitions: 4_000_000_000, ..study() }),
            "the matrix has more than 1000000 cells, expected at most that"
        );
    }

    proptest! {
        #[test]
        fn the_order_depends_on_the_seed_alone(seed in any::<u64>(), repetitions in 1u32..5) {
            let study = Study { seed, repetitions, ..study() };
            let cells = study.cells().unwrap();
            prop_assert_eq!(&cells, &study.cells().unwrap());
            prop_assert_eq!(cells.len(), 4 * repetitions as usize);
        }
    }
}
