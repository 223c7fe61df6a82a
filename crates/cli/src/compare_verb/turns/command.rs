//! One of two commands that are compared: how it is typed, run, timed and ended.

use anyhow::Context;
use model::Error;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use sys::signals::EndSignals;
use sys::{clock, spawn};

/// The last part of what a command has said that an error looks at, bytes.
const SAID: i64 = 4096;

/// A command as typed.
pub(super) struct Command {
    pub(super) words: Vec<OsString>,
    /// Whether it is one of stillcore that makes a run directory.
    pub(super) makes_run: bool,
}

/// How a command has ended.
pub(super) struct Ended {
    /// From just before it was started until it had ended.
    pub(super) wall_ns: i64,
    pub(super) exit: Option<i32>,
    /// Why it cannot be compared.
    pub(super) failed: Option<String>,
    /// The signal by which the user ended it.
    pub(super) signal: Option<&'static str>,
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
        let names_out = |word: &OsString| word == "--out" || word.to_string_lossy().starts_with("--out=");
        if makes_run && words.iter().any(names_out) {
            let what = "a directory for every run of the command";
            return Err(Error::invalid("--out", what, "--out before the first --, for all runs"));
        }
        Ok(Self { words: words.to_vec(), makes_run })
    }

    /// Runs it to its end, in a process group of its own; `run`: the directory for its run. The
    /// first signal asks it to end, the second kills it.
    pub(super) fn run(&self, run: Option<&Path>, signals: &EndSignals) -> anyhow::Result<Ended> {
        let name = self.words[0].to_string_lossy();
        let mut said = tempfile::tempfile().context("no place for what the command says")?;
        let mut command = std::process::Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        if let Some(run) = run.filter(|_| self.makes_run) {
            command.arg("--out").arg(run);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?);
        spawn::die_with_parent(&mut command);
        spawn::unblock_end(&mut command);
        let start_ns = clock::now_ns();
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let (status, signal) = wait(&mut child, signals)?;
        let wall_ns = clock::now_ns() - start_ns;
        // A measurement that found something has measured.
        let good = status.code().is_some_and(|code| code == 0 || code == 2 && self.makes_run);
        let failed = (!good).then(|| why(&mut said, status));
        Ok(Ended { wall_ns, exit: status.code(), failed, signal })
    }
}

fn wait(child: &mut Child, signals: &EndSignals) -> anyhow::Result<(ExitStatus, Option<&'static str>)> {
    let mut asked = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, asked));
        }
        if let Some(signal) = signals.arrived() {
            if asked.is_none() {
                spawn::end_group(child);
            } else {
                spawn::kill_group(child);
            }
            asked = Some(signal);
        }
        EndSignals::wait_with(child, Some(signals))?;
    }
}

/// The status and the last line on standard error.
fn why(said: &mut File, status: ExitStatus) -> String {
    let mut text = Vec::new();
    let length = said.seek(SeekFrom::End(0)).unwrap_or(0);
    let from = SeekFrom::Start(length.saturating_sub(SAID.unsigned_abs()));
    if said.seek(from).is_ok() {
        let _ = said.read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    last.map_or_else(|| status.to_string(), |line| format!("{status}: {}", model::foreign::in_a_line(line)))
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
        assert_eq!(makes("cp --out x"), Some(false));
    }
}
