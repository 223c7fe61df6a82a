//! Rows of a result that was stored before, of readers that do not run this time.

use result::{Row, Sink, Stored};
use std::path::Path;

/// A result that was stored before; none where there is no such file.
pub(crate) struct Before(Option<Stored>);

/// Begins a note that says of which commit the rows of a target are.
const OF_COMMIT: &str = "of commit ";

impl Before {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).ok();
        Self(text.map(|text| Stored::read(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()))))
    }

    /// Keeps the rows of a target, and says of which commit they are; gives its executions.
    pub(crate) fn keep(&self, target: &str, rows: &mut Sink) -> u64 {
        let Some(stored) = &self.0 else { return 0 };
        let begin = format!("{target}: ");
        let of_target: Vec<&Row> = stored.rows.iter().filter(|row| row.what.starts_with(&begin)).collect();
        let Some(first) = of_target.first() else { return 0 };
        let begin = format!("{begin}{OF_COMMIT}");
        let commit = stored.notes.iter().find_map(|note| note.strip_prefix(&begin));
        rows.note(format!("{begin}{}", commit.unwrap_or(&stored.commit))).unwrap();
        let executions = first.n.unwrap_or(0);
        of_target.into_iter().for_each(|row| rows.push(row.clone()).unwrap());
        executions
    }
}
