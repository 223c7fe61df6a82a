//! What this kernel can show: for each class, whether its events are recorded and how their
//! sources are found.
//!
//! Derived from the recorded events, never from a version. The best way of each class is reported;
//! single events may still lack it (a timer armed before recording began).

use super::cause::Confidence;
use crate::attribute::delay::Blocking;
use crate::attribute::section::{BlockingCoverage, Coverage};
use model::EventClass;
use model::events::{KERNEL_STACK, PAGE_FAULT};
use model::idle::IdleExits;
use model::off;
use std::collections::BTreeSet;

/// How the source of a class is found: the events that show it, and with what confidence.
struct Way {
    class: EventClass,
    /// Recorded on the measured CPUs.
    victim: &'static [&'static str],
    /// Recorded on the others.
    sender: &'static [&'static str],
    confidence: Confidence,
    how: &'static str,
}

const fn way(
    class: EventClass,
    victim: &'static [&'static str],
    sender: &'static [&'static str],
    confidence: Confidence,
    how: &'static str,
) -> Way {
    Way { class, victim, sender, confidence, how }
}

use Confidence::{Exact, Order};

/// Best first.
const WAYS: &[Way] = &[
    way(
        EventClass::IpiCall,
        &["csd:csd_function_entry"],
        &["csd:csd_queue_cpu"],
        Exact,
        "by the request that both ends name",
    ),
    way(EventClass::IpiCall, &[], &["ipi:ipi_send_cpu"], Order, "by the last sends to the CPU"),
    way(EventClass::IpiCall, &[], &["ipi:ipi_raise"], Order, "by the last sends to the CPU"),
    way(
        EventClass::IpiCall,
        &[],
        &["stillcore:call_many", "stillcore:call_queue"],
        Order,
        "by the last calls to the CPU, from probes on the kernel's functions",
    ),
    way(
        EventClass::IpiCall,
        &["sched:sched_wakeup"],
        &["sched:sched_waking", "tlb:tlb_flush"],
        Order,
        "only wake-ups (by task) and TLB shootdowns (by order); code patching and membarrier have no event of the sender",
    ),
    way(EventClass::IpiResched, &[], &["ipi:ipi_send_cpu"], Order, "by the last sends to the CPU"),
    way(EventClass::IpiResched, &[], &["ipi:ipi_raise"], Order, "by the last sends to the CPU"),
    way(EventClass::IpiResched, &[], &["sched:sched_waking"], Order, "by the last wake-up aimed at the CPU"),
    way(
        EventClass::IpiIrqwork,
        &["ipi:ipi_send_cpu"],
        &[],
        Order,
        "by the last irq_work that the CPU sent itself",
    ),
    way(EventClass::IpiIrqwork, &[], &["ipi:ipi_raise"], Order, "by the last sends to the CPU"),
    way(
        EventClass::Tlb,
        &["csd:csd_function_entry"],
        &["csd:csd_queue_cpu"],
        Exact,
        "by the request of the IPI that brings it",
    ),
    way(EventClass::Tlb, &[], &["tlb:tlb_flush"], Order, "by the last shootdown"),
    way(EventClass::TimerHrtimer, &["timer:hrtimer_start"], &[], Exact, "by the timer's address"),
    way(EventClass::TimerWheel, &["timer:timer_start"], &[], Exact, "by the timer's address"),
    way(EventClass::Softirq, &["irq:softirq_raise"], &[], Exact, "by the raise on the same CPU"),
    way(
        EventClass::Work,
        &["workqueue:workqueue_queue_work"],
        &["workqueue:workqueue_queue_work"],
        Exact,
        "by the work item's address",
    ),
    way(
        EventClass::Switch,
        &["sched:sched_waking"],
        &["sched:sched_waking"],
        Exact,
        "by the task that was woken",
    ),
    way(
        EventClass::Migrate,
        &["sched:sched_migrate_task"],
        &["sched:sched_migrate_task"],
        Exact,
        "by who recorded the move",
    ),
    way(EventClass::Irq, &["irq:irq_handler_entry"], &[], Exact, "the device names itself"),
    way(EventClass::Exception, &[PAGE_FAULT], &[], Exact, "the task's own"),
];

/// Whether a trace has the handlers of all interrupts: devices', the local timer's, NMIs, and what
/// other CPUs send. `has`: whether it has an event. arm64 has its timer among the devices.
pub(crate) fn has_interrupts(has: &dyn Fn(&str) -> bool) -> bool {
    let local = ["irq_vectors:local_timer_entry", "irq_vectors:reschedule_entry", "nmi:nmi_handler"];
    let local = local.into_iter().all(has);
    has("irq:irq_handler_entry") && (local || has("ipi:ipi_entry"))
}

/// What the drivers of the measured CPUs report.
#[derive(Debug, Clone, Copy)]
pub struct Drivers {
    /// How long leaving an idle state takes.
    pub idle_exits: IdleExits,
    /// Whether the duration of a frequency change is known on all of them.
    pub frequency_changes: bool,
}

impl Drivers {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { idle_exits: IdleExits::Unknown, frequency_changes: false };
}

/// One line for each thing that may delay a wake-up while nothing else runs. `victim`: the
/// events recorded on measured CPUs; `symbols`: whether functions can be named, without which
/// a stack is useless.
pub fn blocking_coverage(victim: &[String], symbols: bool, drivers: Drivers) -> Vec<BlockingCoverage> {
    let exits = drivers.idle_exits;
    let line = |blocking: Blocking| {
        if blocking == Blocking::ProbedFunction {
            return probed(victim);
        }
        let (events, how): (&[&str], _) = match blocking {
            Blocking::ProbedFunction => (&[], ""),
            Blocking::InterruptsOff => {
                (&["preemptirq:irq_disable", "preemptirq:irq_enable"], "by the function that turned them off")
            }
            Blocking::PreemptionOff => (
                &["preemptirq:preempt_disable", "preemptirq:preempt_enable"],
                "by the function that turned it off",
            ),
            Blocking::Lock => (
                &["lock:contention_begin", "lock:contention_end"],
                "which lock, where it has a name; who holds it has no event",
            ),
            Blocking::KernelCode => {
                (&[KERNEL_STACK], "by the stack of the task that gave the CPU to a real-time task")
            }
            Blocking::NotExecuting => (
                &[KERNEL_STACK],
                "inferred: a timer came late though its interrupt found user space, where interrupts are on",
            ),
            Blocking::FrequencyChange => {
                (&[model::frequency::EVENT], "inferred: at most what the driver says that a change takes")
            }
            Blocking::IdleExit => (
                &[model::idle::EVENT],
                "inferred: at most what the driver says that the idle state takes to leave",
            ),
        };
        let has = |event: &str| victim.iter().any(|one| one == event);
        let recorded = events.iter().all(|event| has(event));
        let seen = match blocking {
            Blocking::KernelCode => recorded && symbols,
            Blocking::NotExecuting => recorded && symbols && has_interrupts(&has),
            Blocking::IdleExit => recorded && exits == IdleExits::Known,
            Blocking::FrequencyChange => recorded && drivers.frequency_changes,
            _ => recorded,
        };
        let how = match blocking {
            _ if seen => how,
            Blocking::IdleExit if exits == IdleExits::HeldOff => {
                "idle states that take time to leave were held off (/dev/cpu_dma_latency)"
            }
            Blocking::IdleExit if recorded && exits == IdleExits::NotSeen => {
                "not every measured CPU was seen to go to sleep: its time stays in the step of the wake-up there"
            }
            Blocking::IdleExit if recorded => {
                "how long the idle states take to leave is not known: its time stays in the step of the wake-up"
            }
            Blocking::FrequencyChange => {
                "the kernel does not say how long one takes: its time stays in the step of the wake-up"
            }
            Blocking::KernelCode | Blocking::NotExecuting if recorded && !symbols => {
                "the trace has no kernel symbols (kptr_restrict?), without which a stack says nothing"
            }
            Blocking::NotExecuting if recorded => {
                "an interrupt whose handler was not recorded may have been in the way"
            }
            _ => "its time stays in the step of the wake-up",
        };
        let needs = events.iter().filter(|event| !has(event)).map(|&event| event.to_owned()).collect();
        Some(BlockingCoverage { blocking, seen, how: how.to_owned(), needs })
    };
    Blocking::ALL.iter().filter_map(|blocking| line(*blocking)).collect()
}

/// The line of functions that were probed; `None` where none were.
fn probed(victim: &[String]) -> Option<BlockingCoverage> {
    let entries = victim.iter().filter(|event| off::end_of(event) == Some(off::End::Entry));
    let functions: Vec<&str> = entries.filter_map(|event| off::function_of(event)).collect();
    if functions.is_empty() {
        return None;
    }
    let how = format!(
        "by a pair of probes on {}; whether interrupts or preemption were off there is not recorded",
        functions.join(", ")
    );
    Some(BlockingCoverage { blocking: Blocking::ProbedFunction, seen: true, how, needs: Vec::new() })
}

/// One line per class. `victim`, `sender`: the events recorded on either side.
pub fn coverage(observable: &BTreeSet<EventClass>, victim: &[String], sender: &[String]) -> Vec<Coverage> {
    let has = |all: &[String], wanted: &[&str]| wanted.iter().all(|name| all.iter().any(|one| one == name));
    let classes = EventClass::ALL.iter().copied();
    let classes = classes.filter(|class| {
        !matches!(class, EventClass::Unexplained | EventClass::SelfCaused | EventClass::Throttle)
    });
    let line = |class: EventClass| {
        let way = WAYS
            .iter()
            .filter(|way| way.class == class)
            .find(|way| has(victim, way.victim) && has(sender, way.sender));
        let seen = observable.contains(&class);
        // `needs` lists what the best way lacks, even if a worse way already works.
        let best = WAYS.iter().find(|way| way.class == class);
        let lacking = |all: &[String], wanted: &'static [&'static str]| {
            let lacking: Vec<&'static str> =
                wanted.iter().copied().filter(|name| !has(all, &[name])).collect();
            lacking
        };
        let mut needs: Vec<String> = best
            .into_iter()
            .flat_map(|way| lacking(victim, way.victim).into_iter().chain(lacking(sender, way.sender)))
            .map(str::to_owned)
            .collect();
        needs.dedup();
        let how = match (class, way) {
            (EventClass::TimerTick, _) => "the CPU's own tick",
            (EventClass::Nmi, _) => "the handler shows the purpose, not the source",
            (_, Some(way)) => way.how,
            (_, None) => "no recorded event shows the source",
        };
        let sources = way.filter(|_| seen).map(|way| way.confidence);
        Coverage { class, seen, sources, how: how.to_owned(), needs }
    };
    classes.map(line).collect()
}

/// Whether recorded events show which task calls another CPU: the request itself, or a probe in its
/// place. `recorded`: whether an event of this name is.
pub fn shows_callers(recorded: impl Fn(&str) -> bool) -> bool {
    ["csd:csd_queue_cpu", "ipi:ipi_send_cpu", "ipi:ipi_raise", "stillcore:call_many"]
        .into_iter()
        .any(recorded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::events::{EventCatalogue, Side};

    fn names(side: Side, without: &[&str]) -> Vec<String> {
        let catalogue = EventCatalogue::embedded().unwrap();
        let here = catalogue.events.iter().filter(|event| event.on.contains(&side));
        let names = here.map(|event| event.name.clone());
        names.filter(|name| !without.iter().any(|lacking| name.starts_with(lacking))).collect()
    }

    fn of(class: EventClass, without: &[&str]) -> Option<Confidence> {
        let all = EventClass::ALL.iter().copied().collect();
        let lines = coverage(&all, &names(Side::Victim, without), &names(Side::Sender, without));
        lines.iter().find(|line| line.class == class).unwrap().sources
    }

    #[test]
    fn every_event_named_is_in_the_catalogue() {
        let catalogue = EventCatalogue::embedded().unwrap();
        for way in WAYS {
            let on = |side: Side, names: &[&str]| {
                names.iter().all(|name| catalogue.get(name).is_some_and(|event| event.on.contains(&side)))
            };
            assert!(on(Side::Victim, way.victim) && on(Side::Sender, way.sender), "{}", way.how);
        }
    }

    #[test]
    fn stretches_without_their_events_are_said_to_stay_in_the_step() {
        let all = names(Side::Victim, &[]);
        let with = |idle_exits| Drivers { idle_exits, frequency_changes: true };
        let seen = |victim: &[String]| {
            let lines = blocking_coverage(victim, true, with(IdleExits::Known));
            lines.iter().map(|one| one.seen).collect::<Vec<_>>()
        };
        assert_eq!(seen(&all), [false, false, true, true, true, true, true]);
        let given: Vec<_> = all.iter().cloned().chain(names(Side::Given, &[])).collect();
        assert_eq!(seen(&given), [true; 7]);
        let none = ["lock:contention_end", KERNEL_STACK, model::idle::EVENT, model::frequency::EVENT];
        assert_eq!(seen(&names(Side::Victim, &none)), [false; 7]);
        // An unrecorded interrupt handler may have delayed the timer.
        let unseen = names(Side::Victim, &["irq:irq_handler"]);
        assert_eq!(seen(&unseen), [false, false, true, true, false, true, true]);
        let unnamed = blocking_coverage(&given, false, with(IdleExits::HeldOff));
        assert!(!unnamed[3].seen && !unnamed[4].seen, "addresses without names");
        assert!(unnamed[3].needs.is_empty() && unnamed[3].how.contains("symbols"), "{:?}", unnamed[3]);
        let off = &blocking_coverage(&all, true, with(IdleExits::Known))[0];
        assert_eq!(off.needs, ["preemptirq:irq_disable", "preemptirq:irq_enable"]);
        assert!(!unnamed[5].seen && unnamed[5].how.contains("held off"), "{:?}", unnamed[5]);
        let unknown = &blocking_coverage(&given, true, with(IdleExits::Unknown))[5];
        assert!(!unknown.seen && unknown.how.contains("not known"), "{unknown:?}");
        let unseen = &blocking_coverage(&given, true, with(IdleExits::NotSeen))[5];
        assert!(!unseen.seen && unseen.how.contains("not every measured CPU"), "{unseen:?}");
        let unknown = &blocking_coverage(&given, true, Drivers::UNKNOWN)[6];
        assert!(!unknown.seen && unknown.how.contains("does not say"), "{unknown:?}");
    }

    #[test]
    fn kernels_without_send_events_know_senders_by_order_only() {
        assert_eq!(of(EventClass::IpiCall, &[]), Some(Exact));
        assert_eq!(of(EventClass::IpiCall, &["csd:", "ipi:ipi_send", "stillcore:"]), Some(Order));
        let all = EventClass::ALL.iter().copied().collect();
        let [victim, sender] = [Side::Victim, Side::Sender].map(|side| names(side, &["csd:"]));
        let lines = coverage(&all, &victim, &sender);
        let call = lines.iter().find(|line| line.class == EventClass::IpiCall).unwrap();
        assert_eq!(call.needs, ["csd:csd_function_entry", "csd:csd_queue_cpu"]);
        assert_eq!(of(EventClass::IpiIrqwork, &["csd:", "ipi:"]), None);
        assert_eq!(of(EventClass::Tlb, &["csd:", "ipi:"]), Some(Order));
    }
}
