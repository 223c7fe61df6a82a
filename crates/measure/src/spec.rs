//! The order of a probe: the message from stillcore to a measuring process. What that answers is
//! [`ProbeReport`].

pub use crate::ipi::{IpiSpec, Method};
pub use crate::kind::{LoopResult, ProbeReport};
use crate::kind::{Place, Probe};
pub use crate::noise::NoiseSpec;
pub use crate::overheads::OverheadsSpec;
pub use crate::periodic::{PeriodicSpec, ReadFrom, Wake};
pub use crate::taskset::{Burn, TasksetSpec};
pub use crate::wakeup::WakeupSpec;
use model::Cpus;
use model::sample::{Policy, ProbeKind};
use serde::{Deserialize, Serialize};

/// The order for one measuring thread, which is a process of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSpec {
    /// Its number in the window, from 0.
    pub thread: u32,
    /// Where it may run: one CPU, or a set that the scheduler chooses from.
    pub cpus: Cpus,
    /// The policy to ask for.
    pub policy: Policy,
    /// Timer slack of a policy that is not real-time, ns; 0 leaves it as it is (50 µs by default).
    pub timer_slack_ns: u64,
    /// Length of the measurement, ns.
    pub duration_ns: i64,
    /// What to do.
    pub task: Task,
}

macro_rules! tasks {
    ($($(#[$doc:meta])+ $kind:ident($spec:ty),)+) => {
        /// What a measuring thread does: one row a probe.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Task { $($(#[$doc])+ $kind($spec),)+ }

        impl Task {
            pub(crate) fn probe(&self) -> &dyn Probe {
                match self { $(Self::$kind(spec) => spec,)+ }
            }
        }

        impl ProbeSpec {
            /// Which probe.
            pub fn kind(&self) -> ProbeKind {
                match self.task { $(Task::$kind(_) => ProbeKind::$kind,)+ }
            }
        }
    };
}

tasks! {
    /// Sleep until the next release, look at the clock.
    Wakeup(WakeupSpec),
    /// Spin and look for gaps.
    Noise(NoiseSpec),
    /// Do a computation at each release, with clocks and counters around it.
    Periodic(PeriodicSpec),
    /// Burn an execution time at each release.
    Taskset(TasksetSpec),
    /// Be woken from other CPUs.
    Ipi(IpiSpec),
    /// What the kernel's own work costs.
    Overheads(OverheadsSpec),
}

impl ProbeSpec {
    /// Interval of its releases, ns, where it has any.
    pub fn period_ns(&self) -> Option<i64> {
        self.task.probe().period_ns()
    }

    /// The CPU it is pinned to, or the first of those it may run on.
    pub fn cpu(&self) -> u32 {
        self.cpus.iter().next().unwrap_or(0)
    }

    pub(crate) fn place(&self) -> Place {
        Place { cpus: self.cpus.clone(), policy: self.policy.clone() }
    }
}
