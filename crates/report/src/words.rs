//! What each event class is called in a sentence.

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
