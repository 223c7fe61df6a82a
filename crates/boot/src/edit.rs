//! What changes on a command line, as words by name: forward, backward, and between two lines.

use super::line::{exchange, plain_name, words, words_of};
use serde::{Deserialize, Serialize};

/// The words of one parameter before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The parameter's name, with `_` for `-`.
    pub name: String,
    /// Its words before.
    pub old: Vec<String>,
    /// Its words after.
    pub new: Vec<String>,
}

/// What leads from one line to another.
pub(crate) fn between(old: &str, new: &str) -> Vec<Edit> {
    let mut names = Vec::new();
    for word in words(old).into_iter().chain(words(new)) {
        let name = plain_name(word.name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let owned = |line: &str, name: &str| words_of(line, name).into_iter().map(str::to_owned).collect();
    let all = names.into_iter().map(|name| Edit { old: owned(old, &name), new: owned(new, &name), name });
    all.filter(|edit| edit.old != edit.new).collect()
}

/// The line with the new words, whatever words of these names it had.
pub(crate) fn forward(line: &str, edits: &[Edit]) -> String {
    edits.iter().fold(line.to_owned(), |line, edit| exchange(&line, &edit.name, &edit.new))
}

/// The line with the old words where the new ones stand as they were put; others' words stay.
pub(crate) fn backward(line: &str, edits: &[Edit]) -> String {
    edits.iter().fold(line.to_owned(), |line, edit| {
        if words_of(&line, &edit.name) == edit.new { exchange(&line, &edit.name, &edit.old) } else { line }
    })
}
