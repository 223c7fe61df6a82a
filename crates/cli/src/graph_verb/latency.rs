//! `stillcore graph latency`: one publisher, one subscriber, each of the given transports and sizes
//! in turn.

use crate::measure::table::table;
use crate::run::place::NO_HOME;
use anyhow::Context;
use clap::{Args, ValueEnum};
use graph::latency::{Heard, Outcome, Plan, measure};
use graph::transport::Kind;
use journal::session::{Session, default_state};
use machine::Root;
use measure::class::Class;
use model::Error;
use model::quantity::duration;
use model::sample::Policy;
use report::format;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::sched;
use sys::signals::EndSignals;

const SCHEMA: &str = "stillcore.graph-latency/1";
/// First messages that are sent and not counted.
const WARM_UP: u64 = 10;
/// Quantiles that are shown, as parts of 1000.
const SHOWN: [(&str, u64); 3] = [("p50", 500), ("p99", 990), ("p999", 999)];

/// Arguments of `graph latency`.
#[derive(Debug, Args)]
pub(crate) struct LatencyArgs {
    /// Transports to measure in turn: queue, mq-pointer, pipe, mq, seqpacket, udp, shm-futex,
    /// shm-eventfd, shm-poll, or all.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "all", value_parser = transport)]
    pub(crate) transport: Vec<Transports>,
    /// Payload sizes, such as 100,1K,64K.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "100", value_parser = size)]
    pub(crate) size: Vec<usize>,
    /// CPU of the publisher and CPU of the subscriber, such as 2,3 [default: the two highest].
    #[arg(long, value_name = "A,B", value_parser = pair)]
    pub(crate) cpus: Option<[u32; 2]>,
    /// Length of the measurement of each transport and size.
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Interval between messages.
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = duration)]
    pub(crate) period: Duration,
    /// Messages that a link queues before it refuses more.
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(crate) depth: usize,
    /// Scheduling policy of publisher and subscriber.
    #[arg(long, default_value = "fifo", value_name = "NAME")]
    pub(crate) policy: PolicyName,
    /// Out-of-tree scheduling class: litmus:PLUGIN, evl or cobalt; needs a kernel and library with
    /// it.
    #[arg(long, value_name = "CLASS", conflicts_with = "policy")]
    pub(crate) class: Option<Class>,
    /// Priority under fifo and rr.
    #[arg(long, default_value_t = 80, value_name = "1-99", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) priority: u32,
    /// Priority of the subscriber. If it exceeds the publisher's on the same CPU, the subscriber
    /// runs before the publisher sleeps [default: the publisher's].
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) subscriber_priority: Option<u32>,
    /// Run both as threads of one process, as queue always does.
    #[arg(long)]
    pub(crate) threads: bool,
    /// Raise the machine's limits to what the links need while measuring (fs.mqueue.*,
    /// fs.pipe-max-size, net.core.*). The old values go into the journal first and are always
    /// restored.
    #[arg(long)]
    pub(crate) raise_limits: bool,
    /// Directory for the journal [default: /var/lib/stillcore for root, else
    /// ~/.local/state/stillcore].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Also print every message (with --json).
    #[arg(long, requires = "json")]
    pub(crate) samples: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// One transport, or all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transports(Vec<Kind>);

/// Scheduling policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
    /// SCHED_OTHER.
    Other,
}

fn transport(text: &str) -> Result<Transports, String> {
    match text {
        "all" => Ok(Transports(Kind::ALL.to_vec())),
        _ => text.parse().map(|kind| Transports(vec![kind])),
    }
}

fn size(text: &str) -> Result<usize, String> {
    model::quantity::bytes(text)
        .filter(|bytes| *bytes <= graph::transport::MOST_BYTES as u64)
        .map(|bytes| bytes as usize)
        .ok_or_else(|| format!("invalid size {text:?}: expected 0 to 16M, such as 100 or 64K"))
}

fn pair(text: &str) -> Result<[u32; 2], String> {
    let wrong = || format!("invalid pair {text:?}: expected two CPUs, such as 2,3");
    let (one, other) = text.split_once(',').ok_or_else(wrong)?;
    let cpu = |text: &str| text.parse().ok().filter(|cpu| *cpu <= model::cpus::MAX_CPU).ok_or_else(wrong);
    Ok([cpu(one)?, cpu(other)?])
}

/// What one transport did with one size.
struct Row {
    kind: Kind,
    bytes: usize,
    /// An error where the transport cannot carry such messages.
    outcome: Result<Outcome, graph::transport::Error>,
}

/// Measures and prints. Exit code 1 where nothing could be measured, or not everything.
pub(crate) fn run(args: &LatencyArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let plans = plans(args)?;
    let program = std::env::current_exe()?;
    let session = args.raise_limits.then(|| raise(args, &program, &plans)).transpose()?;
    let measured = rows(&program, &plans, signals);
    let kept = session.map(Session::close).unwrap_or_default();
    let (rows, interrupted) = measured?;
    for what in kept {
        eprintln!("note: could not be taken back: {what}");
    }
    if let ([Row { outcome: Err(why), .. }], false) = (&rows[..], rows.len() > 1) {
        anyhow::bail!("{why}");
    }
    if args.json {
        println!("{}", answer(args, &rows, interrupted));
    } else {
        print!("{}", text(args, &rows, interrupted)?);
    }
    Ok(u8::from(interrupted.is_some()))
}

/// One link after the other, and the signal that has ended it before the last.
fn rows(
    program: &Path,
    plans: &[Plan],
    signals: &EndSignals,
) -> anyhow::Result<(Vec<Row>, Option<&'static str>)> {
    let mut rows = Vec::new();
    // A signal is reported once only.
    let interrupted = Cell::new(None);
    for plan in plans {
        let stopped = || {
            interrupted.set(interrupted.get().or_else(|| signals.arrived()));
            interrupted.get().is_some()
        };
        let outcome = match measure(program, plan, &stopped) {
            // Others of the list may carry it.
            Err(graph::latency::Error::Link(error @ graph::transport::Error::TooLong { .. })) => Err(error),
            other => Ok(other?),
        };
        rows.push(Row { kind: plan.kind, bytes: plan.message_bytes, outcome });
        if stopped() {
            break;
        }
    }
    Ok((rows, interrupted.get()))
}

/// Raises the machine's limits to what the links need, in a session that restores them.
fn raise(args: &LatencyArgs, program: &Path, plans: &[Plan]) -> anyhow::Result<Session> {
    let home = journal::session::home();
    let state = args.state.clone().or_else(|| default_state(home.as_deref()));
    let state = state.context(NO_HOME)?;
    let mut session = Session::open(program, &state)?;
    let links: Vec<_> = plans.iter().map(Plan::link).collect();
    for setting in graph::transport::too_small(&links) {
        session.set(&setting.path, &setting.want.to_string())?;
    }
    Ok(session)
}

fn plans(args: &LatencyArgs) -> anyhow::Result<Vec<Plan>> {
    let cpus = cpus(args)?;
    let period_ns = args.period.as_nanos() as i64;
    if period_ns < 10_000 || args.period > Duration::from_secs(10) {
        let expected = "10us to 10s".to_owned();
        return Err(Error::invalid("--period", format!("{:?}", args.period), expected).into());
    }
    let messages = (args.duration.as_nanos() as i64 / period_ns) as u64;
    if !(1..=10_000_000).contains(&messages) {
        let expected = "1 to 10,000,000 messages of --period in --duration".to_owned();
        return Err(Error::invalid("--duration", format!("{messages} messages"), expected).into());
    }
    let priorities = [args.priority, args.subscriber_priority.unwrap_or(args.priority)];
    let policy = |priority| match (&args.class, args.policy) {
        (Some(class), _) => super::run::of_class(class, priority),
        (None, PolicyName::Fifo) => Ok(Policy::fifo(priority)),
        (None, PolicyName::Rr) => Ok(Policy::round_robin(priority)),
        (None, PolicyName::Other) => Ok(Policy::other()),
    };
    let policies = [policy(priorities[0])?, policy(priorities[1])?];
    let kinds = args.transport.iter().flat_map(|one| &one.0);
    let plan = |kind: &Kind, message_bytes: usize| Plan {
        kind: *kind,
        message_bytes,
        depth: args.depth,
        period_ns,
        messages: messages + WARM_UP,
        warm_up: WARM_UP,
        cpus,
        policies: policies.clone(),
        threads: args.threads,
    };
    // On one CPU, a subscriber that never sleeps leaves its publisher no time.
    let polls_itself = cpus[0] == cpus[1] && args.policy != PolicyName::Other;
    if polls_itself && kinds.clone().any(|kind| *kind == Kind::ShmPoll) {
        let expected = "two CPUs: a subscriber that never sleeps leaves its publisher none".to_owned();
        return Err(
            Error::invalid("--cpus", format!("{},{} with shm-poll", cpus[0], cpus[1]), expected).into()
        );
    }
    Ok(kinds.flat_map(|kind| args.size.iter().map(|&bytes| plan(kind, bytes))).collect())
}

/// The CPUs that the user named; else the two highest this process may use, or the only one.
fn cpus(args: &LatencyArgs) -> anyhow::Result<[u32; 2]> {
    if let Some(cpus) = args.cpus {
        let found = machine::check_online(&machine::read(&Root::live())?, &cpus.into_iter().collect());
        // Of a pair nothing need be left for others.
        return match found {
            Err(Error::Invalid { what, expected, .. }) => {
                Err(Error::invalid("pair of CPUs", what, expected).into())
            }
            other => Ok(other.map(|()| cpus)?),
        };
    }
    let usable: Vec<u32> = sched::affinity()?.iter().collect();
    let last = usable.last().copied().unwrap_or(0);
    Ok([usable.iter().rev().nth(1).copied().unwrap_or(last), last])
}

/// A policy as the kernel reports it, with its priority.
fn name(policy: &Policy) -> String {
    match policy.priority {
        0 => policy.name.clone(),
        priority => format!("{} {priority}", policy.name),
    }
}

/// Messages that count.
fn counted(outcome: &Outcome) -> impl Iterator<Item = &Heard> {
    outcome.heard.iter().filter(|heard| heard.sequence >= WARM_UP)
}

/// Sorted latencies.
struct Sorted(Vec<i64>);

impl Sorted {
    fn of(values: impl Iterator<Item = i64>) -> Self {
        let mut values: Vec<i64> = values.collect();
        values.sort_unstable();
        Self(values)
    }

    /// From the call of `send`.
    fn from_send(outcome: &Outcome) -> Self {
        Self::of(counted(outcome).map(|heard| heard.taken_ns - heard.sent_ns))
    }

    /// From the intended release.
    fn from_release(outcome: &Outcome) -> Self {
        Self::of(counted(outcome).map(|heard| heard.taken_ns - heard.release_ns))
    }

    /// Nearest rank.
    fn quantile(&self, parts: u64) -> Option<i64> {
        let rank = (self.0.len() as u64 * parts).div_ceil(1000).max(1);
        self.0.get(rank as usize - 1).copied()
    }

    fn mean(&self) -> Option<f64> {
        let sum: i128 = self.0.iter().map(|value| i128::from(*value)).sum();
        (!self.0.is_empty()).then(|| sum as f64 / self.0.len() as f64)
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "n": self.0.len(),
            "min_ns": self.0.first(),
            "mean_ns": self.mean(),
            "max_ns": self.0.last(),
        });
        for (name, parts) in SHOWN {
            value[format!("{name}_ns")] = json!(self.quantile(parts));
        }
        value
    }
}

fn answer(args: &LatencyArgs, rows: &[Row], interrupted: Option<&str>) -> Value {
    let row = |row: &Row| {
        let mut value = json!({ "transport": row.kind.name(), "size_bytes": row.bytes });
        match &row.outcome {
            Err(why) => value["refused"] = json!(why.to_string()),
            Ok(outcome) => {
                value["from_send"] = Sorted::from_send(outcome).json();
                value["from_release"] = Sorted::from_release(outcome).json();
                value["balance"] = json!(outcome.balance);
                value["depth"] = json!(outcome.facts.depth);
                value["policies_effective"] = json!(outcome.policies);
                value["cpu_ns"] = json!(outcome.cpu_ns);
                value["notes"] = json!([&outcome.facts.notes[..], &outcome.refused[..]].concat());
                if args.samples {
                    value["samples"] = json!(outcome.heard);
                }
            }
        }
        value
    };
    json!({
        "schema": SCHEMA,
        "tool_version": env!("CARGO_PKG_VERSION"),
        "cpus": cpus(args).unwrap_or_default(),
        "period_ns": args.period.as_nanos() as u64,
        "clock": "CLOCK_MONOTONIC",
        "warm_up": WARM_UP,
        "links": rows.iter().map(row).collect::<Vec<_>>(),
        "interrupted": interrupted,
    })
}

fn text(args: &LatencyArgs, rows: &[Row], interrupted: Option<&str>) -> anyhow::Result<String> {
    let [from, to] = cpus(args)?;
    let head = ["transport", "bytes", "n", "min", "p50", "p99", "max", "release p50", "release max", "lost"];
    let time = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format::ns);
    let measured = rows.iter().filter_map(|row| row.outcome.as_ref().ok().map(|outcome| (row, outcome)));
    let line = |(row, outcome): (&Row, &Outcome)| {
        let (send, release) = (Sorted::from_send(outcome), Sorted::from_release(outcome));
        vec![
            row.kind.to_string(),
            row.bytes.to_string(),
            send.0.len().to_string(),
            time(send.0.first().copied()),
            time(send.quantile(500)),
            time(send.quantile(990)),
            time(send.0.last().copied()),
            time(release.quantile(500)),
            time(release.0.last().copied()),
            outcome.balance.lost().to_string(),
        ]
    };
    let mut text = table(&head, measured.clone().map(line).collect());
    let policies: BTreeSet<String> =
        measured.clone().flat_map(|(_, outcome)| &outcome.policies).map(name).collect();
    let policies: Vec<String> = policies.into_iter().collect();
    let _ = writeln!(
        text,
        "\n{}, CPU {from} to CPU {to}, a message every {}, CLOCK_MONOTONIC\nfrom the call of send, and from the intended \
         release; maxima are observed ones; the first {WARM_UP} do not count",
        policies.join(" and "),
        format::ns(args.period.as_nanos() as i64),
    );
    let mut notes: Vec<String> = Vec::new();
    for (row, outcome) in measured {
        notes.extend(outcome.facts.notes.iter().chain(&outcome.refused).cloned());
        let balance = &outcome.balance;
        if balance.lost() > 0 {
            notes.push(format!(
                "{} of {} bytes: {} sent, {} received, {} refused, {} left, {} vanished",
                row.kind,
                row.bytes,
                balance.sent,
                balance.received,
                balance.refused,
                balance.left,
                balance.vanished
            ));
        }
    }
    notes.extend(rows.iter().filter_map(|row| row.outcome.as_ref().err().map(ToString::to_string)));
    notes.dedup();
    for note in notes {
        let _ = writeln!(text, "note: {note}");
    }
    if let Some(signal) = interrupted {
        let _ = writeln!(text, "interrupted by {signal}: what was not measured is missing");
    }
    Ok(text)
}
