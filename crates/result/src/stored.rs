//! The file of one result: `docs/results/NAME.json`, what was measured when, where, on which
//! program, and the rows.

use crate::row::Row;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Schema of the file.
pub const SCHEMA: &str = "stillcore.result/1";

/// A stored result. Only the newest of a name is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// [`SCHEMA`].
    pub schema: String,
    /// As in `xtask/jobs.toml`; the file is `NAME.json`.
    pub name: String,
    /// Short hash of the measured commit, with `-dirty` where files outside docs/ differed from it.
    pub commit: String,
    /// The cargo profile of what was measured.
    pub profile: String,
    /// Whether the shipped program was measured: `dist` then wants this result to be of the file
    /// that it ships.
    pub program: bool,
    /// SHA-256 of the program; null where none was measured or its hash was not recorded.
    pub binary_sha256: Option<String>,
    /// Kernel, architecture, processor, number of CPUs.
    pub machine: String,
    /// When it began, UTC, `YYYY-MM-DDTHH:MM:SSZ`.
    pub started: String,
    /// Wall time of its commands, seconds, with what cargo still had to build; null where that was
    /// not recorded.
    pub took_s: Option<f64>,
    /// What was run.
    pub command: String,
    /// Conditions, one sentence each.
    pub notes: Vec<String>,
    /// The numbers.
    pub rows: Vec<Row>,
}

impl Stored {
    /// Reads a result and checks what types do not say: schema, names of rows unique, verdicts that
    /// follow from numbers.
    ///
    /// # Errors
    /// A sentence with line and column where the JSON is wrong, else with the name of the row.
    pub fn read(text: &str) -> Result<Self, String> {
        let stored: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if stored.schema != SCHEMA {
            return Err(format!("schema {:?}; expected {SCHEMA:?}", stored.schema));
        }
        for (at, row) in stored.rows.iter().enumerate() {
            if row.what.contains(['/', ';', '*']) {
                return Err(format!("row {:?}; expected a name without `/`, `;`, `*`", row.what));
            }
            if stored.rows[..at].iter().any(|earlier| earlier.what == row.what) {
                return Err(format!("row {:?} occurs twice", row.what));
            }
            if row.verdict != row.verdict_of_numbers() {
                return Err(format!(
                    "row {:?} has the verdict {:?}; its numbers give {:?}",
                    row.what,
                    row.verdict,
                    row.verdict_of_numbers()
                ));
            }
        }
        Ok(stored)
    }

    /// The file: a line a key, a line a row, so that two results differ in lines that a person can
    /// read.
    ///
    /// # Errors
    /// Of serde_json; none of these types has any.
    pub fn write(&self) -> serde_json::Result<String> {
        let mut head = serde_json::to_value(self)?;
        let keys = [
            "schema",
            "name",
            "commit",
            "profile",
            "program",
            "binary_sha256",
            "machine",
            "started",
            "took_s",
            "command",
            "notes",
        ];
        let mut text = String::from("{\n");
        // Writing to a string cannot fail.
        for key in keys {
            let _ = writeln!(text, "  {}: {},", serde_json::to_string(key)?, head[key].take());
        }
        let row = |row| Ok(format!("    {}", serde_json::to_string(row)?));
        let rows: Vec<String> = self.rows.iter().map(row).collect::<serde_json::Result<_>>()?;
        let _ = writeln!(text, "  \"rows\": [\n{}\n  ]\n}}", rows.join(",\n"));
        Ok(text)
    }

    /// The row of this name.
    pub fn row(&self, what: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.what == what)
    }

    /// The day on which it began, `YYYY-MM-DD`.
    pub fn date(&self) -> &str {
        self.started.get(..10).unwrap_or(&self.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Limit, Of, Verdict};

    fn stored() -> Stored {
        let row = Row::new("rate", 2.0, "1-s").n(3).budget(Of::Value, Limit::AtLeast(1.0));
        Stored {
            schema: SCHEMA.into(),
            name: "bench-x".into(),
            commit: "0123abc".into(),
            profile: "dist".into(),
            program: true,
            binary_sha256: None,
            machine: "Linux".into(),
            started: "2026-11-22T01:02:03Z".into(),
            took_s: Some(1.5),
            command: "cargo xtask bench x".into(),
            notes: vec!["one \"CPU\"".into()],
            rows: vec![row, Row::absent("other", "not here")],
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let text = stored().write().unwrap();
        assert_eq!(Stored::read(&text).unwrap(), stored());
        assert_eq!(text.lines().count(), 1 + 11 + 1 + 2 + 2, "{text}");
        assert_eq!(stored().date(), "2026-11-22");
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let refused = |change: fn(&mut Stored)| {
            let mut wrong = stored();
            change(&mut wrong);
            Stored::read(&wrong.write().unwrap()).unwrap_err()
        };
        assert!(refused(|one| one.rows[0].verdict = Verdict::Missed).contains("its numbers give Met"));
        assert!(refused(|one| one.rows[1].what = "rate".into()).contains("twice"));
        assert!(refused(|one| one.schema = "other/1".into()).contains("schema"));
        assert!(refused(|one| one.rows[0].what = "a/b".into()).contains("without"));
    }
}
