//! Whether words are a call that this program takes, for modules that the table of verbs is made of
//! and that cannot see it.

use std::sync::OnceLock;

/// Says what is wrong with the words behind the program's name, if anything.
type Check = fn(&[String]) -> Option<String>;

static CHECK: OnceLock<Check> = OnceLock::new();

/// Sets how calls are checked: once, before any verb runs.
pub(crate) fn check_by(check: Check) {
    // A second one would be the same.
    let _ = CHECK.set(check);
}

/// What is wrong with a call, in one line; nothing where nobody has said how to check.
pub(crate) fn wrong(words: &[String]) -> Option<String> {
    CHECK.get().and_then(|check| check(words))
}
