//! `--what-if`: what is typed, and the guarantee with it: threads changed, added, removed; another
//! machine, of which there is a recording.

use super::document::{MachineFacts, OtherMachine, WhatIf};
use super::source;
use analysis::task_model::change::{Change, assumed_with, changed};
use analysis::task_model::machine::{CpuMap, Elsewhere, OnMachine, on_machine};
use analysis::task_model::shape::TaskModel;
use analysis::task_model::system::Assumed;
use analysis::task_model::verdict::guarantee;
use anyhow::Context;
use model::machine::Snapshot;
use model::run::stored::read_run;
use model::{Cpus, Machine, store};
use std::fmt;
use std::path::{Path, PathBuf};

/// Before the recording of another machine.
const MACHINE: &str = "machine=";
/// Between that recording and the CPUs that stand for ours.
const CPUS: &str = ",cpus=";

/// One `--what-if`.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    /// Something of a thread.
    Change(Change),
    /// The machine of another recording.
    Machine {
        /// Its run directory.
        run: PathBuf,
        /// Which of its CPUs stand for which of ours.
        cpus: CpuMap,
    },
}

impl Asked {
    /// Reads `machine=RUN[,cpus=OURS:THEIRS,...]`, or a change.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some(text) = text.strip_prefix(MACHINE) else {
            return Change::parse(text).map(Self::Change).map_err(|error| error.to_string());
        };
        let (run, cpus) = match text.rsplit_once(CPUS) {
            Some((run, cpus)) => (run, CpuMap::parse(cpus).map_err(|error| error.to_string())?),
            None => (text, CpuMap::default()),
        };
        if run.is_empty() {
            return Err("machine= without a recording, expected machine=RUN".to_owned());
        }
        Ok(Self::Machine { run: run.into(), cpus })
    }
}

impl fmt::Display for Asked {
    /// As [`Asked::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(change) => change.fmt(f),
            Self::Machine { run, cpus } if cpus.is_empty() => write!(f, "{MACHINE}{}", run.display()),
            Self::Machine { run, cpus } => write!(f, "{MACHINE}{}{CPUS}{cpus}", run.display()),
        }
    }
}

fn facts_of(machine: Machine) -> MachineFacts {
    let Machine { kernel, cmdline, cpu_model, topology, .. } = machine;
    MachineFacts {
        kernel: format!("{} {}", kernel.release, kernel.version),
        realtime: kernel.realtime,
        boot_line: cmdline.trim().to_owned(),
        isolated: topology.isolated,
        nohz_full: topology.nohz_full,
        processor: cpu_model,
    }
}

/// The model with what is asked for changed, and what it guarantees. `from`: the recording, of
/// which these CPUs were `recorded` in full.
pub(super) fn answer(
    asked: &[Asked],
    from: &Path,
    recorded: &Cpus,
    model_on: impl Fn(&Cpus) -> TaskModel,
    assumed: &Assumed,
) -> anyhow::Result<Option<(TaskModel, WhatIf)>> {
    if asked.is_empty() {
        return Ok(None);
    }
    let changes: Vec<Change> = changes(asked);
    let wanted: Cpus = changes.iter().filter_map(Change::cpu).collect();
    let model = model_on(&wanted.iter().filter(|cpu| recorded.contains(*cpu)).collect());
    let mut machines = asked.iter().filter_map(|one| match one {
        Asked::Machine { run, cpus } => Some((run, cpus)),
        Asked::Change(_) => None,
    });
    let machine = machines.next();
    anyhow::ensure!(machines.next().is_none(), "--what-if machine= is there twice, expected one machine");
    let (model, machine, notes) = match machine {
        None => (model, None, Vec::new()),
        Some((run, cpus)) => {
            let (there, other) = elsewhere(&model, from, run, cpus, &wanted, assumed).context("--what-if")?;
            (there.model, Some(other), there.assumed)
        }
    };
    let then = changed(&model, &changes).context("--what-if")?;
    let guarantee = guarantee(&then, &assumed_with(assumed, &changes));
    Ok(Some((then, WhatIf { changes, machine, assumed: notes, guarantee })))
}

/// The changes among what is asked for.
pub(super) fn changes(asked: &[Asked]) -> Vec<Change> {
    let change = |one: &Asked| if let Asked::Change(change) = one { Some(change.clone()) } else { None };
    asked.iter().filter_map(change).collect()
}

fn elsewhere(
    ours: &TaskModel,
    from: &Path,
    run: &Path,
    cpus: &CpuMap,
    further: &Cpus,
    assumed: &Assumed,
) -> anyhow::Result<(OnMachine, OtherMachine)> {
    let expected = "expected a run directory of trace watch or model: in a trace alone, threads of the program and of the machine are not distinguished";
    for path in [from, run] {
        anyhow::ensure!(path.is_dir(), "machine=: {}: {expected}", path.display());
    }
    let there = source(run)?;
    let (jobs, name) = (there.jobs()?, run.display().to_string());
    let elsewhere = Elsewhere { name: &name, jobs: &jobs, recorded: there.recorded(), cpus };
    let on = on_machine(ours, &elsewhere, further, assumed)?;
    let facts = |dir: &Path| -> anyhow::Result<MachineFacts> {
        let before: Snapshot = store::read_json(&dir.join(read_run(dir)?.machine_before))?;
        Ok(facts_of(before.machine))
    };
    let other = OtherMachine {
        asked: Asked::Machine { run: run.to_owned(), cpus: cpus.clone() }.to_string(),
        run: run.to_owned(),
        now: facts(from)?,
        then: facts(run)?,
        cpus: on.replaced.clone(),
    };
    Ok((on, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_read_and_written() {
        for text in ["machine=run", "machine=a,b,cpus=2:3,4:5", "control.cpu=3", "control.remove"] {
            assert_eq!(Asked::parse(text).unwrap().to_string(), text);
        }
        for (text, what) in [
            ("machine=", "expected machine=RUN"),
            ("machine=run,cpus=2", "OURS:THEIRS"),
            ("machine=run,cpus=2:3,2:4", "CPU 2 has two places"),
            ("machine", "NAME.KEY=VALUE"),
        ] {
            let refused = Asked::parse(text).unwrap_err();
            assert!(refused.contains(what), "{text}: {refused}");
        }
    }
}
