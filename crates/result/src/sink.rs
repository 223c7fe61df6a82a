//! Where a bench puts its rows: into the file that `--rows FILE` names, a JSON object a line, else
//! into a table for the terminal.

use crate::{row::Row, text};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// A measured number.
    Row(Box<Row>),
    /// A condition of the measurement.
    Note(String),
}

/// Takes rows as they are known; each is in the file at once, so that a bench that fails later has
/// lost none.
#[derive(Debug, Default)]
pub struct Sink {
    file: Option<PathBuf>,
    notes: Vec<String>,
    rows: Vec<Row>,
}

impl Sink {
    /// Writes to the file after `--rows` on the command line, if there is one.
    pub fn of_arguments() -> Self {
        let mut words = std::env::args_os().skip_while(|word| word != "--rows");
        Self { file: words.nth(1).map(PathBuf::from), ..Self::default() }
    }

    /// Writes to a file.
    pub fn to(file: PathBuf) -> Self {
        Self { file: Some(file), ..Self::default() }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn push(&mut self, row: Row) -> io::Result<()> {
        self.append(&Line::Row(Box::new(row.clone())))?;
        self.rows.push(row);
        Ok(())
    }

    /// Adds a condition, one sentence.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn note(&mut self, note: impl Into<String>) -> io::Result<()> {
        let note = note.into();
        self.append(&Line::Note(note.clone()))?;
        self.notes.push(note);
        Ok(())
    }

    fn append(&self, line: &Line) -> io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        writeln!(file, "{}", serde_json::to_string(line)?)
    }

    /// The rows so far.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// What to print at the end: the table, or nothing where the rows went to a file.
    pub fn table(&self) -> String {
        if self.file.is_some() { String::new() } else { text::table(&self.notes, &self.rows) }
    }
}

/// The line of a row, for a program that prints it among other text: `cargo xtask` picks it out.
///
/// # Errors
/// Of serde_json; a row has none.
pub fn line(row: &Row) -> serde_json::Result<String> {
    serde_json::to_string(&Line::Row(Box::new(row.clone())))
}

/// The line of a row or note, if this is one, however far it is indented.
pub fn picked(line: &str) -> Option<Line> {
    let line = line.trim();
    let marked = line.starts_with("{\"row\":") || line.starts_with("{\"note\":");
    if marked { serde_json::from_str(line).ok() } else { None }
}

/// Reads what a [`Sink`] has written.
///
/// # Errors
/// A sentence with the number of the line.
pub fn read(text: &str) -> Result<(Vec<String>, Vec<Row>), String> {
    let (mut notes, mut rows) = (Vec::new(), Vec::new());
    for (at, line) in text.lines().enumerate() {
        match serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))? {
            Line::Row(row) => rows.push(*row),
            Line::Note(note) => notes.push(note),
        }
    }
    Ok((notes, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_back_and_a_torn_one_is_named() {
        let path = std::env::temp_dir().join(format!("stillcore-rows-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut sink = Sink::to(path.clone());
        let row = Row::new("rate", 2.5, "per s");
        sink.note("on CPU 2").unwrap();
        sink.push(row.clone()).unwrap();
        assert_eq!(sink.table(), "", "the rows went to the file");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&text).unwrap(), (vec!["on CPU 2".to_owned()], vec![row]));
        let printed = line(&Row::new("rate", 1.0, "")).unwrap();
        assert!(matches!(picked(&format!("    {printed}")), Some(Line::Row(row)) if row.what == "rate"));
        assert_eq!(picked("test a ... ok"), None);
        assert!(read(&text[..text.len() - 9]).unwrap_err().starts_with("line 2: "));
    }
}
