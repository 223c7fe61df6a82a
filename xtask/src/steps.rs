//! Runs named steps one after the other, prints how long each took, and counts. A failed step does not stop the
//! others: one run shows everything that is wrong.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// One step: its name, and what it does.
pub(crate) struct Step<'a> {
    pub name: &'a str,
    pub run: Box<dyn FnOnce() -> Result<()> + 'a>,
}

/// What became of one step.
pub(crate) struct Done {
    pub name: String,
    pub took: Duration,
    pub failure: Option<String>,
}

impl<'a> Step<'a> {
    pub(crate) fn new(name: &'a str, run: impl FnOnce() -> Result<()> + 'a) -> Self {
        Self { name, run: Box::new(run) }
    }
}

/// Runs every step in order.
pub(crate) fn run_all(steps: Vec<Step<'_>>) -> Vec<Done> {
    steps
        .into_iter()
        .map(|step| {
            println!("\n=== {}", step.name);
            let started = Instant::now();
            let failure = (step.run)().err().map(|error| format!("{error:#}"));
            let took = started.elapsed();
            if let Some(why) = &failure {
                println!("=== {} FAILED: {why}", step.name);
            }
            Done { name: step.name.to_owned(), took, failure }
        })
        .collect()
}

/// The table of steps, then the closing line `N passed, N failed` that CI looks for.
pub(crate) fn summary(done: &[Done]) -> String {
    let mut text = String::new();
    let width = done.iter().map(|d| d.name.chars().count()).max().unwrap_or(0);
    for Done { name, took, failure } in done {
        let verdict = if failure.is_some() { "FAILED" } else { "passed" };
        let _ = write!(text, "{verdict}  {name:width$}  {:7.1} s", took.as_secs_f64());
        let _ = match failure {
            Some(why) => writeln!(text, "  {}", why.lines().next().unwrap_or_default()),
            None => writeln!(text),
        };
    }
    let failed = done.iter().filter(|d| d.failure.is_some()).count();
    let _ = writeln!(text, "{} passed, {failed} failed", done.len() - failed);
    text
}

/// Runs a command in `folder` with the terminal as it is, without input, and fails unless it succeeds.
pub(crate) fn run<S: AsRef<OsStr>>(folder: &Path, program: &str, args: &[S]) -> Result<()> {
    let shown: Vec<_> = args.iter().map(|a| a.as_ref().to_string_lossy()).collect();
    println!("$ {program} {}", shown.join(" "));
    let status = Command::new(program)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("run {program}"))?;
    if !status.success() {
        bail!("{program} {}: {status}", shown.first().map_or("", |word| word.as_ref()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_steps_run_and_the_last_line_counts_them() {
        let mut ran = 0;
        let done = {
            let ran = std::cell::Cell::from_mut(&mut ran);
            let count = || ran.set(ran.get() + 1);
            run_all(vec![
                Step::new("one", || {
                    count();
                    Ok(())
                }),
                Step::new("two", || {
                    count();
                    bail!("broken\nin detail")
                }),
                Step::new("three", || {
                    count();
                    Ok(())
                }),
            ])
        };
        assert_eq!(ran, 3);
        let text = summary(&done);
        assert!(text.ends_with("\n2 passed, 1 failed\n"), "{text}");
        assert!(text.contains("FAILED  two"), "{text}");
        assert!(!text.contains("in detail"), "{text}");
    }

    #[test]
    fn a_failing_command_is_an_error_with_its_status() {
        let here = Path::new(".");
        assert!(run(here, "true", &[] as &[&str]).is_ok());
        assert!(format!("{:#}", run(here, "false", &["x"]).unwrap_err()).contains("false x: exit status: 1"));
        assert!(run(here, "no-such-program-here", &[] as &[&str]).is_err());
    }
}
