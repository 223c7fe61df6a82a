//! `stillcore measure taskset`: a task set on one core, its measured response times beside the
//! calculated ones.
//!
//! The experiment of R. Delgado and B. W. Choi, IEEE Access 8, 2020, section V: tasks of fixed
//! priorities, all released together, each burning its execution time.

mod set;

use super::Common;
use super::carry_out::{Beside, carry_out, place};
use super::stopping::Stopping;
use super::table::{found, json};
use super::tracing::Tracing;
use crate::run::place::Place;
use analysis::taskset::MeasuredTask;
use clap::{Args, ValueEnum};
use measure::spec::{Burn, ProbeSpec, Task, TasksetSpec};
use model::quantity::duration;
use model::sample::Policy;
use model::{Cpus, Error, store};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use sys::signals::EndSignals;

/// File of the run directory with the set and its results.
const FILE: &str = "taskset.json";
/// Timer slack where real-time policies are refused, ns: the least there is.
const TIMER_SLACK_NS: u64 = 1;

/// Arguments of `measure taskset`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("set").required(true).args(["tasks", "file"])))]
pub(crate) struct TasksetArgs {
    /// Options common to all measurements.
    #[command(flatten)]
    pub(crate) common: Common,
    /// Events to record.
    #[command(flatten)]
    pub(crate) tracing: Tracing,
    /// What ends it before its time.
    #[command(flatten)]
    pub(crate) stopping: Stopping,
    /// Tasks as T:C:PRIORITY, such as 10:3:99,20:5:80,40:10:50; without priorities, rate monotonic.
    /// T and C in milliseconds.
    #[arg(long, value_name = "T:C:P,...")]
    pub(crate) tasks: Option<String>,
    /// TOML or JSON file of tasks, which can also set names, deadlines and offsets.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// How long to measure.
    #[arg(long, short = 'D', default_value = "10s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Measure of a job's execution time.
    #[arg(long, default_value = "cputime", value_name = "HOW")]
    pub(crate) burn: BurnName,
    /// Length of a slot of wall-clock time, for --burn slots.
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = duration)]
    pub(crate) slot: Duration,
}

/// Measures of execution time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BurnName {
    /// CPU time of the task: preemption does not shorten a job's execution.
    Cputime,
    /// Slots of wall-clock time, as in the paper: a job preempted inside a slot executes less.
    Slots,
}

/// Measures and prints.
pub(crate) fn run(args: &TasksetArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let tasks = match (&args.tasks, &args.file) {
        (Some(words), _) => set::from_words(words)?,
        (None, Some(path)) => set::from_file(path)?,
        (None, None) => Vec::new(),
    };
    check(args, &tasks)?;
    let bounds =
        set::bounds(&tasks).map_err(|error| Error::invalid("the task set", error, "times in range"))?;
    let place = one_cpu(args, &tasks)?;
    let probes = tasks.iter().zip(0..).map(|(task, thread)| spec(args, &place, task, thread)).collect();
    let beside = Beside { tracing: args.tracing.clone(), stopping: args.stopping, ..Beside::default() };
    let outcome = carry_out(&place, &args.common, probes, beside, signals)?;
    let measured = &outcome.document.analysis.taskset;
    let mut answer = json(&outcome, "stillcore.measure-taskset/2");
    answer["tasks"] = measured.iter().zip(&bounds).map(|(one, bound)| row(one, *bound)).collect();
    answer["schedule"] = serde_json::to_value(&outcome.document.analysis.schedule)?;
    answer["burn"] = if args.burn == BurnName::Slots { "slots" } else { "cputime" }.into();
    answer["utilization"] = set::utilization(&tasks).into();
    answer["schedulable"] = bounds.iter().all(Option::is_some).into();
    store::write_json(&outcome.dir.join(FILE), &answer)?;
    if args.common.json {
        println!("{answer}");
    } else {
        print!("{}", found(&outcome));
    }
    let too_late = measured.iter().any(|one| one.figures.late + one.figures.missed > 0);
    Ok(outcome.status_or(too_late))
}

fn check(args: &TasksetArgs, tasks: &[set::Task]) -> Result<(), Error> {
    let refuse = |option: &str, found: Duration, expected: &str| {
        Err(Error::invalid(option.to_owned(), format!("{found:?}"), expected.to_owned()))
    };
    let longest = tasks.iter().map(|task| task.offset_ns + 2 * task.period_ns).max().unwrap_or(0);
    if args.duration < Duration::from_nanos(longest) {
        return refuse("--duration", args.duration, "room for two releases of every task");
    }
    if args.duration > Duration::from_secs(7 * 86400) {
        return refuse("--duration", args.duration, "at most 168h");
    }
    if args.slot < Duration::from_micros(1) || args.slot > Duration::from_secs(1) {
        return refuse("--slot", args.slot, "1us to 1s");
    }
    Ok(())
}

/// The place, with one measured CPU: the one that the user named, else the last of those that would
/// be measured.
fn one_cpu(args: &TasksetArgs, tasks: &[set::Task]) -> anyhow::Result<Place> {
    if let Some(cpus) = args.common.cpus.as_ref().filter(|cpus| cpus.len() != 1) {
        return Err(Error::invalid("--cpus", cpus, "one CPU: the tasks share it").into());
    }
    let mut place = place(&args.common, false)?;
    place.measured = place.measured.iter().last().map(Cpus::one).unwrap_or_default();
    let asked = set::utilization(tasks);
    let limits = &place.machine.limits;
    // -1 as the runtime: no throttling.
    let allowed = match (limits.rt_runtime_us, limits.rt_period_us) {
        (Some(runtime), Some(period)) if runtime >= 0 && period > 0 => Some(runtime as f64 / period as f64),
        _ => None,
    };
    match allowed {
        None if asked >= 1.0 => {
            let what = format!("the tasks ask for {asked:.3} of the CPU, and real-time throttling is off");
            return Err(Error::invalid("the task set", what, "less than 1, so that the machine stays alive").into());
        }
        Some(allowed) if asked >= allowed => place.limits.push(format!(
            "the tasks ask for {asked:.3} of the CPU, and real-time throttling leaves them {allowed:.3}: responses include being throttled"
        )),
        _ => {}
    }
    Ok(place)
}

fn spec(args: &TasksetArgs, place: &Place, task: &set::Task, thread: u32) -> ProbeSpec {
    let burn = match args.burn {
        BurnName::Slots => Burn::Slots { slot_ns: args.slot.as_nanos() as i64 },
        BurnName::Cputime => Burn::CpuTime,
    };
    ProbeSpec {
        thread,
        cpus: place.measured.clone(),
        policy: Policy::fifo(task.priority),
        timer_slack_ns: TIMER_SLACK_NS,
        duration_ns: args.duration.as_nanos() as i64,
        task: Task::Taskset(TasksetSpec {
            name: task.name.clone(),
            deadline_ns: task.deadline_ns as i64,
            period_ns: task.period_ns as i64,
            offset_ns: task.offset_ns as i64,
            cost_ns: task.cost_ns as i64,
            burn,
        }),
    }
}

/// The keys of one task in `--json` and `taskset.json`.
fn row(one: &MeasuredTask, bound_ns: Option<u64>) -> Value {
    let asked = &one.task;
    json!({
        "task": {
            "name": asked.name,
            "period_ns": one.period_ns,
            "deadline_ns": asked.deadline_ns,
            "cost_ns": asked.cost_ns,
            "offset_ns": asked.offset_ns,
            "priority": one.priority,
        },
        "calculated_response_ns": bound_ns,
        "released": one.released,
        "served": one.served,
        "missed": one.figures.missed,
        "ring_lost": one.ring_lost,
        "figures": one.figures,
    })
}
