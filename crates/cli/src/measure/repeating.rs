//! `--runs`: the same measurement several times, each a run of its own in a directory of runs, as
//! `compare` takes one. Shared by the verbs whose runs `compare` compares.
//!
//! Each run is this program called once more without `--runs`, as a user would call it: nothing of
//! one run, such as its memory or its CPU affinity, is left in the next.

use super::Common;
use super::table::{table, weak};
use crate::folded::folded;
use crate::run::command::{self, Ended, is_option, without};
use crate::run::interrupted::Interrupted;
use crate::run::output::new_directory;
use crate::run::place::default_out;
use crate::run::progress::{Reporter, Step};
use crate::shell::in_shell;
use analysis::groups::measured::{self, MeasuredRun};
use analysis::groups::{Overview, overview};
use anyhow::Context;
use clap::Args;
use model::{Error, Run};
use report::format;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use sys::signals::EndSignals;

/// Where runs that were cut off are put, so that the directory can be compared without them.
const CUT_OFF: &str = "incomplete";

/// How often to measure.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Repeating {
    /// Number of complete runs, one after another: DIR/1, DIR/2 and so on of --out DIR. `compare`
    /// takes DIR as one group of runs [default: one run, in DIR itself].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: Option<u32>,
}

/// An option that does not go with `--runs`: its name, whether it was given, and why not.
pub(super) type Unfit = (&'static str, bool, &'static str);

/// Why a measurement that ends at its first late sample cannot be repeated.
pub(super) const STOPS: &str =
    "ends a run at a late sample, and runs to compare are equally long; --over reports such samples";

impl Repeating {
    /// The exit status of all runs, where several are to be made: 1 where a signal ended them, 2
    /// where one of them ended with 2.
    pub(super) fn carry_out(
        self,
        verb: &'static str,
        common: &Common,
        unfit: &[Unfit],
        signals: &EndSignals,
    ) -> anyhow::Result<Option<u8>> {
        let Some(planned) = self.runs else { return Ok(None) };
        if let Some((option, _, why)) = unfit.iter().find(|(_, given, _)| *given) {
            let expected = format!("--runs without {option}");
            return Err(Error::invalid(*option, format!("it {why}"), expected).into());
        }
        let dir = common.out.clone().unwrap_or_else(default_out);
        new_directory(&dir)?;
        let mut row = Row { verb, dir, planned, done: Vec::new(), cut_off: None, interrupted: None };
        let step = Reporter::new(common.quiet).count(verb, u64::from(planned));
        let result = row.measure(&step, signals);
        step.done();
        if result.is_err() {
            // Of a first run that was refused nothing is left.
            let _ = fs::remove_dir(&row.dir);
        }
        result?;
        if common.json {
            println!("{}", row.to_json());
        } else {
            print!("{}", row.text());
        }
        Ok(Some(row.status()))
    }
}

/// Runs of one measurement.
struct Row {
    verb: &'static str,
    dir: PathBuf,
    planned: u32,
    done: Vec<Done>,
    /// Where the run is that was not completed, if any.
    cut_off: Option<PathBuf>,
    /// The signal that ended the row.
    interrupted: Option<&'static str>,
}

/// A complete run.
struct Done {
    run: Run,
    measured: MeasuredRun,
    exit: Option<i32>,
}

impl Row {
    fn measure(&mut self, step: &Step, signals: &EndSignals) -> anyhow::Result<()> {
        let words: Vec<OsString> = std::env::args_os().collect();
        let mut words = without(&words, &["--runs", "--out"]);
        for number in 1..=self.planned {
            step.at(u64::from(number - 1), || format!("run {number} of {}", self.planned));
            self.interrupted = self.interrupted.or_else(|| signals.arrived());
            if self.interrupted.is_some() {
                break;
            }
            let dir = self.dir.join(number.to_string());
            let Ended { exit, failed, signal, .. } = command::run(once(&words, &dir)?, &[0, 2], signals)?;
            self.interrupted = signal;
            let run = model::run::stored::read_run(&dir).ok().filter(|run| run.complete);
            let Some(run) = run.filter(|_| failed.is_none()) else {
                self.cut_off = put_aside(&dir, &self.dir, number)?;
                if signal.is_some() {
                    break;
                }
                let why = failed.unwrap_or_else(|| "it left no complete run".to_owned());
                anyhow::bail!("run {number} of {} failed: {why}{}", self.planned, self.kept());
            };
            let measured = measured::read(&dir, dir.display().to_string())
                .with_context(|| format!("{} cannot be read", dir.display()))?;
            if number == 1 {
                words.extend(same_threshold(&words, &measured));
            }
            self.done.push(Done { run, measured, exit });
        }
        Ok(())
    }

    /// What is left where a run failed.
    fn kept(&self) -> String {
        match self.done.len() {
            0 => String::new(),
            n => format!("; {} keeps the {} before it", self.dir.display(), format::plural(n as u64, "run")),
        }
    }

    fn status(&self) -> u8 {
        if self.interrupted.is_some() {
            return 1;
        }
        2 * u8::from(self.done.iter().any(|one| one.exit == Some(2)))
    }

    /// What is wrong, once, with the numbers of all runs that have it.
    fn noted(&self) -> Vec<(String, Vec<String>)> {
        let mut noted: Vec<(String, Vec<String>)> = Vec::new();
        for (one, number) in self.done.iter().zip(1..) {
            for note in one.notes() {
                match noted.iter_mut().find(|(known, _)| *known == note) {
                    Some((_, runs)) => runs.push(number.to_string()),
                    None => noted.push((note, vec![number.to_string()])),
                }
            }
        }
        noted
    }

    fn text(&self) -> String {
        let (n, dir) = (self.done.len() as u64, self.dir.display());
        let mut text = format!("{}: {} in {dir}\n\n", self.verb, format::plural(n, "complete run"));
        if let Some(first) = self.done.first() {
            let names: Vec<String> = overview(&first.measured).figures.iter().map(|one| one.name()).collect();
            let head: Vec<&str> =
                ["run", "n", "missed"].into_iter().chain(names.iter().map(String::as_str)).collect();
            let rows: Vec<Vec<String>> = self.done.iter().zip(1..).map(row).collect();
            text += &table(&head, rows.clone());
            let dash = rows.iter().flatten().any(|cell| cell == "-");
            let legend = format!(
                "All CPUs of a run together, as compare takes them: missed releases with the lateness they had{}.",
                if dash { "; -: too few samples" } else { "" }
            );
            text += &folded(&legend, "  ");
        }
        for (note, runs) in self.noted() {
            let which = if runs.len() == 1 { "run" } else { "runs" };
            text += &folded(&format!("note: {which} {}: {note}", runs.join(", ")), "  ");
        }
        let found: Vec<String> = (1..)
            .zip(&self.done)
            .filter(|(_, one)| one.exit == Some(2))
            .map(|(number, _)| self.dir.join(number.to_string()).display().to_string())
            .collect();
        if let Some(first) = found.first() {
            text += &folded(&format!("exit status 2 of {}", found.join(", ")), "  ");
            let _ = writeln!(text, "read why: stillcore report {}", in_shell(first));
        }
        if let Some(signal) = self.interrupted {
            let interrupted = Interrupted(signal);
            let kept =
                self.cut_off.as_ref().map(|dir| format!("; the run that it cut off is in {}", dir.display()));
            let line = format!(
                "{interrupted}: {n} of {} runs are complete{}",
                self.planned,
                kept.unwrap_or_default()
            );
            text += &folded(&line, "  ");
        }
        if n > 0 {
            let dir = in_shell(&dir.to_string());
            let _ = writeln!(text, "compare with other runs: stillcore compare {dir} OTHER");
        }
        text
    }

    fn to_json(&self) -> Value {
        let runs: Vec<Value> = self.done.iter().map(Done::to_json).collect();
        json!({
            "schema": "stillcore.measure-runs/1",
            "directory": self.dir,
            "planned": self.planned,
            "interrupted": self.interrupted,
            "cut_off": self.cut_off,
            "runs": runs,
        })
    }
}

impl Done {
    /// What a reader of its figures has to know.
    fn notes(&self) -> Vec<String> {
        let mut notes = self.run.limits.clone();
        notes.extend(weak(&self.run.stressors));
        match self.run.losses.ring_samples {
            0 => {}
            lost => {
                notes.push(format!("{} lost, the worst perhaps among them", format::plural(lost, "sample")));
            }
        }
        let Overview { n, missed, .. } = overview(&self.measured);
        if missed > n {
            notes.push(
                "most releases were missed: the period is too short for this machine or load".to_owned(),
            );
        } else if missed > (n + missed) / 10 {
            let what = "more than a tenth of the releases were missed: a longer --period misses fewer";
            notes.push(what.to_owned());
        }
        notes
    }

    fn to_json(&self) -> Value {
        let overview = overview(&self.measured);
        let values = overview.figures.iter().zip(&overview.values);
        let figures: serde_json::Map<_, _> =
            values.map(|(figure, value)| (figure.name(), json!(value))).collect();
        json!({
            "run": self.measured.name,
            "exit": self.exit,
            "n": overview.n,
            "missed": overview.missed,
            "unit_of_times": "ns",
            "figures": figures,
            "limits": self.run.limits,
        })
    }
}

/// This program again, for one run.
fn once(words: &[OsString], dir: &Path) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    let mut words = words.iter();
    words.next().iter().for_each(|name| {
        command.arg0(name);
    });
    command.args(words).arg("--out").arg(dir);
    Ok(command)
}

/// Each noise probe measures its loop and takes its threshold from that; runs with different
/// thresholds store different gaps, so the later runs take the first one's.
fn same_threshold(words: &[OsString], first: &MeasuredRun) -> Vec<OsString> {
    let given = words.iter().any(|word| is_option(word, "--threshold"));
    let threshold = first.windows.first().and_then(|window| window.threshold_ns).filter(|_| !given);
    threshold.map_or_else(Vec::new, |ns| vec!["--threshold".into(), format!("{ns}ns").into()])
}

/// Puts what a run has left where `compare` does not look, and says where.
fn put_aside(run: &Path, all: &Path, number: u32) -> Result<Option<PathBuf>, Error> {
    if !run.exists() {
        return Ok(None);
    }
    let aside = all.join(CUT_OFF);
    fs::create_dir_all(&aside).map_err(|source| Error::io("create", &aside, source))?;
    let there = aside.join(number.to_string());
    fs::rename(run, &there).map_err(|source| Error::io("rename", run, source))?;
    Ok(Some(there))
}

fn row((one, number): (&Done, usize)) -> Vec<String> {
    let Overview { figures, values, units, n, missed } = overview(&one.measured);
    let values = figures.iter().zip(values).zip(units).map(|((_, value), unit)| match (value, unit) {
        (None, _) => "-".to_owned(),
        (Some(value), "ns") => format::ns_f(value),
        (Some(value), "share") => format::share(value),
        (Some(value), _) => format::rate(value),
    });
    [number.to_string(), format::count(n), format::count(missed)].into_iter().chain(values).collect()
}
