//! A synthetic load: threads that do nothing but execute, sleep, and release one another, as a task
//! model or a file of rt-app says.

mod cycle;

pub use cycle::Cycle;

use crate::Cpus;
use crate::sample::Policy;

/// Threads of a load, all instances counted.
pub const MOST_THREADS: usize = 256;
/// Steps of a load, all its threads together.
pub const MOST_STEPS: usize = 4096;

/// A program that only loads the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Load {
    /// Its threads.
    pub threads: Vec<LoadThread>,
    /// How long it is to run, ns, where its author has said so.
    pub duration_ns: Option<u64>,
    /// Channels by name: a step of one thread releases another.
    pub channels: Vec<String>,
    /// Mutexes by name.
    pub locks: Vec<String>,
    /// By name, and how many threads meet there.
    pub barriers: Vec<(String, usize)>,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadThread {
    /// Its name: the first 15 bytes are what the kernel shows.
    pub name: String,
    /// Its policy.
    pub policy: Policy,
    /// The CPUs that it may run on; `None` for all.
    pub cpus: Option<Cpus>,
    /// From the start of the load to its own, ns.
    pub delay_ns: u64,
    /// What it does, one after the other.
    pub phases: Vec<Phase>,
    /// How often it does all phases; `None` for ever.
    pub rounds: Option<u64>,
}

/// Steps that are repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// How often.
    pub rounds: u64,
    /// In this order.
    pub steps: Vec<Step>,
}

/// One thing that a thread does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Sleeps until its next release.
    Release(Releases),
    /// Sleeps until a period has passed since the last time that the timer was to expire.
    Timer {
        /// Which of the thread's timers.
        timer: usize,
        /// The period, ns.
        period_ns: u64,
        /// Whether periods count from the first one, however late the thread is; else they count
        /// from now where the time has passed already.
        absolute: bool,
    },
    /// Waits for a message.
    Wait {
        /// By place in [`Load::channels`].
        channel: usize,
    },
    /// Sends messages.
    Send {
        /// By place in [`Load::channels`].
        channel: usize,
        /// How many.
        share: Share,
    },
    /// Executes and suspends itself as the jobs of a thread did that was observed.
    Job(Jobs),
    /// Executes so long, CPU time in ns.
    Execute(u64),
    /// Executes for so long on the clock, preempted or not, ns.
    Spin(u64),
    /// Sleeps so long, ns.
    Sleep(u64),
    /// Takes a mutex, by place in [`Load::locks`].
    Lock(usize),
    /// Gives it back.
    Unlock(usize),
    /// Meets others, by place in [`Load::barriers`].
    Barrier(usize),
    /// Yields the CPU; under `SCHED_DEADLINE` until the next period.
    Yield,
}

/// So many in so many jobs, spread evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// So many.
    pub n: u64,
    /// In so many jobs, above 0.
    pub of: u64,
}

impl Share {
    /// One in each job.
    pub const EACH: Self = Self { n: 1, of: 1 };

    /// How many in the job of this number, counted from 0.
    pub fn in_job(self, number: u64) -> u64 {
        let until = |jobs: u64| u128::from(jobs) * u128::from(self.n) / u128::from(self.of.max(1));
        u64::try_from(until(number.saturating_add(1)) - until(number)).unwrap_or(u64::MAX)
    }
}

/// When jobs are released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Releases {
    /// By a period.
    Periodic {
        /// The period, ns, above 0.
        period_ns: u64,
        /// The first, from the start of the load, ns.
        offset_ns: u64,
        /// Each is at most so much later, ns.
        jitter_ns: u64,
        /// So many are left out.
        left_out: Share,
    },
    /// At least so far apart.
    Apart {
        /// `[k]`: from a release to the one k + 1 later, ns; never shrinks.
        least_ns: Vec<u64>,
        /// On average, ns, above 0.
        mean_ns: u64,
        /// So many releases were observed.
        n: u64,
    },
}

/// What jobs do that were observed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Jobs {
    /// `[k]`: the most that k + 1 jobs in a row executed, CPU time in ns.
    pub most_ns: Vec<u64>,
    /// What all of them executed, ns.
    pub total_ns: u64,
    /// How many were observed.
    pub n: u64,
    /// How they suspend themselves.
    pub sleeps: Sleeps,
}

/// How jobs suspend themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sleeps {
    /// How many jobs do.
    pub jobs: u64,
    /// Their suspensions.
    pub n: u64,
    /// How long these are together, ns.
    pub total_ns: u64,
    /// The longest that one job sleeps in all, ns.
    pub longest_ns: u64,
    /// The most suspensions of a job.
    pub most: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_share_is_spread_evenly(n in 0u64..50, of in 1u64..50, rounds in 1u64..5) {
            let share = Share { n, of };
            let each: Vec<u64> = (0..of * rounds).map(|number| share.in_job(number)).collect();
            prop_assert_eq!(each.iter().sum::<u64>(), n * rounds);
            prop_assert!(each.iter().all(|one| [n / of, n.div_ceil(of)].contains(one)));
        }
    }
}
