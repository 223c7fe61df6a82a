//! `stillcore study replicate PAPER`: the experiments of a paper in the order of what they decide
//! for their time, and one report of its statements.
//!
//! | file | idea |
//! |---|---|
//! | `boots` | the same over several boots of this machine |
//! | `chosen` | which experiments, in which order, at which scale |
//! | `kept` | what the directory says of itself, so that the same call goes on with it |
//! | `page` | the report |

mod boots;
mod chosen;
mod kept;
mod page;

use super::experiment::{self, files};
use super::{OverBoots, RunArgs, statements};
use crate::disturb_verb::bytes;
use crate::run::progress::Reporter;
use chosen::{Chosen, Wanted};
use clap::Args;
use kept::Kept;
use model::quantity::duration;
use model::{Cpus, Error, store};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::signals::EndSignals;

/// For every paper.
const ALL: &str = "all";

/// Arguments of `study replicate`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReplicateArgs {
    /// The paper, as in `study statements`, or all.
    #[arg(value_name = "PAPER|all")]
    paper: String,
    /// Time for everything; experiments that do not fit are left out, and named.
    #[arg(long, value_name = "TIME", default_value = "8h", value_parser = duration)]
    within: Duration,
    /// Of the experiments of the paper, only these.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Run on this machine as it is, even where files name kernels.
    #[arg(long, conflicts_with = "lab")]
    here: bool,
    /// Run in guests with these kernels [default: those of the files].
    #[arg(long, value_delimiter = ',', value_name = "KERNELS")]
    lab: Vec<String>,
    /// Directory: new, empty, or of the same call, to go on with it [default: replicate-PAPER].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Scale factor of durations and counts, never below the files' minimums [default: the largest
    /// of 1, 0.3, 0.1 … with which everything fits].
    #[arg(long, value_name = "F", value_parser = super::scale)]
    scale: Option<f64>,
    /// Runs of each cell [default: as declared].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: Option<u32>,
    /// CPUs to measure [default: the isolated CPUs, else the highest one].
    #[arg(long, value_name = "LIST")]
    cpus: Option<Cpus>,
    /// Parallel guests [default: one per spare CPU, at most 3].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Static program that runs in guests [default: this program].
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Directory for the journal [default: as for `study run`].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Boot this machine through the kernels and boot lines that cells need, one after the other,
    /// and into its own boot at the end.
    #[arg(long, conflicts_with_all = ["here", "lab", "jobs", "binary"])]
    boots: bool,
    /// With --boots: kernels to boot, of those that the boot loader starts [default: all].
    #[arg(long, value_delimiter = ',', value_name = "KERNELS", requires = "boots")]
    kernels: Vec<String>,
    /// With --boots: do not ask before the first reboot.
    #[arg(long, requires = "boots")]
    yes: bool,
    /// With --boots: end it, and give the machine's own boot back.
    #[arg(long, requires = "boots", conflicts_with = "plan")]
    stop: bool,
    /// With --boots: command that reboots the machine [default: systemctl reboot].
    #[arg(long, value_name = "COMMAND", requires = "boots")]
    reboot_by: Option<String>,
    /// Run no further experiment once the directory holds this much.
    #[arg(long, value_name = "SIZE", default_value = "8g", value_parser = bytes)]
    disk: u64,
    /// Kernels and cells of a call over several boots.
    #[arg(skip)]
    over: Option<OverBoots>,
    /// Print what would be run, how long it takes and what it can decide; run nothing.
    #[arg(long)]
    plan: bool,
    /// Print one JSON object instead of the report.
    #[arg(long)]
    json: bool,
}

impl ReplicateArgs {
    /// The call of one experiment. One that names no kernels calculates, and needs no guest.
    fn call(&self, name: &str, text: &str, out: &Path, scale: f64) -> RunArgs {
        let declared = files::read(text).ok().and_then(Result::ok);
        let names_kernels = declared.is_some_and(|experiment| !experiment.machine.kernels.is_empty());
        let in_guests = !self.lab.is_empty() && names_kernels;
        RunArgs {
            study: name.to_owned(),
            out: Some(out.join(name)),
            repetitions: self.repetitions,
            cpus: self.cpus.clone(),
            state: self.state.clone(),
            here: self.here || self.over.is_some(),
            boots: self.over.clone(),
            lab: in_guests.then(|| self.lab.clone()),
            scale: Some(scale),
            jobs: self.jobs,
            binary: self.binary.clone(),
            quiet: true,
            ..RunArgs::default()
        }
    }
}

impl ReplicateArgs {
    /// The same call where cells run on boots of this machine, with these CPUs.
    fn on_boots(&self, kernels: &[String], cpus: &str) -> anyhow::Result<Self> {
        let over = OverBoots { kernels: kernels.to_vec(), cells: None };
        Ok(Self { over: Some(over), cpus: Some(cpus.parse()?), ..self.clone() })
    }
}

pub(crate) fn run(args: &ReplicateArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("replicate-{}", args.paper)));
    if args.boots {
        return boots::run(args, &out, signals);
    }
    let mut kept = Kept::of(&out, args)?;
    let chosen = chosen::chosen(args, &out, &kept)?;
    if args.plan {
        print!("{}", chosen.page(args));
        return Ok(0);
    }
    kept.scale = chosen.scale;
    kept.store(&out)?;
    let (mut not_run, mut failed) = (Vec::new(), 0);
    for one in &chosen.fitting {
        match run_one(args, one, None, &out, &mut kept, signals)? {
            Ended::Ran => {}
            Ended::LeftOut(why) => not_run.push(format!("{}: {why}", one.name)),
            Ended::Failed(why) => {
                Reporter::say(&format!("{}: {why}", one.name));
                not_run.push(format!("{}: {why}", one.name));
                failed += 1;
            }
        }
    }
    let ran = chosen.fitting.len() - not_run.len();
    report(args, &chosen, &kept, ran, &not_run, &out)?;
    if ran == 0 && failed > 0 {
        anyhow::bail!("every experiment failed; {} has the reasons", out.join("replicate.md").display());
    }
    Ok(0)
}

/// How the run of an experiment ended.
enum Ended {
    /// All its cells have a result.
    Ran,
    /// There was no time or no room for it.
    LeftOut(String),
    /// It could not be run.
    Failed(String),
}

/// Runs an experiment, or those of its cells that belong to this boot. Error: a signal has ended
/// it.
fn run_one(
    args: &ReplicateArgs,
    one: &Wanted,
    cells: Option<&BTreeSet<String>>,
    out: &Path,
    kept: &mut Kept,
    signals: &EndSignals,
) -> anyhow::Result<Ended> {
    if kept.spent_s + one.left.as_secs_f64() > args.within.as_secs_f64() {
        return Ok(Ended::LeftOut("no time left, what came before it took longer than planned".to_owned()));
    }
    let holds = kept::bytes(out);
    if holds > args.disk {
        let (holds, most) = (report::format::size(holds), report::format::size(args.disk));
        return Ok(Ended::LeftOut(format!("no room left, the directory holds {holds} of {most} (--disk)")));
    }
    Reporter::say(&format!("{}: {}", one.name, one.title));
    let begun = Instant::now();
    let mut call = args.call(&one.name, one.text, out, kept.scale);
    if let Some(boots) = &mut call.boots {
        boots.cells = cells.cloned();
    }
    let ended = experiment::run(&call, one.text, &one.name, signals);
    kept.spent_s += begun.elapsed().as_secs_f64();
    kept.store(out)?;
    match ended {
        Ok(_) => Ok(Ended::Ran),
        Err(error) if signals.arrived().is_some() || experiment::was_stopped(&error) => Err(error),
        Err(error) => Ok(Ended::Failed(format!("{error:#}"))),
    }
}

/// Writes the report of what there is, and prints it.
fn report(
    args: &ReplicateArgs,
    chosen: &Chosen,
    kept: &Kept,
    ran: usize,
    not_run: &[String],
    out: &Path,
) -> anyhow::Result<()> {
    let answers = statements::answered(&papers(&args.paper)?, &existing(out))?;
    let report = page::Report { paper: &args.paper, chosen, kept, ran, not_run, out };
    store::write_whole(&out.join("replicate.md"), report.markdown(&answers).as_bytes())?;
    store::write_whole(&out.join("replicate.html"), report.html(&answers)?.as_bytes())?;
    let object = report.object(&answers);
    store::write_json(&out.join("replicate.json"), &object)?;
    if args.json {
        println!("{object}");
    } else {
        print!("{}", report.text(&answers));
    }
    Ok(())
}

/// A directory that holds studies; none where no study of it has an answer yet.
fn existing(dir: &Path) -> Vec<PathBuf> {
    let has = |path: &Path| path.join("study.json").exists();
    let below = std::fs::read_dir(dir).into_iter().flatten().flatten();
    if below.map(|entry| entry.path()).any(|path| has(&path)) { vec![dir.to_owned()] } else { Vec::new() }
}

/// The papers that a name stands for.
fn papers(name: &str) -> anyhow::Result<Vec<String>> {
    let known = statements::papers()?;
    if name == ALL {
        return Ok(known);
    }
    if known.iter().any(|one| one == name) {
        return Ok(vec![name.to_owned()]);
    }
    let expected = format!("{}, or {ALL}", known.join(", "));
    Err(Error::unknown("PAPER", "paper", name, known).expecting(expected).into())
}
