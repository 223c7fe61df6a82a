//! Whether a bound holds where it was not made: each program is recorded once and cut into windows;
//! the model of each, with the margin that was fixed before, is held against the jobs of the next.
//!
//! Here, and with `--guest` in guests of one CPU whose clock counts instructions: nothing that the
//! host does shows in them, as the CPU time that a shared machine takes away does here. Kernels
//! that are not preemptible have stretches of a tenth of a second there, such as `khugepaged`
//! copying a page, that a short window does not know; the budget is for the others.

use super::common::Failed;
use super::programs::Program;
use super::{SEED, record};
use analysis::task_model::build::build;
use analysis::task_model::check::{Refutation, check};
use analysis::task_model::system::Assumed;
use analysis::task_model::verdict::guarantee;
use attribution::jobs::read::Source;
use model::run::stored::read_run;
use result::{Limit, Of, Row, Sink};
use stats::bounds::count_upper;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The default of the command.
const MARGIN_PPM: u64 = 200_000;
/// Jobs of the thread with the longest period in a window: a few more than a model needs.
const JOBS: u64 = 50;
/// Here: at most half a minute a program.
const WINDOWS_HERE: u64 = 24;
const WINDOWS_IN_GUEST: u64 = 60;
/// A guest's clock counts 64 ns an instruction: it is that much slower.
const SLOWER: u64 = 4;

/// Programs, and where they run.
pub(super) struct Plan<'a> {
    pub(super) stillcore: &'a str,
    pub(super) plant: &'a Path,
    pub(super) place: &'a Path,
    pub(super) programs: u64,
    /// A kernel of the lab.
    pub(super) guest: Option<&'a str>,
}

/// Sums over all windows.
#[derive(Debug, Default)]
struct Sums {
    windows: u64,
    without: u64,
    jobs: u64,
    late: u64,
    late_windows: u64,
    /// Late jobs that were looked at: some of each window.
    shown: u64,
    by_itself: u64,
    kept: u64,
    failed: Option<Failed>,
}

impl Plan<'_> {
    pub(super) fn run(&self, rows: &mut Sink) -> Result<(), Failed> {
        let (sums, next) = (Mutex::new(Sums::default()), AtomicU64::new(0));
        let in_turn = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= self.programs || sums.lock().is_ok_and(|sums| sums.failed.is_some()) {
                    return;
                }
                let done = self.one(index, &sums);
                if let (Err(error), Ok(mut sums)) = (done, sums.lock()) {
                    sums.failed = Some(error);
                }
            }
        };
        // A guest has one CPU; here, the programs have them all.
        let at_once = if self.guest.is_some() { std::thread::available_parallelism()?.get() } else { 1 };
        std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(in_turn))));
        let sums = sums.into_inner().map_err(Failed::because)?;
        match sums.failed {
            Some(error) => Err(error),
            None => self.push(&sums, rows),
        }
    }

    fn one(&self, index: u64, sums: &Mutex<Sums>) -> Result<(), Failed> {
        let windows = if self.guest.is_some() { WINDOWS_IN_GUEST } else { WINDOWS_HERE };
        let (drawn, window_us) = program(index, windows, self.guest.is_some());
        let out = self.place.join(format!("windows-{index}"));
        let run = match self.guest {
            Some(kernel) => in_guest(self, kernel, &drawn, &out)?,
            None => record(self.stillcore, self.plant, &drawn, &out).map(|_| out.clone())?,
        };
        let window_ns = i64::try_from(window_us).map_err(Failed::because)?.saturating_mul(1_000);
        let found = judge(&run, window_ns)?;
        std::fs::remove_dir_all(&out)?;
        if let Ok(mut sums) = sums.lock() {
            sums.add(&found);
            eprintln!("{index}: {sums:?}");
        }
        Ok(())
    }

    fn push(&self, sums: &Sums, rows: &mut Sink) -> Result<(), Failed> {
        let place = self.guest.map_or_else(
            || "here".to_owned(),
            |kernel| format!("in a guest of {kernel} whose clock counts instructions"),
        );
        let jobs = sums.jobs.max(1) as f64;
        // Late jobs come together: windows with some are counted, each with as many as on average,
        // which is one where none was seen. The limit of windows needs no such assumption.
        let together = sums.late as f64 / sums.late_windows.max(1) as f64;
        let upper = count_upper(sums.late_windows) * together.max(1.0);
        let what = format!("{place}: windows held against the model of the one before");
        let row = Row::new(&what, sums.windows as f64, "").n(self.programs);
        let judged = self.guest.is_some_and(|kernel| kernel.ends_with("-rt"));
        rows.push(if judged { row.budget(Of::Value, Limit::AtLeast(5_000.0)) } else { row })?;
        let what = format!("{place}: windows of which no job had a bound to be held against");
        rows.push(Row::new(&what, sums.without as f64, "").n(self.programs))?;
        let what = format!("{place}: jobs later than the bound of the window before");
        let row = Row::new(&what, sums.late as f64 / jobs * 1e4, "of 10,000");
        rows.push(row.n(sums.jobs))?;
        let what = format!("{place}: at most so many at 95 % confidence");
        let row = Row::new(&what, upper / jobs * 1e4, "of 10,000").n(sums.jobs);
        rows.push(if judged { row.budget(Of::Value, Limit::AtMost(1.0)) } else { row })?;
        let what = format!("{place}: windows with such a job");
        rows.push(Row::new(&what, sums.late_windows as f64, "").n(sums.windows))?;
        let what = format!("{place}: at most so many windows at 95 % confidence");
        let most = count_upper(sums.late_windows) / sums.windows.max(1) as f64 * 1e4;
        rows.push(Row::new(&what, most, "of 10,000").n(sums.windows))?;
        let what = format!("{place}: of such jobs, those that executed or slept longer than the model says");
        rows.push(Row::new(&what, sums.by_itself as f64, "").n(sums.shown))?;
        let what =
            format!("{place}: of such jobs, those from which a less urgent task kept the CPU that long");
        rows.push(Row::new(&what, sums.kept as f64, "").n(sums.shown))?;
        Ok(())
    }
}

/// A program whose threads all end about when the first does, and the length of a window, µs.
fn program(index: u64, windows: u64, in_guest: bool) -> (Program, u64) {
    let mut drawn = Program::draw(SEED + 10_000 + index);
    let threads = &mut drawn.threads;
    if in_guest {
        threads.iter_mut().for_each(|thread| thread.slower(SLOWER));
    }
    let shortest_us = threads.iter().map(|thread| thread.period_us).min().unwrap_or(1);
    threads.iter_mut().for_each(|thread| thread.period_us = thread.period_us.min(3 * shortest_us));
    let longest_us = threads.iter().map(|thread| thread.period_us).max().unwrap_or(1);
    let window_us = JOBS * longest_us;
    drawn.jobs = (windows + 1) * window_us / shortest_us;
    (drawn, window_us)
}

/// Records it in a guest; the run directory.
fn in_guest(plan: &Plan, kernel: &str, drawn: &Program, out: &Path) -> Result<PathBuf, Failed> {
    let mut command = Command::new(plan.stillcore);
    command.args(["lab", "run", "--kernel", kernel, "--accel", "icount", "--smp", "1", "--timeout", "1h"]);
    // Its files are in memory, the trace too.
    command.args(["--append", "isolcpus= nohz_full=", "--memory", "3000", "--out"]).arg(out);
    command.arg("--add").arg(format!("{}:/root/jobs", plan.plant.display()));
    command.args(["--", "model", "--record-only", "--out", "/root/run", "--", "/root/jobs"]);
    command.arg(drawn.jobs.to_string());
    let output = command.args(drawn.threads.iter().map(super::programs::Thread::argument)).output()?;
    if output.status.success() {
        return Ok(out.join("root/run"));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error")).collect();
    Err(Failed(format!("program in a guest: {}", errors.last().unwrap_or(&"no reason given"))))
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.windows += other.windows;
        self.without += other.without;
        self.jobs += other.jobs;
        self.late += other.late;
        self.late_windows += other.late_windows;
        self.shown += other.shown;
        self.by_itself += other.by_itself;
        self.kept += other.kept;
    }
}

fn judge(dir: &Path, window_ns: i64) -> Result<Sums, Failed> {
    let mut sums = Sums::default();
    let run = read_run(dir).map_err(Failed::because)?;
    let phase = run.phases.first().ok_or_else(|| Failed("no phase".to_owned()))?;
    let source = |index: i64| {
        let from_ns = phase.t0_ns + index * window_ns;
        Source::of_run(dir, &run).map(|one| one.within([from_ns, from_ns + window_ns - 1]))
    };
    let assumed = Assumed { margin_ppm: MARGIN_PPM, deadlines_ns: BTreeMap::new() };
    let windows = (phase.t1_ns - phase.t0_ns) / window_ns;
    let mut before = None;
    for index in 0..windows {
        let source = source(index).map_err(Failed::because)?;
        let jobs = source.jobs().map_err(Failed::because)?;
        let model = build(&jobs);
        if let Some((model, guarantee)) = &before {
            let checked = check(&source, &jobs, model, guarantee).map_err(Failed::because)?;
            for job in &checked.refuting {
                eprintln!("window {index}: {job:?}");
            }
            // Of threads without a bound nothing was compared.
            let compared = u64::from(checked.jobs() > 0);
            sums.windows += compared;
            sums.without += 1 - compared;
            sums.jobs += checked.jobs();
            sums.late += checked.refuted;
            sums.late_windows += u64::from(checked.refuted > 0);
            let count = |of: &dyn Fn(&Refutation) -> bool| {
                checked.refuting.iter().filter(|job| of(job)).count() as u64
            };
            sums.shown += checked.refuting.len() as u64;
            sums.by_itself += count(&|job| job.contradicts().is_some());
            // As long as it was late, or longer.
            sums.kept +=
                count(&|job| job.kept.as_ref().is_some_and(|kept| kept.ns >= job.response_ns - job.bound_ns));
        } else if index > 0 {
            sums.without += 1;
        }
        before = guarantee(&model, &assumed).map(|guarantee| (model, guarantee));
    }
    Ok(sums)
}
