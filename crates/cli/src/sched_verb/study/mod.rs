//! `stillcore sched study`: schedulability curves, cell by cell by the engine of `study`,
//! conclusions by `sched::curves`.
//!
//! A cell is one point of the axis and one block of sets. Its result is one bit per curve and set:
//! the verdict. All conclusions are drawn from these bits, so that more sets, or another look at
//! them, costs no cell that is there already.

mod files;
mod text;

pub(crate) use files::{built_in, titles};

use super::generate::refused;
use super::jitter::{At, observed, read_at};
use crate::failure;
use anyhow::Context;
use clap::Args;
use model::{Error, store};
use rayon::prelude::*;
use report::svg::{self, SharePoint, Shares};
use sched::curves::conclude::{Concluded, CurveResult, conclude};
use sched::curves::declared::{Declared, DeclaredCurve, DeclaredError, SCHEMA};
use sched::curves::{Curve, Proportion, verdicts};
use sched::generate::Generator;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use study::{Cell, Progress, Shard, Store, Study};

/// Sets of a cell at most.
const BLOCK: u64 = 100_000;
/// Sets that one thread takes at a time.
const PART: u64 = 256;

/// Arguments of `sched study`.
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// File that declares a study, or name of a built-in one.
    #[arg(value_name = "NAME|FILE.toml")]
    pub(crate) file: PathBuf,
    /// Directory for results: new, empty, or of the same study, interrupted or finished, to reuse
    /// its results [default: study-NAME].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Sets per point [default: as declared].
    #[arg(long, value_name = "N")]
    pub(crate) sets: Option<u64>,
    /// Random seed [default: as declared].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Number of threads [default: one per CPU].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Add a curve with the latest wake-up of a measured run as jitter; test and partition of the
    /// first curve.
    #[arg(long, value_name = "RUN")]
    pub(crate) jitter_from: Vec<PathBuf>,
    /// Statistic of the run: max = observed maximum, or a quantile such as 0.999.
    #[arg(long, value_name = "max|P", default_value = "max", requires = "jitter_from", value_parser = read_at)]
    pub(crate) jitter_at: At,
    /// Run part I of N of the cells without conclusions, to spread a study over machines or days.
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub(crate) shard: Shard,
    /// Merge the cells of parts of this study from this directory; repeatable.
    #[arg(long, value_name = "DIR")]
    pub(crate) merge: Vec<PathBuf>,
    /// Print one JSON object instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Sets that a scale leaves of those declared, at least.
const FEWEST: u64 = 100;

/// Whether a text declares curves.
pub(crate) fn is_one(text: &str) -> bool {
    text.contains(SCHEMA)
}

/// Runs it, or what is left of it.
pub(crate) fn run(args: &StudyArgs) -> anyhow::Result<u8> {
    let text = match args.file.to_str().and_then(built_in) {
        Some(text) => text.to_owned(),
        None => {
            std::fs::read_to_string(&args.file).map_err(|source| Error::io("read", &args.file, source))?
        }
    };
    run_text(args, &text, 1.0)
}

/// Runs what `text` declares, with this share of its sets where the user gave no number.
pub(crate) fn run_text(args: &StudyArgs, text: &str, scale: f64) -> anyhow::Result<u8> {
    let mut declared = read(text, &args.file)?;
    let scaled = ((declared.sets as f64 * scale).ceil() as u64).max(FEWEST.min(declared.sets));
    declared.sets = args.sets.unwrap_or(scaled);
    declared.seed = args.seed.unwrap_or(declared.seed);
    let conditions = add_measured(args, &mut declared)?;
    check(&declared, &args.file)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("study-{}", declared.name)));
    refuse_foreign(&out, &declared)?;
    let curves = declared.curves()?;
    let store = Store::new(&out);
    take_over(&args.merge, &store)?;
    let cells = matrix(&declared).cells()?;
    if args.shard != Shard::WHOLE {
        return part(args, &declared, &curves, &store, &cells);
    }
    let points = verdicts_of(&declared, &evaluate(args, &declared, &curves, &store, &cells)?)?;
    let concluded = conclude(&declared, &curves, &points, conditions);
    write(&out, &concluded)?;
    if args.json {
        println!("{}", serde_json::to_string(&concluded)?);
    } else {
        print!("{}", text::text(&concluded));
        println!("written: {}/curves.json, curves.csv, curves.svg", out.display());
    }
    Ok(0)
}

/// Reads and checks a declaration.
fn read(text: &str, path: &Path) -> anyhow::Result<Declared> {
    let declared: Declared = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = 1 + text.get(..start).unwrap_or_default().matches('\n').count();
        let what = error.message().trim().replace('\n', ", ");
        Error::invalid(format!("{}, line {line}", path.display()), what, format!("a study, {SCHEMA}"))
    })?;
    check(&declared, path)?;
    Ok(declared)
}

/// Checks a declaration, also after options have changed it.
fn check(declared: &Declared, path: &Path) -> anyhow::Result<()> {
    declared.check().map_err(|error| match error {
        DeclaredError::Field { field, found, expected } => {
            Error::invalid(format!("{}, {field}", path.display()), found, expected).into()
        }
        DeclaredError::Generate(error) => refused(&format!("{}, generate.", path.display()), error),
    })
}

/// Brings cells of parts together. Refuses a cell with two results.
fn take_over(parts: &[PathBuf], store: &Store) -> anyhow::Result<()> {
    for dir in parts {
        let from = Store::new(dir);
        if from.all()?.is_empty() {
            return Err(Error::invalid(dir.display(), "no cells", "the --out of a --shard").into());
        }
        let report = study::merge(&[from], store)?;
        if let Some((path, why)) = report.invalid.first() {
            return Err(Error::invalid(path.display(), why, "a cell of a study").into());
        }
        if let Some(conflict) = report.conflicts.first() {
            let found = format!("another result than {}", conflict.kept.display());
            return Err(
                Error::invalid(conflict.left_out.display(), found, "the same of the same cell").into()
            );
        }
    }
    Ok(())
}

/// Runs one part of the cells and says so.
fn part(
    args: &StudyArgs,
    declared: &Declared,
    curves: &[Curve],
    store: &Store,
    cells: &[Cell],
) -> anyhow::Result<u8> {
    let own = args.shard.of(cells);
    let progress = evaluate(args, declared, curves, store, own)?;
    let [done, all] = [progress.results.len(), cells.len()];
    if args.json {
        let answer = json!({ "schema": "stillcore.sched-study-shard/1", "name": declared.name, "seed": declared.seed,
            "sets": declared.sets, "shard": args.shard.to_string(), "cells": done, "ran": progress.ran, "of": all });
        println!("{answer}");
    } else {
        println!(
            "part {}: {done} of {all} cells, {} of them run now; nothing is concluded",
            args.shard, progress.ran
        );
        println!("with all parts: stillcore sched study {} --merge DIR …", args.file.display());
    }
    Ok(0)
}

/// Results go to a directory that is new, empty, or of a study of this name and seed, of no more
/// sets.
fn refuse_foreign(out: &Path, declared: &Declared) -> anyhow::Result<()> {
    let conclusions = out.join("curves.json");
    if conclusions.exists() {
        let earlier: Value = store::read_json(&conclusions)?;
        let number = |key: &str| earlier.get(key).and_then(Value::as_u64);
        let name = &declared.name;
        let refused =
            |found: String, expected: String| Err(Error::invalid(out.display(), found, expected).into());
        return match earlier.get("name").and_then(Value::as_str) {
            Some(other) if other != name => {
                refused(format!("results of {other}"), format!("another --out, or those of {name}"))
            }
            None => {
                refused("results of something else".to_owned(), format!("another --out, or those of {name}"))
            }
            _ if number("seed") != Some(declared.seed) => {
                let seed = number("seed").unwrap_or_default();
                refused(format!("results of seed {seed}"), format!("another --out, or --seed {seed}"))
            }
            _ if number("sets") > Some(declared.sets) => {
                let sets = number("sets").unwrap_or_default();
                refused(format!("results of {sets} sets"), "another --out, or no fewer --sets".to_owned())
            }
            _ => Ok(()),
        };
    }
    let entries = match std::fs::read_dir(out) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|source| Error::io("read", out, source))?,
    };
    // What an interrupted study has left.
    match entries.flatten().find(|entry| entry.file_name() != "cells") {
        Some(entry) => {
            let found = format!("{} in it", entry.file_name().display());
            Err(Error::invalid(out.display(), found, "a new or empty directory, or that of a study").into())
        }
        None => Ok(()),
    }
}

/// Adds a curve for every run named to the study; returns their conditions.
fn add_measured(args: &StudyArgs, declared: &mut Declared) -> anyhow::Result<Vec<String>> {
    let mut conditions = Vec::new();
    for dir in &args.jitter_from {
        let Some(first) = declared.curves.first().cloned() else { break };
        let measured = observed(dir, args.jitter_at)?;
        let jitter = format!("{}ns", measured.jitter_ns);
        let name = dir.display().to_string();
        declared.curves.push(DeclaredCurve { name, jitter, published: None, ..first });
        conditions.push(measured.conditions);
    }
    Ok(conditions)
}

/// The study as the engine takes it. The factors, and so the identity of the cells, hold all that a
/// verdict depends on. The number of sets only affects the last block.
fn matrix(declared: &Declared) -> Study {
    let curves = declared.curves.iter();
    let curves = curves.map(|one| {
        json!({ "test": one.test, "partition": one.partition, "locks": one.locks, "jitter": one.jitter,
            "longer_sections": one.longer_sections, "own_locks": one.own_locks, "ceilings": one.ceilings, "overheads": one.overheads })
    });
    let sets = json!({ "generate": declared.generate, "axis": declared.axis.of, "seed": declared.seed });
    let blocks = declared.sets.div_ceil(BLOCK);
    let factors = BTreeMap::from([
        ("x".to_owned(), declared.axis.values.iter().map(|x| json!(x)).collect()),
        ("drawn".to_owned(), vec![sets]),
        ("curves".to_owned(), vec![Value::Array(curves.collect())]),
        (
            "block".to_owned(),
            (0..blocks).map(|block| json!([block * BLOCK, end_of(declared, block)])).collect(),
        ),
    ]);
    Study { name: declared.name.clone(), seed: declared.seed, factors, repetitions: 1 }
}

/// The last set of a block, and one.
fn end_of(declared: &Declared, block: u64) -> u64 {
    ((block + 1) * BLOCK).min(declared.sets)
}

/// Why the loop over the cells ended early.
#[derive(Debug, thiserror::Error)]
#[error("{}", failure::sentence(.0))]
struct Ended(anyhow::Error);

/// The cells, run or found: the verdicts of a cell are `[curve]`, as hex digits.
fn evaluate(
    args: &StudyArgs,
    declared: &Declared,
    curves: &[Curve],
    store: &Store,
    cells: &[Cell],
) -> anyhow::Result<Progress> {
    let threads = args.threads.map_or(0, usize::from);
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("no threads can be started")?;
    let progress = study::run(cells, store, |cell| {
        let found = pool.install(|| cell_verdicts(declared, curves, cell)).map_err(Ended)?;
        Ok::<_, Ended>(found.iter().map(|bits| hex(bits)).collect::<Value>())
    });
    match progress {
        Ok(progress) => Ok(progress),
        Err(study::RunError::Cell { source: Ended(error), .. }) => Err(error),
        Err(error) => Err(error.into()),
    }
}

/// The verdicts, `[curve][point][set]`.
fn verdicts_of(declared: &Declared, progress: &Progress) -> anyhow::Result<Vec<Vec<Vec<bool>>>> {
    let mut points =
        vec![vec![vec![false; declared.sets as usize]; declared.axis.values.len()]; declared.curves.len()];
    for (cell, result) in &progress.results {
        let (point, sets) = place(declared, cell)?;
        for (at, curve) in declared.curves.iter().enumerate() {
            let bits = result.get(at).and_then(Value::as_str).unwrap_or_default();
            let bits = unhex(bits, (sets.end - sets.start) as usize);
            let bits =
                bits.with_context(|| format!("cell {} holds no verdicts of {}", cell.id, curve.name))?;
            points[at][point][sets.start as usize..sets.end as usize].copy_from_slice(&bits);
        }
    }
    Ok(points)
}

/// Which point of the axis, and which sets, a cell is.
fn place(declared: &Declared, cell: &Cell) -> anyhow::Result<(usize, std::ops::Range<u64>)> {
    let x = cell.factors.get("x").and_then(Value::as_f64);
    let point = declared.axis.values.iter().position(|value| Some(*value) == x);
    let block = cell.factors.get("block").and_then(Value::as_array);
    let end = |at: usize| block.and_then(|block| block.get(at)).and_then(Value::as_u64);
    match (point, end(0), end(1)) {
        (Some(point), Some(start), Some(end)) => Ok((point, start..end)),
        _ => anyhow::bail!("cell {} is not of this study", cell.id),
    }
}

/// The verdicts of a cell, `[curve][set]`. All threads share the work; the result does not depend
/// on which thread does which part.
fn cell_verdicts(declared: &Declared, curves: &[Curve], cell: &Cell) -> anyhow::Result<Vec<Vec<bool>>> {
    let (point, sets) = place(declared, cell)?;
    let generator = Generator::new(declared.spec(declared.axis.values[point])?, declared.seed)?;
    let starts: Vec<u64> = sets.clone().step_by(PART as usize).collect();
    let parts =
        starts.into_par_iter().map(|start| verdicts(&generator, curves, start..(start + PART).min(sets.end)));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let whole = |curve: usize| parts.iter().flat_map(|part| part[curve].iter().copied()).collect();
    Ok((0..curves.len()).map(whole).collect())
}

/// Bits as hex digits, four sets per digit, the first the highest.
fn hex(bits: &[bool]) -> String {
    let digit = |four: &[bool]| {
        let value = four.iter().enumerate().fold(0, |value, (at, bit)| value | u32::from(*bit) << (3 - at));
        char::from_digit(value, 16).unwrap_or('0')
    };
    bits.chunks(4).map(digit).collect()
}

fn unhex(text: &str, bits: usize) -> Option<Vec<bool>> {
    let mut found = Vec::with_capacity(bits + 3);
    for digit in text.chars() {
        let value = digit.to_digit(16)?;
        found.extend((0..4).map(|at| value >> (3 - at) & 1 == 1));
    }
    (found.len() == bits.div_ceil(4) * 4).then(|| {
        found.truncate(bits);
        found
    })
}

/// The chart's curves.
fn chart(concluded: &Concluded) -> Vec<Shares> {
    let shares = |(style, curve): (usize, &CurveResult)| {
        let point = |(&x, one): (&f64, &Proportion)| {
            let [low, high] = one.interval;
            SharePoint { x, share: one.share, low, high }
        };
        let said = curve.published.iter().flatten();
        Shares {
            label: curve.name.clone(),
            style: style % 6,
            points: concluded.values.iter().zip(&curve.points).map(point).collect(),
            published: concluded.values.iter().zip(said).map(|(x, percent)| [*x, percent / 100.0]).collect(),
        }
    };
    concluded.curves.iter().enumerate().map(shares).collect()
}

fn write(out: &Path, concluded: &Concluded) -> anyhow::Result<()> {
    store::write_json(&out.join("curves.json"), concluded)?;
    store::write_whole(&out.join("curves.csv"), text::csv(concluded).as_bytes())?;
    if let Some(chart) =
        svg::shares("curves", &concluded.title, [&concluded.axis, "schedulable sets"], &chart(concluded))
    {
        store::write_whole(&out.join("curves.svg"), svg::standalone(&chart).as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_survive() {
        for n in 0..20 {
            let bits: Vec<bool> = (0..n).map(|at| at % 3 == 1).collect();
            assert_eq!(unhex(&hex(&bits), n), Some(bits.clone()));
            assert_eq!(unhex(&hex(&bits), n + 5), None);
        }
        assert_eq!(unhex("g", 4), None);
        assert_eq!(hex(&[true, false, false, false, true]), "88");
    }
}
