//! Response times in executors of ROS 2: callbacks that one thread after another executes, each
//! thread on a core of its own or in a reservation, and chains of callbacks from end to end.
//!
//! An executor takes what is ready at a *polling point* into its ready set, one instance of each
//! callback at most, executes all of it without preemption, and only then polls again (Casini,
//! Blaß, Lütkebohle and Brandenburg, "Response-time analysis of ROS 2 processing chains under
//! reservation-based scheduling", ECRTS 2019). Up to Dashing timers were no part of the ready set:
//! see [`ReadyOrder`].
//!
//! | file | idea |
//! |---|---|
//! | `arrivals` | how often a callback is activated, through all that activate it |
//! | `core` | what one thread serves, and the equation that all analyses solve |
//! | `round_robin` | each ready set has an instance of a callback at most (RTSS 2021, theorem 2) |
//! | `busy_window` | the same from the start of a busy window (RTSS 2021, theorem 3) |
//! | `all_arrivals` | all that arrives counts (ECRTS 2019, lemmas 3, 4, 5 and 8) |
//! | `responses` | responses that rest on each other: their least fixpoint |
//! | `ends` | chains, from the activation of the first callback to the end of the last |
//! | `read` | such a system as a line of JSON |
//!
//! RTSS 2021: Blaß, Casini, Bozhko and Brandenburg, "A ROS 2 response-time analysis exploiting
//! starvation freedom and execution-time variance".

mod all_arrivals;
mod arrivals;
mod busy_window;
mod core;
mod ends;
mod read;
mod responses;
mod round_robin;
#[cfg(test)]
mod tests;

use crate::supply::Supply;
use crate::window::Limits;

pub use read::{ExecutorQuestion, read_executors};

/// In which order an executor takes what is ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ReadyOrder {
    /// Timers whenever they expire, before anything else; other callbacks are sampled at polling
    /// points. Up to Dashing.
    TimersFirst,
    /// Everything is sampled at polling points, and executed by kind and then in order of
    /// registration. Eloquent to Iron.
    Registered,
    /// Everything is sampled at polling points, and executed in any order. Since Jazzy.
    #[default]
    Any,
}

impl ReadyOrder {
    /// All, in the order of the releases.
    pub const ALL: [Self; 3] = [Self::TimersFirst, Self::Registered, Self::Any];

    /// Its name in questions and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TimersFirst => "timers-first",
            Self::Registered => "registered",
            Self::Any => "any",
        }
    }
}

/// What activates a callback; in the order in which executors look at them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallbackKind {
    /// A timer.
    Timer,
    /// A message of a topic.
    Subscription,
    /// A request.
    Service,
    /// A response to a request.
    Client,
    /// Anything else: actions, messages within a process.
    Waitable,
}

impl CallbackKind {
    /// All, in order.
    pub const ALL: [Self; 5] = [Self::Timer, Self::Subscription, Self::Service, Self::Client, Self::Waitable];

    /// Its name in questions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Subscription => "subscription",
            Self::Service => "service",
            Self::Client => "client",
            Self::Waitable => "waitable",
        }
    }
}

/// Activations from outside the system.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct External {
    /// Least time between two of them, ns, at least 1; not used beside intervals.
    pub period_ns: u64,
    /// The shortest intervals in which there are 2, 3, … of them, ns, as in [`crate::Bounds`];
    /// empty where the period says it.
    pub intervals_ns: Vec<u64>,
    /// How much later than that each may come, ns.
    pub jitter_ns: u64,
}

/// A callback of an executor. All times in ns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Callback {
    /// What activates it.
    pub kind: CallbackKind,
    /// Its executor, by place.
    pub executor: usize,
    /// Most execution of one instance, at least 1.
    pub cost_ns: u64,
    /// Most execution of 1, 2, … instances in a row, as in [`crate::Bounds`]; empty where each may
    /// take the cost.
    pub costs_ns: Vec<u64>,
    /// Activations from outside, if there are any.
    pub external: Option<External>,
    /// The callbacks of which each instance activates one of this, by place.
    pub after: Vec<usize>,
    /// From the publication in one of these to the activation, at most.
    pub delay_ns: u64,
    /// The longest acceptable response, from its own activation.
    pub deadline_ns: Option<u64>,
}

/// Callbacks, each activated by the one before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallbackChain {
    /// By place, at least one.
    pub callbacks: Vec<usize>,
    /// From the activation of the first to the end of the last, the longest acceptable, ns.
    pub limit_ns: Option<u64>,
}

/// Executors, their callbacks in order of registration, and chains of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExecutorSystem {
    /// How executors take what is ready.
    pub order: ReadyOrder,
    /// What the thread of each executor gets; none for a core of its own.
    pub executors: Vec<Option<Supply>>,
    /// All callbacks.
    pub callbacks: Vec<Callback>,
    /// Chains to bound.
    pub chains: Vec<CallbackChain>,
}

/// Which bounds are computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ExecutorAnalysis {
    /// The least of all, callback by callback and chain by chain.
    #[default]
    Best,
    /// Round-robin-aware.
    RoundRobin,
    /// Busy-window-aware.
    BusyWindow,
    /// All arrivals count.
    AllArrivals,
}

impl ExecutorAnalysis {
    /// All, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Best, Self::RoundRobin, Self::BusyWindow, Self::AllArrivals];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::RoundRobin => "rtss21-rr",
            Self::BusyWindow => "rtss21-bw",
            Self::AllArrivals => "ecrts19",
        }
    }

    /// The analysis of one name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether the bounds of `other` are among these.
    pub(crate) fn has(self, other: Self) -> bool {
        self == Self::Best || self == other
    }
}

/// What is known of a system of executors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorVerdict {
    /// Of each callback the longest response from its activation, ns; none without a bound.
    pub responses_ns: Vec<Option<u64>>,
    /// Of each chain the longest time from end to end, ns; none without a bound.
    pub chains_ns: Vec<Option<u64>>,
    /// Callbacks whose search was given up.
    pub undecided: Vec<usize>,
    /// Whether every deadline and every limit is kept.
    pub holds: bool,
}

/// Bounds the responses of all callbacks, and the chains. Callbacks name executors of the system,
/// `after` has no circle, and chains follow it, as [`read_executors`] ensures; a chain that does
/// not has no bound.
pub fn bound_executors(
    system: &ExecutorSystem,
    analysis: ExecutorAnalysis,
    limits: Limits,
) -> ExecutorVerdict {
    let mut known = responses::Responses::of(system, analysis, limits);
    known.settle();
    let chains_ns: Vec<Option<u64>> =
        system.chains.iter().map(|chain| ends::bound(chain, &mut known)).collect();
    let within = |limit: Option<u64>, bound: Option<u64>| {
        limit.is_none_or(|limit| bound.is_some_and(|bound| bound <= limit))
    };
    let responses_ns = known.responses_ns();
    let callbacks = system.callbacks.iter().zip(&responses_ns);
    let chains = system.chains.iter().zip(&chains_ns);
    ExecutorVerdict {
        holds: callbacks.into_iter().all(|(one, bound)| within(one.deadline_ns, *bound))
            && chains.into_iter().all(|(one, bound)| within(one.limit_ns, *bound)),
        undecided: known.undecided(),
        responses_ns,
        chains_ns,
    }
}
