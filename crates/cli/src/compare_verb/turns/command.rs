//! One of two commands that are compared: how it is typed, and what makes it a measurement.

use crate::run::command::{self, Ended};
use model::Error;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use sys::signals::EndSignals;

/// A command as typed.
pub(super) struct Command {
    pub(super) words: Vec<OsString>,
    /// Whether it is one of stillcore that makes a run directory.
    pub(super) makes_run: bool,
}

/// Two commands with `--` between them.
pub(super) fn two(words: &[OsString]) -> Result<[Command; 2], Error> {
    let parts: Vec<&[OsString]> = words.split(|word| word == "--").collect();
    let [a, b] = parts[..] else {
        let found =
            if parts.len() == 1 { "one command".to_owned() } else { format!("{} commands", parts.len()) };
        let expected = "two, as in compare -- A -- B; one with a -- of its own goes into sh -c \"...\"";
        return Err(Error::invalid("compare --", found, expected));
    };
    if a.is_empty() || b.is_empty() {
        return Err(Error::invalid(
            "compare --",
            "an empty command",
            "two commands, as in compare -- A -- B",
        ));
    }
    Ok([Command::of(a)?, Command::of(b)?])
}

impl Command {
    fn of(words: &[OsString]) -> Result<Self, Error> {
        let makes_run = makes_run(words);
        let names = |option: &str| words.iter().any(|word| command::is_option(word, option));
        if makes_run && names("--out") {
            let what = "a directory for every run of the command";
            return Err(Error::invalid("--out", what, "--out before the first --, for all runs"));
        }
        if makes_run && names("--runs") {
            let what = "several runs in a directory, where compare makes one run a turn";
            return Err(Error::invalid("--runs", what, "--turns N before the first --"));
        }
        Ok(Self { words: words.to_vec(), makes_run })
    }

    /// Runs it to its end; `run`: the directory for its run.
    pub(super) fn run(&self, run: Option<&Path>, signals: &EndSignals) -> anyhow::Result<Ended> {
        let mut command = std::process::Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        if let Some(run) = run.filter(|_| self.makes_run) {
            command.arg("--out").arg(run);
        }
        // A measurement that found something has measured.
        let accepted = if self.makes_run { &[0, 2][..] } else { &[0] };
        command::run(command, accepted, signals)
    }
}

/// Whether a command line is one of stillcore's measurements.
fn makes_run(words: &[OsString]) -> bool {
    let program = Path::new(&words[0]);
    if program.file_name() != Some(OsStr::new("stillcore")) && !is_this_program(program) {
        return false;
    }
    let verbs: Vec<_> = words[1..].iter().take(2).map(|word| word.to_string_lossy()).collect();
    let verbs: Vec<&str> = verbs.iter().map(AsRef::as_ref).collect();
    let compat = words.iter().any(|word| word == "--cyclictest-compat");
    match verbs[..] {
        ["assess", ..] | ["measure", "spin" | "periodic"] => true,
        ["measure", "wakeup"] => !compat,
        _ => false,
    }
}

fn is_this_program(program: &Path) -> bool {
    let own = std::env::current_exe().and_then(std::fs::canonicalize);
    own.is_ok_and(|own| std::fs::canonicalize(program).is_ok_and(|there| there == own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn two_commands_are_told_apart() {
        let [a, b] = two(&words("sleep 1 -- sh -c true")).unwrap();
        assert_eq!((a.words, b.words), (words("sleep 1"), words("sh -c true")));
        for wrong in ["sleep 1", "a -- b -- c", "a --", "-- b"] {
            assert!(two(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn measurements_are_known_by_program_and_verb() {
        let makes = |line: &str| Command::of(&words(line)).map(|command| command.makes_run).ok();
        assert_eq!(makes("/opt/stillcore measure wakeup -D 1s"), Some(true));
        assert_eq!(makes("stillcore assess"), Some(true));
        assert_eq!(makes("stillcore audit"), Some(false));
        assert_eq!(makes("cyclictest -q -l 100"), Some(false));
        assert_eq!(makes("stillcore assess --out x"), None);
        assert_eq!(makes("stillcore measure spin --runs=3"), None);
        assert_eq!(makes("cp --out x"), Some(false));
    }
}
