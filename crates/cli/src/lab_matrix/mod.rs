//! `stillcore lab matrix`: kernels × ways of isolating, one guest each, and in each the study `exposure`.
//!
//! `profile` is what is compared, `cell` one guest, `inside` its side, `answer` the table of all
//! results. `onto` replaces rows of an older table. The engine is the crate `study`. A cell is a
//! boot, so that no stressor can affect another cell.

mod answer;
mod cell;
pub(crate) mod inside;
mod kept;
mod onto;
mod profile;
#[cfg(test)]
mod tests;

use crate::run::progress::Reporter;
use crate::{failure, lab_verb};
use anyhow::Context;
use cell::Asking;
use clap::Args;
use disturb::{catalogue, suite};
use lab::kernels::{self, Kernel, KernelName};
use lab::spec::{DEFAULT_MEMORY_MIB, parse_duration};
use lab::{Accel, Arch, Smp, Stop};
use model::Error;
use model::quantity::duration;
use profile::Profile;
use serde_json::json;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use study::{Cell, Found, Store, Study};

/// More emulated machines than this at once wait for each other on hosts of today.
const MOST_JOBS: usize = 3;
/// The shortest window in which anything can be counted.
const SHORTEST: Duration = Duration::from_millis(100);

/// Arguments of `stillcore lab matrix`.
#[derive(Debug, Args)]
pub(crate) struct MatrixArgs {
    /// Kernels, by name or path as for lab run [default: all six].
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    kernels: Vec<String>,
    /// Isolation profiles.
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "none,runtime,partition,boot")]
    profiles: Vec<Profile>,
    /// Suites whose stressors to run; the controls always run [default: every harmless stressor].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    suite: Vec<String>,
    /// Stressors to run besides those of --suite.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    stressors: Vec<String>,
    /// Length of each idle control and of each disturbance, in the guest's time.
    #[arg(long, short = 'D', default_value = "2s", value_name = "TIME", value_parser = duration)]
    duration: Duration,
    /// Parallel guests [default: one per spare CPU, at most 3].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Guest architecture [default: this machine's].
    #[arg(long, value_name = "x86_64|aarch64")]
    arch: Option<Arch>,
    /// Cores of a guest, or cores and threads such as 4x2; measures at most two CPUs, from the
    /// third on.
    #[arg(long, default_value = "3")]
    smp: Smp,
    /// Guest memory, MiB.
    #[arg(long, value_name = "MIB", default_value_t = DEFAULT_MEMORY_MIB)]
    memory: u32,
    /// Static program that runs in the guest [default: this program].
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Accelerator: tcg emulates; kvm is faster where available; auto tries kvm first.
    #[arg(long, default_value = "tcg")]
    accel: Accel,
    /// Kill a guest after this time [default: 180 s, plus 30 s and six windows per stressor].
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    timeout: Option<Duration>,
    /// Directory of the matrix: new, empty, or of a matrix under the same conditions, to resume it.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// A matrix.json of the same kernels and conditions; replace its rows of the stressors named
    /// here.
    #[arg(long, value_name = "FILE")]
    onto: Option<PathBuf>,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the cells without a result, then reports all results.
pub(crate) fn run(args: &MatrixArgs, stop: &Stop) -> anyhow::Result<u8> {
    let stressors = stressors(args)?;
    let names = kernel_names(args);
    let arch =
        args.arch.or_else(Arch::host).context("no guests for this machine's architecture: give --arch")?;
    let (cpus, _) = lab::qemu::partition(args.smp.cpus()).ok_or_else(|| {
        Error::invalid("--smp", args.smp.to_string(), "at least two CPUs: one to measure, one for the rest")
    })?;
    let programs = lab_verb::programs(arch, args.binary.clone())?;
    lab::initramfs::check_program(&programs.init, arch, true)?;
    programs.binary.iter().try_for_each(|binary| lab::initramfs::check_program(binary, arch, false))?;
    if args.onto.is_some() && asked(args)?.is_empty() {
        return Err(
            Error::invalid("--onto", "no stressor", "those whose rows are made anew: --stressors").into()
        );
    }
    if args.duration < SHORTEST {
        return Err(Error::invalid("--duration", format!("{:?}", args.duration), "at least 100ms").into());
    }
    let cells = study(&names, &args.profiles).cells()?;
    let asking = Asking {
        arch,
        smp: args.smp,
        memory_mib: args.memory,
        accel: args.accel,
        binary: args.binary.clone(),
        timeout: args.timeout.unwrap_or_else(|| patience(stressors.len(), args.duration)),
        stressors,
        cpus: cpus.to_owned(),
        window: args.duration,
        out: &args.out,
        kernels: fetch(&names, arch, stop)?,
        stop,
    };
    let store = Store::new(&args.out);
    check(&asking, &cells, &store)?;
    answer::keep_kernels(&asking)?;
    let jobs = args.jobs.unwrap_or_else(spare);
    let done = study::run_parallel(&cells, &store, jobs, |cell| {
        let (kernel, profile) = factors(cell).map_err(|error| failure::sentence(&error))?;
        let result = cell::measure(&asking, &kernel, profile).map_err(|error| failure::sentence(&error))?;
        Reporter::say(&format!("{kernel} {}: {}", profile.name(), answer::in_short(&result)));
        serde_json::to_value(result).map_err(|error| error.to_string())
    })?;
    if stop.is_asked() {
        anyhow::bail!("stopped; resume with: --out {}", args.out.display());
    }
    for (cell, why) in &done.stale {
        Reporter::say(&format!("note: cell {} was run anew: {why}", cell.id));
    }
    answer::write_and_print(args, &store, &done, &cpus.parse()?)
}

/// The stressors of the suites, and those named.
fn asked(args: &MatrixArgs) -> anyhow::Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for id in &args.suite {
        names.extend(suite::find(id)?.stressors.into_iter().map(|member| member.name));
    }
    names.extend(args.stressors.iter().cloned());
    Ok(names)
}

/// The stressors that the user asked for, and the controls.
fn stressors(args: &MatrixArgs) -> anyhow::Result<Vec<String>> {
    let mut names = asked(args)?;
    if names.is_empty() {
        names.extend(
            catalogue::catalogue().iter().filter(|spec| !spec.dangerous).map(|spec| spec.name.to_owned()),
        );
    }
    for suite in suite::suites()?.into_iter().filter(|suite| suite.expect != suite::Expect::Any) {
        names.extend(suite.stressors.into_iter().map(|member| member.name));
    }
    let mut once: Vec<String> = Vec::new();
    for name in names {
        if catalogue::find(&name)?.dangerous {
            let found = format!("{name} may harm the machine beyond its own end");
            return Err(Error::invalid("--stressors", found, "stressors that end with themselves").into());
        }
        if !once.contains(&name) {
            once.push(name);
        }
    }
    Ok(once)
}

fn kernel_names(args: &MatrixArgs) -> Vec<String> {
    if args.kernels.is_empty() {
        KernelName::known().split(", ").map(str::to_owned).collect()
    } else {
        args.kernels.clone()
    }
}

/// Every kernel with every profile.
fn study(kernels: &[String], profiles: &[Profile]) -> Study {
    let factor = |values: Vec<&str>| values.into_iter().map(|value| json!(value)).collect::<Vec<_>>();
    Study {
        schema: study::STUDY_SCHEMA.to_owned(),
        name: "matrix".to_owned(),
        runner: "lab-matrix".to_owned(),
        seed: 1,
        factors: BTreeMap::from([
            ("kernel".to_owned(), factor(kernels.iter().map(String::as_str).collect())),
            ("profile".to_owned(), factor(profiles.iter().map(|profile| profile.name()).collect())),
        ]),
        repetitions: 1,
    }
}

/// The kernel and the profile of a cell.
fn factors(cell: &Cell) -> anyhow::Result<(String, Profile)> {
    let text = |name: &str| cell.factors.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
    let profile =
        <Profile as clap::ValueEnum>::from_str(text("profile"), false).map_err(anyhow::Error::msg)?;
    Ok((text("kernel").to_owned(), profile))
}

/// How long a guest may take: an emulated one beside others needs ten times the length of the
/// windows.
fn patience(stressors: usize, window: Duration) -> Duration {
    Duration::from_secs(180) + (Duration::from_secs(30) + 6 * window) * stressors as u32
}

pub(crate) fn spare() -> NonZeroUsize {
    let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cpus.saturating_sub(1).clamp(1, MOST_JOBS)).unwrap_or(NonZeroUsize::MIN)
}

/// Fetches every kernel before the first guest is booted, so that a missing one is known at once.
pub(crate) fn fetch(names: &[String], arch: Arch, stop: &Stop) -> anyhow::Result<BTreeMap<String, Kernel>> {
    let cache = lab_verb::cache()?;
    let mut found = BTreeMap::new();
    for name in names {
        let mut note = |text: &str| Reporter::say(&format!("lab: {text}"));
        let kernel = match name.parse() {
            Ok(known) => kernels::fetch(&cache, Path::new("/etc/apt"), known, arch, stop, &mut note)?,
            Err(_) => kernels::given(Path::new(name), Path::new("/"))?,
        };
        found.insert(name.clone(), kernel);
    }
    Ok(found)
}

/// Refuses results of other conditions before anything is run.
fn check(asking: &Asking<'_>, cells: &[Cell], store: &Store) -> anyhow::Result<()> {
    for cell in cells {
        let Found::Done(result) = store.find(cell)? else { continue };
        let (kernel, profile) = factors(cell)?;
        let place = store.path(&cell.id).display().to_string();
        let old: cell::Measured = serde_json::from_value(result)
            .map_err(|error| Error::invalid(&place, error, "a cell of lab matrix"))?;
        if let Some(found) = cell::differing(&old.conditions, &asking.conditions(&kernel, profile)) {
            let expected = "the same conditions, or another --out";
            return Err(Error::invalid(place, found, expected).into());
        }
    }
    Ok(())
}
