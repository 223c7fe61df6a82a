//! What each event class, and each thief of time, is called in a sentence.

use analysis::noise_causes::{Certainty, Thief};
use attribution::attribute::section::SourceText;
use attribution::attribute::step::Step;
use model::EventClass;

/// The class in words a reader of kernel documentation knows.
pub fn class_title(class: EventClass) -> &'static str {
    match class {
        EventClass::IpiResched => "reschedule IPI",
        EventClass::IpiCall => "function-call IPI",
        EventClass::IpiIrqwork => "irq_work IPI",
        EventClass::Tlb => "TLB shootdown",
        EventClass::TimerTick => "scheduler tick",
        EventClass::TimerHrtimer => "high-resolution timer",
        EventClass::TimerWheel => "timer-wheel timer",
        EventClass::Irq => "device interrupt",
        EventClass::Softirq => "softirq",
        EventClass::Work => "work item",
        EventClass::Switch => "other task",
        EventClass::Migrate => "task migration",
        EventClass::Nmi => "NMI",
        EventClass::Exception => "page fault of the probe",
        EventClass::Throttle => "real-time throttling",
        EventClass::SelfCaused => "the probe itself",
        EventClass::Unexplained => "unexplained gap",
    }
}

/// What a step of a wake-up is called.
pub(crate) const fn step_name(step: Step) -> &'static str {
    match step {
        Step::TimerLate => "until the timer expired",
        Step::TimerHandler => "in the timer's handler",
        Step::WakeUp => "until the task was queued",
        Step::IpiInFlight => "until the IPI arrived",
        Step::Switch => "until the scheduler switched to it",
        Step::Return => "until it had read the clock",
        Step::NeverSlept => "late already, did not sleep",
        Step::SwitchUnseen => "until it had read the clock, its switch unseen",
    }
}

/// `bash[812] (cron.service) on CPU 0`.
pub(crate) fn who(source: &SourceText) -> String {
    format!("{} on CPU {}", source.name(), source.cpu)
}

/// The same with the function of the kernel that asked.
pub(crate) fn source_words(source: &SourceText) -> String {
    let site = source.place().map(|site| format!(" in {site}")).unwrap_or_default();
    format!("{}{site}", who(source))
}

/// Who takes time from a busy loop.
pub(crate) fn thief_title(thief: Thief) -> &'static str {
    match thief {
        Thief::Throttling => "RT throttling",
        Thief::FairServer => "fair server",
        Thief::Preemption => "other tasks",
        Thief::Stopped => "stopped by a signal",
        Thief::Fault => "page fault",
        Thief::Hypervisor => "hypervisor (steal)",
        Thief::Smi => "SMI",
        Thief::Interrupts => "interrupts, softirqs",
        Thief::Unknown => "unknown",
    }
}

/// How sure a cause is.
pub(crate) fn certainty_title(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Counted => "a counter says so",
        Certainty::Fits => "fits the pattern",
        Certainty::None => "unexplained",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_classes_share_a_title() {
        let mut titles: Vec<_> = EventClass::ALL.iter().map(|&class| class_title(class)).collect();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), EventClass::ALL.len());
    }
}
