//! `stillcore graph run`: a graph as a run of its own.

use super::answer::{self, Conditions, Ran};
use super::judge::read_target;
use super::load::load;
use super::text;
use crate::measure::Common;
use crate::measure::carry_out::{Ended, Outcome, run_around};
use crate::measure::disturbing::Running;
use crate::measure::stopping::Stopping;
use crate::measure::tracing::{self, Tracing};
use crate::run::facts::{own_cost, write_findings, write_snapshot};
use crate::run::output::RunOutput;
use crate::run::place::{Asked, Place};
use crate::run::progress::Reporter;
use clap::{Args, ValueEnum};
use disturb::Order as Stressor;
use graph::results::Generation;
use graph::results::target::Target;
use graph::results::tracker::Bounds;
use graph::run::carry_out::{Measured, Progress, carry_out};
use graph::run::request::Order;
use graph::run::{Options, Plan};
use graph::topology::copies::copies;
use graph::topology::{Files, Graph};
use graph::transport::Kind;
use journal::session::Session;
use machine::Root;
use measure::class::Class;
use measure::job::Work;
use measure::job::files::JobFiles;
use model::quantity::duration;
use model::run::Phase;
use model::sample::{Policy, Reservation};
use model::{Error, store};
use record::snapshots::SnapshotOrder;
use std::path::PathBuf;
use std::time::Duration;
use sys::signals::EndSignals;
use sys::{clock, sched};

/// Name of the only phase.
const PHASE: &str = "measured";

/// Arguments of `graph run`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("classifying").args(["tracking", "target"]).multiple(true)))]
pub(crate) struct RunArgs {
    /// JSON files of ros2-performance (each a process), a TOML file, or the name of a built-in
    /// graph.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Options common to all measurements.
    #[command(flatten)]
    pub(crate) common: Common,
    /// Events to record.
    #[command(flatten)]
    pub(crate) tracing: Tracing,
    /// What ends it before its time.
    #[command(flatten)]
    pub(crate) stopping: Stopping,
    /// Transport of topics that name none: queue, mq-pointer, pipe, mq, seqpacket, udp, shm-futex,
    /// shm-eventfd or shm-poll [default: queue inside a process, shm-futex between two].
    #[arg(long, value_name = "KIND")]
    pub(crate) transport: Option<Kind>,
    /// How long to run.
    #[arg(long, short = 'D', default_value = "10s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Policy of all executors, overrides the graph's [default: the graph's, else fifo].
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<PolicyName>,
    /// Out-of-tree scheduling class of all executors: litmus:PLUGIN, evl or cobalt; needs a kernel
    /// and library with it.
    #[arg(long, value_name = "CLASS", conflicts_with = "policy")]
    pub(crate) class: Option<Class>,
    /// Priority under fifo and rr.
    #[arg(long, short, default_value_t = 80, value_name = "1-99", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) priority: u32,
    /// Let each executor run on all measured CPUs, instead of one CPU each, assigned round-robin.
    #[arg(long)]
    pub(crate) free: bool,
    /// Copies of the graph to run in parallel.
    #[arg(long, short = 'n', default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) copies: u32,
    /// Executable and files of the copies: shared, or inodes of their own [default: as the graph
    /// declares].
    #[arg(long = "files", value_name = "WHOSE", id = "whose")]
    pub(crate) whose: Option<WhoseFiles>,
    /// Timer slack of threads that are not real-time (kernel default: 50us).
    #[arg(long, default_value = "1ns", value_name = "TIME", value_parser = duration)]
    pub(crate) timer_slack: Duration,
    /// Target file of ros2-performance; exit 2 if a limit is exceeded.
    #[arg(long, value_name = "FILE")]
    pub(crate) target: Option<PathBuf>,
    /// Classify messages as late, too late and lost, as ros2-performance does with --tracking;
    /// without, all of them are in its mean and maximum. A --target turns it on.
    #[arg(long)]
    pub(crate) tracking: bool,
    /// Late messages: latency above this share of the period, percent.
    #[arg(long, requires = "classifying", default_value_t = 20, value_name = "PERCENT")]
    pub(crate) late_percentage: u32,
    /// Late messages: latency above this value, us.
    #[arg(long, requires = "classifying", default_value_t = 5_000, value_name = "US")]
    pub(crate) late_absolute: u32,
    /// Too late messages: latency above this share of the period, percent.
    #[arg(long, requires = "classifying", default_value_t = 100, value_name = "PERCENT")]
    pub(crate) too_late_percentage: u32,
    /// Too late messages: latency above this value, us.
    #[arg(long, requires = "classifying", default_value_t = 50_000, value_name = "US")]
    pub(crate) too_late_absolute: u32,
    /// Headers of the result files: those of ros2-performance today (late_msgs) or until 2023
    /// (late[#]).
    #[arg(long, default_value = "words", value_name = "WHICH")]
    pub(crate) headers: Headers,
}

/// Scheduling policies; a graph file can also name SCHED_DEADLINE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
    /// SCHED_OTHER.
    Other,
}

/// Files of the copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhoseFiles {
    /// One set for all copies.
    Shared,
    /// One set per copy.
    Own,
}

/// Generations of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Headers {
    /// `late_msgs`.
    Words,
    /// `late[#]`.
    Brackets,
}

/// Runs and prints.
pub(crate) fn run(args: &RunArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    check(args)?;
    let target = args.target.as_deref().map(read_target).transpose()?;
    let loaded = load(&args.files)?;
    let mut graph = copies(&loaded.graph, args.copies);
    graph.files = match args.whose {
        Some(WhoseFiles::Own) => Files::Own,
        Some(WhoseFiles::Shared) => Files::Shared,
        None => graph.files,
    };
    let (mut place, plan) = placed(args, graph)?;
    place.limits.extend(loaded.warnings);
    let before = Before {
        target,
        snapshots: args.tracing.snapshots(&[], args.stopping.limit_ns())?,
        stressors: args.common.disturbing.orders(&place)?,
    };
    let mut ran = None;
    let outcome = around(args, &place, &plan, before, signals, &mut ran)?;
    let Some(ran) = ran else { return Ok(outcome.status()) };
    if args.common.json {
        println!("{}", ran.answer);
    } else {
        print!("{}", text::text(&plan, &ran, &outcome));
    }
    let failed = ran.verdicts.iter().any(|verdict| !verdict.pass) || ran.outputs[1] > 0;
    Ok(outcome.status_or(failed))
}

fn check(args: &RunArgs) -> Result<(), Error> {
    let longest = Duration::from_secs(7 * 86400);
    if args.duration < Duration::from_millis(100) || args.duration > longest {
        return Err(Error::invalid("--duration", format!("{:?}", args.duration), "100ms to 168h"));
    }
    Ok(())
}

/// The policy of a class. Executors have no period of their own: they may have all of a
/// millisecond.
pub(super) fn of_class(class: &Class, priority: u32) -> Result<Policy, Error> {
    let reservation = Reservation { runtime_ns: 1_000_000, deadline_ns: 1_000_000, period_ns: 1_000_000 };
    Ok(Policy::litmus(class.plugin(&Root::live())?, priority, reservation))
}

/// Where the graph runs: executors that name no CPU share the measured ones, and all CPUs of
/// executors are measured ones.
fn placed(args: &RunArgs, graph: Graph) -> anyhow::Result<(Place, Plan)> {
    let own = graph.executors.iter().filter_map(|one| one.cpus.as_ref());
    let own = own.fold(model::Cpus::default(), |all, one| all.or(one));
    let all_named = graph.executors.iter().all(|one| one.cpus.is_some());
    let cpus = args.common.cpus.clone().or_else(|| all_named.then(|| own.clone()));
    let asked = Asked { cpus: cpus.as_ref(), state: args.common.state.as_deref(), ..Asked::default() };
    let place = Place::resolve(&asked)?;
    let policy = |name: PolicyName| match name {
        PolicyName::Fifo => Policy::fifo(args.priority),
        PolicyName::Rr => Policy::round_robin(args.priority),
        PolicyName::Other => Policy::other(),
    };
    let classed = args.class.as_ref().map(|class| of_class(class, args.priority)).transpose()?;
    let options = Options {
        transport: args.transport,
        cpus: place.measured.clone(),
        spread: !args.free,
        policy: classed.or(args.policy.map(policy)),
        default_policy: Policy::fifo(args.priority),
        timer_slack_ns: args.timer_slack.as_nanos() as u64,
        duration_ns: args.duration.as_nanos() as i64,
        copies: args.copies,
    };
    let plan = Plan::new(graph, options)?;
    if plan.all_cpus() == place.measured {
        return Ok((place, plan));
    }
    let asked = Asked { cpus: Some(&plan.all_cpus()), ..asked };
    Ok((Place::resolve(&asked)?, plan))
}

/// What was resolved before anything was written.
struct Before {
    target: Option<Target>,
    snapshots: Option<SnapshotOrder>,
    stressors: Vec<Stressor>,
}

/// The run directory around it.
fn around(
    args: &RunArgs,
    place: &Place,
    plan: &Plan,
    before: Before,
    signals: &EndSignals,
    ran: &mut Option<Ran>,
) -> anyhow::Result<Outcome> {
    let Before { target, snapshots, stressors } = before;
    sched::pin(&place.housekeeping)?;
    let mut session = Session::open(&place.program, &place.state)?;
    run_around(place, &args.common, |output| {
        let measured = measure(args, place, plan, (snapshots, &stressors), output, signals, &mut session);
        output.run.limits.extend(session.close().into_iter().map(|what| format!("not restored: {what}")));
        let (measured, signal) = measured?;
        let taken = (!measured.died.is_empty()).then(|| measured.died.join("; "));
        let generation = match args.headers {
            Headers::Words => Generation::Words,
            Headers::Brackets => Generation::Brackets,
        };
        let stopped_s = measured.stopped_at.as_ref().map(|at| at.after_ns as f64 / 1e9);
        let seconds = stopped_s.unwrap_or(args.duration.as_secs_f64());
        let conditions = Conditions {
            bounds: bounds(args),
            target: target.as_ref(),
            generation,
            seconds,
            stressors: &output.run.stressors,
        };
        *ran = Some(answer::write(&output.dir, plan, &measured, &conditions)?);
        Ok(Ended { signal, taken })
    })
}

fn bounds(args: &RunArgs) -> Bounds {
    Bounds {
        tracking: args.tracking || args.target.is_some(),
        late_percentage: args.late_percentage,
        late_absolute_us: args.late_absolute,
        too_late_percentage: args.too_late_percentage,
        too_late_absolute_us: args.too_late_absolute,
    }
}

/// The window, and the signal that ended it early.
fn measure(
    args: &RunArgs,
    place: &Place,
    plan: &Plan,
    (snapshots, stressors): (Option<SnapshotOrder>, &[Stressor]),
    output: &mut RunOutput,
    signals: &EndSignals,
    session: &mut Session,
) -> anyhow::Result<(Measured, Option<&'static str>)> {
    write_snapshot(place, &output.dir, store::MACHINE_BEFORE)?;
    write_findings(place, &output.dir)?;
    output.hold_latency(args.common.dma_latency());
    output.run.observer = own_cost();
    let files = job_files(place, plan)?;
    let mut recorder = args.tracing.prepare(place, snapshots, false, output, session)?;
    let reporter = Reporter::new(args.common.quiet);
    let step =
        reporter.step(&format!("running {} on CPUs {}", plan.graph.name, place.measured), args.duration);
    let mut signal = None;
    let mut watch = |progress: Progress| {
        let elapsed = Duration::from_nanos(progress.elapsed_ns.max(0) as u64);
        step.update(elapsed, || {
            let worst = report::format::ns(progress.worst_ns);
            format!("{} messages, observed max {worst}", report::format::count(progress.received))
        });
        signal = signal.or_else(|| signals.arrived());
        signal.is_none()
    };
    let order = Order {
        run: &output.dir,
        phase: PHASE,
        plan,
        files: files.as_ref(),
        bounds: bounds(args),
        stop_over_ns: args.stopping.limit_ns(),
        cpus: place.machine.topology.online.len(),
    };
    let running = Running::start(stressors, args.duration, place, session, &mut output.run.limits, signals)?;
    let disturbed = running.any();
    let t0_ns = clock::now_ns();
    let measured = carry_out(session, recorder.as_mut(), &order, &mut watch);
    let t1_ns = clock::now_ns();
    step.done();
    output.run.stressors = running.stop(session)?;
    tracing::finish(recorder, output, session, measured.is_err())?;
    let measured = measured?;
    output.run.windows.push(measured.window.clone());
    output.run.probes.clone_from(&measured.probes);
    output.run.limits.extend(measured.limits.iter().cloned());
    output.stopped_at(measured.stopped_at.clone());
    let phase = Phase { name: PHASE.to_owned(), t0_ns, t1_ns, disturbed };
    output.run.phases.push(phase);
    output.release_latency();
    write_snapshot(place, &output.dir, store::MACHINE_AFTER)?;
    output.run.machine_after = Some(store::MACHINE_AFTER.to_owned());
    output.run.observer.drain_rss_kib = Some(clock::peak_rss_kib());
    Ok((measured, signal))
}

/// The files that nodes read and compare with, where any does.
fn job_files(place: &Place, plan: &Plan) -> anyhow::Result<Option<JobFiles>> {
    let graph = &plan.graph;
    let actions = || {
        graph.nodes.iter().flat_map(|node| {
            let timers = node.timers.iter().map(|timer| &timer.action);
            timers.chain(node.subscribers.iter().map(|one| &one.action))
        })
    };
    if !actions().any(|action| action.reads || action.compares) {
        return Ok(None);
    }
    // What is compared is what the graph's computation makes of the inputs.
    let work = actions().find_map(|action| action.computes).unwrap_or(Work::Empty);
    let own = (graph.files == Files::Own).then_some(place.program.as_path());
    let copies = plan.options.copies as usize;
    Ok(Some(JobFiles::create(&place.state.join("jobs"), work, copies, own)?))
}
