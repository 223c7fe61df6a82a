//! A run on a disk that becomes full at a chosen page or file: how it ends, and what of it can be
//! read.
//!
//! The disk is a tmpfs with a limit of pages and names: each further allocation fails as on a real
//! disk (`ENOSPC`), whichever call makes it. Run directory and state directory both lie on it.

#![allow(dead_code, reason = "the bench and the test use each their part")]

use model::{samples_file, store};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A window that writes its files several times.
const MEASURE: [&str; 7] = ["measure", "wakeup", "--cpus", "1", "--period", "1ms", "--duration"];

/// A disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Pages of 4 KiB.
    pub(crate) pages: u64,
    /// Files and directories, the root among them.
    pub(crate) names: u64,
}

/// How a run on it ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Whether there was room for all of it.
    pub(crate) whole: bool,
    /// Samples that are readable.
    pub(crate) samples: u64,
    /// Problems that were found.
    pub(crate) wrong: Vec<String>,
}

/// Mounted until it is dropped.
pub(crate) struct Disk(pub(crate) PathBuf);

impl Disk {
    pub(crate) fn mount(at: &Path, size: Size) -> Option<Self> {
        fs::create_dir(at).ok()?;
        let options = format!("size={}k,nr_inodes={},huge=never", size.pages * 4, size.names);
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "stillcore-full-disk"]).arg(at);
        mount.status().is_ok_and(|status| status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

/// Runs on a disk of that size, in an empty scratch directory; none where nothing can be mounted.
pub(crate) fn run_on(program: &Path, scratch: &Path, size: Size, duration: &str) -> Option<Outcome> {
    let disk = Disk::mount(&scratch.join("disk"), size)?;
    let output = measuring(Command::new(program), &disk, duration).output().ok()?;
    Some(judged(&output, &disk, program, scratch))
}

/// The command that measures, with run and state directory on a disk.
pub(crate) fn measuring(mut command: Command, disk: &Disk, duration: &str) -> Command {
    command.args(MEASURE).arg(duration).arg("--quiet").stdin(Stdio::null());
    command.arg("--state").arg(disk.0.join("state")).arg("--out").arg(disk.0.join("run"));
    command
}

/// How it ended, and what of it can be read.
pub(crate) fn judged(output: &Output, disk: &Disk, program: &Path, scratch: &Path) -> Outcome {
    let out = disk.0.join("run");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut outcome = Outcome { whole: output.status.code() == Some(0), samples: 0, wrong: Vec::new() };
    if !outcome.whole {
        let lines = said.lines().filter(|line| line.starts_with("error: ")).count();
        if output.status.code() != Some(1) || lines != 1 || said.contains("panicked") {
            outcome.wrong.push(format!("{} after: {said}", output.status));
        } else if !said.contains("No space left on device") {
            outcome.wrong.push(format!("it does not say that the disk is full: {said}"));
        }
    }
    read(&out, &said, &mut outcome);
    if !outcome.whole && out.join(store::FINDINGS).exists() && out.join(store::RUN).exists() {
        report(program, &out, scratch, &mut outcome);
    }
    outcome
}

/// The stored part is readable, and is not called complete.
fn read(run: &Path, said: &str, outcome: &mut Outcome) {
    if !run.join(store::RUN).exists() {
        return;
    }
    match model::run::stored::read_run(run) {
        Ok(record) => {
            // A run with all its data may lack its conclusions, which can be computed again.
            let facts = !record.probes.is_empty() && record.probes.iter().all(|probe| !probe.cut_off);
            if record.complete != outcome.whole && !(record.complete && facts) {
                outcome.wrong.push(format!("complete: {}, which it is not, after: {said}", record.complete));
            }
            for probe in &record.probes {
                match samples_file::read(&run.join(&probe.file)) {
                    Ok((_, samples)) => outcome.samples += samples.len() as u64,
                    Err(error) => outcome.wrong.push(error.to_string()),
                }
            }
        }
        Err(error) => outcome.wrong.push(error.to_string()),
    }
    if !outcome.whole && !run.join(store::PARTIAL).exists() {
        outcome.wrong.push("the mark of a partial run is missing".to_owned());
    }
}

/// The disk being full, the page is written elsewhere.
fn report(program: &Path, run: &Path, scratch: &Path, outcome: &mut Outcome) {
    let page = scratch.join("report.html");
    let mut command = Command::new(program);
    let output = command.arg("report").arg(run).arg("--html").arg(&page).output();
    let Ok(output) = output else { return outcome.wrong.push("the report cannot be started".to_owned()) };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !matches!(output.status.code(), Some(0 | 2)) {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        outcome.wrong.push(format!("the report fails: {why}"));
        return;
    }
    let record = match model::run::stored::read_run(run) {
        Ok(record) => record,
        Err(error) => return outcome.wrong.push(error.to_string()),
    };
    if !record.complete && !said.contains("PARTIAL RUN") {
        outcome.wrong.push("the report does not say that the run is partial".to_owned());
    }
    if !record.has_ended() && (said.contains("lost 0") || !said.contains("not known: the run was cut off")) {
        outcome.wrong.push("the report does not say that the losses are not known".to_owned());
    }
}
