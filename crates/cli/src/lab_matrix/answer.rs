//! The table of everything in a matrix's directory that has a result, and what failed in this call.

use super::cell::{Asking, Measured};
use super::onto::onto;
use super::profile::Profile;
use super::{MatrixArgs, asked, factors};
use crate::lab_matrix::kept::{Kept, column, exposure_of, kernel, profiles_of, refused};
use analysis::exposure::{self, Column};
use lab::version;
use model::kernel_options::option_differences;
use model::{Cpus, Error, store};
use report::Matrix;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use study::{Attempted, Store};

/// Folder in the matrix directory, with one JSON file per kernel: its architecture, release,
/// package and configuration.
const KERNELS: &str = "kernels";

/// Stores what each kernel is, so that the table can separate configuration from version.
pub(super) fn keep_kernels(asking: &Asking<'_>) -> anyhow::Result<()> {
    let dir = asking.out.join(KERNELS);
    fs::create_dir_all(&dir).map_err(|source| Error::io("create", &dir, source))?;
    for (name, kernel) in &asking.kernels {
        let package = kernel.stored.as_ref();
        let kept = Kept {
            name: name.clone(),
            arch: asking.arch.to_string(),
            release: kernel.release.clone(),
            package: package.map(|(_, manifest)| format!("{} {}", manifest.package, manifest.version)),
            config: kernel.config()?,
        };
        store::write_json(&dir.join(format!("{}.json", name.replace('/', "_"))), &kept)?;
    }
    Ok(())
}

fn kept_kernels(out: &Path) -> anyhow::Result<Vec<Kept>> {
    let dir = out.join(KERNELS);
    let mut found = Vec::new();
    for entry in fs::read_dir(&dir).map_err(|source| Error::io("read", &dir, source))? {
        let path = entry.map_err(|source| Error::io("read", &dir, source))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            found.push(store::read_json::<Kept>(&path)?);
        }
    }
    // Oldest first, PREEMPT_RT after stock. The name of a kernel given by path is no version: its
    // release decides.
    found.sort_by(|a, b| {
        let series = |kept: &Kept| kept.release.split('-').next().unwrap_or_default().to_owned();
        version::compare(&series(a), &series(b)).then_with(|| a.name.cmp(&b.name))
    });
    Ok(found)
}

/// One cell in a line.
pub(super) fn in_short(measured: &Measured) -> String {
    let Some(found) = exposure_of(measured) else { return format!("absent: {}", refused(measured)) };
    let seen = found.rows.iter().filter(|row| row.all.is_some_and(|all| all.seen)).count();
    let held = if found.void { "controls failed" } else { "controls hold" };
    format!("{seen} of {} stressors were seen, {held}, {:.0} s", found.rows.len(), measured.wall_s)
}

/// Writes the conclusions and prints them. A failed guest is no failure of the call where others have a result.
pub(super) fn write_and_print(
    args: &MatrixArgs,
    store: &Store,
    done: &Attempted<String>,
    measured: &Cpus,
) -> anyhow::Result<u8> {
    let mut matrix = gather(args, store, done)?;
    if let Some(file) = &args.onto {
        matrix = onto(matrix, file, &asked(args)?, measured)?;
    }
    store::write_json(&args.out.join("matrix.json"), &matrix.json())?;
    store::write_whole(&args.out.join("matrix.html"), report::matrix_page(&matrix)?.as_bytes())?;
    store::write_whole(&args.out.join("matrix.md"), report::matrix_markdown(&matrix, "").as_bytes())?;
    if matrix.columns.iter().all(|column| column.absent.is_some()) {
        anyhow::bail!(
            "no cell of the matrix has a result; why is in {}",
            args.out.join("matrix.html").display()
        );
    }
    if args.json {
        println!("{}", matrix.json());
    } else {
        print!("{}", report::matrix_text(&matrix, report::TextOptions::default()));
    }
    Ok(0)
}

pub(super) fn gather(args: &MatrixArgs, store: &Store, done: &Attempted<String>) -> anyhow::Result<Matrix> {
    let kernels = kept_kernels(&args.out)?;
    let mut found: Vec<(String, Profile, Result<Measured, String>)> = Vec::new();
    for entry in store.all()? {
        // A file that is no checkpoint is no result.
        let Ok(checkpoint) = entry.checkpoint else { continue };
        let (kernel, profile) = factors(&checkpoint.cell)?;
        let measured = serde_json::from_value(checkpoint.result)
            .map_err(|error| Error::invalid(entry.path.display(), error, "a cell of lab matrix"))?;
        found.push((kernel, profile, Ok(measured)));
    }
    for (cell, result) in &done.cells {
        if let Err(why) = result {
            let (kernel, profile) = factors(cell)?;
            found.push((kernel, profile, Err(why.clone())));
        }
    }
    let place = |kernel: &str| kernels.iter().position(|kept| kept.name == kernel);
    found.sort_by_key(|(kernel, profile, _)| (*profile, place(kernel)));
    let conditions = found.iter().find_map(|(.., result)| result.as_ref().ok()).map(conditions);
    let columns: Vec<Column> =
        found.iter().map(|(kernel, profile, result)| column(kernel, *profile, result, &kernels)).collect();
    let configs: BTreeMap<_, _> =
        kernels.iter().filter_map(|kept| Some((kept.name.clone(), kept.config.clone()?))).collect();
    Ok(Matrix {
        dir: args.out.display().to_string(),
        conditions: conditions.unwrap_or_default(),
        profiles: profiles_of(&columns),
        options: option_differences(&configs)?,
        changes: exposure::changes(&columns),
        columns,
        kernels: kernels.into_iter().map(kernel).collect(),
    })
}

/// The conditions that all cells share, in words.
fn conditions(measured: &Measured) -> Vec<(String, String)> {
    let of = &measured.conditions;
    let pairs = [
        ("command", command()),
        ("guest", format!("{} CPUs, {} MiB, {}, {}", of.smp, of.memory_mib, of.accel, measured.qemu)),
        ("measured CPUs", format!("{}, each kept busy in user space under SCHED_OTHER", of.measured)),
        ("idle before, disturbed, idle after", format!("{} s each", of.window_ns as f64 / 1e9)),
        ("stillcore", of.tool_version.clone()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

/// This call as typed, without the directory of the program.
fn command() -> String {
    let words = std::env::args().skip(1);
    ["stillcore".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
