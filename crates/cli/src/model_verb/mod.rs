//! `stillcore model`: from a running program to its task model, and from that to bounds of its
//! response times, held against what was observed.

mod command;
mod document;
mod lock_text;
pub(crate) mod page;
mod replay;
mod replay_text;
mod text;

use crate::shell::in_shell;
use crate::trace_verb::watch::{WatchArgs, only_record, watch_quietly};
use crate::values::LockMode;
use analysis::task_model::build::{build, build_on};
use analysis::task_model::change::{Change, Value, changed};
use analysis::task_model::check::check;
use analysis::task_model::compare::compare;
use analysis::task_model::lock_check;
use analysis::task_model::locks;
use analysis::task_model::observe::{Observed, observe};
use analysis::task_model::optimise::optimise;
use analysis::task_model::shape::TaskModel;
use analysis::task_model::system::{self, Assumed};
use analysis::task_model::verdict::guarantee;
use anyhow::Context;
use attribution::jobs::read::Source;
use clap::Args;
use document::{Document, WhatIf};
use ftrace::TraceFile;
use model::quantity::duration;
use model::run::Run;
use model::run::stored::read_run;
use model::{Cpus, store};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::signals::EndSignals;

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
    /// Which lockings to record: `contended` records waits alone; `every` also how often and how long
    /// each lock is held, so that waits have a bound. It makes locking a thousand times slower.
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
    /// cost, jitter or asleep; locks=PROTOCOL has all locks served by pip (PTHREAD_PRIO_INHERIT),
    /// mpcp, fmlp+, dpcp or omlp.
    #[arg(long, value_name = "NAME.KEY=VALUE", value_parser = Change::parse)]
    what_if: Vec<Change>,
    /// Also propose CPUs and priorities with which costs can grow most until a deadline may be
    /// missed.
    #[arg(long)]
    optimise: bool,
    /// Hold the bounds of an earlier model (its model.json) against the jobs of this program,
    /// instead of those of its own model; exit 2 if one is exceeded.
    #[arg(long, value_name = "MODEL")]
    check: Option<PathBuf>,
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
    #[arg(long, conflicts_with_all = ["from", "check", "compare", "optimise", "html", "deadline", "margin", "what_if", "tasks", "json"])]
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
    let to_compare = args.compare.as_deref().map(Document::read).transpose()?;
    let watched = match &args.from {
        Some(_) => None,
        None => Some(watch_quietly(&watch_args(args), signals)?),
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
    let what_if = what_if(args, source.recorded(), model_on, &assumed)?;
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

/// The guarantee with what is asked for changed, on CPUs that were recorded.
fn what_if(
    args: &ModelArgs,
    recorded: &Cpus,
    model_on: impl Fn(&Cpus) -> TaskModel,
    assumed: &Assumed,
) -> anyhow::Result<Option<WhatIf>> {
    if args.what_if.is_empty() {
        return Ok(None);
    }
    let cpu = |change: &Change| if let Value::Cpu(cpu) = change.value { Some(cpu) } else { None };
    let further = args.what_if.iter().filter_map(cpu).filter(|cpu| recorded.contains(*cpu)).collect();
    let changed = changed(&model_on(&further), &args.what_if).context("--what-if")?;
    let (changes, guarantee) = (args.what_if.clone(), guarantee(&changed, assumed));
    Ok(Some(WhatIf { changes, guarantee }))
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
