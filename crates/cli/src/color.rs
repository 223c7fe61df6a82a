//! Whether output has colours: `--color` of the whole program, else NO_COLOR (no-color.org) and
//! whether a terminal reads it.

use clap::{ColorChoice, ValueEnum};
use std::ffi::OsString;
use std::io::{IsTerminal, stderr, stdout};
use std::sync::OnceLock;

/// When output has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, if NO_COLOR is not set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

static WHEN: OnceLock<When> = OnceLock::new();

/// Takes what the words ask for, before they are parsed: their errors have colours, too.
pub(crate) fn choose(words: &[OsString]) -> ColorChoice {
    let when = asked(words).unwrap_or(When::Auto);
    // A second one would be the same.
    let _ = WHEN.set(when);
    match when {
        When::Always => ColorChoice::Always,
        When::Never => ColorChoice::Never,
        When::Auto if no_color() => ColorChoice::Never,
        When::Auto => ColorChoice::Auto,
    }
}

/// The last `--color` before a `--`, if its value is one.
fn asked(words: &[OsString]) -> Option<When> {
    let words: Vec<_> = words.iter().map_while(|word| word.to_str().filter(|word| *word != "--")).collect();
    let mut values =
        words.iter().enumerate().filter_map(|(at, word)| match word.strip_prefix("--color")? {
            "" => words.get(at + 1).copied(),
            rest => rest.strip_prefix('='),
        });
    values.next_back().and_then(|value| When::from_str(value, false).ok())
}

/// Whether standard output has colours.
pub(crate) fn on_stdout() -> bool {
    in_force(stdout().is_terminal())
}

/// Whether standard error has colours.
pub(crate) fn on_stderr() -> bool {
    in_force(stderr().is_terminal())
}

fn in_force(terminal: bool) -> bool {
    match WHEN.get().copied().unwrap_or(When::Auto) {
        When::Always => true,
        When::Never => false,
        When::Auto => terminal && !no_color(),
    }
}

fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_choice_before_the_command_counts() {
        let asked = |line: &str| asked(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(asked("stillcore audit --color never"), Some(When::Never));
        assert_eq!(asked("stillcore --color=always audit --color auto"), Some(When::Auto));
        assert_eq!(asked("stillcore isolate run -- ls --color=always"), None);
        assert_eq!(asked("stillcore audit --color red"), None);
    }
}
