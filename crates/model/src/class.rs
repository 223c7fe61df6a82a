//! The closed list of interference classes that catalogue, analysis and report share.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! classes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// What the kernel ran or did on a CPU that the CPU's own task did not ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum EventClass { $($(#[$doc])* #[serde(rename = $name)] $variant),* }

        impl EventClass {
            /// Every class, in the order in which reports list them.
            pub const ALL: &'static [EventClass] = &[$(EventClass::$variant),*];

            /// The name used in files and on screen, such as `ipi.call`.
            pub fn name(self) -> &'static str {
                match self { $(EventClass::$variant => $name),* }
            }
        }
    };
}

classes! {
    /// Reschedule IPI: another CPU asks this one to run its scheduler.
    IpiResched = "ipi.resched",
    /// Call-function IPI: another CPU has a function run here.
    IpiCall = "ipi.call",
    /// irq_work IPI, self-sent or remote.
    IpiIrqwork = "ipi.irqwork",
    /// TLB shootdown received from another CPU.
    Tlb = "tlb",
    /// The periodic scheduler tick.
    TimerTick = "timer.tick",
    /// A high-resolution timer that is not the tick.
    TimerHrtimer = "timer.hrtimer",
    /// A timer-wheel timer.
    TimerWheel = "timer.wheel",
    /// A device interrupt, or a vector that has no class of its own.
    Irq = "irq",
    /// A softirq.
    Softirq = "softirq",
    /// A workqueue item.
    Work = "work",
    /// A context switch to a task that is neither the measured one nor idle.
    Switch = "switch",
    /// A task moved onto or off this CPU.
    Migrate = "migrate",
    /// A non-maskable interrupt.
    Nmi = "nmi",
    /// An exception, such as a page fault, taken while the measured task is current. Those of other
    /// tasks on its CPU do not count: they belong to the task that has them, and what that task
    /// costs the measured one is its context switch.
    Exception = "exception",
    /// Real-time throttling of the measured task.
    Throttle = "throttle",
    /// What the probe itself causes: its own timer, its own wake-up, its own switches.
    SelfCaused = "self",
    /// Time that no recorded event explains.
    Unexplained = "unexplained",
}

impl fmt::Display for EventClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EventClass {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|class| class.name() == text)
            .ok_or_else(|| crate::Error::invalid("event class", format!("{text:?}"), Self::names()))
    }
}

impl EventClass {
    fn names() -> String {
        let names: Vec<_> = Self::ALL.iter().map(|class| class.name()).collect();
        format!("one of {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_match_serde() {
        for &class in EventClass::ALL {
            assert_eq!(class.name().parse::<EventClass>().unwrap(), class);
            assert_eq!(serde_json::to_string(&class).unwrap(), format!("{:?}", class.name()));
        }
        assert!("ipi".parse::<EventClass>().is_err());
    }
}
