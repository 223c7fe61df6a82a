//! The figures of a history: what each is of, and its part and whole in a stretch of time.
//!
//! A figure is a ratio: of what there was to how long, or to how many wake-ups, there was. Lower is
//! better for all of them.

use model::EventClass;
use model::monitor::{BreachKind, OffenceSum};
use model::monitor_history::Interval;
use std::collections::{BTreeMap, BTreeSet};

/// An hour, s.
const HOUR_S: f64 = 3_600.0;

/// A figure. Their order is the one in which they are shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Figure {
    /// Threads that were late.
    Late,
    /// Latency of the wake-ups of the threads of this name.
    Latency(String),
    /// Time that this class took.
    Interference(EventClass),
    /// How often tasks on other CPUs asked for this class.
    AskedFor(EventClass),
    /// Time that the hypervisor took.
    Steal,
    /// How often heat slowed a CPU.
    Throttled,
    /// What was not seen.
    Unseen,
}

impl Figure {
    /// What it is of, for people.
    pub fn name(&self) -> String {
        match self {
            Self::Late => "late threads".to_owned(),
            Self::Latency(comm) => format!("mean latency of {comm}"),
            Self::Interference(class) => format!("interference by {}", class.name()),
            Self::AskedFor(class) => format!("{} asked for by tasks elsewhere", class.name()),
            Self::Steal => "time taken by the hypervisor".to_owned(),
            Self::Throttled => "CPUs slowed by heat".to_owned(),
            Self::Unseen => "lost events and wake-ups not judged".to_owned(),
        }
    }

    /// Its unit.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Late | Self::AskedFor(_) | Self::Throttled | Self::Unseen => "per hour",
            Self::Latency(_) => "us",
            Self::Interference(_) | Self::Steal => "us per s",
        }
    }

    /// Its part and whole; a whole of 0 where it could not be seen.
    pub fn of(&self, one: &Interval) -> [f64; 2] {
        let hours = seconds(one.watched_ns) / HOUR_S;
        let cpu_seconds = seconds(one.watched_ns) * one.cpus.iter().count() as f64;
        match self {
            Self::Late => [late(one), hours],
            Self::Latency(comm) => {
                let mine = || one.threads.iter().filter(|row| row.comm == *comm);
                let count = mine().flat_map(|row| row.counts).sum::<u64>();
                [us(mine().map(|row| row.sum_ns).sum()), count as f64]
            }
            Self::Interference(class) => {
                let mine = one.interference.iter().filter(|row| row.class == *class);
                [us(mine.map(|row| row.ns).sum()), cpu_seconds]
            }
            Self::AskedFor(class) => {
                let mine = |all: &Vec<OffenceSum>| {
                    all.iter().filter(|row| row.class == *class).map(|row| row.count).sum()
                };
                let seen: Option<u64> = one.offences.as_ref().map(mine);
                seen.map_or([0.0, 0.0], |count| [count as f64, hours])
            }
            Self::Steal => [us(one.steal_ns.iter().sum()), cpu_seconds],
            Self::Throttled => {
                let seen = one.throttled.as_ref().map(|all| all.iter().sum::<u64>());
                seen.map_or([0.0, 0.0], |count| [count as f64, hours])
            }
            Self::Unseen => [(one.lost_events + one.unjudged) as f64, hours],
        }
    }

    /// By the hour: `2026-01-02T03`, the one in which an interval ended. Only hours in which it
    /// could be seen.
    pub(crate) fn hours(&self, all: &[Interval]) -> Hours {
        let mut hours = Hours::new();
        for one in all {
            let sum = hours.entry(one.at.chars().take(13).collect()).or_default();
            let [part, whole] = self.of(one);
            (sum[0], sum[1]) = (sum[0] + part, sum[1] + whole);
        }
        hours.retain(|_, [_, whole]| *whole > 0.0);
        hours
    }
}

/// Part and whole of a figure by the hour.
pub(crate) type Hours = BTreeMap<String, [f64; 2]>;

/// All that a history has anything of, and those that every history has.
pub fn figures(all: &[Interval]) -> BTreeSet<Figure> {
    let mut figures = BTreeSet::from([Figure::Late, Figure::Steal, Figure::Throttled, Figure::Unseen]);
    for one in all {
        figures.extend(one.threads.iter().map(|row| Figure::Latency(row.comm.clone())));
        figures.extend(one.interference.iter().map(|row| Figure::Interference(row.class)));
        figures.extend(one.offences.iter().flatten().map(|row| Figure::AskedFor(row.class)));
    }
    figures
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Breaches of threads that were late, whatever became of them.
fn late(one: &Interval) -> f64 {
    let is = |kind: BreachKind| matches!(kind, BreachKind::Wakeup | BreachKind::Preempted);
    one.breaches.iter().filter(|row| is(row.kind)).map(|row| row.count).sum::<u64>() as f64
}
