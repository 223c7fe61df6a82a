//! `stillcore study`: declared matrices of measurements, run cell by cell, resumable.
//!
//! The plan and the judgement are the crate `study`'s; `experiment` runs what is measured, and
//! `sched_verb::study` what is calculated. `exposure` is the text of the built-in experiment of
//! that name.

pub(crate) mod experiment;
pub(crate) mod exposure;
pub(crate) mod profile;
pub(crate) mod replicate;
pub(crate) mod statements;

use crate::failure::Hinted;
use crate::failure::nearest::did_you_mean;
use crate::sched_verb::jitter::At;
use crate::sched_verb::study as curves;
use clap::Args;
pub(crate) use experiment::options::Onto;
use model::quantity::duration;
use model::{Cpus, Error};
use serde_json::json;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use study::Shard;
use study::experiment::EXPERIMENT_SCHEMA;
use sys::signals::EndSignals;

verbs! {
    /// Verbs under `study`.
    StudyVerb {
        /// Run a study, or resume an interrupted one.
        Run(RunArgs) => changes(run),
        /// Run the experiments of a paper in a given time, and report on its statements.
        Replicate(replicate::ReplicateArgs) => changes(replicate::run),
        /// Merge the parts of an experiment and conclude from all of them.
        Merge(experiment::merge::MergeArgs) => reads(experiment::merge::run),
        /// Stop the call that runs an experiment, and undo what its cells changed.
        Stop(StopArgs) => completes(stop),
        /// List the built-in studies.
        List(ListArgs) => reads(list),
        /// List what the papers state, each statement with what decides it.
        Statements(statements::StatementsArgs) => reads(statements::run),
    }
}

/// Arguments of `study stop`.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Directory of the study.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Time to end by itself before it is killed.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    within: Duration,
}

/// Arguments of `study list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Arguments of `study run`.
#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// Name of a built-in study, or a file that declares one.
    #[arg(value_name = "NAME|FILE")]
    pub(crate) study: String,
    /// Directory of the study: new, empty, or of the same study, to resume it [default:
    /// study-NAME].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Stressors, instead of those declared; the controls always run.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", conflicts_with = "suite")]
    pub(crate) stressors: Vec<String>,
    /// The stressors of a suite, instead of those declared.
    #[arg(long, value_name = "NAME")]
    pub(crate) suite: Option<String>,
    /// Runs of each cell [default: as declared; 1 for built-in studies].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: Option<u32>,
    /// Length of each idle control and of each disturbance [default: 2s].
    #[arg(long, short = 'D', value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// CPUs to measure [default: the isolated CPUs, else the highest one].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// SCHED_FIFO priority of the loop that keeps the measured CPUs busy; 0 = SCHED_OTHER.
    #[arg(long, default_value_t = 0, value_name = "0-98", value_parser = clap::value_parser!(u32).range(0..=98))]
    pub(crate) priority: u32,
    /// If the kernel has no events for senders of IPIs (before 6.4), find them with kprobes.
    #[arg(long)]
    pub(crate) kprobes: bool,
    /// Run part I of N of the cells; `study merge` puts the parts together.
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub(crate) shard: Shard,
    /// Experiments: only those of these cells whose IDs this file lists, one per line.
    #[arg(long, value_name = "FILE")]
    pub(crate) cells: Option<PathBuf>,
    /// Keep the run directory of every cell in DIR/runs.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Directory for the journal [default: /var/lib/stillcore; without root .local/state/stillcore
    /// in the home directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Experiments: run on this machine as it is, even if the file names kernels.
    #[arg(long, conflicts_with = "lab")]
    pub(crate) here: bool,
    /// Experiments: omit the running kernel from the cells' IDs, as --hosts does.
    #[arg(long, hide = true, requires = "here")]
    pub(crate) any_kernel: bool,
    /// Experiments: run in guests with these kernels [default: those of the file].
    #[arg(long, value_delimiter = ',', value_name = "KERNELS", num_args = 0..)]
    pub(crate) lab: Option<Vec<String>>,
    /// Experiments: run on the machines of this Ansible inventory, a part of the cells on each.
    #[arg(long, value_name = "INVENTORY", conflicts_with_all = ["lab", "here"])]
    pub(crate) hosts: Option<PathBuf>,
    /// Experiments: scale factor of the file's durations and counts, never below its minimums
    /// [default: 1].
    #[arg(long, value_name = "F", value_parser = scale)]
    pub(crate) scale: Option<f64>,
    /// Experiments: print cells, boots and the expected duration; run nothing.
    #[arg(long)]
    pub(crate) plan: bool,
    /// Only resume a study that was begun.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Experiments: rerun cells that failed or were not applicable.
    #[arg(long)]
    pub(crate) retry: bool,
    /// Experiments: parallel guests [default: one per spare CPU, at most 3].
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Experiments: static program that runs in guests and on the machines of --hosts [default:
    /// this program].
    #[arg(long, value_name = "PATH")]
    pub(crate) binary: Option<PathBuf>,
    /// What only `lab matrix` asks for.
    #[arg(skip)]
    pub(crate) matrix: OfMatrix,
    /// Store the answer and print nothing, as one of several that `study replicate` reports on.
    #[arg(skip)]
    pub(crate) quiet: bool,
    /// The study spans several boots of this machine.
    #[arg(skip)]
    pub(crate) boots: Option<OverBoots>,
}

/// What a study over several boots of this machine runs in this one.
#[derive(Debug, Clone, Default)]
pub(crate) struct OverBoots {
    /// The kernels that the machine is booted with, by the lab's names.
    pub(crate) kernels: Vec<String>,
    /// Ids of the cells to run in this boot; all where none are named.
    pub(crate) cells: Option<BTreeSet<String>>,
}

/// What `lab matrix` asks of the study that it is.
#[derive(Debug, Default)]
pub(crate) struct OfMatrix {
    /// The ways of isolating whose cells to run; all where none are named.
    pub(crate) profiles: Vec<&'static str>,
    /// Kill a guest after this time.
    pub(crate) timeout: Option<Duration>,
    /// The table whose rows are replaced.
    pub(crate) onto: Option<Onto>,
    /// Whether cells that failed are run again.
    pub(crate) retry_failed: bool,
}

fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse::<f64>().ok().filter(|scale| *scale > 0.0 && *scale <= 1000.0);
    scale.ok_or_else(|| format!("invalid scale {text:?}: expected a number above 0, such as 0.01"))
}

impl RunArgs {
    fn scale(&self) -> f64 {
        self.scale.unwrap_or(1.0)
    }

    /// Refuses to resume a study of which there is nothing. Experiments have a default directory,
    /// and look there.
    fn begun(&self) -> Result<(), Error> {
        let lacking = self.resume && self.out.as_ref().is_none_or(|out| !out.exists());
        refuse(&[("--resume", lacking)], "no --out that exists", "the directory of a study begun before")
    }

    /// Refuses what experiments do not take.
    fn only_of_experiments(&self) -> Result<(), Error> {
        let given = [
            ("--stressors", !self.stressors.is_empty()),
            ("--suite", self.suite.is_some()),
            ("--duration", self.duration.is_some()),
            ("--priority", self.priority != 0),
            ("--kprobes", self.kprobes),
        ];
        refuse(&given, "an experiment, whose file says that", "options of experiments")
    }

    /// Refuses what studies that are calculated do not take.
    fn only_of_curves(&self) -> Result<(), Error> {
        let given = [
            ("--repetitions", self.repetitions.is_some()),
            ("--cpus", self.cpus.is_some()),
            ("--here", self.here),
            ("--lab", self.lab.is_some()),
            ("--hosts", self.hosts.is_some()),
            ("--plan", self.plan),
            ("--cells", self.cells.is_some()),
            ("--keep", self.keep),
            ("--retry", self.retry),
            ("--jobs", self.jobs.is_some()),
            ("--binary", self.binary.is_some()),
        ];
        self.only_of_experiments()?;
        refuse(
            &given,
            "a study that is calculated, not measured",
            "--scale, --shard, --out, --resume or --json",
        )
    }
}

fn refuse(given: &[(&str, bool)], found: &str, expected: &str) -> Result<(), Error> {
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Error::invalid(*option, found, expected)),
        None => Ok(()),
    }
}

fn run(args: &RunArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    if let Some(text) = experiment::files::built_in(&args.study) {
        args.only_of_experiments()?;
        return experiment::run(args, text, &args.study, signals);
    }
    if let Some(text) = curves::built_in(&args.study) {
        return calculate(args, text);
    }
    if args.study == exposure::NAME {
        return run_exposure(args, signals);
    }
    let text = read(Path::new(&args.study))?;
    if experiment::is_one(&text) {
        args.only_of_experiments()?;
        return experiment::run(args, &text, &args.study, signals);
    }
    if curves::is_one(&text) {
        return calculate(args, &text);
    }
    let expected = format!("schema = {EXPERIMENT_SCHEMA:?}, or that of a study of curves");
    Err(Error::invalid(&args.study, "a file of another kind", expected).into())
}

/// The built-in study, with the stressors that the user asked for.
fn run_exposure(args: &RunArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    args.begun()?;
    let suites: Vec<String> = args.suite.iter().cloned().collect();
    let declared = exposure::Declared {
        name: exposure::NAME,
        stressors: exposure::stressors("--stressors", &args.stressors, &suites)?,
        duration: args.duration.unwrap_or(Duration::from_secs(2)),
        priority: args.priority,
        kprobes: args.kprobes,
        repetitions: args.repetitions.unwrap_or(1),
        guests: None,
    };
    experiment::run(args, &declared.text()?, exposure::NAME, signals)
}

fn stop(args: &StopArgs) -> anyhow::Result<u8> {
    println!("{}", experiment::directory::stop(&args.dir, args.within)?);
    Ok(0)
}

/// A study of schedulability curves, by the verb that has the rest of their options.
fn calculate(args: &RunArgs, text: &str) -> anyhow::Result<u8> {
    args.only_of_curves()?;
    args.begun()?;
    let asked = curves::StudyArgs {
        file: PathBuf::from(&args.study),
        out: args.out.clone(),
        sets: None,
        seed: None,
        threads: None,
        jitter_from: Vec::new(),
        jitter_at: At::Max,
        shard: args.shard,
        merge: Vec::new(),
        json: args.json,
    };
    curves::run_text(&asked, text, args.scale())
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => {
            let name = path.display().to_string();
            let known = studies().unwrap_or_default();
            let meant = did_you_mean(&name, known.iter().map(|study| study.name.as_str()));
            let list = "built-in studies: stillcore study list";
            let hint = meant.map_or_else(|| list.to_owned(), |meant| format!("{meant} {list}"));
            Hinted::new(format!("no study '{name}': not a file here, not built in"), hint).into()
        }
        _ => Error::io("read", path, source).into(),
    })
}

/// A study that `study run` takes by name.
struct BuiltIn {
    kind: Kind,
    name: String,
    title: String,
}

/// How a built-in study is run: which options it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The experiment with the stressors that the user asks for.
    Exposure,
    /// An experiment whose file says what is measured.
    Experiment,
    /// Curves, calculated.
    Calculated,
}

impl Kind {
    /// In JSON.
    fn name(self) -> &'static str {
        match self {
            Self::Exposure => "built-in",
            Self::Experiment => "experiment",
            Self::Calculated => "calculated",
        }
    }

    /// Above the studies of this kind.
    fn heading(self) -> &'static str {
        match self {
            Self::Exposure => "with stressors of your choice",
            Self::Experiment => "experiments of papers and of this project: measured",
            Self::Calculated => "schedulability curves: calculated",
        }
    }
}

/// Every study that `study run` takes by name.
fn studies() -> anyhow::Result<Vec<BuiltIn>> {
    let exposure = vec![(exposure::NAME.to_owned(), exposure::TITLE.to_owned())];
    let kinds = [
        (Kind::Exposure, exposure),
        (Kind::Experiment, experiment::files::titles()?),
        (Kind::Calculated, curves::titles()?),
    ];
    let of_kind = |(kind, titles): (Kind, Vec<(String, String)>)| {
        titles.into_iter().map(move |(name, title)| BuiltIn { kind, name, title })
    };
    Ok(kinds.into_iter().flat_map(of_kind).collect())
}

fn list(args: &ListArgs) -> anyhow::Result<u8> {
    let studies = studies()?;
    if args.json {
        let entry = |one: &BuiltIn| json!({ "name": one.name, "title": one.title, "kind": one.kind.name() });
        let studies: Vec<_> = studies.iter().map(entry).collect();
        println!("{}", json!({ "schema": "stillcore.study-list/1", "studies": studies }));
        return Ok(0);
    }
    let width = studies.iter().map(|one| one.name.len()).max().unwrap_or(0);
    let mut heading = None;
    for one in &studies {
        if heading != Some(one.kind) {
            println!("{}", one.kind.heading());
            heading = Some(one.kind);
        }
        println!("  {:width$}  {}", one.name, one.title);
    }
    println!("\nRun one: stillcore study run NAME");
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is listed is what `run` finds by name, as the same kind.
    #[test]
    fn every_listed_study_can_be_run() {
        let listed = studies().unwrap();
        for one in &listed {
            let found = match one.kind {
                Kind::Exposure => one.name == exposure::NAME,
                Kind::Experiment => experiment::files::built_in(&one.name).is_some_and(experiment::is_one),
                Kind::Calculated => curves::built_in(&one.name).is_some_and(curves::is_one),
            };
            assert!(found, "{}", one.name);
        }
        assert!(listed.iter().any(|one| one.name == "exposure") && listed.len() > 60);
    }
}
