//! `stillcore measure ipi`: how long one CPU takes to make a thread run on another.

use super::Common;
use super::carry_out::{Beside, carry_out};
use super::schedule::{PolicyName, Schedule};
use super::stopping::Stopping;
use super::table::{found, json};
use crate::run::place::{Asked, Place};
use clap::{Args, ValueEnum};
use measure::ipi::Method;
use measure::spec::{IpiSpec, ProbeSpec, Task};
use model::quantity::duration;
use model::run::{ProbeRecord, Run};
use model::{Cpus, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use sys::sched;
use sys::signals::EndSignals;

/// As `measure wakeup`, so that the two can be compared.
const PRIORITY: u32 = 99;
/// Where no CPU is left for anything else, below the kernel's own real-time threads.
const CROWDED_PRIORITY: u32 = 49;
/// Wake-ups of a pair and method that are stored and not counted.
const WARM_UP: u32 = 5;

/// Arguments of `measure ipi`.
#[derive(Debug, Args)]
pub(crate) struct IpiArgs {
    /// Options common to all measurements.
    #[command(flatten)]
    pub(crate) common: Common,
    /// What ends it before its time.
    #[command(flatten)]
    pub(crate) stopping: Stopping,
    /// Pairs FROM:TO to measure, such as 0:2,1:3 [default: all pairs of --cpus, else of all CPUs].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = pair, conflicts_with = "cpus")]
    pub(crate) pairs: Vec<(u32, u32)>,
    /// Wake-up methods, such as futex,spin.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "futex,eventfd,pipe,signal,spin"
    )]
    pub(crate) methods: Vec<MethodName>,
    /// Wake-ups per pair and method.
    #[arg(long, short = 'n', default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=1_000_000))]
    pub(crate) count: u32,
    /// Interval between wake-ups; upper limit of the target's sleep.
    #[arg(long, short, default_value = "1ms", value_name = "TIME", value_parser = duration)]
    pub(crate) interval: Duration,
    /// State of the target CPUs between wake-ups: idle, or busy with an ordinary task.
    #[arg(long, default_value = "idle", value_name = "HOW")]
    pub(crate) target: Target,
    /// Scheduling of the threads.
    #[command(flatten)]
    pub(crate) schedule: Schedule,
}

/// State of a target CPU between wake-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Idle.
    Idle,
    /// Runs a SCHED_OTHER task that spins.
    Busy,
}

/// Wake-up methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodName {
    /// A futex.
    Futex,
    /// An eventfd.
    Eventfd,
    /// A pipe.
    Pipe,
    /// A signal that the target waits for.
    Signal,
    /// Shared memory that the target polls: the lower bound.
    Spin,
}

impl MethodName {
    fn method(self) -> Method {
        match self {
            Self::Futex => Method::Futex,
            Self::Eventfd => Method::Eventfd,
            Self::Pipe => Method::Pipe,
            Self::Signal => Method::Signal,
            Self::Spin => Method::Spin,
        }
    }
}

fn pair(text: &str) -> Result<(u32, u32), String> {
    let wrong = || format!("invalid pair {text:?}: expected FROM:TO, two different CPUs, such as 0:2");
    let (from, to) = text.split_once(':').ok_or_else(wrong)?;
    let (from, to) = (from.parse().map_err(|_| wrong())?, to.parse().map_err(|_| wrong())?);
    if from == to || from > model::cpus::MAX_CPU || to > model::cpus::MAX_CPU {
        Err(wrong())
    } else {
        Ok((from, to))
    }
}

/// Measures and prints.
pub(crate) fn run(args: &IpiArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    check(args)?;
    let place = place(args)?;
    let probes = probes(args, &place)?;
    let beside = Beside { stopping: args.stopping, ..Beside::default() };
    let outcome = carry_out(&place, &args.common, probes, beside, signals)?;
    let run = &outcome.document.run;
    if args.common.json {
        let mut value = json(&outcome, "stillcore.measure-ipi/2");
        value["threads"] = serde_json::to_value(&run.probes)?;
        value["pairs"] = serde_json::to_value(&outcome.document.analysis.ipi)?;
        let [sent, received, lost] = accounts(run);
        value["accounts"] = serde_json::json!({ "sent": sent, "received": received, "lost": lost });
        println!("{value}");
    } else {
        print!("{}", found(&outcome));
    }
    Ok(outcome.status())
}

fn check(args: &IpiArgs) -> Result<(), Error> {
    let refuse = |option: &str, found: String, expected: &str| {
        Err(Error::invalid(option.to_owned(), found, expected.to_owned()))
    };
    if args.interval < Duration::from_micros(50) || args.interval > Duration::from_secs(1) {
        return refuse("--interval", format!("{:?}", args.interval), "50us to 1s");
    }
    if args.schedule.policy == PolicyName::Deadline {
        return refuse(
            "--policy",
            "deadline".to_owned(),
            "fifo, rr or other: a reservation begins anew at each wake-up",
        );
    }
    Ok(())
}

/// The CPUs of the pairs; else those that the user named; else all.
fn place(args: &IpiArgs) -> anyhow::Result<Place> {
    let named = match (&args.common.cpus, args.pairs.is_empty()) {
        (Some(cpus), _) => cpus.clone(),
        (None, false) => args.pairs.iter().flat_map(|(from, to)| [*from, *to]).collect(),
        (None, true) => sched::affinity()?,
    };
    if named.len() < 2 {
        return Err(Error::invalid("--cpus", named.to_string(), "two CPUs at least").into());
    }
    let asked =
        Asked { cpus: Some(&named), state: args.common.state.as_deref(), all_cpus: true, ..Asked::default() };
    Place::resolve(&asked)
}

/// One probe per target, each with a turn of its own.
fn probes(args: &IpiArgs, place: &Place) -> Result<Vec<ProbeSpec>, Error> {
    let crowded = place.housekeeping == place.machine.topology.online;
    let policy = args.schedule.policy(args.interval, if crowded { CROWDED_PRIORITY } else { PRIORITY })?;
    let mut senders: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    if args.pairs.is_empty() {
        for to in place.measured.iter() {
            senders.insert(to, place.measured.iter().filter(|from| *from != to).collect());
        }
    } else {
        for (from, to) in &args.pairs {
            senders.entry(*to).or_default().insert(*from);
        }
    }
    let mut methods: Vec<Method> = args.methods.iter().map(|method| method.method()).collect();
    methods.sort_by_key(|method| method.code());
    methods.dedup();
    let interval_ns = args.interval.as_nanos() as i64;
    let mut offset_ns = 0;
    let mut probes = Vec::new();
    for ((to, from), thread) in senders.into_iter().zip(0..) {
        let turn_ns = turn_ns(from.len(), methods.len(), args.count, interval_ns);
        probes.push(ProbeSpec {
            thread,
            cpus: Cpus::one(to),
            policy: policy.clone(),
            timer_slack_ns: args.schedule.timer_slack.as_nanos() as u64,
            duration_ns: offset_ns + turn_ns,
            task: Task::Ipi(IpiSpec {
                from: from.into_iter().collect(),
                methods: methods.clone(),
                count: args.count + WARM_UP,
                warm_up: WARM_UP,
                interval_ns,
                busy: args.target == Target::Busy,
                offset_ns,
            }),
        });
        offset_ns += turn_ns;
    }
    Ok(probes)
}

/// Long enough for wake-ups that take a quarter of their interval. A target whose turn is over
/// begins no further wake-up, so that no two pairs run at a time.
fn turn_ns(senders: usize, methods: usize, count: u32, interval_ns: i64) -> i64 {
    const SET_UP_NS: i64 = 60_000_000;
    let one = interval_ns * i64::from(count + WARM_UP) * 5 / 4;
    senders as i64 * (methods as i64 * one + SET_UP_NS) + SET_UP_NS
}

/// Wake-ups sent, received, lost.
fn accounts(run: &Run) -> [u64; 3] {
    let sum = |of: fn(&ProbeRecord) -> u64| run.probes.iter().map(of).sum();
    [sum(ProbeRecord::released), sum(|probe| probe.samples), sum(|probe| probe.missed() + probe.ring_lost)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_two_different_cpus() {
        assert_eq!(pair("0:2"), Ok((0, 2)));
        for wrong in ["", "0", "0:", ":1", "1:1", "0:2:3", "-1:2", "0:99999999"] {
            assert!(pair(wrong).is_err(), "{wrong}");
        }
    }
}
