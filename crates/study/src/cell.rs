//! One cell: which factors, which repetition. Its id and seed are hashes of what it is, so they are
//! the same on every machine, in every shard and in every version of the program, and independent
//! of the other cells.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// One unit of work of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// First 32 hex digits of the SHA-256 of study, factors and repetition in canonical JSON.
    pub id: String,
    /// Name of the study.
    pub study: String,
    /// One value a factor.
    pub factors: BTreeMap<String, Value>,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Seed for whatever the cell draws; from the study's seed and the id.
    pub seed: u64,
}

impl Cell {
    pub(crate) fn new(
        study: &str,
        study_seed: u64,
        factors: BTreeMap<String, Value>,
        repetition: u32,
    ) -> Self {
        let id = id(study, &factors, repetition);
        let seed = number("stillcore.seed/1", study_seed, &id);
        Self { id, study: study.to_owned(), factors, repetition, seed }
    }

    /// Whether the id is that of the contents: false for a file that was edited or renamed.
    pub fn id_matches(&self) -> bool {
        self.id == id(&self.study, &self.factors, self.repetition)
    }
}

fn id(study: &str, factors: &BTreeMap<String, Value>, repetition: u32) -> String {
    let specification = json!({ "study": study, "factors": factors, "repetition": repetition });
    digest(&[&canonical(&specification)], 16)
}

/// The first `bytes` bytes of the SHA-256 of all parts, one after the other, in hexadecimal digits.
pub fn digest(parts: &[&str], bytes: usize) -> String {
    let whole = parts.iter().fold(Sha256::new(), Digest::chain_update).finalize();
    whole.iter().take(bytes).fold(String::with_capacity(2 * bytes), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// A number that depends on nothing but its inputs: the first 8 bytes of their SHA-256. `purpose`
/// keeps different uses of one seed independent.
pub(crate) fn number(purpose: &str, study_seed: u64, id: &str) -> u64 {
    let mut hash = Sha256::new();
    for part in [purpose, &study_seed.to_string(), id] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// JSON with sorted keys and no white space. Sorted here and not left to the map type of
/// `serde_json`, which keeps insertion order as soon as any crate of the build requires it.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            let pairs: Vec<String> = sorted
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", pairs.join(","))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(seed: u64, repetition: u32) -> Cell {
        let factors = BTreeMap::from([
            ("probe".to_owned(), json!("stillcore")),
            ("opts".to_owned(), json!({ "b": [1, 2.5, null], "a": "x\"y" })),
        ]);
        Cell::new("peers", seed, factors, repetition)
    }

    #[test]
    fn canonical_form_is_sorted_and_escaped() {
        let value = json!({ "b": [1, 2.5, null], "a": "x\"y" });
        assert_eq!(canonical(&value), r#"{"a":"x\"y","b":[1,2.5,null]}"#);
    }

    /// Stored ids must stay valid:
    /// `printf '%s' '{"factors":{"opts":{"a":"x\"y","b":[1,2.5,null]},"probe":"stillcore"}, "repetition":3,"study":"peers"}' | sha256sum`
    /// (without the line break) gives the first, and
    /// `printf 'stillcore.seed/1\0007\000<id>\000' | sha256sum` the second.
    #[test]
    fn ids_and_seeds_are_stable_over_versions() {
        let cell = cell(7, 3);
        assert_eq!(cell.id, "c4957a65412306894a307fde94768508");
        assert_eq!(format!("{:016x}", cell.seed), "e21b1712fa2c1826");
    }

    #[test]
    fn id_covers_the_specification_and_not_the_seed() {
        assert_eq!(cell(1, 0).id, cell(2, 0).id);
        assert_ne!(cell(1, 0).seed, cell(2, 0).seed);
        assert_ne!(cell(1, 0).id, cell(1, 1).id);
        let mut edited = cell(1, 0);
        assert!(edited.id_matches());
        edited.factors.insert("probe".to_owned(), json!("cyclictest"));
        assert!(!edited.id_matches());
    }
}
