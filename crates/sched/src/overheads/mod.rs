//! Tests of one core that count what the kernel itself costs: interrupts, scheduling, context
//! switches, caches after a preemption.
//!
//! The terms and what they are charged to are those of B. Brandenburg, "Scheduling and Locking in
//! Multiprocessor Real-Time Operating Systems", University of North Carolina, 2011, chapter 3
//! (section 3.4: overheads under job-level fixed priorities). A set is changed into another one
//! without overheads, which the plain tests answer for:
//!
//! | term | charged to |
//! |---|---|
//! | scheduling, context switch | the cost of every job, twice: when it starts or preempts, and when it ends |
//! | cache-related preemption delay | the cost of every job, once: the job that it preempts loads its data again |
//! | release latency, delay of an IPI | the release jitter of every task: D - J under EDF, periods stay |
//! | release interrupts, tick | tasks above all others (`fixed`); a slower core and one allowance an interval (`edf`) |
//!
//! Beside spin locks (`locks`), critical sections are longer by the interrupts of their core.
//!
//! Twice is enough although scheduling itself is not preempted. A job may find a switch to
//! lower-priority work under way, but its own last switch comes after its end. The same holds for
//! the last job of any interval that EDF checks.

mod edf;
mod fixed;
mod locks;
mod margins;

pub use edf::charge_edf;
pub use fixed::{Charged, charge_fixed};
pub use locks::analyze_with_locks_and_overheads;
pub use margins::{jitter_margin_edf, jitter_margins, meets_deadlines};

use crate::analyze::{Refusal, Test, beyond, refuse_bounds};
use crate::edf_qpa::edf_qpa;
use crate::fp_rta::response_times;
use crate::overheads_error::OverheadsError;
use crate::system::System;
use crate::task::{MAX_NS, Task, TaskSet};
use crate::verdict::Verdict;
use crate::window::Limits;
use serde::{Deserialize, Serialize};

/// What the kernel costs on every core. Times in ns, at most [`MAX_NS`]; zero where a term is not
/// counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Overheads {
    /// Longest time from the instant of a release, or of a tick, until its interrupt is taken.
    pub release_latency_ns: u64,
    /// Where another core wakes the tasks of this one: longest time until its interrupt arrives
    /// here.
    pub ipi_ns: u64,
    /// Interrupt that releases a job, on the core of its task.
    pub release_ns: u64,
    /// Scheduling decision.
    pub schedule_ns: u64,
    /// Context switch.
    pub context_switch_ns: u64,
    /// Periodic tick; 0 where there is none.
    pub tick_ns: u64,
    /// Time between two ticks; at least 1 where `tick_ns` is.
    pub tick_period_ns: u64,
    /// Longest delay of a job because another one that preempted it used its caches.
    pub cache_related_ns: u64,
}

impl Overheads {
    /// Every field by its name.
    pub const fn fields(&self) -> [(&'static str, u64); 8] {
        [
            ("release_latency_ns", self.release_latency_ns),
            ("ipi_ns", self.ipi_ns),
            ("release_ns", self.release_ns),
            ("schedule_ns", self.schedule_ns),
            ("context_switch_ns", self.context_switch_ns),
            ("tick_ns", self.tick_ns),
            ("tick_period_ns", self.tick_period_ns),
            ("cache_related_ns", self.cache_related_ns),
        ]
    }

    /// Whether every field is in its range.
    pub fn check(&self) -> Result<(), OverheadsError> {
        for (field, value) in self.fields() {
            let expected = u64::from(field == "tick_period_ns" && self.tick_ns > 0);
            if value < expected || value > MAX_NS {
                return Err(OverheadsError { field, value, expected });
            }
        }
        Ok(())
    }

    /// Cost of one job with two switches and one cache delay.
    fn cost_with_switches(&self, task: &Task) -> u64 {
        let switch = self.schedule_ns.saturating_add(self.context_switch_ns);
        task.cost_ns.saturating_add(switch.saturating_mul(2)).saturating_add(self.cache_related_ns)
    }

    /// From the arrival until the release interrupt is taken.
    fn jitter(&self, task: &Task) -> u64 {
        task.jitter_ns.saturating_add(self.release_latency_ns).saturating_add(self.ipi_ns)
    }

    /// Interrupts of a core with these tasks, as tasks above all: cost, period, jitter.
    fn interrupts(&self, tasks: &[Task]) -> Vec<Task> {
        let source = |cost_ns, period_ns, jitter_ns| Task {
            jitter_ns,
            // No task waits for the end of an interrupt.
            deadline_ns: MAX_NS,
            ..Task::implicit(period_ns, cost_ns)
        };
        let mut sources = Vec::with_capacity(tasks.len() + 1);
        if self.tick_ns > 0 {
            sources.push(source(self.tick_ns, self.tick_period_ns, self.release_latency_ns));
        }
        if self.release_ns > 0 {
            sources
                .extend(tasks.iter().map(|task| source(self.release_ns, task.period_ns, self.jitter(task))));
        }
        sources
    }
}

/// Answers for a system, core by core, with the overheads counted. Costs of the system are those
/// without.
///
/// Knows `fp-rta` and `edf-qpa`. Refuses self-suspension, sections that cannot be preempted and
/// requests: the system does not say how often a job is switched then.
pub fn analyze_with_overheads(
    system: &System,
    test: Test,
    overheads: &Overheads,
    limits: Limits,
) -> Result<Verdict, Refusal> {
    if !matches!(test, Test::FpRta | Test::EdfQpa) {
        return Err(beyond(test, "overheads", "fp-rta or edf-qpa"));
    }
    if system.shares() {
        return Err(beyond(test, "requests for resources", "--locks PROTOCOL"));
    }
    refuse_bounds(system, test)?;
    if system.suspends() {
        return Err(beyond(test, "self-suspension beside overheads", "no overheads"));
    }
    if system.limits_preemption() {
        return Err(beyond(test, "sections that cannot be preempted beside overheads", "them as blocking"));
    }
    overheads.check()?;
    let all: Vec<Task> = system.tasks.iter().map(|task| task.task).collect();
    let mut whole = Verdict::unanswered(&all);
    whole.cores = system.tasks.iter().map(|task| task.core).collect();
    whole.schedulable = true;
    for indices in system.by_core() {
        let set = system.set_of(&indices)?;
        let core = match test {
            Test::FpRta => fixed_priorities(&set, overheads, limits)?,
            _ => earliest_deadline(&set, overheads, limits),
        };
        whole.schedulable &= core.schedulable;
        whole.rounds += core.rounds;
        whole.undecided.extend(core.undecided.iter().map(|&at| indices[at]));
        for (&index, response) in indices.iter().zip(&core.response_times) {
            whole.response_times[index] = *response;
        }
    }
    whole.undecided.sort_unstable();
    Ok(whole)
}

fn fixed_priorities(set: &TaskSet, overheads: &Overheads, limits: Limits) -> Result<Verdict, Refusal> {
    let Charged { set: charged, interrupts } = charge_fixed(set, overheads)?;
    let charged_verdict = response_times(&charged, limits);
    let mut verdict = Verdict::unanswered(set.tasks());
    verdict.response_times = charged_verdict.response_times[interrupts..].to_vec();
    verdict.undecided =
        charged_verdict.undecided.iter().filter_map(|index| index.checked_sub(interrupts)).collect();
    verdict.rounds = charged_verdict.rounds;
    verdict.schedulable = verdict.meets_deadlines();
    Ok(verdict)
}

fn earliest_deadline(set: &TaskSet, overheads: &Overheads, limits: Limits) -> Verdict {
    let mut verdict = Verdict::unanswered(set.tasks());
    verdict.schedulable = set.tasks().is_empty();
    if let Some(charged) = charge_edf(set, overheads) {
        let charged_verdict = edf_qpa(&charged, limits);
        verdict.schedulable = charged_verdict.schedulable;
        verdict.undecided = charged_verdict.undecided;
        verdict.rounds = charged_verdict.rounds;
    }
    verdict
}

#[cfg(test)]
mod tests;
