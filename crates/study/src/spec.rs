//! The declaration of a study: factors, their values, how often each combination is repeated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::cell::{Cell, canonical};
use crate::order;

/// The schema a declaration must name.
pub const STUDY_SCHEMA: &str = "stillcore.study/1";

/// Most cells a study may have: beyond it a declaration is taken for a mistake.
pub const MAX_CELLS: u64 = 1_000_000;

/// A declared matrix. Its cells are all combinations of one value a factor, each `repetitions` times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// [`STUDY_SCHEMA`].
    pub schema: String,
    /// Name of the study; part of the identity of its cells.
    pub name: String,
    /// What runs its cells, by a name that the caller knows; empty where it knows one only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub runner: String,
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
    /// Not TOML, or not of this shape.
    #[error("line {line}: {reason}")]
    Syntax {
        /// Line in the text, from 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// Another schema.
    #[error("schema is \"{found}\", expected \"{STUDY_SCHEMA}\"")]
    Schema {
        /// The schema named.
        found: String,
    },
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
    /// Reads a declaration and checks it.
    pub fn from_toml(text: &str) -> Result<Self, StudyError> {
        let study: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = 1 + text.get(..start).unwrap_or_default().matches('\n').count();
            StudyError::Syntax { line, reason: error.message().trim().replace('\n', ", ") }
        })?;
        study.check()?;
        Ok(study)
    }

    /// Every cell, in the order in which to run them: each repetition is a block with every combination
    /// once, shuffled by the seed, so that slow changes of a machine fall on all combinations alike.
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

    /// The check behind [`Study::from_toml`], for a study built in code.
    pub fn check(&self) -> Result<(), StudyError> {
        if self.schema != STUDY_SCHEMA {
            return Err(StudyError::Schema { found: self.schema.clone() });
        }
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

    const TEXT: &str = r#"
schema = "stillcore.study/1"
name = "wakeup-peers"
seed = 7
repetitions = 3

[factors]
probe = ["stillcore", "cyclictest"]
interval_us = [250, 1000]
"#;

    fn error(text: &str) -> String {
        Study::from_toml(text).unwrap_err().to_string()
    }

    #[test]
    fn every_combination_once_a_repetition() {
        let study = Study::from_toml(TEXT).unwrap();
        let cells = study.cells().unwrap();
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
        let text = "schema='stillcore.study/1'\nname='n'\nseed=1\nrepetitions=2\nfactors={}";
        assert_eq!(Study::from_toml(text).unwrap().cells().unwrap().len(), 2);
    }

    #[test]
    fn bad_declarations_get_one_sentence() {
        assert_eq!(
            error(&TEXT.replace("study/1", "study/9")),
            "schema is \"stillcore.study/9\", expected \"stillcore.study/1\""
        );
        assert_eq!(error(&TEXT.replace("= 3", "= 0")), "repetitions is 0, expected at least 1");
        assert_eq!(
            error(&TEXT.replace("250, 1000", "")),
            "factor \"interval_us\" has no values, expected at least one"
        );
        assert_eq!(
            error(&TEXT.replace("1000", "250")),
            "factor \"interval_us\" lists 250 twice, expected each value once"
        );
        assert_eq!(error(&TEXT.replace("wakeup-peers", "")), "name is empty, expected a name for the study");
        assert_eq!(
            error(&TEXT.replace("= 3", "= 4000000000")),
            "the matrix has more than 1000000 cells, expected at most that"
        );
        assert!(error(&TEXT.replace("seed", "sed")).starts_with("line 4: unknown field `sed`"));
        assert!(error(&TEXT.replace("seed = 7", "seed = -1")).starts_with("line 4: "));
        assert!(error("schema = ").starts_with("line 1: "));
    }

    proptest! {
        #[test]
        fn any_text_is_a_study_or_one_line(text in ".{0,200}", cut in 0usize..150) {
            for text in [text.as_str(), &TEXT[..cut.min(TEXT.len())]] {
                if let Err(error) = Study::from_toml(text) {
                    prop_assert!(!error.to_string().contains('\n'), "{}", error);
                }
            }
        }

        #[test]
        fn the_order_depends_on_the_seed_alone(seed in any::<u64>(), repetitions in 1u32..5) {
            let study = Study { seed, repetitions, ..Study::from_toml(TEXT).unwrap() };
            let cells = study.cells().unwrap();
            prop_assert_eq!(&cells, &study.cells().unwrap());
            prop_assert_eq!(cells.len(), 4 * repetitions as usize);
        }
    }
}
