//! Runs named steps, some of them beside each other, and counts what they tested. A failed step
//! does not stop the others: one run shows everything that is wrong.

use std::fmt::Write as _;
use std::num::NonZero;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use crate::output::Output;

/// Tests of a step. A skipped test is one that ended early because this machine lacks something; it
/// is among the passed ones.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub passed: u32,
    pub failed: u32,
    /// Why, one line a skipped test.
    pub skipped: Vec<String>,
    /// A further remark on the step in the table.
    pub notes: Vec<String>,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped);
        self.notes.extend(other.notes);
    }
}

/// The work of a step: writes to its output, adds to its counts.
type Work<'a> = Box<dyn FnOnce(&mut Output, &mut Counts) -> Result<()> + Send + 'a>;

/// One step.
pub(crate) struct Step<'a> {
    pub name: &'static str,
    pub work: Work<'a>,
    /// It takes only what others leave of the CPUs (SCHED_IDLE).
    idle: bool,
}

/// The outcome of one step.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub name: String,
    pub took: Duration,
    pub counts: Counts,
    pub failure: Option<String>,
}

impl<'a> Step<'a> {
    pub(crate) fn new(
        name: &'static str,
        work: impl FnOnce(&mut Output, &mut Counts) -> Result<()> + Send + 'a,
    ) -> Self {
        Self { name, work: Box::new(work), idle: false }
    }

    /// One whose work runs under SCHED_IDLE: it runs beside the others, however many they are.
    pub(crate) fn idle(self) -> Self {
        Self { idle: true, ..self }
    }

    /// Runs it and prints how it ended; of a failed one also the further lines of its failure, or
    /// the end of its log.
    fn run(self, output: Result<Output>) -> Done {
        let started = Instant::now();
        let mut counts = Counts::default();
        let mut log = None;
        let outcome = output.and_then(|mut output| {
            if let Output::Log { path, .. } = &output {
                log = Some(path.clone());
            }
            (self.work)(&mut output, &mut counts)
        });
        let failure = outcome.err().map(|error| format!("{error:#}"));
        let done = Done { name: self.name.to_owned(), took: started.elapsed(), counts, failure };
        let mut text = row(&done, 0);
        if let (Some(failure), Some(log)) = (&done.failure, log) {
            let more = failure.trim().split_once('\n').map(|(_, more)| format!("{more}\n"));
            let _ = writeln!(text, "--- {}\n{}---", log.display(), more.unwrap_or_else(|| tail(&log)));
        }
        print!("{text}");
        done
    }
}

/// Steps that may run beside each other, taken in order: the longest belong first.
pub(crate) type Phase<'a> = Vec<Step<'a>>;

/// As many of these steps run beside each other: each is meant to keep one CPU busy, but for those
/// that take what is left.
fn at_once(steps: &[Step<'_>]) -> usize {
    let busy = available_parallelism().map_or(2, NonZero::get).max(2);
    steps.len().min(busy + steps.iter().filter(|step| step.idle).count())
}

/// Runs the phases in order; the logs go into `logs`, without which steps write to the terminal.
pub(crate) fn run_all(phases: Vec<Phase<'_>>, logs: Option<&Path>) -> Vec<Done> {
    let output = |name: &str| {
        logs.map_or(Ok(Output::Terminal), |logs| Output::log(logs.join(format!("{}.log", file_name(name)))))
    };
    let mut done = Vec::new();
    for phase in phases {
        let names: Vec<&str> = phase.iter().map(|step| step.name).collect();
        if !names.is_empty() {
            println!("=== {}", names.join(" + "));
        }
        let lanes = at_once(&phase);
        let waiting = Mutex::new(phase.into_iter().enumerate());
        let ended = Mutex::new(Vec::new());
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        std::thread::scope(|scope| {
            for _ in 0..lanes {
                scope.spawn(|| {
                    while let Some((place, step)) = next() {
                        let output = output(step.name);
                        let step = step.run(output);
                        ended.lock().unwrap_or_else(PoisonError::into_inner).push((place, step));
                    }
                });
            }
        });
        let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        ended.sort_by_key(|(place, _)| *place);
        done.extend(ended.into_iter().map(|(_, step)| step));
    }
    done
}

fn file_name(step: &str) -> String {
    step.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// The end of a log, for whoever sees only the terminal.
fn tail(log: &Path) -> String {
    const LINES: usize = 80;
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let mut end = String::new();
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        end.push_str(line);
        end.push('\n');
    }
    end
}

fn row(step: &Done, width: usize) -> String {
    let Done { name, took, counts, failure } = step;
    let verdict = if failure.is_some() { "FAILED" } else { "passed" };
    let mut text = format!("{verdict}  {name:width$}  {:7.1} s", took.as_secs_f64());
    let tests = counts.passed + counts.failed;
    if tests > 0 {
        let _ = write!(text, "  {tests:5} tests, {} skipped", counts.skipped.len());
    }
    if let Some(why) = failure {
        let _ = write!(text, "  {}", why.lines().next().unwrap_or_default());
    }
    text.push('\n');
    text
}

/// The table of steps, what was skipped and why, then the closing line `N passed, N failed` that CI
/// looks for.
pub(crate) fn summary(done: &[Done], wall: Duration) -> String {
    let mut text = String::new();
    let width = done.iter().map(|d| d.name.chars().count()).max().unwrap_or(0);
    for step in done {
        text.push_str(&row(step, width));
        for note in &step.counts.notes {
            let _ = writeln!(text, "        {note}");
        }
    }
    let mut all = Counts::default();
    done.iter().for_each(|step| all.add(step.counts.clone()));
    let _ = writeln!(
        text,
        "{:.1} s in all; {} tests, {} failed",
        wall.as_secs_f64(),
        all.passed + all.failed,
        all.failed
    );
    let _ = writeln!(text, "{} skipped{}", all.skipped.len(), if all.skipped.is_empty() { "" } else { ":" });
    for why in &all.skipped {
        let _ = writeln!(text, "    {why}");
    }
    let failed = done.iter().filter(|d| d.failure.is_some()).count();
    let _ = writeln!(text, "{} passed, {failed} failed", done.len() - failed);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::ensure;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn all_steps_run_and_the_last_line_counts_them() {
        let ran = AtomicU32::new(0);
        let step = |name, failure: bool| {
            let ran = &ran;
            Step::new(name, move |_, counts| {
                ran.fetch_add(1, Ordering::Relaxed);
                counts.passed = 3;
                counts.skipped.push(format!("{name}: needs root"));
                ensure!(!failure, "broken\nin detail");
                Ok(())
            })
        };
        let many = ["b", "c", "d", "e", "f", "g"].map(|name| step(name, false));
        let phases = vec![vec![step("one", false), step("two", true)], many.into()];
        let done = run_all(phases, None);
        assert_eq!(ran.load(Ordering::Relaxed), 8);
        let order: Vec<&str> = done.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(order, ["one", "two", "b", "c", "d", "e", "f", "g"]);
        let text = summary(&done, Duration::from_secs(1));
        assert!(text.ends_with("\n7 passed, 1 failed\n"), "{text}");
        assert!(text.contains("FAILED  two"), "{text}");
        assert!(text.contains("24 tests, 0 failed\n8 skipped:\n    one: needs root\n"), "{text}");
        assert!(!text.contains("in detail"), "{text}");
    }
}
