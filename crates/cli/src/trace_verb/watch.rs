//! `stillcore trace watch`: any program, unmodified, as a run of its own: recorded while it runs,
//! then reported thread by thread.

mod looking;
mod target;

use super::{every_lock, kernel_locks, watch_text};
use crate::conclude;
use crate::failure;
use crate::run::facts::{own_cost, write_findings, write_snapshot};
use crate::run::interrupted::Interrupted;
use crate::run::off_stretches;
use crate::run::output::{self, RunOutput};
use crate::run::place::{Asked, Place, default_out};
use crate::run::progress::Reporter;
use crate::run::recording::{self, Wanted};
use crate::values::LockMode;
use analysis::Analysis;
use anyhow::Context;
use attribution::attribute::lint::suppress::Suppressions;
use clap::Args;
use journal::session::Session;
pub(crate) use looking::{Looking, Onlooker};
use model::events::{EventCatalogue, PAGE_FAULT, Side, Stacks, USER_STACK};
use model::kernel_locks::CONTENTION_END;
use model::quantity::duration;
use model::run::Phase;
use model::watch::{CommandRecord, FILE, KernelThreadName, LockWords, SCHEMA, WatchRecord};
use model::{Cpus, store, syscalls};
use record::live::Keep;
use record::recorder::Recorder;
use report::Document;
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::held::code_and_signal;
use sys::process::is_root;
use sys::signals::EndSignals;
use sys::{clock, sched};
use target::{Target, executable, target, words};

/// Name of the only phase.
const PHASE: &str = "watched";
/// Poll interval of the command and of signals.
const POLL_NS: i64 = 20_000_000;
/// Poll interval of threads and descriptors.
const LOOK_NS: i64 = 100_000_000;
/// The longest file of suppressions, bytes.
const MOST_SUPPRESSED: u64 = 1 << 20;
/// How long a command may take to end after it was asked to.
const PATIENCE_NS: i64 = 5 * clock::SECOND_NS;

/// Arguments of `trace watch`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("program").required(true).args(["pid", "comm", "from", "command"])))]
pub(crate) struct WatchArgs {
    /// Watch this process, its children, and whatever they start while watched.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Option<i32>,
    /// Watch threads with this name, all threads of processes with this name, and whatever they
    /// start while watched.
    #[arg(long, value_name = "NAME")]
    pub(crate) comm: Option<String>,
    /// Report an earlier run directory of trace watch again.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["duration", "cpus", "out", "no_syscalls", "lint", "stacks", "user_stacks", "off_stretches", "locks"])]
    pub(crate) from: Option<PathBuf>,
    /// How long to record; then end a started command [default: until the program ends, or Ctrl-C].
    #[arg(long, short = 'D', value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// CPUs to record in full, as a list such as 2,3 or 4-7 [default: those allowed to the
    /// program].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Do not record system calls. Costs less, but finds only timers and signals as reasons for
    /// waiting.
    #[arg(long)]
    pub(crate) no_syscalls: bool,
    /// Which lockings to record: `contended` records waits alone, and a free lock costs nothing;
    /// `every` probes the C library's mutexes in every program that uses it, and counts how often
    /// and how long each lock is held. It makes locking a thousand times slower.
    #[arg(long, value_name = "WHICH", default_value = "contended", conflicts_with = "no_syscalls")]
    pub(crate) locks: LockMode,
    /// Check real-time threads for page faults, allocation, relative sleeps, file access and other
    /// mistakes; exit 2 if any is found. Records more system calls.
    #[arg(long, conflicts_with = "no_syscalls")]
    pub(crate) lint: bool,
    /// File of findings to suppress, one `RULE THREAD # WHY` per line.
    #[arg(long, value_name = "FILE")]
    pub(crate) suppress: Option<PathBuf>,
    /// Also record kernel stacks on the program's CPUs. Shows what delayed a real-time thread:
    /// kernel code that could not be preempted, and its system call. Delays a wake-up by at most
    /// two stacks.
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Also record the user-space stacks of senders and of the program's system calls that are
    /// recorded, for functions with frame pointers. Costs them some microseconds per event.
    #[arg(long)]
    pub(crate) user_stacks: bool,
    /// Also record stretches with interrupts or preemption off on the program's CPUs: by the
    /// kernel's events, else by two probes on each FUNCTION [default: ten that are known to be
    /// long]. Costs microseconds per call; --stacks adds their stacks.
    #[arg(long, value_name = "FUNCTION,...", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) off_stretches: Option<String>,
    /// New or empty directory for the run [default: stillcore-TIME in the current directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object instead of tables; the command's output then goes to standard error.
    #[arg(long)]
    pub(crate) json: bool,
    /// Directory for the journal [default: /var/lib/stillcore].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Program to start and watch, with its arguments.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Watches and reports, or reports an earlier run.
pub(super) fn run(args: &WatchArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    anyhow::ensure!(
        args.suppress.is_none() || args.lint || args.from.is_some(),
        "--suppress takes findings of --lint, which is not there"
    );
    let suppressions = suppressions(args.suppress.as_deref())?;
    let (dir, interrupted) = match &args.from {
        Some(dir) => (dir.clone(), None),
        None => record(args, signals, &mut Looking::default())?,
    };
    let mut analysis = analysis::analyse(&dir)?;
    let found = suppress(&mut analysis, &suppressions, &dir, args.suppress.is_some())?;
    if args.from.is_none() && analysis.complete {
        output::mark_complete(&dir)?;
    }
    let document = conclude::of_analysis(&dir, model::run::stored::read_run(&dir)?, analysis)?;
    if args.from.is_none() {
        conclude::write(&document, &dir)?;
    }
    print(args, &dir, &document.analysis)?;
    Ok(if interrupted.is_some() { 1 } else { 2 * u8::from(found) })
}

/// A program that was watched for another verb.
pub(crate) struct Watched {
    /// The run directory.
    pub(crate) dir: PathBuf,
    /// The run with its conclusions.
    pub(crate) document: Document,
    /// The signal that ended it before its time.
    pub(crate) interrupted: Option<&'static str>,
}

/// Watches a program while somebody looks on, and keeps nothing. Returns the signal that ended it
/// before its time.
pub(crate) fn watch_live(
    args: WatchArgs,
    signals: &EndSignals,
    by: &mut dyn Onlooker,
) -> anyhow::Result<Option<&'static str>> {
    let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
    let args = WatchArgs { out: Some(scratch.path().join("run")), ..args };
    Ok(record(&args, signals, &mut Looking { keep: Keep::Live, by: Some(by) })?.1)
}

/// Watches a program for another verb: the same run, analysed and stored but for its page, with
/// nothing printed.
pub(crate) fn watch_quietly(
    args: &WatchArgs,
    signals: &EndSignals,
    looking: &mut Looking<'_>,
) -> anyhow::Result<Watched> {
    let (dir, interrupted) = record(args, signals, looking)?;
    let analysis = analysis::analyse(&dir)?;
    if analysis.complete {
        output::mark_complete(&dir)?;
    }
    let document = conclude::of_analysis(&dir, model::run::stored::read_run(&dir)?, analysis)?;
    conclude::write_analysis(&document, &dir)?;
    Ok(Watched { dir, document, interrupted })
}

/// Watches a program to be analysed later, or elsewhere.
pub(crate) fn only_record(
    args: &WatchArgs,
    signals: &EndSignals,
) -> anyhow::Result<(PathBuf, Option<&'static str>)> {
    let (dir, interrupted) = record(args, signals, &mut Looking::default())?;
    if model::run::stored::read_run(&dir)?.complete {
        output::mark_complete(&dir)?;
    }
    Ok((dir, interrupted))
}

/// Read before anything is recorded for them.
fn suppressions(file: Option<&Path>) -> anyhow::Result<Suppressions> {
    let Some(file) = file else { return Ok(Suppressions::default()) };
    // A pipe or a device might never end.
    let is_small = |data: std::fs::Metadata| data.is_file() && data.len() <= MOST_SUPPRESSED;
    if file.exists() && !std::fs::metadata(file).is_ok_and(is_small) {
        let expected = "a regular file of at most 1 MiB";
        return Err(model::Error::invalid("--suppress", file.display(), expected).into());
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Suppressions::parse(&file.display().to_string(), &text)?)
}

/// Marks what is suppressed; whether anything else was found.
fn suppress(
    analysis: &mut Analysis,
    suppressions: &Suppressions,
    dir: &Path,
    asked: bool,
) -> anyhow::Result<bool> {
    let lint = analysis.watch.as_mut().and_then(|watch| watch.lint.as_mut());
    anyhow::ensure!(
        lint.is_some() || !asked,
        "--suppress takes findings of --lint, with which {} was not recorded",
        dir.display()
    );
    Ok(lint.is_some_and(|lint| {
        suppressions.apply(lint);
        lint.open().next().is_some()
    }))
}

fn print(args: &WatchArgs, dir: &Path, analysis: &Analysis) -> anyhow::Result<()> {
    let section = analysis.watch.as_ref().with_context(|| {
        format!("{}: no program was watched; expected a run directory of trace watch", dir.display())
    })?;
    let run = model::run::stored::read_run(dir)?;
    let statements: Vec<&String> = analysis.losses.statements.iter().chain(&section.statements).collect();
    let text = if args.json {
        json!({
            "schema": "stillcore.trace-watch/1",
            "run": dir,
            "complete": analysis.complete,
            "cpus": run.measured_cpus,
            "watch": section,
            "coverage": analysis.coverage,
            "blocking": analysis.blocking,
            "observer": run.observer,
            "limits": run.limits,
            "statements": statements,
        })
        .to_string()
    } else {
        watch_text::text(dir, &run, analysis, section, &statements)
    };
    println!("{}", text.trim_end());
    Ok(())
}

/// Records; returns the run's directory and the signal that ended it before its time.
fn record(
    args: &WatchArgs,
    signals: &EndSignals,
    looking: &mut Looking<'_>,
) -> anyhow::Result<(PathBuf, Option<&'static str>)> {
    anyhow::ensure!(is_root(), "watching a program records kernel events, for which it must be root");
    let mut target = target(args)?;
    let online = machine::read(&machine::Root::live())?.topology.online;
    let cpus = args.cpus.clone().unwrap_or_else(|| target.tasks.cpus().and(&online));
    let asked = Asked { cpus: Some(&cpus), state: args.state.as_deref(), all_cpus: true, ..Asked::default() };
    let mut place = Place::resolve(&asked)?;
    place.limits.clear();
    let dir = args.out.clone().unwrap_or_else(default_out);
    let mut session = Session::open(&place.program, &place.state)?;
    off_stretches::check(args.off_stretches.as_deref(), &mut session)?;
    let mut output = RunOutput::create(&dir, &place)?;
    sched::pin(&place.housekeeping)?;
    let ended = watch(args, &place, &mut target, &mut output, signals, &mut session, looking);
    output.run.limits.extend(session.close().into_iter().map(|what| format!("not restored: {what}")));
    let interrupted = ended.as_ref().ok().copied().flatten();
    let reason = match (&ended, interrupted) {
        (Err(error), _) => Some(failure::sentence(error)),
        (Ok(_), Some(signal)) => Some(Interrupted(signal).to_string()),
        (Ok(_), None) => None,
    };
    let closed = output.close(reason);
    if looking.keep == Keep::Live {
        ended?;
    } else {
        ended.with_context(|| format!("the partial run is kept in {}", dir.display()))?;
    }
    closed?;
    Ok((dir, interrupted))
}

/// The events to record; system calls are filtered in the kernel, by this machine's numbers.
fn events(args: &WatchArgs) -> Result<EventCatalogue, model::Error> {
    let stacks = Stacks { own: args.stacks, users: args.user_stacks };
    let mut catalogue = EventCatalogue::watch()?.with(stacks);
    let filter = syscalls::filter(std::env::consts::ARCH, args.lint).filter(|_| !args.no_syscalls);
    catalogue.events.retain_mut(|event| {
        if event.name.starts_with("raw_syscalls:") {
            event.filter.clone_from(&filter);
        }
        // With where in the program, and on any CPU, in the buffer that has both.
        if args.lint && filter.is_some() && event.name == PAGE_FAULT {
            event.on = vec![Side::Watched];
        }
        // A wait for a lock may also end on a CPU that is not recorded in full.
        if [USER_STACK, CONTENTION_END].contains(&event.name.as_str()) && filter.is_some() {
            event.on.push(Side::Watched);
        }
        event.on != [Side::Watched] || filter.is_some()
    });
    Ok(catalogue)
}

fn watch(
    args: &WatchArgs,
    place: &Place,
    target: &mut Target,
    output: &mut RunOutput,
    signals: &EndSignals,
    session: &mut Session,
    looking: &mut Looking<'_>,
) -> anyhow::Result<Option<&'static str>> {
    write_snapshot(place, &output.dir, store::MACHINE_BEFORE)?;
    write_findings(place, &output.dir)?;
    output.run.observer = own_cost();
    let adopted = target.held.as_ref().map(|held| session.adopt(held.pid().cast_unsigned())).transpose()?;
    target.tasks.look();
    let tids = if args.no_syscalls { Vec::new() } else { target.tasks.tids() };
    let off_stretches = args.off_stretches.as_deref();
    let wanted = Wanted { tids: &tids, off_stretches, keep: looking.keep, ..Wanted::default() };
    let mut events = events(args)?.and(kernel_locks::owners().filter(|_| !tids.is_empty()));
    if args.locks == LockMode::Every {
        let tgids = target.tasks.tasks.values().map(|task| task.tgid).collect();
        let command = if target.held.is_some() { executable(&args.command) } else { None };
        let files = every_lock::files(command.as_deref(), &tgids);
        events = events.and(every_lock::probes(&files, place, output, session)?);
    }
    let mut recorder = recording::prepare_for(session, output, &events, place, &wanted)?;
    let kept = match looking.keep {
        Keep::Live => String::new(),
        _ => format!("; run directory {}", output.dir.display()),
    };
    Reporter::say(&format!("watching {} on CPUs {}{kept}", target.asked, place.measured));
    target.tasks.look();
    target.tasks.recording = true;
    let t0_ns = clock::now_ns();
    looking.by.iter_mut().for_each(|by| by.begin(&recorder, &target.tasks, t0_ns));
    recorder.record(true)?;
    let mut last = None;
    let ended = follow(args, target, &mut recorder, signals, &mut last, looking);
    let Last { t1_ns, lock_words } = last.map_or_else(|| stop(args, target, &mut recorder), Ok)?;
    let (interrupted, command) = ended?;
    if let (Some(adopted), true) = (adopted, command.is_some()) {
        session.forget(adopted)?;
    }
    output.run.phases.push(Phase { name: PHASE.to_owned(), t0_ns, t1_ns, disturbed: false });
    let isolated = machine::read(&machine::Root::live())?.topology.isolated;
    let facts = WatchRecord {
        schema: SCHEMA.to_owned(),
        asked: target.asked.clone(),
        arch: std::env::consts::ARCH.to_owned(),
        tasks: target.tasks.tasks.values().cloned().collect(),
        descriptors: target.tasks.descriptors().cloned().collect(),
        glibc: target.tasks.glibc().collect(),
        lock_words,
        lint: args.lint.then(|| target.tasks.settings(&isolated, kernel_threads())),
        command,
    };
    store::write_json(&output.dir.join(FILE), &facts)?;
    if looking.keep == Keep::Live {
        recorder.discard(session)?;
    } else {
        recording::finish(recorder, session, output)?;
    }
    looking.by.iter_mut().try_for_each(|by| by.end(&target.tasks, t1_ns))?;
    write_snapshot(place, &output.dir, store::MACHINE_AFTER)?;
    output.run.machine_after = Some(store::MACHINE_AFTER.to_owned());
    output.run.observer.drain_rss_kib = Some(clock::peak_rss_kib());
    Ok(interrupted)
}

/// What is read as recording ends.
struct Last {
    t1_ns: i64,
    lock_words: Vec<LockWords>,
}

/// Ends recording. Whoever waits for a lock by then waits for good, as far as the recording goes.
fn stop(args: &WatchArgs, target: &Target, recorder: &mut Recorder) -> anyhow::Result<Last> {
    let lock_words = if args.no_syscalls { Vec::new() } else { target.tasks.lock_words() };
    let t1_ns = clock::now_ns();
    recorder.record(false)?;
    Ok(Last { t1_ns, lock_words })
}

/// Why recording is to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Signal(&'static str),
    Time,
    /// Who looked on has seen enough.
    Seen,
}

/// Threads of the kernel that are there now.
fn kernel_threads() -> Vec<KernelThreadName> {
    let all = machine::processes(&machine::Root::live()).kernel;
    let one = |thread: machine::KernelThread| {
        Some(KernelThreadName { tid: i32::try_from(thread.pid).ok()?, comm: thread.name })
    };
    all.into_iter().filter_map(one).collect()
}

/// Waits until the program has ended, the time is over or the user asks. Returns the signal if that
/// cut a set time short, and the command. Recording ends before a command is asked to: then `last`
/// has what was read.
fn follow(
    args: &WatchArgs,
    target: &mut Target,
    recorder: &mut Recorder,
    signals: &EndSignals,
    last: &mut Option<Last>,
    looking: &mut Looking<'_>,
) -> anyhow::Result<(Option<&'static str>, Option<CommandRecord>)> {
    if let Some(held) = &mut target.held {
        held.begin()?;
    }
    let start_ns = clock::now_ns();
    let (mut look_ns, mut asked) = (start_ns, None::<(End, i64)>);
    loop {
        let now_ns = clock::now_ns();
        if now_ns >= look_ns {
            target.tasks.look();
            recorder.look_at(target.tasks.processes());
            look_ns = now_ns + LOOK_NS;
        }
        let over = args.duration.is_some_and(|time| (now_ns - start_ns) as u128 >= time.as_nanos());
        let end = signals.arrived().map(End::Signal).or(over.then_some(End::Time));
        let end = match &mut looking.by {
            Some(by) if end.or(asked.map(|(end, _)| end)).is_none() => {
                by.look(&target.tasks)?.then_some(End::Seen)
            }
            _ => end,
        };
        if let (None, Some(end)) = (asked, end) {
            asked = Some((end, now_ns));
            *last = Some(stop(args, target, recorder)?);
            if let Some(held) = &target.held {
                held.signal(if let End::Signal(name) = end { name } else { "SIGTERM" });
            }
        }
        let interrupted = match asked {
            Some((End::Signal(name), _)) if args.duration.is_some() => Some(name),
            _ => None,
        };
        match &mut target.held {
            None if asked.is_some() || !target.tasks.alive() => return Ok((interrupted, None)),
            None => {}
            Some(held) => {
                if let Some(status) = held.ended()? {
                    let ((exit_code, signal), pid) = (code_and_signal(status), held.pid());
                    let ended = asked.is_some();
                    return Ok((
                        interrupted,
                        Some(CommandRecord { words: words(args), pid, exit_code, signal, ended }),
                    ));
                }
                if asked.is_some_and(|(_, since_ns)| now_ns - since_ns > PATIENCE_NS) {
                    held.signal("SIGKILL");
                }
            }
        }
        anyhow::ensure!(!recorder.failed(), "the trace cannot be read any more, so recording has ended");
        clock::sleep_until(now_ns + POLL_NS);
    }
}
