//! Kernels and ways of isolating side by side: a column each.

use super::kernels::{Kept, kept};
use super::onto::onto;
use super::{PROFILE, WINDOWS, expected, facts, measured, window};
use crate::study_verb::experiment::options::AnswerOptions;
use crate::study_verb::profile;
use analysis::exposure::{self, Column};
use lab::spec::DEFAULT_MEMORY_MIB;
use model::kernel_options::option_differences;
use model::{Cpus, store};
use report::{Matrix, MatrixKernel};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use study::Cell;
use study::experiment::{CellResult, CellState, Experiment, KERNEL, Under};

/// The profile of guests whose boot no factor sets.
const AS_BOOTED: &str = "as booted";

/// The cells of a column.
type Of<'a> = BTreeMap<(String, String), Vec<&'a (Cell, CellResult)>>;

/// Writes the table and prints it. A kernel without results is no failure where others have some.
pub(super) fn write_and_print(
    args: &AnswerOptions,
    experiment: &Experiment,
    results: &[(Cell, CellResult)],
    out: &Path,
) -> anyhow::Result<u8> {
    let mut matrix = gather(args, experiment, results, out)?;
    if let Some(asked) = &args.onto {
        let under = results.iter().find_map(|(_, result)| result.under.as_ref());
        let cpus: Cpus = under.map_or(Ok(Cpus::default()), |under| under.measured.parse())?;
        matrix = onto(matrix, &asked.file, &asked.stressors, &cpus)?;
    }
    store::write_json(&out.join("matrix.json"), &matrix.json())?;
    store::write_whole(&out.join("matrix.html"), report::matrix_page(&matrix)?.as_bytes())?;
    store::write_whole(&out.join("matrix.md"), report::matrix_markdown(&matrix, "").as_bytes())?;
    if matrix.columns.iter().all(|column| column.absent.is_some()) {
        let page = out.join("matrix.html");
        anyhow::bail!("no cell of the matrix has a result; why is in {}", page.display());
    }
    if args.json {
        println!("{}", matrix.json());
    } else {
        print!("{}", report::matrix_text(&matrix, crate::terminal::plain_options()));
    }
    Ok(0)
}

pub(super) fn gather(
    args: &AnswerOptions,
    experiment: &Experiment,
    results: &[(Cell, CellResult)],
    out: &Path,
) -> anyhow::Result<Matrix> {
    let mut of = Of::new();
    for result in results {
        let level = |name: &str| result.0.factors.get(name).and_then(|level| level.as_str());
        let kernel = level(KERNEL).unwrap_or_default().to_owned();
        let profile = level(PROFILE).unwrap_or(AS_BOOTED).to_owned();
        of.entry((kernel, profile)).or_default().push(result);
    }
    let kept = kept(out)?;
    let kernels = kernels(&kept, results);
    let mut columns = Vec::new();
    for (profile, kernel) in order(experiment, &kernels) {
        if let Some(results) = of.get(&(kernel.clone(), profile.clone())) {
            let kept = kept.iter().find(|kept| kept.name == kernel);
            columns.push(column(&kernel, &profile, results, kept)?);
        }
    }
    let configs: BTreeMap<_, _> =
        kept.iter().filter_map(|kept| Some((kept.name.clone(), kept.config.clone()?))).collect();
    Ok(Matrix {
        dir: out.display().to_string(),
        conditions: conditions(args, experiment, results, &kept),
        profiles: profile::titles(columns.iter().map(|column| column.profile.as_str())),
        options: option_differences(&configs)?,
        changes: exposure::changes(&columns),
        columns,
        kernels,
    })
}

/// Profiles as declared, and in each the kernels.
fn order(experiment: &Experiment, kernels: &[MatrixKernel]) -> Vec<(String, String)> {
    let factor = experiment.factors.iter().find(|factor| factor.name.get_ref() == PROFILE);
    let profiles: Vec<String> = match factor {
        Some(factor) => factor.levels.get_ref().iter().map(|level| level.name.clone()).collect(),
        None => vec![AS_BOOTED.to_owned()],
    };
    let names = |profile: String| kernels.iter().map(move |kernel| (profile.clone(), kernel.name.clone()));
    profiles.into_iter().flat_map(names).collect()
}

/// The kernels of the results; those that are not of the lab say what they are themselves.
fn kernels(kept: &[Kept], results: &[(Cell, CellResult)]) -> Vec<MatrixKernel> {
    let named: BTreeSet<&str> = results
        .iter()
        .map(|(cell, _)| cell.factors.get(KERNEL).and_then(|level| level.as_str()).unwrap_or_default())
        .collect();
    let mut kernels: Vec<MatrixKernel> =
        kept.iter().filter(|kept| named.contains(kept.name.as_str())).cloned().map(Into::into).collect();
    for name in named.into_iter().filter(|name| !kept.iter().any(|kept| kept.name == *name)) {
        let of = |(cell, _): &&(Cell, CellResult)| {
            cell.factors.get(KERNEL).and_then(|level| level.as_str()) == Some(name)
        };
        let under = results.iter().filter(of).find_map(|(_, result)| result.under.as_ref());
        kernels.push(MatrixKernel {
            name: name.to_owned(),
            release: under.map_or_else(String::new, |under| under.release.clone()),
            package: None,
            arch: std::env::consts::ARCH.to_owned(),
        });
    }
    kernels
}

fn column(
    kernel: &str,
    profile: &str,
    results: &[&(Cell, CellResult)],
    kept: Option<&Kept>,
) -> anyhow::Result<Column> {
    let realtime = kept.map_or_else(|| kernel.ends_with("-rt"), Kept::realtime);
    if !results.iter().any(|(_, result)| result.state == CellState::Ok) {
        let why = results.iter().find_map(|(_, result)| result.reason.clone());
        return Ok(Column {
            kernel: kernel.to_owned(),
            profile: profile.to_owned(),
            realtime,
            absent: Some(why.unwrap_or_else(|| "no reason is known".to_owned())),
            void: false,
            unsteady: Vec::new(),
            verdict: Vec::new(),
            idle_per_s: BTreeMap::new(),
            rows: Vec::new(),
        });
    }
    let expected = expected()?;
    let counted = results.iter().map(|result| facts(result, &expected));
    let found = exposure::conclude(&counted.collect::<anyhow::Result<Vec<_>>>()?, &expected);
    Ok(Column::of(kernel, profile, realtime, found))
}

/// The conditions that all columns share, in words.
fn conditions(
    args: &AnswerOptions,
    experiment: &Experiment,
    results: &[(Cell, CellResult)],
    kept: &[Kept],
) -> Vec<(String, String)> {
    let machine = &experiment.machine;
    let under: Option<&Under> = results.iter().find_map(|(_, result)| result.under.as_ref());
    let mut pairs = vec![("command", command())];
    if let Some(kept) = kept.first() {
        let smp = machine.smp.as_deref().unwrap_or("4");
        let memory = machine.memory_mib.unwrap_or(DEFAULT_MEMORY_MIB);
        let accel = machine.accel.as_deref().unwrap_or("tcg");
        pairs.push(("guest", format!("{smp} CPUs, {memory} MiB, {accel}, {}", kept.qemu)));
    }
    pairs.extend(under.map(|under| ("measured CPUs", measured(&under.measured, experiment))));
    pairs.extend(window(args, experiment).map(|window| (WINDOWS, window)));
    pairs.extend(results.first().map(|(_, result)| ("stillcore", result.tool_version.clone())));
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// This call as typed, without the directory of the program.
fn command() -> String {
    let words = std::env::args().skip(1);
    ["stillcore".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
