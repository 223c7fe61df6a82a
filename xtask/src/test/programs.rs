//! Test programs run as `cargo test` runs them, one after another: their counts are added up, their
//! skips collected, and one that prints nothing for too long is ended.
//!
//! A test that cannot run on this machine prints `skipped: REASON` and returns. Where the reason
//! ends in `(package NAME)`, `deps.sh` installs what is missing, and a strict run counts it as a
//! failure.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::build::Program;
use crate::output::Output;
use crate::steps::Counts;

/// The output of a test that cannot run here.
const SKIPPED: &str = "skipped: ";

/// How a program is run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order<'a> {
    /// Only tests whose name contains this.
    pub filter: Option<&'a str>,
    /// None whose name contains one of these.
    pub skip: &'a [&'a str],
    /// Tests at once, where it is not the number of CPUs.
    pub threads: Option<usize>,
    /// The longest that it may print nothing.
    pub silence: Duration,
    /// Only on CPUs that nothing else wants (SCHED_IDLE).
    pub idle: bool,
}

/// Runs one; fails where a test fails, none ran, or it was ended.
pub(crate) fn run(program: &Program, order: &Order, output: &mut Output, counts: &mut Counts) -> Result<()> {
    let mut args = vec!["--show-output".to_owned()];
    args.extend(order.filter.map(str::to_owned));
    args.extend(order.skip.iter().flat_map(|name| ["--skip".to_owned(), (*name).to_owned()]));
    args.extend(order.threads.map(|threads| format!("--test-threads={threads}")));
    output.line(&format!("\n$ {} {} {}", program.package, program.name, args.join(" ")))?;
    let (status, text) = finish(program, &args, order, output)?;
    let name = format!("{} {}", program.package, program.name);
    let found = parse(&text).with_context(|| format!("{name}: {status}, no line \"test result\""))?;
    let failed = found.failed;
    counts
        .add(Counts { skipped: found.skipped.iter().map(|why| format!("{name}: {why}")).collect(), ..found });
    let names = failures(&text);
    ensure!(failed == 0, "{name}: {failed} tests failed: {}{}", names.join(", "), said(&text, &names));
    ensure!(status.success(), "{name}: {status}");
    Ok(())
}

/// Waits for the end, and returns the output.
fn finish(
    program: &Program,
    args: &[String],
    order: &Order,
    output: &mut Output,
) -> Result<(std::process::ExitStatus, String)> {
    let silence = order.silence;
    let mut command = Command::new(if order.idle { Path::new("chrt") } else { &program.path });
    if order.idle {
        command.args(["--idle", "0"]).arg(&program.path);
    }
    let mut child = command
        .args(args)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(output.stdio()?)
        .spawn()
        .with_context(|| format!("run {}", program.path.display()))?;
    let stdout = child.stdout.take().context("no pipe")?;
    let (send, lines) = channel();
    let reader = thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            if send.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    let mut text = String::new();
    loop {
        match lines.recv_timeout(silence) {
            Ok(line) => {
                output.bytes(&line)?;
                text.push_str(&String::from_utf8_lossy(&line));
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                let _ = child.wait();
                bail!(
                    "{} {} printed nothing for {} s and was ended; its last line: {}",
                    program.package,
                    program.name,
                    silence.as_secs(),
                    text.lines().next_back().unwrap_or("none")
                );
            }
        }
    }
    let status = child.wait().context("wait for a test program")?;
    let _ = reader.join();
    Ok((status, text))
}

/// What the harness counted: `test result: ok. 12 passed; 0 failed; 0 ignored; …`. `None` where
/// there is no such line.
fn parse(text: &str) -> Option<Counts> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("test result: "))?;
    let number = |what: &str| {
        let part = line.split([';', '.']).map(str::trim).find(|part| part.ends_with(what))?;
        part.split(' ').next()?.parse().ok()
    };
    let skipped = text.lines().filter_map(|line| line.strip_prefix(SKIPPED)).map(str::to_owned).collect();
    Some(Counts { passed: number("passed")?, failed: number("failed")?, skipped, notes: Vec::new() })
}

/// The names of failed tests: `test NAME ... FAILED`.
fn failures(text: &str) -> Vec<&str> {
    let name = |line: &'_ str| -> Option<()> { line.ends_with("FAILED").then_some(()) };
    text.lines()
        .filter(|line| line.starts_with("test ") && name(line).is_some())
        .filter_map(|line| line.strip_prefix("test ")?.split(" ... ").next())
        .map(str::trim)
        .collect()
}

/// What failed tests wrote up to the stack of their panic, each below a line with its name: for
/// whoever sees only the terminal. Of long ones the begin and the end: the message of a failed
/// assertion may be a whole answer, with what was expected behind it.
fn said(text: &str, failed: &[&str]) -> String {
    const LINES: usize = 20;
    const LETTERS: usize = 600;
    let mut all = String::new();
    for name in failed {
        let header = format!("---- {name} stdout ----");
        // As tests of guests print it, whose harness is another.
        let short = format!("---- {name} ----");
        let written = text.lines().skip_while(|line| *line != header && *line != short).skip(1);
        let own = written.take_while(|line| *line != "stack backtrace:" && !line.starts_with("---- "));
        let cut = |line: &str| line.chars().take(LETTERS).collect::<String>();
        let lines: Vec<String> = own.filter(|line| !line.is_empty()).map(cut).collect();
        let left_out = lines.len().saturating_sub(LINES);
        let shown = match left_out {
            0 => lines.join("\n"),
            _ => format!(
                "{}\n({left_out} lines left out)\n{}",
                lines[..LINES / 2].join("\n"),
                lines[lines.len() - LINES / 2..].join("\n")
            ),
        };
        let _ = write!(all, "\n{header}\n{shown}");
    }
    all
}

/// Skips that a strict run does not allow: for want of a package that `deps.sh` installs.
pub(crate) fn for_want_of_a_package(counts: &Counts) -> Vec<&str> {
    let names = |why: &&String| why.contains("(package ") && why.ends_with(')');
    counts.skipped.iter().filter(names).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn tests_are_counted_and_those_skipped_are_named() {
        let text = "running 3 tests\ntest a ... ok\ntest b ... FAILED\n\nsuccesses:\n\n---- a stdout ----\n\
                    skipped: needs root\n\nskipped: trace-cmd is missing (package trace-cmd)\n\ntest result: FAILED. 2 passed; \
                    1 failed; 0 ignored; 0 measured; 4 filtered out; finished in 0.10s\n";
        let counts = parse(text).unwrap();
        assert_eq!((counts.passed, counts.failed), (2, 1));
        assert_eq!(counts.skipped, ["needs root", "trace-cmd is missing (package trace-cmd)"]);
        assert_eq!(for_want_of_a_package(&counts), ["trace-cmd is missing (package trace-cmd)"]);
        assert_eq!(failures(text), ["b"]);
        let failed = "failures:\n\n---- a::b stdout ----\n\nthread 'a::b' (7) panicked at x.rs:9:5:\nleft: 1\n\
                      stack backtrace:\n   0: begin\n\n---- c stdout ----\nError: none\n\nfailures:\n    a::b\n";
        assert_eq!(
            said(failed, &["a::b"]),
            "\n---- a::b stdout ----\nthread 'a::b' (7) panicked at x.rs:9:5:\nleft: 1"
        );
        let lines: Vec<String> = (0..30).map(|line| line.to_string()).collect();
        let long = format!("---- g ----\n{}\n\n\nfailures:\n", lines.join("\n"));
        let shown = said(&long, &["g"]);
        assert!(shown.starts_with("\n---- g stdout ----\n0\n1\n"), "{shown}");
        assert!(shown.contains("\n9\n(11 lines left out)\n"), "{shown}");
        assert_eq!(parse("running 3 tests\nSegmentation fault\n"), None);
    }

    fn shell(script: &str) -> (Program, Vec<String>) {
        let place = (PathBuf::from("/bin/sh"), Path::new("/").to_owned());
        let program = Program { package: "p".into(), name: "n".into(), path: place.0, folder: place.1 };
        (program, vec!["-c".into(), script.into()])
    }

    fn silent_for(ms: u64) -> Order<'static> {
        Order { silence: Duration::from_millis(ms), ..Order::default() }
    }

    #[test]
    fn a_silent_program_is_ended_and_a_talking_one_is_not() {
        let mut output = Output::Terminal;
        let (program, args) = shell("echo one; echo two");
        let (status, text) = finish(&program, &args, &silent_for(30_000), &mut output).unwrap();
        assert!(status.success() && text == "one\ntwo\n");
        let (program, args) = shell("echo one; exec sleep 60");
        let ended = finish(&program, &args, &silent_for(300), &mut output).unwrap_err();
        assert!(format!("{ended:#}").contains("its last line: one"), "{ended:#}");
    }
}
