//! What the trace shows of one sample's path, and its steps.

use super::waits::Waits;
use crate::attribute::cause::Confidence;
use crate::attribute::step::Step;
use crate::view::{Level, Task};

/// A moment on the path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) at_ns: i64,
    pub(super) cpu: u32,
    /// The level it happened in.
    pub(super) level: Level,
    /// The current task, if known.
    pub(super) task: Option<Task>,
}

impl Mark {
    /// What had to get the CPU for this to happen.
    fn waits(self, rt: bool) -> Waits {
        match (self.level, self.task) {
            (Level::Hard, _) => Waits::Interrupt,
            // Served at the end of an interrupt, whichever task it interrupted.
            (Level::Softirq, task) if !rt && task.is_none_or(|task| !task.softirqd) => Waits::Softirq,
            (_, Some(task)) => Waits::Thread { pid: task.pid, prio: task.prio },
            (_, None) => Waits::Interrupt,
        }
    }
}

/// What has been seen of one sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    pub(super) release_ns: i64,
    pub(super) ran_ns: i64,
    pub(super) expiry: Option<(Mark, Confidence)>,
    pub(super) waking: Option<Mark>,
    pub(super) woken: Option<Mark>,
    pub(super) ipi: Option<i64>,
    pub(super) switch: Option<i64>,
    /// Who had the CPU until that switch.
    pub(super) replaced: Option<Task>,
    /// If the wake-up's interrupt found user space: when the CPU was last at work, and when that
    /// interrupt came, ns.
    pub(super) found_user_space: Option<[i64; 2]>,
}

/// A step of the path.
pub(super) struct Stage {
    /// Its end, ns.
    pub(super) until_ns: i64,
    pub(super) step: Step,
    /// The CPU that it waits for.
    pub(super) cpu: u32,
    pub(super) waits: Waits,
}

impl Marks {
    pub(super) fn new(release_ns: i64, ran_ns: i64) -> Self {
        Self {
            release_ns,
            ran_ns,
            expiry: None,
            waking: None,
            woken: None,
            ipi: None,
            switch: None,
            replaced: None,
            found_user_space: None,
        }
    }

    /// The steps, in order of time. `own`: the CPU of the task; `thread`: the task, as it waits for
    /// the CPU.
    pub(super) fn stages(&self, own: u32, thread: Waits, rt: bool) -> Vec<Stage> {
        let last = |step| Stage { until_ns: self.ran_ns, step, cpu: own, waits: thread };
        if self.waking.is_none() && self.switch.is_none() {
            return vec![last(Step::NeverSlept)];
        }
        let at =
            |mark: Mark, step| Stage { until_ns: mark.at_ns, step, cpu: mark.cpu, waits: mark.waits(rt) };
        let here = |until_ns, step, waits| Stage { until_ns, step, cpu: own, waits };
        let mut stages = Vec::with_capacity(6);
        stages.extend(self.expiry.map(|(mark, _)| at(mark, Step::TimerLate)));
        stages.extend(self.waking.map(|mark| at(mark, Step::TimerHandler)));
        stages.extend(self.woken.map(|mark| at(mark, Step::WakeUp)));
        stages.extend(self.ipi.map(|until_ns| here(until_ns, Step::IpiInFlight, Waits::Interrupt)));
        stages.extend(self.switch.map(|until_ns| here(until_ns, Step::Switch, thread)));
        stages.sort_by_key(|stage| (stage.until_ns, stage.step));
        stages.push(last(if self.switch.is_some() { Step::Return } else { Step::SwitchUnseen }));
        stages
    }
}
