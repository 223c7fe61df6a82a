//! The closed list of interference classes that catalogue, analysis and report share.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! classes {
    ($($(#[doc = $about:literal])* $variant:ident = $name:literal),* $(,)?) => {
        /// What the kernel ran or did on a CPU that the CPU's own task did not ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum EventClass { $($(#[doc = $about])* #[serde(rename = $name)] $variant),* }

        impl EventClass {
            /// Every class, in the order in which reports list them.
            pub const ALL: &'static [EventClass] = &[$(EventClass::$variant),*];

            /// The name used in files and on screen, such as `ipi.call`.
            pub fn name(self) -> &'static str {
                match self { $(EventClass::$variant => $name),* }
            }

            /// What events of the class are, in a sentence or more.
            pub fn about(self) -> &'static str {
                match self { $(EventClass::$variant => concat!($($about,)*).trim_ascii()),* }
            }
        }
    };
}

classes! {
    /// A reschedule interrupt from another CPU, which asks this one to run its scheduler.
    IpiResched = "ipi.resched",
    /// A call-function interrupt from another CPU, which makes this one run a function of the
    /// kernel.
    IpiCall = "ipi.call",
    /// An interrupt for the kernel's deferred interrupt work (irq_work), sent by this CPU to itself
    /// or by another.
    IpiIrqwork = "ipi.irqwork",
    /// A TLB shootdown: another CPU changed page tables, and makes this one drop its cached copies.
    Tlb = "tlb",
    /// The periodic scheduler tick: the timer interrupt that accounts CPU time, expires timers and
    /// may preempt the running task, up to CONFIG_HZ times per second on each CPU.
    TimerTick = "timer.tick",
    /// A high-resolution timer that expires on this CPU and is not the tick.
    TimerHrtimer = "timer.hrtimer",
    /// A timer of the timer wheel, with the resolution of the tick, that expires on this CPU.
    TimerWheel = "timer.wheel",
    /// A device interrupt, or a vector that has no class of its own.
    Irq = "irq",
    /// A softirq: work that an interrupt handler has put off until just after the interrupt.
    Softirq = "softirq",
    /// An item of a workqueue, run by a kernel worker on this CPU.
    Work = "work",
    /// A context switch to a task that is neither the measured one nor idle.
    Switch = "switch",
    /// A task moved onto or off this CPU.
    Migrate = "migrate",
    /// A non-maskable interrupt, for example of a performance counter or the watchdog.
    Nmi = "nmi",
    /// An exception, such as a page fault, taken while the measured task is current. Those of other
    /// tasks on its CPU do not count: they belong to the task that has them, and what that task
    /// costs the measured one is its context switch.
    Exception = "exception",
    /// Real-time throttling: the kernel takes the CPU from a real-time task that used up its share.
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
            .ok_or_else(|| crate::Error::unknown("CLASS", "event class", text, Self::ALL))
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
        assert!(EventClass::ALL.iter().all(|class| class.about().ends_with('.')));
    }
}
