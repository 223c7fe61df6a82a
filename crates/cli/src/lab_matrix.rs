//! `stillcore lab matrix`: kernels × ways of isolating, and in each every stressor alone: the
//! experiment `exposure` in guests, each profile in boots of its own, so that no stressor can
//! affect another column. `study_verb::experiment` runs it and makes the table.

use crate::study_verb::exposure::{self, Declared, SHORTEST};
use crate::study_verb::profile::Profile;
use crate::study_verb::{self, OfMatrix, Onto};
use crate::values::guest_time;
use clap::Args;
use lab::kernels::KernelName;
use lab::spec::DEFAULT_MEMORY_MIB;
use lab::{Accel, Arch, Smp};
use model::Error;
use model::quantity::duration;
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;
use sys::signals::EndSignals;

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
    #[arg(long, value_parser = guest_time, value_name = "TIME")]
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
pub(crate) fn run(args: &MatrixArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let asked = exposure::asked(&args.stressors, &args.suite)?;
    let declared = Declared {
        name: "matrix",
        stressors: exposure::stressors("--stressors", &args.stressors, &args.suite)?,
        duration: args.duration,
        priority: 0,
        kprobes: false,
        repetitions: 1,
        guests: Some(machine(args)),
    };
    if lab::qemu::partition(args.smp.cpus()).is_none() {
        let expected = "at least two CPUs: one to measure, one for the rest";
        return Err(Error::invalid("--smp", args.smp.to_string(), expected).into());
    }
    if args.onto.is_some() && asked.is_empty() {
        let expected = "those whose rows are made anew: --stressors";
        return Err(Error::invalid("--onto", "no stressor", expected).into());
    }
    if args.duration < SHORTEST {
        return Err(Error::invalid("--duration", format!("{:?}", args.duration), "at least 100ms").into());
    }
    let study = study_verb::RunArgs {
        study: declared.name.to_owned(),
        out: Some(args.out.clone()),
        lab: Some(kernels(args)?),
        jobs: args.jobs,
        binary: args.binary.clone(),
        json: args.json,
        matrix: OfMatrix {
            profiles: args.profiles.iter().map(|profile| profile.name()).collect(),
            timeout: args.timeout.or_else(|| Some(patience(declared.stressors.len(), args.duration))),
            onto: args.onto.clone().map(|file| Onto { file, stressors: asked }),
            retry_failed: true,
        },
        ..study_verb::RunArgs::default()
    };
    study_verb::experiment::run(&study, &declared.text()?, declared.name, signals)
}

/// The table `machine` of the experiment.
fn machine(args: &MatrixArgs) -> serde_json::Value {
    let mut machine = json!({
        "kernels": KernelName::known().split(", ").collect::<Vec<_>>(),
        "smp": args.smp.to_string(),
        "memory_mib": args.memory,
        "accel": args.accel.name(),
    });
    if let Some(arch) = args.arch {
        machine["arch"] = arch.to_string().into();
    }
    machine
}

/// The kernels, each a name of the lab or a file that is there.
fn kernels(args: &MatrixArgs) -> anyhow::Result<Vec<String>> {
    if args.kernels.is_empty() {
        return Ok(KernelName::known().split(", ").map(str::to_owned).collect());
    }
    for name in args.kernels.iter().filter(|name| !name.contains('/')) {
        name.parse::<KernelName>()?;
    }
    Ok(args.kernels.clone())
}

/// How long a guest may take: an emulated one beside others needs ten times the length of the
/// windows.
fn patience(stressors: usize, window: Duration) -> Duration {
    Duration::from_secs(180) + (Duration::from_secs(30) + 6 * window) * stressors as u32
}
