//! The cells of an experiment on many machines, through Ansible: cells without a result are divided
//! among the machines that can be reached. Each runs its cells with this program and sends the
//! results back. There is no machinery of our own beside the role in `deploy/ansible`.
//!
//! `inventory` asks Ansible for the machines, `playbook` runs the role and hears what became of
//! them.

mod inventory;
pub(crate) mod playbook;
mod sift;

use super::super::RunArgs;
use super::cell;
use crate::run::progress::Reporter;
use anyhow::Context;
use model::{Error, store};
use playbook::{Heard, Playbook, ansible};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use study::experiment::{CellResult, CellState, Planned, expected};
use study::{Cell, Entry, Found, Shard, Store, digest};
use sys::signals::EndSignals;

/// A machine beside others takes this much longer than expected, at most; and this besides.
const SLOWER: u32 = 6;
const BESIDES: Duration = Duration::from_secs(3600);

/// What is the same for all machines.
pub(super) struct Fleet<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) inventory: &'a Path,
    /// The experiment's file.
    pub(super) text: &'a str,
    pub(super) repetitions: u32,
    pub(super) out: &'a Path,
    pub(super) store: &'a Store,
}

/// What became of cells.
pub(super) struct Ended {
    /// Cells without a result of their own: their machine was lost. They are not stored, so that
    /// the next call runs them.
    pub(super) lost: Vec<(Cell, CellResult)>,
    /// Whether a signal ended it.
    pub(super) interrupted: bool,
}

/// Refuses, before anything is made, what cannot work; the machines.
pub(super) fn machines(inventory: &Path) -> anyhow::Result<Vec<String>> {
    playbook::installed()?;
    inventory::hosts(inventory)
}

/// Runs cells that have no result yet.
pub(super) fn run(
    fleet: &Fleet<'_>,
    machines: &[String],
    todo: &[&Planned],
    signals: &EndSignals,
) -> anyhow::Result<Ended> {
    let here = fleet.out.join("hosts");
    let begun = here.exists();
    fs::create_dir_all(&here).map_err(|source| Error::io("create", &here, source))?;
    let here = fs::canonicalize(&here).map_err(|source| Error::io("find", &here, source))?;
    let mut ended = Ended { lost: Vec::new(), interrupted: false };
    let mut reached = machines.to_vec();
    let mut left = todo.to_vec();
    if begun {
        Reporter::say("what an earlier call has left on the machines is ended, given back and collected");
        let heard = fleet.play("collect.yml", &here, machines.len(), Duration::ZERO, signals)?;
        fleet.import(&here, machines, todo)?;
        if heard.interrupted {
            ended.interrupted = true;
            return Ok(ended);
        }
        left = fleet.left(&left)?;
        reached.retain(|host| !heard.lost.contains_key(host));
        if reached.is_empty() {
            ended.lost = left.iter().map(|planned| lost(planned, &heard, None)).collect();
            return Ok(ended);
        }
    }
    if left.is_empty() {
        return Ok(ended);
    }
    let shares = shares(&reached, &left)?;
    write_orders(&here, machines, &shares, fleet.text)?;
    let longest = shares.values().map(|cells| expected(cells)).max().unwrap_or_default();
    let summary = format!(
        "{} cells on {}, about {} on the one that has most",
        left.len(),
        counted(shares.len()),
        report::format::span(longest.as_nanos() as u64)
    );
    Reporter::say(&summary);
    let heard = fleet.play("run.yml", &here, shares.len(), longest, signals)?;
    if heard.interrupted {
        Reporter::say("stopped: the machines end and undo their changes, and their results are collected");
        fleet.play("collect.yml", &here, machines.len(), Duration::ZERO, signals)?;
        ended.interrupted = true;
    }
    fleet.import(&here, machines, todo)?;
    if let Some(said) = &heard.said {
        anyhow::bail!("ansible-playbook failed: {said}; its log is {}", here.join("ansible.log").display());
    }
    let host_of = |planned: &Planned| {
        shares.iter().find(|(_, cells)| cells.contains(&planned)).map(|(host, _)| host.as_str())
    };
    ended.lost =
        fleet.left(&left)?.into_iter().map(|planned| lost(planned, &heard, host_of(planned))).collect();
    Ok(ended)
}

/// A number of machines, in words.
fn counted(machines: usize) -> String {
    if machines == 1 { "1 machine".to_owned() } else { format!("{machines} machines") }
}

/// Which machine runs what: a stretch of the order each, as `--shard` has it.
fn shares<'a>(
    machines: &[String],
    todo: &[&'a Planned],
) -> anyhow::Result<BTreeMap<String, Vec<&'a Planned>>> {
    let count = u32::try_from(machines.len()).context("too many machines")?;
    let mut shares = BTreeMap::new();
    for (index, host) in (1..).zip(machines) {
        let cells = Shard::new(index, count)?.of(todo);
        if !cells.is_empty() {
            shares.insert(host.clone(), cells.to_vec());
        }
    }
    Ok(shares)
}

/// Writes what each machine is to run; a machine without cells has no list.
fn write_orders(
    here: &Path,
    machines: &[String],
    shares: &BTreeMap<String, Vec<&Planned>>,
    text: &str,
) -> anyhow::Result<()> {
    store::write_whole(&here.join("study.toml"), text.as_bytes())?;
    for host in machines {
        let dir = here.join(host);
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(|source| Error::io("remove", &dir, source))?;
        }
        let Some(cells) = shares.get(host) else { continue };
        fs::create_dir_all(&dir).map_err(|source| Error::io("create", &dir, source))?;
        let ids: Vec<&str> = cells.iter().map(|planned| planned.cell.id.as_str()).collect();
        store::write_whole(&dir.join("cells.txt"), ids.join("\n").as_bytes())?;
    }
    Ok(())
}

/// A cell whose machine did not finish.
fn lost(planned: &Planned, heard: &Heard, host: Option<&str>) -> (Cell, CellResult) {
    let found = host.map_or_else(|| heard.lost.iter().next(), |host| heard.lost.get_key_value(host));
    let (place, why) = match (found, host) {
        (Some((host, lost)), _) => (host.as_str(), lost.to_string()),
        (None, Some(host)) => (host, "its machine ended without a result for it".to_owned()),
        (None, None) => ("", "no machine could be reached".to_owned()),
    };
    let version = env!("CARGO_PKG_VERSION");
    (planned.cell.clone(), CellResult::without(CellState::Failed, why, place, false, version))
}

impl Fleet<'_> {
    fn play(
        &self,
        file: &str,
        here: &Path,
        hosts: usize,
        longest: Duration,
        signals: &EndSignals,
    ) -> anyhow::Result<Heard> {
        let variables = self.variables(here, longest)?;
        let inventory = self.inventory;
        playbook::run(&Playbook { file, inventory, here, hosts, variables: &variables }, signals)
    }

    /// What the role wants to know: `deploy/ansible/roles/stillcore_study/meta/argument_specs.yml`.
    fn variables(&self, here: &Path, longest: Duration) -> anyhow::Result<Value> {
        let args = self.args;
        let mut run = vec!["--repetitions".to_owned(), self.repetitions.to_string()];
        // The results say which kernel runs there: ids are made here, before that is known.
        run.extend(["--scale".to_owned(), args.scale().to_string(), "--any-kernel".to_owned()]);
        if let Some(cpus) = &args.cpus {
            run.extend(["--cpus".to_owned(), cpus.to_string()]);
        }
        if let Some(state) = &args.state {
            run.extend(["--state".to_owned(), state.display().to_string()]);
        }
        if args.keep {
            run.push("--keep".to_owned());
        }
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        let binary = match &args.binary {
            Some(path) => fs::canonicalize(path).map_err(|source| Error::io("find", path, source))?,
            None => own,
        };
        Ok(json!({
            "stillcore_study": name(here)?,
            "stillcore_here": here,
            "stillcore_own_binary": binary,
            "stillcore_run": run,
            "stillcore_limit_s": (longest * SLOWER + BESIDES).as_secs(),
        }))
    }

    /// Takes over what came back: each machine's own cells first, then what it had from a call
    /// before.
    fn import(&self, here: &Path, machines: &[String], planned: &[&Planned]) -> anyhow::Result<()> {
        let by_id: BTreeMap<&str, &Planned> =
            planned.iter().map(|planned| (planned.cell.id.as_str(), *planned)).collect();
        for host in machines {
            let results = here.join(host).join("results");
            let removed = sift::sift(&results)?;
            if removed > 0 {
                Reporter::say(&format!(
                    "note: {host}: of what came back {removed} files or directories are none of a study's"
                ));
            }
            let mut taken = BTreeSet::new();
            for Entry { path, checkpoint } in Store::new(&results).all()? {
                let checkpoint =
                    checkpoint.map_err(|why| Error::invalid(path.display(), why, "a result of a cell"))?;
                let id = checkpoint.cell.id.as_str();
                let Some(planned) = by_id.get(id).filter(|planned| planned.cell == checkpoint.cell) else {
                    continue;
                };
                if matches!(self.store.find(&planned.cell)?, Found::Done(_)) {
                    continue;
                }
                let mut result: CellResult = serde_json::from_value(checkpoint.result)
                    .map_err(|error| Error::invalid(path.display(), error, "a result of an experiment"))?;
                result.place = result.place.replacen(cell::HERE, host, 1);
                self.store.save(&planned.cell, serde_json::to_value(&result)?)?;
                self.keep(&results, id)?;
                taken.insert(id.to_owned());
                Reporter::say(&format!("{host}: {}", super::in_short(&planned.cell, &result)));
            }
            forget(&results)?;
        }
        Ok(())
    }

    /// The run directory of a cell, where they are kept.
    fn keep(&self, results: &Path, id: &str) -> anyhow::Result<()> {
        let from = results.join("runs").join(id);
        if !self.args.keep || !from.exists() {
            return Ok(());
        }
        let runs = self.out.join("runs");
        fs::create_dir_all(&runs).map_err(|source| Error::io("create", &runs, source))?;
        let to = runs.join(id);
        if to.exists() {
            fs::remove_dir_all(&to).map_err(|source| Error::io("remove", &to, source))?;
        }
        fs::rename(&from, &to).map_err(|source| Error::io("move", &from, source).into())
    }

    /// Those without a result.
    fn left<'a>(&self, cells: &[&'a Planned]) -> anyhow::Result<Vec<&'a Planned>> {
        let mut left = Vec::new();
        for planned in cells {
            if !matches!(self.store.find(&planned.cell)?, Found::Done(_)) {
                left.push(*planned);
            }
        }
        Ok(left)
    }
}

/// Removes what was brought back: the study has it now.
fn forget(results: &Path) -> anyhow::Result<()> {
    let archive: PathBuf = results.with_extension("tar.gz");
    for gone in [fs::remove_dir_all(results), fs::remove_file(&archive)] {
        match gone {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", results, error).into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// The name of the study's directory on the machines: the same in every call on this one, and
/// unique to it.
fn name(here: &Path) -> anyhow::Result<String> {
    let path = here.join("name");
    if let Ok(name) = fs::read_to_string(&path) {
        return Ok(name.trim().to_owned());
    }
    let now = jiff::Timestamp::now().as_nanosecond().to_string();
    let name = digest(&[&here.to_string_lossy(), &now, &std::process::id().to_string()], 6);
    store::write_whole(&path, name.as_bytes())?;
    Ok(name)
}
