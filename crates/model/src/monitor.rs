//! What `stillcore monitor` knows and stores: breaches with what became of each, and how things
//! stand.
//!
//! A breach is a stretch of time in which something that is watched was late; lateness that goes on
//! is one breach. Each breach is in exactly one of kept, dropped and not recorded.

use crate::{Cpus, EventClass};
use serde::{Deserialize, Serialize};

/// Schema of a [`Breach`].
pub const BREACH: &str = "stillcore.breach/1";
/// Schema of a [`Status`].
pub const STATUS: &str = "stillcore.monitor-status/1";
/// The breach in its run directory.
pub const FILE: &str = "breach.json";

/// What was late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BreachKind {
    /// A thread waited too long from its wake-up until it ran.
    Wakeup,
    /// A thread that could run was kept from it for too long by others.
    Preempted,
    /// Something other than a CPU's own thread ran there for too long.
    Interference,
    /// A program said that it was late.
    Reported,
}

impl BreachKind {
    /// Its name, as stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wakeup => "wakeup",
            Self::Preempted => "preempted",
            Self::Interference => "interference",
            Self::Reported => "reported",
        }
    }

    /// All of them.
    pub const ALL: [Self; 4] = [Self::Wakeup, Self::Preempted, Self::Interference, Self::Reported];
}

/// One time that something was late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// What.
    pub kind: BreachKind,
    /// On which CPU; absent where a program said so.
    pub cpu: Option<u32>,
    /// The thread that was late, or that said so.
    pub tid: Option<i32>,
    /// Its name; of interference what ran.
    pub comm: String,
    /// Since when, CLOCK_MONOTONIC, ns: the wake-up, the begin of what ran, the report.
    pub t_ns: i64,
    /// How long, ns; absent where a program did not say.
    pub value_ns: Option<u64>,
}

impl Late {
    /// Until when it went on, ns.
    pub fn end_ns(&self) -> i64 {
        self.t_ns.saturating_add(i64::try_from(self.value_ns.unwrap_or(0)).unwrap_or(i64::MAX))
    }
}

/// Why a breach is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dropped {
    /// There were too many in an hour.
    Rate,
    /// It alone is larger than all breaches together may be.
    Quota,
    /// It could not be written.
    Disk,
}

impl Dropped {
    /// Its name, as stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Quota => "quota",
            Self::Disk => "disk",
        }
    }
}

/// Why a breach could not be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotRecorded {
    /// The kernel lost events of that time.
    Lost,
    /// It began before what is held in memory.
    TooLong,
    /// Watching ended before it was over.
    Ended,
}

impl NotRecorded {
    /// Its name, as stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::TooLong => "too-long",
            Self::Ended => "ended",
        }
    }
}

/// What became of a breach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "fate", content = "why")]
pub enum Fate {
    /// Its events are stored in a run directory.
    Kept,
    /// They were there and are not stored.
    Dropped(Dropped),
    /// They were not all there.
    NotRecorded(NotRecorded),
}

impl Fate {
    /// What became of it, as stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Dropped(_) => "dropped",
            Self::NotRecorded(_) => "not-recorded",
        }
    }

    /// Why, where it is not kept.
    pub fn why(self) -> Option<&'static str> {
        match self {
            Self::Kept => None,
            Self::Dropped(why) => Some(why.name()),
            Self::NotRecorded(why) => Some(why.name()),
        }
    }
}

/// What took most of the time of a breach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// In words.
    pub cause: String,
    /// How that is known: `exact`, `by-order`, `inferred` or `unknown`.
    pub confidence: String,
    /// Its part of the time, 0 to 1; absent where the time could not be taken apart.
    pub share: Option<f64>,
    /// Commands against it, best first; none where there is nothing to propose, or it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
}

/// A breach, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Breach {
    /// [`BREACH`].
    pub schema: String,
    /// Its name, and that of its directory.
    pub id: String,
    /// When it began, RFC 3339.
    pub at: String,
    /// When watching began, RFC 3339.
    #[serde(default)]
    pub watched_since: String,
    /// The limit that applied, ns; absent where a program said that it was late.
    pub limit_ns: Option<u64>,
    /// How often something was late while it lasted.
    pub times: u64,
    /// The worst of these.
    pub worst: Late,
    /// The container, service or control group of its thread; absent where none was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// From the first to the end of the last, ns.
    pub lasted_ns: u64,
    /// What became of it.
    #[serde(flatten)]
    pub fate: Fate,
    /// What took the time; absent until it is known, and of what is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<Explained>,
    /// What was different on the machine from when watching began, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// Upper bounds of [`Buckets`], ns: 1, 2 and 5 of each power of ten from 1 us to 1 s.
pub const BOUNDS_NS: [u64; 19] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
];

/// A histogram of durations that may be added to for years.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buckets {
    /// Durations up to each of [`BOUNDS_NS`] and above the one before; the last count is of those
    /// above all.
    pub counts: [u64; BOUNDS_NS.len() + 1],
    /// All durations together, ns.
    pub sum_ns: u64,
    /// The longest observed, ns.
    pub max_ns: u64,
}

impl Buckets {
    /// Adds a duration.
    pub fn add(&mut self, ns: u64) {
        self.counts[BOUNDS_NS.partition_point(|bound| *bound < ns)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds another one.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(own, count)| *own += count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Durations in it.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Wake-ups of the threads of one name on one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStatus {
    /// The name; `other` for all that have no row of their own.
    pub comm: String,
    /// The CPU.
    pub cpu: u32,
    /// From the wake-up until the thread ran.
    pub latency: Buckets,
}

/// Interference of one kind on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterferenceStatus {
    /// The CPU.
    pub cpu: u32,
    /// The class.
    pub class: EventClass,
    /// Who caused it, or what ran where that is the same; `other` for all that have no row of their
    /// own.
    pub source: String,
    /// Events.
    pub count: u64,
    /// Their time, ns.
    pub ns: u64,
}

/// What tasks on other CPUs asked for that then ran on a watched one: an interrupt between CPUs, a
/// work item. One who asked for one thing in one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Offence {
    /// Class of what ran.
    pub class: EventClass,
    /// What ran.
    pub what: String,
    /// Name of the task that asked for it.
    pub who: String,
    /// Its container, service or control group; absent where none was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What it was in the kernel for (`system call munmap`), else the kernel function that asked;
    /// absent where neither is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// How it is known that it was this one: `exact` or `by-order`.
    pub confidence: String,
    /// The watched CPUs on which it ran.
    pub cpus: Cpus,
    /// How often since then.
    pub count: u64,
    /// For how long together, ns.
    pub ns: u64,
    /// When it was first seen, RFC 3339.
    pub since: String,
    /// When it was last seen, RFC 3339.
    pub last: String,
}

/// All offences of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffenceSum {
    /// Class of what ran.
    pub class: EventClass,
    /// Events.
    pub count: u64,
    /// Their time, ns.
    pub ns: u64,
}

/// What watching has cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of this process, counted by its threads' clocks, ns.
    pub process_ns: u64,
    /// CPU time of its children that have ended: explaining breaches, ns.
    pub children_ns: u64,
    /// Events that the kernel has recorded for it.
    pub events: u64,
    /// What recording one takes the CPU that it happens on, ns; absent where it could not be
    /// measured.
    pub event_ns: Option<f64>,
    /// Memory that this process has now, KiB.
    pub rss_kib: u64,
}

/// How often breaches had which fate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FateCount {
    /// What was late.
    pub kind: BreachKind,
    /// As [`Fate::name`].
    pub fate: String,
    /// As [`Fate::why`].
    pub why: Option<String>,
    /// Breaches.
    pub count: u64,
}

/// What came of the programs that were to be started for breaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actions {
    /// Ended well.
    pub done: u64,
    /// Ended otherwise, took too long, or could not be started.
    pub failed: u64,
    /// Not started: too many waited.
    pub skipped: u64,
}

/// How things stand with a monitor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`STATUS`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it began, RFC 3339.
    pub began: String,
    /// When this was written, RFC 3339.
    pub at: String,
    /// For how long it has watched, ns.
    pub watched_ns: u64,
    /// The CPUs.
    pub cpus: Cpus,
    /// Which threads, in words.
    pub threads_watched: String,
    /// A wake-up that takes longer is a breach, ns.
    pub limit_ns: u64,
    /// Interference that lasts longer is a breach, ns.
    pub interference_limit_ns: Option<u64>,
    /// Wake-ups, by name and CPU.
    pub threads: Vec<ThreadStatus>,
    /// Interference, by CPU, class and source.
    pub interference: Vec<InterferenceStatus>,
    /// What other CPUs' tasks asked for that ran on the watched ones, the most frequent first.
    #[serde(default)]
    pub offences: Vec<Offence>,
    /// The same by class, with those that have no row of their own any more.
    #[serde(default)]
    pub offence_sums: Vec<OffenceSum>,
    /// Interrupts from other CPUs, each with a function to run, of which it is not known who asked
    /// for them.
    #[serde(default)]
    pub offences_unnamed: u64,
    /// Whether this kernel shows which task calls another CPU: else no such caller is among them.
    #[serde(default)]
    pub callers_shown: bool,
    /// Breaches that have ended, by fate.
    pub breaches: Vec<FateCount>,
    /// The last one that was kept and is explained.
    pub last: Option<Breach>,
    /// Bytes of all that are kept, and the most that may be.
    pub kept_bytes: u64,
    /// As above.
    pub quota_bytes: u64,
    /// Kept ones that have given way to later ones.
    pub given_up: u64,
    /// Events that the kernel or this process lost.
    pub lost_events: u64,
    /// Wake-ups that could not be judged: what came before them was not recorded.
    pub unjudged: u64,
    /// What of the isolation does not hold now; `None` where nothing is isolated by stillcore.
    pub drifted: Option<Vec<String>>,
    /// Time that a hypervisor took from each CPU since watching began, ns; as the list of CPUs.
    pub steal_ns: Vec<u64>,
    /// How often heat slowed each CPU since watching began, as the list of CPUs; absent where the
    /// kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Vec<u64>>,
    /// Programs that were started for breaches; absent where none is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Actions>,
    /// What it has cost.
    pub cost: Cost,
    /// What cannot be watched here, one sentence each.
    pub limits: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_in_its_own_bucket() {
        let mut buckets = Buckets::default();
        [0, 1_000, 1_001, 1_000_000_000, 1_000_000_001].into_iter().for_each(|ns| buckets.add(ns));
        assert_eq!((buckets.counts[0], buckets.counts[1]), (2, 1));
        assert_eq!((buckets.counts[18], buckets.counts[19], buckets.count()), (1, 1, 5));
        assert_eq!(buckets.max_ns, 1_000_000_001);
    }

    #[test]
    fn a_fate_is_stored_beside_the_breach() {
        let fate = Fate::Dropped(Dropped::Rate);
        let text = serde_json::to_string(&fate).unwrap();
        assert_eq!(text, r#"{"fate":"dropped","why":"rate"}"#);
        assert_eq!(serde_json::from_str::<Fate>(&text).unwrap(), fate);
        assert_eq!(serde_json::from_str::<Fate>(r#"{"fate":"kept"}"#).unwrap(), Fate::Kept);
    }
}
