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

static DEFINITION: OnceLock<fn() -> clap::Command> = OnceLock::new();

/// Sets where the definition of the command line comes from: once, before any verb runs.
pub(crate) fn define_by(definition: fn() -> clap::Command) {
    // A second one would be the same.
    let _ = DEFINITION.set(definition);
}

/// The command line's definition, whose names are those that a user types.
pub(crate) fn command() -> clap::Command {
    DEFINITION.get().map_or_else(|| clap::Command::new("stillcore"), |definition| definition())
}

/// What is wrong with a call, in one line; nothing where nobody has said how to check.
pub(crate) fn wrong(words: &[String]) -> Option<String> {
    CHECK.get().and_then(|check| check(words))
}
