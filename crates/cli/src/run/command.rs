//! One command that this program starts and waits for: in a process group of its own, timed, ended
//! by the user's signals.

use anyhow::Context;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::process::{Child, Command, ExitStatus, Stdio};
use sys::signals::EndSignals;
use sys::{clock, spawn};

/// The last part of what a command has said that an error looks at, bytes.
const SAID: i64 = 4096;

/// How a command has ended.
pub(crate) struct Ended {
    /// From just before it was started until it had ended.
    pub(crate) wall_ns: i64,
    pub(crate) exit: Option<i32>,
    /// What went wrong, where it ended with none of the accepted statuses.
    pub(crate) failed: Option<String>,
    /// The signal by which the user ended it.
    pub(crate) signal: Option<&'static str>,
}

/// Runs it to its end; `accepted`: the exit statuses that are no failure. The first signal asks it
/// to end, the second kills it.
pub(crate) fn run(mut command: Command, accepted: &[i32], signals: &EndSignals) -> anyhow::Result<Ended> {
    let mut said = tempfile::tempfile().context("no place for what the command says")?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?);
    spawn::die_with_parent(&mut command);
    spawn::unblock_end(&mut command);
    let start_ns = clock::now_ns();
    let started = command.spawn();
    let name = || format!("cannot start {}", command.get_program().to_string_lossy());
    let mut child = started.with_context(name)?;
    let (status, signal) = wait(&mut child, signals)?;
    let wall_ns = clock::now_ns() - start_ns;
    let good = status.code().is_some_and(|code| accepted.contains(&code));
    let failed = (!good).then(|| why(&mut said, status));
    Ok(Ended { wall_ns, exit: status.code(), failed, signal })
}

/// Whether a word of a command line is this long option, with or without its value.
pub(crate) fn is_option(word: &OsStr, option: &str) -> bool {
    let word = word.to_string_lossy();
    word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// The words of a command without these long options and their values.
pub(crate) fn without(words: &[OsString], options: &[&str]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !options.iter().any(|option| is_option(word, option)) {
            kept.push(word.clone());
        } else if !word.to_string_lossy().contains('=') {
            words.next();
        }
    }
    kept
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

/// The status, and the error on standard error: what stillcore calls one, else the last line.
fn why(said: &mut File, status: ExitStatus) -> String {
    let mut text = Vec::new();
    let length = said.seek(SeekFrom::End(0)).unwrap_or(0);
    let from = SeekFrom::Start(length.saturating_sub(SAID.unsigned_abs()));
    if said.seek(from).is_ok() {
        let _ = said.read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let error = text.lines().find_map(|line| line.strip_prefix("error: "));
    let last = error.or_else(|| text.lines().rfind(|line| !line.trim().is_empty()));
    last.map_or_else(|| status.to_string(), |line| format!("{status}: {}", model::foreign::in_a_line(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_with_their_values() {
        let words: Vec<OsString> =
            "measure --out x -D 1s --out=y --runs 5 --outer z".split(' ').map(OsString::from).collect();
        let kept = without(&words, &["--out", "--runs"]);
        assert_eq!(kept.join(" ".as_ref()), "measure -D 1s --outer z");
    }
}
