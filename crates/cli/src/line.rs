//! Which verb the words of a command line reach, before they are parsed.

use clap::Command;
use std::ffi::OsString;

/// The option of all verbs that chooses colours.
const COLOR: &str = "--color";

/// The innermost verb that words name.
pub(crate) struct Reached<'a> {
    /// Its names from outside to inside; empty for the program itself.
    pub(crate) path: Vec<String>,
    /// Its declaration.
    pub(crate) command: &'a Command,
    /// Index of the first word behind its name.
    pub(crate) next: usize,
}

/// Follows the words behind the program's name as far as they name verbs.
pub(crate) fn reached<'a>(command: &'a Command, words: &[OsString]) -> Reached<'a> {
    let mut reached = Reached { path: Vec::new(), command, next: 1 };
    let mut at = 1;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        if let Some(inner) = reached.command.find_subcommand(word) {
            reached.path.push(inner.get_name().to_owned());
            reached.command = inner;
            reached.next = at + 1;
        } else if word == COLOR {
            // The one option with a value that may stand before a verb.
            at += 1;
        } else if !word.starts_with('-') {
            break;
        }
        at += 1;
    }
    reached
}
