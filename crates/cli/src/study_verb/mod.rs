//! `stillcore study`: declared matrices of measurements, run cell by cell, resumable.
//!
//! The engine is the crate `study`; what a cell does is one module here a runner. A study is built in, by name, or declared in a file
//! that names its runner.

mod exposure;

use crate::args::duration;
use anyhow::Context;
use clap::{Args, Subcommand};
use linux::sys::signals::EndSignals;
use model::{Cpus, Error};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use study::{Shard, Study};

/// Verbs under `study`.
#[derive(Debug, Subcommand)]
pub(crate) enum StudyVerb {
    /// Run a study, or go on with one that was interrupted.
    Run(Box<RunArgs>),
    /// List the built-in studies.
    List {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `study run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A built-in study, or a file that declares one.
    #[arg(value_name = "NAME|FILE")]
    study: String,
    /// Directory of the study: new, empty, or of the same study, which is then gone on with [default: study-NAME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Stressors, instead of those declared; the controls are always run.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", conflicts_with = "suite")]
    stressors: Vec<String>,
    /// The stressors of a suite, instead of those declared.
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// How often each cell is run [default: as declared; 1 for built-in studies].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: Option<u32>,
    /// Length of each idle control and of each disturbance.
    #[arg(long, short = 'D', default_value = "2s", value_name = "TIME", value_parser = duration)]
    duration: Duration,
    /// CPUs to measure [default: the isolated CPUs, else the highest one].
    #[arg(long, value_name = "LIST")]
    cpus: Option<Cpus>,
    /// SCHED_FIFO priority of the loop that keeps the measured CPUs busy; 0 is SCHED_OTHER.
    #[arg(long, default_value_t = 0, value_name = "0-98", value_parser = clap::value_parser!(u32).range(0..=98))]
    priority: u32,
    /// Where this kernel has no events for the senders of IPIs (before 6.4), probe its functions for them.
    #[arg(long)]
    kprobes: bool,
    /// Run the i-th of n parts of the cells; the controls are in every part.
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    shard: Shard,
    /// Keep the run directory of every cell, in DIR/runs.
    #[arg(long)]
    keep: bool,
    /// Directory for the journal [default: /var/lib/stillcore; without root .local/state/stillcore in the home directory].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
}

/// One thing that a study's cells can do.
struct Runner {
    /// Its name, and that of the built-in study of it.
    name: &'static str,
    title: &'static str,
    /// The study as it is built in.
    declared: fn() -> Study,
    run: fn(&RunArgs, Study, &EndSignals) -> anyhow::Result<u8>,
}

const RUNNERS: &[Runner] = &[Runner {
    name: exposure::NAME,
    title: "each stressor alone: interference events on the measured CPUs per successful operation, by class",
    declared: exposure::declared,
    run: exposure::run,
}];

impl StudyVerb {
    /// Whether answers and errors are to be JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Run(args) => args.json,
            Self::List { json } => *json,
        }
    }

    /// Carries it out.
    pub(crate) fn run(&self, signals: &EndSignals) -> anyhow::Result<u8> {
        match self {
            Self::Run(args) => run(args, signals),
            Self::List { json } => {
                list(*json);
                Ok(0)
            }
        }
    }
}

fn run(args: &RunArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let built_in = RUNNERS.iter().find(|runner| runner.name == args.study);
    let (runner, mut study) = match built_in {
        Some(runner) => (runner, (runner.declared)()),
        None => from_file(Path::new(&args.study))?,
    };
    study.repetitions = args.repetitions.unwrap_or(study.repetitions);
    (runner.run)(args, study, signals)
}

fn known() -> String {
    RUNNERS.iter().map(|runner| runner.name).collect::<Vec<_>>().join(", ")
}

fn from_file(path: &Path) -> anyhow::Result<(&'static Runner, Study)> {
    let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => {
            let found = format!("no study is called {:?}, and no file", path.display());
            anyhow::Error::from(Error::invalid("NAME|FILE", found, format!("one of {}, or a file", known())))
        }
        _ => Error::io("read", path, source).into(),
    })?;
    let study = Study::from_toml(&text).with_context(|| path.display().to_string())?;
    let runner = RUNNERS.iter().find(|runner| runner.name == study.runner);
    let runner = runner.ok_or_else(|| {
        Error::invalid(path.display(), format!("runner is {:?}", study.runner), format!("one of {}", known()))
    })?;
    Ok((runner, study))
}

fn list(as_json: bool) {
    if as_json {
        let told = |runner: &Runner| json!({ "name": runner.name, "title": runner.title });
        let studies: Vec<_> = RUNNERS.iter().map(told).collect();
        println!("{}", json!({ "schema": "stillcore.study-list/1", "studies": studies }));
    } else {
        RUNNERS.iter().for_each(|runner| println!("{:12} {}", runner.name, runner.title));
    }
}
