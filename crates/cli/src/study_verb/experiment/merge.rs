//! `stillcore study merge`: the parts of an experiment, run on different machines, as one.

use super::answer;
use super::directory::{self, PLAN};
use crate::study_verb::experiment::options::AnswerOptions;
use anyhow::Context;
use clap::Args;
use model::Error;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use study::experiment::{Part, Planned, gather};
use study::{Shard, Store};

/// Arguments of `study merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Directories of the parts, each the --out of one `study run --shard I/N`.
    #[arg(value_name = "DIR", required = true)]
    parts: Vec<PathBuf>,
    /// Directory for the merged study: new, empty, or of the same study [default: study-NAME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Conclude from the available cells even if some are missing.
    #[arg(long)]
    partial: bool,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads all parts, and writes nothing until they are known to fit.
pub(crate) fn run(args: &MergeArgs) -> anyhow::Result<u8> {
    let (first, parts) = read(&args.parts)?;
    let experiment = first.declared(&super::files::published()?).with_context(|| place(&args.parts[0]))?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("study-{}", first.name)));
    let mut first = parts.iter().fold(first, Part::with_kernels_of);
    if let Some(part) = directory::present(&out)? {
        refuse_other(&first, &part, &out)?;
        first = first.with_kernels_of(&part);
    }
    let plan = first.plan(&experiment)?;
    let stores: Vec<Store> = args.parts.iter().map(Store::new).collect();
    let target = Store::new(&out);
    let gathered = gather(&plan, &stores, &target)?;
    let missing = gathered.missing.len();
    if missing > 0 && !args.partial {
        let found = format!(
            "{missing} of {} cells are missing{}",
            plan.cells.len(),
            absent(&parts, &plan.cells, &gathered.missing)
        );
        return Err(Error::invalid("study merge", found, "all parts, or --partial").into());
    }
    let whole = Part { shard: Shard::WHOLE.to_string(), cells: plan.cells.len(), ..first.clone() };
    let _held = directory::open(&out, &whole)?;
    for (planned, result) in gathered.found {
        target.save(&planned.cell, result)?;
    }
    let options = AnswerOptions {
        scale: first.scale,
        json: args.json,
        quiet: false,
        cells: plan.cells.len(),
        onto: None,
    };
    answer::write_and_print(&options, &experiment, &super::results(&target, &plan.cells)?, &out)
}

/// Every part's account of itself; all of one plan.
fn read(dirs: &[PathBuf]) -> anyhow::Result<(Part, Vec<Part>)> {
    let mut parts: Vec<Part> = Vec::new();
    for dir in dirs {
        let Some(part) = directory::present(dir)? else {
            let expected = "a directory that `stillcore study run` has made for an experiment";
            return Err(Error::invalid(dir.display(), format!("no {PLAN}"), expected).into());
        };
        if let Some(first) = parts.first() {
            refuse_other(first, &part, dir)?;
        }
        parts.push(part);
    }
    let first = parts.first().context("no parts")?.clone();
    Ok((first, parts))
}

fn refuse_other(first: &Part, part: &Part, dir: &Path) -> anyhow::Result<()> {
    match part.differs(first) {
        Some((found, expected)) => Err(Error::invalid(place(dir), found, expected).into()),
        None => Ok(()),
    }
}

fn place(dir: &Path) -> String {
    dir.join(PLAN).display().to_string()
}

/// Which parts of the same division are not there, where that explains all that is missing.
fn absent(parts: &[Part], cells: &[Planned], missing: &[&Planned]) -> String {
    let shards: Vec<Shard> = parts.iter().filter_map(|part| part.shard.parse().ok()).collect();
    let counts: BTreeSet<u32> = shards.iter().map(|shard| shard.count()).collect();
    let [count] = counts.into_iter().collect::<Vec<_>>()[..] else { return String::new() };
    let given: BTreeSet<String> = shards.iter().map(ToString::to_string).collect();
    let absent: Vec<Shard> = (1..=count)
        .filter_map(|index| Shard::new(index, count).ok())
        .filter(|shard| !given.contains(&shard.to_string()))
        .collect();
    let explained: usize = absent.iter().map(|shard| shard.of(cells).len()).sum();
    let names: Vec<String> = absent.iter().map(ToString::to_string).collect();
    match names.len() {
        0 => ": a part was not run to its end".to_owned(),
        _ if explained != missing.len() => format!(": part {}, and cells of others", names.join(", ")),
        _ => format!(": part {}", names.join(", ")),
    }
}
