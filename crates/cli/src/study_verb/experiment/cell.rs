//! One cell on the machine where this program runs: makes its calls one after the other, reads
//! their answers and takes their values.
//!
//! The calls are the command's own verbs, as a user would type them. A cell that fails is a result
//! like any other.

use super::whose;
use crate::run::interrupted::Interrupted;
use crate::{failure, lab_verb};
use anyhow::Context;
use model::{Error, store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use study::Cell;
use study::experiment::{
    CellResult, CellState, Experiment, Ground, Place, SeriesOf, Under, ValueOf, absent, commands, listed,
    loads, once_booted, rows, taken, undone_in,
};
use sys::process::Owner;
use sys::signals::EndSignals;
use toml::Spanned;

/// `place` of a cell that was run where the program is, before the kernel's release.
pub(super) const HERE: &str = "this machine";

/// In a cell's directory while it runs: the calls that undo its changes.
const DUE: &str = "undo-due";
/// Bytes of it, at most.
const MOST_DUE: u64 = 1 << 16;

/// Where cells are run.
pub(super) struct Room {
    /// CPUs to measure, and the others.
    pub(super) cpus: String,
    pub(super) housekeeping: String,
    /// The machine.
    pub(super) ground: Ground,
    /// Directory for what the cells leave.
    pub(super) dir: PathBuf,
    /// Whether run directories are kept.
    pub(super) keep: bool,
    /// What `place` of a result says.
    pub(super) name: String,
    /// Whether this is an emulated guest.
    pub(super) emulated: bool,
    /// The scale.
    pub(super) scale: f64,
}

impl Room {
    fn without(&self, state: CellState, reason: impl Into<String>) -> CellResult {
        let version = env!("CARGO_PKG_VERSION");
        let under = Some(Under::of(&self.ground));
        CellResult { under, ..CellResult::without(state, reason.into(), &self.name, self.emulated, version) }
    }

    /// Runs a cell. An error concerns the call as a whole, such as a signal; the outcome of the
    /// cell is a result.
    pub(super) fn run(
        &self,
        experiment: &Experiment,
        cell: &Cell,
        signals: &EndSignals,
    ) -> anyhow::Result<CellResult> {
        if let Some(result) = self.unmet(experiment, cell) {
            return Ok(result);
        }
        let dir = self.dir.join(&cell.id);
        renew(&dir)?;
        let place = self.place(&dir)?;
        let calls = commands(experiment, cell, self.scale, &place, self.emulated);
        let begun = Instant::now();
        let mut done = Vec::new();
        foresee(&dir, &calls.after)?;
        let mut result = self.steps(experiment, &calls.before, &calls.steps, &dir, &mut done, signals);
        for words in &calls.after {
            done.push(words.clone());
            // Also after Ctrl-C: this undoes what a call before has changed.
            if let Called::Failed(why) | Called::Absent(why) = call(words, &dir, None)?
                && let Ok(outcome) = &mut result
                && outcome.state == CellState::Ok
            {
                *outcome = self.without(CellState::Failed, format!("{}: {why}", words.join(" ")));
            }
        }
        forget(&dir)?;
        let mut result = result?;
        result.commands = done.into_iter().map(|words| without_directory(words, &place.out)).collect();
        result.wall_s = begun.elapsed().as_secs_f64();
        if !self.keep {
            renew(&dir)?;
            fs::remove_dir(&dir).with_context(|| dir.display().to_string())?;
        }
        Ok(result)
    }

    /// What a guest does once booted, before all of its cells; the result of each of them where it
    /// cannot be done.
    pub(super) fn once_booted(
        &self,
        experiment: &Experiment,
        cell: &Cell,
        signals: &EndSignals,
    ) -> anyhow::Result<Option<CellResult>> {
        let dir = self.dir.join("once-booted");
        renew(&dir)?;
        for words in once_booted(experiment, cell, self.scale, &self.place(&dir)?) {
            if let Called::Failed(why) | Called::Absent(why) = call(&words, &dir, Some(signals))? {
                return Ok(Some(self.without(CellState::NotApplicable, why)));
            }
        }
        Ok(None)
    }

    /// What placeholders stand for.
    fn place(&self, dir: &Path) -> anyhow::Result<Place> {
        let out = dir.to_str().context("the directory's name is no text")?.to_owned();
        Ok(Place { cpus: self.cpus.clone(), housekeeping: self.housekeeping.clone(), out })
    }

    /// The result of a cell whose needs this machine does not meet; none where it meets them.
    pub(super) fn unmet(&self, experiment: &Experiment, cell: &Cell) -> Option<CellResult> {
        let why = experiment.needs(cell).unmet(&self.ground)?;
        Some(self.without(CellState::Needs, why))
    }

    fn steps(
        &self,
        experiment: &Experiment,
        before: &[Vec<String>],
        steps: &[(String, Vec<String>)],
        dir: &Path,
        done: &mut Vec<Vec<String>>,
        signals: &EndSignals,
    ) -> anyhow::Result<CellResult> {
        for words in before {
            done.push(words.clone());
            if let Called::Failed(why) | Called::Absent(why) = call(words, dir, Some(signals))? {
                return Ok(self.without(CellState::NotApplicable, why));
            }
        }
        let mut answers: BTreeMap<&str, Value> = BTreeMap::new();
        for (name, words) in steps {
            done.push(words.clone());
            match call(words, dir, Some(signals))? {
                Called::Answered(answer) => _ = answers.insert(name, answer),
                Called::Failed(why) => return Ok(self.without(CellState::Failed, why)),
                Called::Absent(why) => return Ok(self.without(CellState::NotApplicable, why)),
            }
        }
        let first = experiment.steps.first().map_or("", |step| step.name.as_str());
        let answer = |step: &Option<Spanned<String>>| {
            answers.get(step.as_ref().map_or(first, |step| step.get_ref().as_str()))
        };
        let figure = |value: &ValueOf| {
            taken(answer(&value.step)?, &value.at, value.take).map(|number| number * value.times)
        };
        let values: BTreeMap<String, Option<f64>> =
            experiment.values.iter().map(|value| (value.name.get_ref().clone(), figure(value))).collect();
        let missing = experiment.values.iter().filter(|value| values[value.name.get_ref()].is_none());
        let why = |value: &ValueOf| absent(answer(&value.step)?, &value.at);
        let absent = missing.filter_map(|value| Some((value.name.get_ref().clone(), why(value)?))).collect();
        let lists = experiment
            .lists
            .iter()
            .filter_map(|list| Some((list.name.get_ref().clone(), listed(answer(&list.step)?, list))));
        let series = |of: &SeriesOf| Some((of.name.get_ref().clone(), rows(answer(&of.step)?, of)));
        let series = experiment.series.iter().filter_map(series).collect();
        let lists = lists.collect();
        let loads = loads(answers.values());
        let answer = experiment.conclusion.and_then(|_| answers.get(first)).cloned();
        let done = self.without(CellState::Ok, "");
        Ok(CellResult { reason: None, values, absent, lists, series, answer, loads, ..done })
    }
}

/// Records, before anything is changed, what has to be undone and in which journal it is: one line
/// each, empty for that of this machine.
fn foresee(dir: &Path, after: &[Vec<String>]) -> anyhow::Result<()> {
    let mut journals = String::new();
    for state in after.iter().filter_map(|words| undone_in(words)) {
        journals.push_str(state.unwrap_or_default());
        journals.push('\n');
    }
    if journals.is_empty() {
        return Ok(());
    }
    whose::note(dir)?;
    Ok(store::write_whole(&dir.join(DUE), journals.as_bytes())?)
}

fn forget(dir: &Path) -> anyhow::Result<()> {
    let path = dir.join(DUE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io("remove", &path, error).into());
        }
        _ => {}
    }
    whose::forget(dir);
    Ok(())
}

/// Undoes what cells of a killed study have changed; returns whether there was any such cell.
/// Whatever the directory holds, this makes no other call than `isolate undo`. Refuses what another
/// machine has to undo.
pub(super) fn give_back(runs: &Path) -> anyhow::Result<bool> {
    let Ok(entries) = fs::read_dir(runs) else { return Ok(false) };
    let mut given_back = false;
    for entry in entries {
        let dir = entry.map_err(|source| Error::io("read", runs, source))?.path();
        let due = dir.join(DUE);
        if !due.exists() {
            continue;
        }
        whose::check(&dir)?;
        let journals = String::from_utf8(store::read_whole(&due, MOST_DUE)?)
            .map_err(|error| Error::invalid(due.display(), error, "directories of journals, a line each"))?;
        for state in journals.lines() {
            undo(state)?;
        }
        forget(&dir)?;
        given_back = true;
    }
    Ok(given_back)
}

/// Calls `isolate undo` for a journal; an empty one is that of this machine.
fn undo(state: &str) -> anyhow::Result<()> {
    let mut words = ["isolate", "undo", "--json"].map(str::to_owned).to_vec();
    if !state.is_empty() {
        // One word, so that it is no option whatever it begins with.
        words.push(format!("--state={state}"));
    }
    let place = tempfile::tempdir().context("a directory for what isolate undo says")?;
    if let Called::Failed(why) | Called::Absent(why) = call(&words, place.path(), None)? {
        anyhow::bail!("a killed study left what isolate undo was to give back: {why}");
    }
    Ok(())
}

/// Makes a directory, empty.
fn renew(dir: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| dir.display().to_string());
        }
        _ => {}
    }
    fs::create_dir_all(dir).with_context(|| dir.display().to_string())
}

/// Words that are the same wherever the study is.
fn without_directory(words: Vec<String>, dir: &str) -> Vec<String> {
    words.into_iter().map(|word| word.replace(dir, "DIR")).collect()
}

/// What a call of this program came to.
enum Called {
    /// It ended, perhaps with a finding; what it printed, null where that was no JSON.
    Answered(Value),
    /// It failed, in its own words.
    Failed(String),
    /// This machine lacks what it needs.
    Absent(String),
}

/// Calls this program and waits. The call dies with this process. With `signals`, it is asked to
/// end when this process is.
fn call(words: &[String], dir: &Path, signals: Option<&EndSignals>) -> anyhow::Result<Called> {
    let (out, said) = (dir.join("stdout"), dir.join("stderr"));
    let file = |path: &Path| File::create(path).with_context(|| path.display().to_string());
    let launcher = lab_verb::launcher()?;
    let own = std::env::current_exe()?;
    let mut child = Command::new(&launcher[0])
        .args(&launcher[1..])
        .arg(own)
        .args(words)
        .stdin(Stdio::null())
        .stdout(file(&out)?)
        .stderr(file(&said)?)
        .spawn()?;
    let mut signal = None;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if signal.is_none()
            && let Some(name) = signals.and_then(EndSignals::arrived)
        {
            signal = Some(name);
            if let Some(owner) = Owner::of(child.id() as i32) {
                owner.interrupt();
            }
        }
        EndSignals::wait_with(&child, signals.filter(|_| signal.is_none()))?;
    };
    if let Some(name) = signal.or_else(|| signals.and_then(EndSignals::arrived)) {
        return Err(Interrupted(name).into());
    }
    if !matches!(status.code(), Some(0 | 2)) {
        let (why, absent) = why(&said, status);
        return Ok(if absent { Called::Absent(why) } else { Called::Failed(why) });
    }
    let text = fs::read_to_string(&out).with_context(|| out.display().to_string())?;
    Ok(Called::Answered(serde_json::from_str(&text).unwrap_or_default()))
}

/// The last thing that a call said, and whether it was that the machine lacks something.
fn why(said: &Path, status: std::process::ExitStatus) -> (String, bool) {
    let text = fs::read_to_string(said).unwrap_or_default();
    // A hint may follow the error.
    let said = |line: &&str| !line.trim().is_empty();
    let last = text.lines().rfind(|line| line.starts_with("error: ")).or_else(|| text.lines().rfind(said));
    let Some(last) = last else { return (format!("it ended with {status}, and said nothing"), false) };
    let Ok(object) = serde_json::from_str::<Value>(last) else {
        return (last.trim_start_matches("error: ").to_owned(), false);
    };
    let part = |name: &str| object["error"][name].as_str().map(str::to_owned);
    let (what, place, expected) = (part("what").unwrap_or_default(), part("where"), part("expected"));
    let place = place.map_or_else(String::new, |place| format!("{place}: "));
    let expected = expected.map_or_else(String::new, |expected| format!("; expected {expected}"));
    (format!("{place}{what}{expected}"), object["error"]["absent"] == true)
}

/// A failure of the runner in a result's words.
pub(super) fn failed(error: &anyhow::Error, place: &str, emulated: bool) -> CellResult {
    let reason = failure::sentence(error);
    CellResult::without(CellState::Failed, reason, place, emulated, env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It would undo nothing there, and forget what the other one has.
    #[test]
    fn what_another_machine_has_changed_is_not_undone_here() {
        let runs = tempfile::tempdir().unwrap();
        let dir = runs.path().join("ab12");
        fs::create_dir(&dir).unwrap();
        foresee(&dir, &[["isolate", "undo"].map(str::to_owned).to_vec()]).unwrap();
        assert!(dir.join(DUE).exists());
        fs::write(dir.join("undo-due-on"), "another boot\nanother-node\n").unwrap();
        let error = give_back(runs.path()).unwrap_err().to_string();
        assert!(error.contains("settings of another-node, and this is"), "{error}");
        assert!(dir.join(DUE).exists());
        forget(&dir).unwrap();
        assert!(!give_back(runs.path()).unwrap());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }
}
