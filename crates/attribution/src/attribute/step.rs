//! The parts of a wake-up's path.

use serde::{Deserialize, Serialize};

/// A part of the path, named after the mark that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// From the release until the timer expires.
    TimerLate,
    /// From the expiry until its handler requests the wake-up.
    TimerHandler,
    /// Until the task is put into the queue of its CPU.
    WakeUp,
    /// Until the IPI arrives at the task's CPU.
    IpiInFlight,
    /// Until the scheduler switches to the task.
    Switch,
    /// Until the task has read the clock.
    Return,
    /// The same where the trace lacks the switch to the task: waiting for the CPU and returning
    /// to user space cannot be distinguished.
    SwitchUnseen,
    /// The task was late already and did not sleep: it has no path of its own.
    NeverSlept,
}

impl Step {
    /// In words, for a line of a table.
    pub const fn words(self) -> &'static str {
        match self {
            Self::TimerLate => "timer late",
            Self::TimerHandler => "timer handler",
            Self::WakeUp => "wake-up",
            Self::IpiInFlight => "IPI in flight",
            Self::Switch => "switch",
            Self::Return => "return",
            Self::SwitchUnseen => "switch unseen",
            Self::NeverSlept => "never slept",
        }
    }
}
