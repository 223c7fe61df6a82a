//! What delays a wake-up though nothing else runs.

use serde::{Deserialize, Serialize};

/// What delays it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blocking {
    /// Interrupts were off.
    InterruptsOff,
    /// Preemption was off.
    PreemptionOff,
    /// A lock was taken.
    Lock,
    /// A task of lower priority was in kernel code, which this kernel does not preempt.
    KernelCode,
    /// The CPU was in a function of the kernel that was probed.
    ProbedFunction,
    /// The CPU did not execute, or its timer's interrupt did not reach it: firmware or a
    /// hypervisor.
    NotExecuting,
    /// The CPU slept and had to leave its idle state.
    IdleExit,
    /// The CPU's frequency changed; it may have stopped meanwhile.
    FrequencyChange,
}

impl Blocking {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::InterruptsOff,
        Self::PreemptionOff,
        Self::Lock,
        Self::KernelCode,
        Self::ProbedFunction,
        Self::NotExecuting,
        Self::IdleExit,
        Self::FrequencyChange,
    ];

    /// Whether no event shows it: it is inferred from other events.
    pub fn is_inferred(self) -> bool {
        matches!(self, Self::NotExecuting | Self::IdleExit | Self::FrequencyChange)
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::InterruptsOff => "interrupts off",
            Self::PreemptionOff => "preemption off",
            Self::Lock => "lock contention",
            Self::KernelCode => "non-preemptible kernel code",
            Self::ProbedFunction => "probed kernel function",
            Self::NotExecuting => "CPU or timer not running",
            Self::IdleExit => "idle exit",
            Self::FrequencyChange => "frequency change",
        }
    }
}
