//! `stillcore measure periodic`: a job every period that computes, alone or beside copies of itself (the process of ERTS 2022).

mod text;

use super::Common;
use super::carry_out::{Outcome, carry_out, place};
use super::schedule::{PolicyName, Schedule};
use super::table::json;
use crate::args::duration;
use crate::run::place::{Place, default_out};
use analysis::periodic::Jobs;
use clap::{Args, ValueEnum};
use linux::measure::job::Work;
use linux::measure::job::files::{Copy, JobFiles};
use linux::measure::spec::{PeriodicSpec, ProbeSpec, ReadFrom, Task, Wake};
use linux::sys::perf::{Chosen, Event, MOST, usable};
use linux::sys::sched;
use linux::sys::signals::EndSignals;
use model::{Cpus, Error, samples_file};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Above ordinary interrupt threads, below the kernel's own watchdogs.
const PRIORITY: u32 = 80;
/// Where every CPU is measured or attacked.
const CROWDED_PRIORITY: u32 = 49;

/// Arguments of `measure periodic`.
#[derive(Debug, Args)]
pub(crate) struct PeriodicArgs {
    /// What all measurements take.
    #[command(flatten)]
    pub(crate) common: Common,
    /// How long to measure.
    #[arg(long, short = 'D', default_value = "10s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Jobs a second.
    #[arg(long, default_value = "8", value_name = "HZ", conflicts_with = "period", value_parser = rate)]
    pub(crate) rate: f64,
    /// Distance of releases, instead of a rate.
    #[arg(long, short = 'i', value_name = "TIME", value_parser = duration)]
    pub(crate) period: Option<Duration>,
    /// What a job computes.
    #[arg(long, default_value = "attitude", value_name = "WHAT")]
    pub(crate) work: WorkName,
    /// Size of the array, in bytes, K or M.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) size: Option<u64>,
    /// CPU time of busy work.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) busy: Option<Duration>,
    /// Compute nothing: what the measuring itself costs.
    #[arg(long, conflicts_with_all = ["work", "size", "busy"])]
    pub(crate) empty: bool,
    /// Where a job reads its inputs; with a pipe a process fills it, and another one compares the outputs.
    #[arg(long, default_value = "pipe", value_name = "FROM")]
    pub(crate) input: InputName,
    /// How many run at once; the first is the victim, the others run anywhere.
    #[arg(long, short = 'n', default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) copies: u32,
    /// Where the victim runs: on the first measured CPU, or on any [default: pinned; under deadline free].
    #[arg(long, value_name = "HOW")]
    pub(crate) victim: Option<Victim>,
    /// CPUs of the processes at the pipes [default: any].
    #[arg(long, value_name = "LIST")]
    pub(crate) io_cpus: Option<Cpus>,
    /// Whether copies share executable, input and output file, or have inodes of their own.
    #[arg(long, default_value = "same", value_name = "WHOSE")]
    pub(crate) files: Files,
    /// Measure twice, with the same files and then with own ones, and print both.
    #[arg(long, conflicts_with = "files")]
    pub(crate) compare_files: bool,
    /// Directory for these files while it measures [default: that of the journal].
    #[arg(long, value_name = "DIR")]
    pub(crate) files_in: Option<PathBuf>,
    /// What is counted around each job; a list of names, or NAME=rHEX for a raw event of this CPU.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = DEFAULT_COUNTERS)]
    pub(crate) counters: Vec<Event>,
    /// What begins a job [default: timer; under deadline scheduler].
    #[arg(long, value_name = "WHAT")]
    pub(crate) wake: Option<WakeName>,
    /// How jobs are scheduled.
    #[command(flatten)]
    pub(crate) schedule: Schedule,
    /// Jobs at the start that no figure counts; they are stored.
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) warm_up: u32,
}

/// No more than the six counters of a small core, so that nothing is multiplexed; then what every kernel counts.
const DEFAULT_COUNTERS: &str =
    "l1d_refill,l1i_refill,l2d_refill,ll_refill,bus_access,switches,migrations,faults";

/// What a job computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkName {
    /// An attitude-control step.
    Attitude,
    /// The sum of an array (--size).
    Array,
    /// A calibrated loop (--busy).
    Busy,
}

/// Where inputs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputName {
    /// The job's own memory.
    Memory,
    /// A file.
    File,
    /// A pipe.
    Pipe,
}

/// Where the victim runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Victim {
    /// On one CPU.
    Pinned,
    /// On any.
    Free,
}

/// Whose files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Files {
    /// One set for all.
    Same,
    /// One each.
    Own,
}

/// What begins a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WakeName {
    /// A timer in CLOCK_MONOTONIC.
    Timer,
    /// SCHED_DEADLINE, in its own clock.
    Scheduler,
}

/// One measurement with what its files say.
struct Measured {
    files: Files,
    outcome: Outcome,
    /// One entry a copy, the victim's first.
    jobs: Vec<Option<Jobs>>,
}

fn rate(text: &str) -> Result<f64, String> {
    let hz = text.strip_suffix("Hz").unwrap_or(text).trim().parse::<f64>().ok();
    hz.filter(|hz| (1e-3..=50_000.0).contains(hz))
        .ok_or_else(|| format!("{text:?} is no rate; expected 0.001 to 50000 jobs a second"))
}

fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size; expected 1 to 1024M, such as 64K");
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        _ => (text, 1),
    };
    let bytes = digits.parse::<u64>().map_err(|_| wrong())?.saturating_mul(unit);
    if (1..=1 << 30).contains(&bytes) { Ok(bytes) } else { Err(wrong()) }
}

/// Measures and prints.
pub(crate) fn run(args: &PeriodicArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    check(args)?;
    // Before this process goes to its own CPUs: a copy that is free inherits what it may use.
    let free = sched::affinity()?;
    let mut place = place(&args.common, true)?;
    let free = free.and(&place.machine.topology.online);
    let counters = counters(args, &mut place)?;
    let groups = if args.compare_files { vec![Files::Same, Files::Own] } else { vec![args.files] };
    let mut measured = Vec::new();
    for files in groups {
        let common = common(args, files);
        let own = (files == Files::Own).then_some(place.program.as_path());
        let dir = args.files_in.as_ref().unwrap_or(&place.state);
        let held = JobFiles::create(dir, work(args), args.copies as usize, own)?;
        let probes = probes(args, &place, &free, &counters, &held.copies)?;
        let outcome = carry_out(&place, &common, probes, signals)?;
        let jobs = outcome.run.probes.iter().map(|record| {
            let path = outcome.dir.join(&record.file);
            let (_, samples) = samples_file::read(&path)?;
            let columns = samples_file::read_columns(&path)?;
            Ok(analysis::periodic::jobs(&samples, &columns, record.period_ns.unwrap_or(0)))
        });
        let jobs = jobs.collect::<Result<Vec<_>, Error>>()?;
        let stopped = outcome.interrupted.is_some();
        measured.push(Measured { files, outcome, jobs });
        if stopped {
            break;
        }
    }
    if args.common.json {
        println!("{}", object(&measured));
    } else {
        print!("{}", text::text(args, &measured));
    }
    Ok(code(&measured))
}

/// 1 where it was interrupted, 2 where an output was wrong.
fn code(measured: &[Measured]) -> u8 {
    let wrong = measured
        .iter()
        .flat_map(|one| &one.outcome.run.probes)
        .filter_map(|record| record.jobs.as_ref())
        .any(|jobs| jobs.outputs_wrong > 0);
    if measured.iter().any(|one| one.outcome.interrupted.is_some()) { 1 } else { 2 * u8::from(wrong) }
}

/// One measurement's object; of two, both under the names of their files.
fn object(measured: &[Measured]) -> serde_json::Value {
    const SCHEMA: &str = "stillcore.measure-periodic/1";
    let one = |measured: &Measured| {
        let mut value = json(&measured.outcome, SCHEMA);
        for (index, jobs) in measured.jobs.iter().enumerate() {
            value["threads"][index]["jobs"] = json!(jobs);
        }
        value
    };
    match measured {
        [single] => one(single),
        several => {
            let groups = several.iter().map(|group| (group.files.name().to_owned(), one(group)));
            json!({ "schema": SCHEMA, "groups": groups.collect::<serde_json::Map<_, _>>() })
        }
    }
}

impl Files {
    fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Own => "own",
        }
    }
}

/// What the measurement of one group of files is told; two groups lie in directories beside each other.
fn common(args: &PeriodicArgs, files: Files) -> Common {
    let common = &args.common;
    let out = match (&common.out, args.compare_files) {
        (out, false) => out.clone(),
        (Some(out), true) => Some(out.join(files.name())),
        (None, true) => Some(default_out().with_extension(files.name())),
    };
    Common {
        cpus: common.cpus.clone(),
        out,
        json: common.json,
        quiet: common.quiet,
        state: common.state.clone(),
    }
}

fn work(args: &PeriodicArgs) -> Work {
    const SIZE: u64 = 64 << 10;
    match args.work {
        _ if args.empty => Work::Empty,
        WorkName::Attitude => Work::Attitude,
        WorkName::Array => Work::Array { bytes: args.size.unwrap_or(SIZE) },
        WorkName::Busy => Work::Busy { ns: args.busy.unwrap_or_default().as_nanos() as u64 },
    }
}

fn period(args: &PeriodicArgs) -> Duration {
    args.period.unwrap_or_else(|| Duration::from_secs_f64(1.0 / args.rate))
}

/// The counters there are; the run says why the others are not.
fn counters(args: &PeriodicArgs, place: &mut Place) -> Result<Vec<Chosen>, Error> {
    let mut chosen: Vec<Chosen> = Vec::new();
    for event in &args.counters {
        if chosen.iter().any(|one| one.event.name == event.name) {
            let what = format!("{} twice", event.name);
            return Err(Error::invalid("--counters", what, "each name once"));
        }
        match usable(event) {
            Ok(source) => chosen.push(Chosen { event: event.clone(), source }),
            Err(why) => place.limits.push(format!("counter {event} is unavailable: {why}")),
        }
    }
    if chosen.len() > MOST {
        let what = format!("{} counters", chosen.len());
        return Err(Error::invalid("--counters", what, format!("at most {MOST}")));
    }
    Ok(chosen)
}

fn probes(
    args: &PeriodicArgs,
    place: &Place,
    free: &Cpus,
    counters: &[Chosen],
    copies: &[Copy],
) -> Result<Vec<ProbeSpec>, Error> {
    let crowded = args.copies > 1 || place.housekeeping == place.machine.topology.online;
    let period = period(args);
    let policy = args.schedule.policy(period, if crowded { CROWDED_PRIORITY } else { PRIORITY })?;
    let deadline = args.schedule.policy == PolicyName::Deadline;
    let victim = args.victim.unwrap_or(if deadline { Victim::Free } else { Victim::Pinned });
    let first = place.measured.iter().next().unwrap_or(0);
    let nanos = |time: Duration| time.as_nanos() as i64;
    let one = |(thread, copy): (u32, &Copy)| ProbeSpec {
        thread,
        cpus: if thread == 0 && victim == Victim::Pinned { Cpus::one(first) } else { free.clone() },
        policy: policy.clone(),
        timer_slack_ns: nanos(args.schedule.timer_slack) as u64,
        duration_ns: nanos(args.duration),
        task: Task::Periodic(PeriodicSpec {
            period_ns: nanos(period),
            warm_up: args.warm_up,
            wake: if args.wake.map_or(deadline, |wake| wake == WakeName::Scheduler) {
                Wake::Scheduler
            } else {
                Wake::Timer
            },
            work: work(args),
            input: match args.input {
                InputName::Memory => ReadFrom::Memory,
                InputName::File => ReadFrom::File,
                InputName::Pipe => ReadFrom::Pipe,
            },
            files: copy.files.clone(),
            io_cpus: args.io_cpus.clone().unwrap_or_else(|| free.clone()),
            program: copy.program.clone(),
            counters: counters.to_vec(),
        }),
    };
    Ok((0..).zip(copies).map(one).collect())
}

fn check(args: &PeriodicArgs) -> Result<(), Error> {
    let refuse = |option: &str, found: String, expected: &str| {
        Err(Error::invalid(option.to_owned(), found, expected.to_owned()))
    };
    let period = period(args);
    if period < Duration::from_micros(20) {
        return refuse("--period", format!("{period:?}"), "at least 20us");
    }
    if args.duration < period * (args.warm_up + 2) {
        return refuse("--duration", format!("{:?}", args.duration), "room for the warm-up and two jobs");
    }
    if args.duration > Duration::from_secs(7 * 86400) {
        return refuse("--duration", format!("{:?}", args.duration), "at most 168h");
    }
    if args.size.is_some() && args.work != WorkName::Array {
        return refuse("--size", "a size without an array".to_owned(), "--work array");
    }
    if args.busy.is_some() != (args.work == WorkName::Busy) {
        return refuse("--busy", "not both of a time and --work busy".to_owned(), "--work busy --busy TIME");
    }
    if args.busy.is_some_and(|time| time > Duration::from_secs(2)) {
        return refuse("--busy", format!("{:?}", args.busy.unwrap_or_default()), "at most 2s");
    }
    if args.wake == Some(WakeName::Scheduler) && args.schedule.policy != PolicyName::Deadline {
        return refuse(
            "--wake",
            "the scheduler's releases without SCHED_DEADLINE".to_owned(),
            "--policy deadline",
        );
    }
    Ok(())
}
