//! The step of the guests: the machines boot beside other steps; what each did is read from the
//! accounts that the test program leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::build::Program;
use super::programs::{Order, run as run_program};
use crate::output::Output;
use crate::steps::Counts;

/// The longest that the program may print nothing: a machine with all its scripts, booted twice.
const SILENCE: Duration = Duration::from_secs(3000);

/// `machine.json` of a machine (`crates/cli/tests/guests/machine.rs`).
#[derive(Debug, Deserialize, PartialEq)]
struct Account {
    machine: String,
    /// Release and architecture of the kernel; none where it did not boot.
    release: Option<String>,
    boots: u32,
    /// Why it was booted again.
    trouble: Vec<String>,
    took_s: f64,
}

/// Which machines, and how many of them at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machines<'a> {
    /// Their tier, and what else names them: `fast::`, `matrix::5.10::`.
    pub tier: &'a str,
    /// Their scripts sleep for much of their time.
    pub at_once: usize,
    /// As many distinct kernels must have booted.
    pub kernels: usize,
}

/// Boots machines and judges them.
pub(super) fn run(
    program: &Program,
    chosen: Machines,
    strict: bool,
    output: &mut Output,
    counts: &mut Counts,
) -> Result<()> {
    let folder = folder(program)?;
    let tier = chosen.tier.replace("::", "-");
    clear(&folder, &tier)?;
    let order = Order {
        filter: Some(chosen.tier),
        threads: Some(chosen.at_once),
        silence: SILENCE,
        ..Order::default()
    };
    let outcome = run_program(program, &order, output, counts);
    let machines = accounts(&folder, &tier)?;
    counts.notes.extend(machines.iter().map(note));
    let kernels = kernels(&machines);
    if kernels.len() < chosen.kernels {
        let few = format!("{} kernels booted; expected at least {}", kernels.len(), chosen.kernels);
        if strict {
            bail!("{few} (`make test STRICT=0` allows it)");
        }
        counts.notes.push(format!("{few}; allowed, because STRICT=0"));
        return Ok(());
    }
    outcome
}

/// Where the program keeps its machines: `CARGO_TARGET_TMPDIR` of its build.
fn folder(program: &Program) -> Result<PathBuf> {
    let target = program.path.ancestors().nth(3).context("the test program is in no target directory")?;
    Ok(target.join("tmp/guests"))
}

/// Removes what earlier runs left of a tier, so that a step cannot pass on old evidence.
fn clear(folder: &Path, tier: &str) -> Result<()> {
    for place in places(folder, tier)? {
        super::clear(&place)?;
    }
    Ok(())
}

/// The folders of a tier's machines.
fn places(folder: &Path, tier: &str) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("list {}", folder.display())),
    };
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    // `fast-6.1-` is of `fast-6.1`, and not of `fast-6.12-rt`.
    let is_of_it = |path: &PathBuf| {
        path.file_name().is_some_and(|name| format!("{}-", name.to_string_lossy()).starts_with(tier))
    };
    Ok(paths.into_iter().filter(is_of_it).collect())
}

fn note(account: &Account) -> String {
    let Account { machine, release, boots, trouble, took_s } = account;
    let release = release.as_deref().unwrap_or("did not boot");
    let again = if trouble.is_empty() { String::new() } else { format!(": {}", trouble.join("; ")) };
    format!("{machine}: {release}, {boots} boots, {took_s:.0} s{again}")
}

/// The distinct kernels that booted.
fn kernels(machines: &[Account]) -> Vec<String> {
    let mut found: Vec<String> = machines.iter().filter_map(|machine| machine.release.clone()).collect();
    found.sort();
    found.dedup();
    found
}

fn accounts(folder: &Path, tier: &str) -> Result<Vec<Account>> {
    let mut found = Vec::new();
    for place in places(folder, tier)? {
        let path = place.join("machine.json");
        // A machine that was ended on its way has none.
        let Ok(bytes) = fs::read(&path) else { continue };
        found.push(serde_json::from_slice(&bytes).with_context(|| format!("parse {}", path.display()))?);
    }
    found.sort_by(|a: &Account, b| a.machine.cmp(&b.machine));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(machine: &str, release: Option<&str>, boots: u32) -> Account {
        let (machine, release) = (machine.to_owned(), release.map(str::to_owned));
        Account { machine, release, boots, trouble: vec![], took_s: 61.2 }
    }

    #[test]
    fn the_same_kernel_twice_is_one_and_a_machine_that_did_not_boot_is_none() {
        let machines = [
            account("a", Some("6.1.0 x86_64"), 1),
            account("b", Some("6.1.0 x86_64"), 1),
            account("c", None, 2),
            account("d", Some("6.1.0 aarch64"), 1),
        ];
        assert_eq!(kernels(&machines), ["6.1.0 aarch64", "6.1.0 x86_64"]);
    }

    #[test]
    fn a_second_boot_is_in_the_table_with_its_reason() {
        let mut machine = account("fast::6.1", Some("6.1.0 x86_64"), 2);
        machine.trouble.push("moves did not end within 510 s: ended".into());
        assert_eq!(
            note(&machine),
            "fast::6.1: 6.1.0 x86_64, 2 boots, 61 s: moves did not end within 510 s: ended"
        );
    }
}
