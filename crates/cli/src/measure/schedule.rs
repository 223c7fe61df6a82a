//! How measuring threads are scheduled: policy, priority, reservation, timer slack.

use clap::{Args, ValueEnum};
use machine::Root;
use measure::class::Class;
use model::Error;
use model::quantity::duration;
use model::sample::{Policy, Reservation};
use std::time::Duration;

/// Scheduling options.
#[derive(Debug, Args)]
pub(crate) struct Schedule {
    /// Scheduling policy of the measuring threads.
    #[arg(long, default_value = "fifo", value_name = "NAME")]
    pub(crate) policy: PolicyName,
    /// Out-of-tree scheduling class: litmus:PLUGIN, evl or cobalt; needs a kernel with it.
    #[arg(long, value_name = "CLASS", conflicts_with = "policy")]
    pub(crate) class: Option<Class>,
    /// Priority under fifo and rr; the probe takes the CPU from threads below it [default: 99 for
    /// wakeup and ipi, 80 for the others].
    #[arg(long, short, value_name = "1-99", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) priority: Option<u32>,
    /// CPU time reserved per job under deadline or a class [default: a tenth of the period].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) runtime: Option<Duration>,
    /// Relative deadline of a job under deadline [default: the period].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) deadline: Option<Duration>,
    /// Timer slack of threads that are not real-time (kernel default: 50us).
    #[arg(long, default_value = "1ns", value_name = "TIME", value_parser = duration)]
    pub(crate) timer_slack: Duration,
}

/// Scheduling policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
    /// SCHED_DEADLINE.
    Deadline,
    /// SCHED_OTHER.
    Other,
}

impl Schedule {
    /// As [`Self::policy`], for a thread that does nothing but sleep and look at a clock.
    pub(crate) fn policy_of_sleeper(&self, period: Duration, priority: u32) -> Result<Policy, Error> {
        let own = self.priority.unwrap_or(priority);
        let of_class = self.class.as_ref().map(|class| class.of_sleeper(&Root::live(), own));
        match of_class.transpose()?.flatten() {
            Some(policy) => Ok(policy),
            None => self.policy(period, priority),
        }
    }

    /// The policy for a thread of this period; `priority` where none was given.
    pub(crate) fn policy(&self, period: Duration, priority: u32) -> Result<Policy, Error> {
        let refuse = |option: &str, what: &str, expected: &str| {
            Err(Error::invalid(option.to_owned(), what.to_owned(), expected.to_owned()))
        };
        if let Some(class) = &self.class {
            let plugin = class.plugin(&Root::live())?;
            let priority = self.priority.unwrap_or(priority);
            return Ok(Policy::litmus(plugin, priority, self.reservation(period)?));
        }
        let reserves = self.runtime.is_some() || self.deadline.is_some();
        if reserves && self.policy != PolicyName::Deadline {
            return refuse("--runtime", "a reservation without --policy deadline", "--policy deadline");
        }
        if self.priority.is_some() && !matches!(self.policy, PolicyName::Fifo | PolicyName::Rr) {
            return refuse("--priority", "a priority for a policy without priorities", "--policy fifo or rr");
        }
        let priority = self.priority.unwrap_or(priority);
        Ok(match self.policy {
            PolicyName::Fifo => Policy::fifo(priority),
            PolicyName::Rr => Policy::round_robin(priority),
            PolicyName::Other => Policy::other(),
            PolicyName::Deadline => Policy::deadline(self.reservation(period)?),
        })
    }

    /// `sched(7)`: runtime ≤ deadline ≤ period, each at least 1 µs (1024 ns).
    fn reservation(&self, period: Duration) -> Result<Reservation, Error> {
        let deadline = self.deadline.unwrap_or(period);
        let runtime = self.runtime.unwrap_or(period / 10);
        if runtime > deadline || deadline > period || runtime < Duration::from_nanos(1024) {
            return Err(Error::invalid(
                "--runtime",
                format!("runtime {runtime:?}, deadline {deadline:?}, period {period:?}"),
                "1024ns <= runtime <= deadline <= period",
            ));
        }
        let nanos = |time: Duration| time.as_nanos() as u64;
        Ok(Reservation { runtime_ns: nanos(runtime), deadline_ns: nanos(deadline), period_ns: nanos(period) })
    }
}
