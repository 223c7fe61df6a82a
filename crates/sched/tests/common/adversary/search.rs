//! From one script to a worse one.

use super::Numbers;
use super::job::Job;
use super::script::Script;
use super::simulate::{Interrupt, Rules, responses};
use sched::{System, Verdict};

/// How long to look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Scripts drawn.
    pub(crate) starts: u64,
    /// Changes tried of each.
    pub(crate) changes: u64,
}

/// A job that took longer than it may.
#[derive(Debug, Clone)]
pub(crate) struct Late {
    pub(crate) task: usize,
    /// ns, from the arrival.
    pub(crate) response: u64,
    pub(crate) at_most: u64,
}

/// How long each task may take, ns: its bound, else its deadline where the test guarantees it; none
/// without a guarantee.
pub(crate) fn promises(verdict: &Verdict, system: &System, meets_deadlines: bool) -> Vec<Option<u64>> {
    let of = |(task, one): (usize, &sched::SystemTask)| {
        let bound = verdict.response_times.get(task).copied().flatten();
        bound.or(meets_deadlines.then_some(one.task.deadline_ns))
    };
    system.tasks.iter().enumerate().map(of).collect()
}

/// What is looked for, and where.
pub(crate) struct Search<'a> {
    pub(crate) system: &'a System,
    pub(crate) rules: Rules<'a>,
    /// How long each task may take, ns.
    pub(crate) promises: &'a [Option<u64>],
    /// The interrupts beside some jobs, in order of time.
    pub(crate) interrupts: &'a dyn Fn(&[Vec<Job>]) -> Vec<Interrupt>,
    pub(crate) effort: Effort,
}

impl Search<'_> {
    /// A job that takes longer than promised, where one is found.
    pub(crate) fn late_job(&self, numbers: &mut Numbers) -> Option<Late> {
        for _ in 0..self.effort.starts {
            let mut script = Script::draw(self.system, numbers);
            let mut now = self.worst(&script)?;
            for _ in 0..self.effort.changes {
                if now.0 > 0 {
                    break;
                }
                let changed = script.changed(self.system, numbers);
                let then = self.worst(&changed)?;
                if then.0 >= now.0 {
                    (script, now) = (changed, then);
                }
            }
            if let (1.., task, response) = now {
                return Some(Late { task, response, at_most: self.promises[task].unwrap_or(0) });
            }
        }
        None
    }

    /// How far the worst job is beyond its guarantee, ns, with its task and response; none without
    /// a guarantee.
    fn worst(&self, script: &Script) -> Option<(i64, usize, u64)> {
        let due_from_release = self.rules.global && self.rules.by_deadline;
        let jobs = script.jobs(self.system, due_from_release);
        let interrupts = (self.interrupts)(&jobs);
        let seen = responses(self.system, self.rules, &jobs, &interrupts, script.seed);
        let beyond =
            |(task, seen): (usize, &u64)| Some((*seen as i64 - self.promises[task]? as i64, task, *seen));
        seen.iter().enumerate().filter_map(beyond).max()
    }
}
