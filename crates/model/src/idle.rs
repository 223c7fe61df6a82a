//! How much is known of the time that the CPUs of a run took to leave their idle states.

use crate::Cpus;
use crate::run::Run;

/// The event by which the kernel reports that a CPU goes to sleep or wakes up.
pub const EVENT: &str = "power:cpu_idle";

/// What is known of how long the measured CPUs of a run took to leave their idle states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleExits {
    /// Nothing: the kernel has no driver of them, or was not asked.
    Unknown,
    /// States that take time were held off.
    HeldOff,
    /// What the driver says, but some CPU has no event that says that it sleeps.
    NotSeen,
    /// What the driver says.
    Known,
}

impl IdleExits {
    /// Those of a run.
    pub fn of(run: &Run) -> Self {
        match run.dma_latency_us {
            _ if run.idle_states.is_empty() => Self::Unknown,
            Some(0) => Self::HeldOff,
            _ => Self::Known,
        }
    }

    /// The same with a trace of these CPUs; `slept`: whether an event in it says of a CPU that it
    /// sleeps. Kernels were seen that record nothing of some CPU's idle task.
    #[must_use]
    pub fn traced(self, cpus: &Cpus, slept: impl Fn(u32) -> bool) -> Self {
        match self {
            Self::Known if !cpus.iter().all(slept) => Self::NotSeen,
            known => known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_no_event_shows_asleep_is_not_taken_for_one_that_never_slept() {
        let cpus: Cpus = [1, 2].into_iter().collect();
        assert_eq!(IdleExits::Known.traced(&cpus, |_| true), IdleExits::Known);
        assert_eq!(IdleExits::Known.traced(&cpus, |cpu| cpu == 1), IdleExits::NotSeen);
        assert_eq!(IdleExits::HeldOff.traced(&cpus, |_| false), IdleExits::HeldOff);
    }
}
