//! `stillcore model`: from a running program to its task model, and from that to bounds of its
//! response times, held against what was observed.

mod command;
mod document;
mod live;
mod live_text;
mod lock_text;
pub(crate) mod page;
mod replay;
mod replay_text;
mod text;
mod what_if;
mod what_if_text;
mod words;

use crate::shell::in_shell;
use crate::trace_verb::watch::{Looking, WatchArgs, only_record, watch_live, watch_quietly};
use crate::values::LockMode;
use analysis::task_model::build::{build, build_on};
use analysis::task_model::check::check;
use analysis::task_model::compare::compare;
use analysis::task_model::lock_check;
use analysis::task_model::locks;
use analysis::task_model::observe::{Observed, observe};
use analysis::task_model::optimise::optimise;
use analysis::task_model::shape::TaskModel;
use analysis::task_model::system::{self, Assumed};
use analysis::task_model::verdict::{Guarantee, guarantee};
use anyhow::Context;
use attribution::jobs::read::Source;
use clap::Args;
use document::Document;
use ftrace::TraceFile;
use live::{Lines, Watching};
use model::quantity::duration;
use model::run::Run;
use model::run::stored::read_run;
use model::{Cpus, store};
use record::live::Keep;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::signals::EndSignals;
use what_if::Asked;

/// The margin that is added to everything observed, in percent.
const MARGIN: u32 = 20;
/// Name of the line for `sched analyze` in a run directory.
const TASKS: &str = "tasks.jsonl";

/// Arguments of `model`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(group(clap::ArgGroup::new("program").required(true).args(["pid", "comm", "from", "command"])))]
pub(crate) struct ModelArgs {
    /// Model this process, its children, and whatever they start while watched.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// Model threads with this name, all threads of processes with this name, and whatever they
    /// start while watched.
    #[arg(long, value_name = "NAME")]
    comm: Option<String>,
    /// Model an earlier run directory of trace watch or model, or the real-time threads of a
    /// trace.dat.
    #[arg(long, value_name = "RUN|FILE", conflicts_with_all = ["duration", "out", "state"])]
    from: Option<PathBuf>,
    /// How long to record; then end a started command [default: until the program ends, or Ctrl-C].
    #[arg(long, short = 'D', value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// CPUs to record in full, as a list such as 2,3 or 4-7; with --optimise also those that
    /// threads may have [default: those allowed to the program].
    #[arg(long, value_name = "LIST")]
    cpus: Option<Cpus>,
    /// Which lockings to record: `contended` records waits alone; `every` also how often and how
    /// long each lock is held, so that waits have a bound. It makes locking a thousand times
    /// slower.
    #[arg(long, value_name = "WHICH", default_value = "contended", conflicts_with = "from")]
    locks: LockMode,
    /// Relative deadline of the threads with this name; repeatable [default: the period, of threads
    /// that have one].
    #[arg(long, value_name = "NAME=TIME", value_parser = named_time)]
    deadline: Vec<(String, u64)>,
    /// Margin to add to observed costs, jitter, suspensions and interference, percent.
    #[arg(long, value_name = "PERCENT", default_value_t = MARGIN, value_parser = clap::value_parser!(u32).range(0..=1000))]
    margin: u32,
    /// Also bound the response times with this changed; repeatable. KEY is priority, cpu, period,
    /// cost, jitter or asleep. NAME.remove is without a thread, add=NAME,KEY=VALUE,... with one
    /// more: period, cost, priority and cpu, and optionally deadline, jitter and asleep.
    /// locks=PROTOCOL has all locks served by pip (PTHREAD_PRIO_INHERIT), mpcp, fmlp+, dpcp or
    /// omlp. machine=RUN is on the machine of another recording; ,cpus=OURS:THEIRS,... says which
    /// of its CPUs stand for which of these.
    #[arg(long, value_name = "NAME.KEY=VALUE", value_parser = Asked::parse)]
    what_if: Vec<Asked>,
    /// File for the model with all --what-if, for --check and replay; replaced if it exists.
    #[arg(long, value_name = "FILE", requires = "what_if")]
    changed: Option<PathBuf>,
    /// Also propose CPUs and priorities with which costs can grow most until a deadline may be
    /// missed.
    #[arg(long)]
    optimise: bool,
    /// Hold the bounds of an earlier model (its model.json) against the jobs of this program,
    /// instead of those of its own model; exit 2 if one is exceeded. Without --from, while the
    /// program runs, with a line per second; nothing is kept without --out.
    #[arg(long, value_name = "MODEL")]
    check: Option<PathBuf>,
    /// With --check of a program that runs: stop at the first job that takes longer than its bound.
    #[arg(long, requires = "check", conflicts_with = "from")]
    stop_at_first: bool,
    /// Compare with an earlier model (its model.json), thread by thread: the largest relative
    /// difference of each quantity.
    #[arg(long, value_name = "MODEL")]
    compare: Option<PathBuf>,
    /// File for the tasks, for `sched analyze --test fp-rta`; replaced if it exists [default:
    /// tasks.jsonl in the new run directory].
    #[arg(long, value_name = "FILE")]
    tasks: Option<PathBuf>,
    /// New or empty directory for the run [default: stillcore-TIME in the current directory].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only record. The run can be modelled later, or on a faster machine, with --from.
    #[arg(long, conflicts_with_all = ["from", "check", "compare", "optimise", "html", "deadline", "margin", "what_if", "changed", "tasks", "json"])]
    record_only: bool,
    /// Write the page to this file as well; a new run directory has it as report.html.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object instead of tables; the command's output then goes to standard error.
    #[arg(long)]
    json: bool,
    /// Directory for the journal [default: /var/lib/stillcore].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Program to start and model, with its arguments.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
    #[command(subcommand)]
    verb: Option<ModelVerb>,
}

verbs! {
    /// Verbs under `model`.
    ModelVerb {
        /// Play a model, or a file of rt-app, as threads that execute, sleep and release one
        /// another.
        Replay(replay::ReplayArgs) => commands(replay::run),
    }
}

fn named_time(text: &str) -> Result<(String, u64), String> {
    let (name, time) = text.rsplit_once('=').ok_or("expected NAME=TIME, such as control=5ms")?;
    let ns = duration(time).map_err(|error| error.to_string())?.as_nanos();
    let ns = u64::try_from(ns).ok().filter(|ns| *ns > 0).ok_or("expected a time above 0")?;
    Ok((name.to_owned(), ns))
}

/// Models, or does what the verb under `model` says.
pub(crate) fn run(args: &ModelArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    match &args.verb {
        Some(verb) => verb.run(signals),
        None => crate::verbs::changes(model, args, signals),
    }
}

/// Records or opens, models, bounds, checks. Exit code 2 where a deadline may be missed, or a job
/// took longer than its bound.
fn model(args: &ModelArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    if args.record_only {
        let (dir, interrupted) = only_record(&watch_args(args), signals)?;
        println!("recorded; next: stillcore model --from {}", in_shell(&dir.display().to_string()));
        return Ok(u8::from(interrupted.is_some()));
    }
    anyhow::ensure!(
        args.cpus.is_none() || args.from.is_none() || args.optimise,
        "--cpus names the CPUs to record, expected none with --from, or --optimise"
    );
    let earlier = args.check.as_deref().map(Document::read_bounds).transpose()?;
    if let (Some(check), Some(earlier), None, None) = (&args.check, &earlier, &args.from, &args.out) {
        return check_live(args, check, earlier.clone(), signals);
    }
    let to_compare = args.compare.as_deref().map(Document::read).transpose()?;
    let mut live = match (&args.check, &earlier) {
        (Some(check), Some(earlier)) if args.from.is_none() => Some(watching(args, check, earlier.clone())),
        _ => None,
    };
    let watched = match (&args.from, &mut live) {
        (Some(_), _) => None,
        (None, None) => Some(watch_quietly(&watch_args(args), signals, &mut Looking::default())?),
        (None, Some(live)) => {
            let mut looking = Looking { keep: Keep::FileAndLive, by: Some(live) };
            Some(watch_quietly(&watch_args(args), signals, &mut looking)?)
        }
    };
    let recorded = watched.as_ref().map(|watched| watched.dir.clone());
    let path = args.from.clone().or(recorded).context("no program was watched")?;
    let source = source(&path)?;
    let jobs = source.jobs()?;
    let assumed = Assumed {
        margin_ppm: u64::from(args.margin) * 10_000,
        deadlines_ns: args.deadline.iter().cloned().collect::<BTreeMap<_, _>>(),
    };
    let mut model = build(&jobs);
    let locks = locks::find(&source, &jobs, &model)?;
    let probe_ns = source_run(&path)?.and_then(|run| run.observer.trace_lock_ns);
    locks::add(&mut model, &locks, probe_ns);
    refuse_unknown_names(args, &model)?;
    let guaranteed = guarantee(&model, &assumed);
    let model_on = |further: &Cpus| {
        let mut model = build_on(&jobs, further);
        locks::add(&mut model, &locks, probe_ns);
        model
    };
    let answer = what_if::answer(&args.what_if, &path, source.recorded(), model_on, &assumed)?;
    if let (Some(file), Some((model, what_if))) = (&args.changed, &answer) {
        Document::of_changed(&path, model.clone(), what_if).write_to(file)?;
    }
    let what_if = answer.map(|(_, what_if)| what_if);
    let optimised = args.optimise.then(|| {
        let known = source.recorded();
        let cpus = args.cpus.clone().unwrap_or_else(|| known.iter().chain(model.cpus.iter()).collect());
        optimise(&model_on(known), &assumed, &cpus).context("--optimise")
    });
    let optimised = optimised.transpose()?;
    let against = match &earlier {
        Some((model, guarantee)) => Some((model, guarantee)),
        None => guaranteed.as_ref().map(|guarantee| (&model, guarantee)),
    };
    let checked = against.map(|(model, guarantee)| check(&source, &jobs, model, guarantee)).transpose()?;
    let observed = match &guaranteed {
        Some(guarantee) => observe(&source, &jobs, &model, guarantee)?,
        None => Observed::default(),
    };
    let lock_waits = against.map(|(_, guarantee)| lock_check::check(&model, guarantee)).unwrap_or_default();
    let tasks = system::tasks(&model, &assumed);
    // A set without what is not known would look better than the program is.
    let line = tasks.as_ref().filter(|tasks| tasks.unbounded.is_empty()).map(system::line);
    let served = tasks.as_ref().and_then(|tasks| tasks.locks);
    let checked_model = args.check.clone();
    let compared = to_compare.map(|earlier| compare(&earlier.model, &model));
    let document = Document {
        source: path.clone(),
        model,
        guarantee: guaranteed,
        what_if,
        optimised,
        checked,
        lock_waits,
        checked_live: live.and_then(Watching::ended).map(|ended| ended.state.checked),
        chain_times: observed.chains.clone(),
        checked_model,
        compared,
        compared_model: args.compare.clone(),
    };
    if let Some(watched) = &watched {
        document.write(&path)?;
        let run = Some(&watched.document);
        page::write(&document, &observed, run, &path.join(store::REPORT))?;
    }
    if let Some(html) = &args.html {
        let run = watched.as_ref().map(|watched| &watched.document);
        page::write(&document, &observed, run, html)?;
    }
    let file = args.tasks.clone().or_else(|| args.from.is_none().then(|| path.join(TASKS)));
    let written = write_tasks(file.as_deref(), line.as_ref())?;
    if args.json {
        println!("{}", serde_json::to_string(&document)?);
    } else {
        let again = command::again(args, &path);
        let written = written.map(|file| lock_text::sched_command(&file, served));
        println!("{}", text::text(&document, written.as_deref(), &again).trim_end());
    }
    let interrupted = watched.is_some_and(|watched| watched.interrupted.is_some());
    Ok(if interrupted { 1 } else { 2 * u8::from(document.is_bad()) })
}

/// Where the events are: in a run, or in any trace.
fn source(path: &Path) -> anyhow::Result<Source> {
    Ok(if path.is_dir() {
        Source::of_run(path, &read_run(path)?)?
    } else {
        Source::of_trace(TraceFile::open(path)?)?
    })
}

/// The record of a run; none of a trace.
fn source_run(path: &Path) -> anyhow::Result<Option<Run>> {
    Ok(if path.is_dir() { Some(read_run(path)?) } else { None })
}

fn watching(args: &ModelArgs, check: &Path, earlier: (TaskModel, Guarantee)) -> Watching {
    let lines = if args.json { Lines::Omit } else { Lines::Print };
    Watching::new(check.to_owned(), earlier, lines, args.stop_at_first)
}

/// Holds the bounds of an earlier model against the jobs of a program while it runs.
fn check_live(
    args: &ModelArgs,
    check: &Path,
    earlier: (TaskModel, Guarantee),
    signals: &EndSignals,
) -> anyhow::Result<u8> {
    let given = [
        ("--what-if", !args.what_if.is_empty()),
        ("--optimise", args.optimise),
        ("--compare", args.compare.is_some()),
        ("--html", args.html.is_some()),
        ("--tasks", args.tasks.is_some()),
        ("--deadline", !args.deadline.is_empty()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
        anyhow::bail!(
            "{option} with --check of a program that runs: expected --out as well, for the run that is modelled then"
        );
    }
    let mut live = watching(args, check, earlier);
    let interrupted = watch_live(watch_args(args), signals, &mut live)?;
    let ended = live.ended().context("recording never began")?;
    if args.json {
        println!("{}", live_text::json(check, &ended));
    } else {
        println!("{}", live_text::summary(check, &ended).trim_end());
    }
    Ok(if interrupted.is_some() { 1 } else { 2 * u8::from(ended.state.checked.refuted > 0) })
}

/// A deadline of nobody would go unnoticed.
fn refuse_unknown_names(args: &ModelArgs, model: &TaskModel) -> anyhow::Result<()> {
    let unknown =
        args.deadline.iter().find(|(name, _)| !model.threads.iter().any(|thread| thread.comm == *name));
    if let Some((name, _)) = unknown {
        let mut names: Vec<&str> = model.threads.iter().map(|thread| thread.comm.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let expected = format!("one of its threads: {}", names.join(", "));
        return Err(model::Error::invalid("--deadline", name, expected).into());
    }
    Ok(())
}

fn write_tasks(file: Option<&Path>, line: Option<&serde_json::Value>) -> anyhow::Result<Option<PathBuf>> {
    let (Some(file), Some(line)) = (file, line) else { return Ok(None) };
    store::write_whole(file, format!("{line}\n").as_bytes())?;
    Ok(Some(file.to_owned()))
}

fn watch_args(args: &ModelArgs) -> WatchArgs {
    WatchArgs {
        pid: args.pid,
        comm: args.comm.clone(),
        from: None,
        duration: args.duration,
        cpus: args.cpus.clone(),
        no_syscalls: false,
        locks: args.locks,
        lint: false,
        suppress: None,
        stacks: false,
        user_stacks: false,
        off_stretches: None,
        out: args.out.clone(),
        json: args.json,
        state: args.state.clone(),
        command: args.command.clone(),
    }
}
