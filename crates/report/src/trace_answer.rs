//! `trace explain --json`: the questions that a trace can answer, the sources of what ran, and
//! wake-ups taken apart. One shape for runs and for traces of others: `stillcore.trace-explain/2`.

use attribution::attribute::Confidence;
use attribution::attribute::delay::Blocking;
use attribution::attribute::path_section::{PathBox, PathSection, SamplePath, TaskText};
use attribution::attribute::section::{AttributedRow, BlockingCoverage, Coverage, SourceText};
use attribution::attribute::step::Step;
use attribution::prio::Prio;
use model::EventClass;
use model::run::{ProbeRecord, Run};
use serde::Serialize;

use crate::Known;
use crate::verdict::STEAL_STEP_NS;

/// Schema of the object.
pub const SCHEMA: &str = "stillcore.trace-explain/2";

/// How the analysis says that an act began in a system call.
const SYSTEM_CALL: &str = "system call ";

/// Something one may want to know of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    /// In words.
    pub question: String,
    /// Whether the trace's events can answer it.
    pub answerable: bool,
    /// By what, or why not.
    pub why: String,
    /// Events to record beside, for an answer or a surer one.
    pub needs: Vec<String>,
}

/// A thread or task, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Its number.
    pub pid: Option<i32>,
    /// Its name at that moment.
    pub comm: String,
    /// Its effective priority as the scheduler's events give it (`task_struct.prio`).
    pub prio: Option<i16>,
    /// Policy and priority, as far as they are known.
    pub policy: Option<String>,
    /// Its container, service or control group.
    pub cgroup: Option<String>,
}

/// Who asked for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The task's number; absent for interrupts and devices.
    pub pid: Option<i32>,
    /// The task, interrupt, timer or device.
    pub comm: String,
    /// Where it acted.
    pub cpu: u32,
    /// The system call that it acted in.
    pub syscall: Option<String>,
    /// Functions of the kernel and of the program, innermost first; of a stack that was not
    /// recorded the one function that the event names.
    pub stack: Vec<String>,
}

/// What took time from a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// `irq`, `softirq`, `nmi`, `task`, `exception`, `throttled`, or what blocked:
    /// `interrupts-off`, `preemption-off`, `lock`, `kernel-code`, `not-executing`, `idle-exit`,
    /// `frequency-change`.
    pub kind: &'static str,
    /// Class of the event; absent where nothing ran.
    pub class: Option<EventClass>,
    /// What ran, who turned off interrupts or preemption, which lock.
    pub label: Option<String>,
    /// The task that ran.
    pub who: Option<Thread>,
    /// Who asked for it.
    pub source: Option<Source>,
    /// How that is known; of what blocked, how it is known that it did.
    pub confidence: Known,
    /// Of a CPU that did not execute: how much of it was steal time, at least and at most, ns;
    /// absent where no counter reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_ns: Option<[u64; 2]>,
    /// Of a CPU that did not execute: its system management interrupts; absent where they were not
    /// counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smi: Option<u64>,
}

/// One stretch of a wake-up's latency: time that a step took itself, or that something else took
/// while the step waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The step.
    pub step: Step,
    /// The CPU that it waited for.
    pub cpu: u32,
    /// How long, ns.
    pub ns: u64,
    /// What else took its time; `None` for the step itself.
    pub taken: Option<Taken>,
}

/// A wake-up taken apart; its parts add up to its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wakeup {
    /// When it was due, else when somebody asked for it, ns of the trace's clock.
    pub t_ns: i64,
    /// How much later the thread ran, ns.
    pub value_ns: i64,
    /// Where it ran.
    pub cpu: u32,
    /// Whose.
    pub thread: Thread,
    /// In the order of time.
    pub parts: Vec<Part>,
}

/// What a source has caused on a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Caused {
    /// The CPU that was interrupted.
    pub on: u32,
    /// The class.
    pub class: EventClass,
    /// What ran.
    pub label: String,
    /// Events.
    pub count: u64,
    /// Their time, ns.
    pub ns: u64,
    /// Who asked for them; `None` where that is not known.
    pub source: Option<Source>,
    /// How that is known.
    pub confidence: Known,
}

/// The questions of a trace: one a class of events, one a reason to wait for nothing that runs.
pub fn questions(coverage: &[Coverage], blocking: &[BlockingCoverage]) -> Vec<Question> {
    let classes = coverage.iter().map(|one| Question {
        question: format!("who caused {}", one.class.name()),
        answerable: one.seen && one.sources.is_some(),
        why: one.how.clone(),
        needs: one.needs.clone(),
    });
    let waits = blocking.iter().map(|one| Question {
        question: format!("how long did {} hold a wake-up up", one.blocking.words()),
        answerable: one.seen,
        why: one.how.clone(),
        needs: one.needs.clone(),
    });
    classes.chain(waits).collect()
}

/// What ran on a CPU, and who asked for it.
pub fn caused(on: u32, rows: &[AttributedRow]) -> impl Iterator<Item = Caused> + '_ {
    rows.iter().map(move |row| Caused {
        on,
        class: row.class,
        label: row.label.clone(),
        count: row.count,
        ns: row.net_ns,
        source: row.source.as_ref().map(source),
        confidence: known(row.confidence.filter(|_| row.source.is_some())),
    })
}

/// The steal time that a sample of this section can hold at most, ns: the growth of its CPU's
/// counter over the window, and one step of it. `None` where the counter cannot be read or stands
/// still: not every hypervisor fills it.
pub fn steal_most_ns(run: &Run, path: &PathSection) -> Option<u64> {
    let window = run.windows.iter().find(|one| (&one.phase, one.probe) == (&path.phase, path.probe))?;
    let grown_ns = *window.steal_ns.get(&path.cpu)?;
    (grown_ns > 0).then(|| grown_ns.saturating_add(STEAL_STEP_NS))
}

/// The samples of a section that are kept, each as a wake-up of `thread`. `steal_ns`: of
/// [`steal_most_ns`].
pub fn wakeups<'s>(
    path: &'s PathSection,
    thread: &'s Thread,
    steal_ns: Option<u64>,
) -> impl Iterator<Item = Wakeup> + 's {
    path.worst.iter().map(move |SamplePath { t_ns, value_ns, parts, .. }| Wakeup {
        t_ns: *t_ns,
        value_ns: *value_ns,
        cpu: path.cpu,
        thread: thread.clone(),
        parts: parts.iter().map(|part| self::part(part, steal_ns)).collect(),
    })
}

impl Thread {
    /// The thread of a probe.
    pub fn of_probe(probe: &ProbeRecord) -> Self {
        let policy = &probe.policy_effective;
        let words = match policy.priority {
            0 => policy.name.clone(),
            priority => format!("{} {priority}", policy.name),
        };
        let prio = i16::try_from(policy.priority).ok().filter(|priority| *priority > 0);
        Self {
            pid: Some(probe.tid),
            comm: "stillcore".to_owned(),
            prio: prio.map(|priority| 99 - priority),
            policy: Some(words),
            cgroup: None,
        }
    }

    fn of(task: &TaskText) -> Self {
        Self {
            pid: Some(task.pid),
            comm: task.comm.clone(),
            prio: task.prio,
            policy: task.prio.and_then(|prio| Prio::new(i64::from(prio)).words()),
            cgroup: task.group.clone(),
        }
    }
}

fn part(part: &PathBox, steal_ns: Option<u64>) -> Part {
    Part { step: part.step, cpu: part.cpu, ns: part.ns, taken: taken(part, steal_ns) }
}

fn taken(part: &PathBox, steal_ns: Option<u64>) -> Option<Taken> {
    let kind = match (part.class, part.blocking) {
        (Some(class), _) => kind_of_class(class),
        (None, Some(blocking)) => kind_of_blocking(blocking),
        (None, None) => return None,
    };
    let confidence = match part.blocking {
        Some(blocking) if blocking.is_inferred() => Known::Inferred,
        // The stretch has its own events; who asked is another question.
        Some(_) => known(part.confidence.or(Some(Confidence::Exact))),
        None => known(part.confidence.filter(|_| part.source.is_some())),
    };
    let stopped = part.blocking == Some(Blocking::NotExecuting);
    Some(Taken {
        kind,
        class: part.class,
        label: part.label.clone(),
        who: part.task.as_ref().map(Thread::of),
        source: part.source.as_ref().map(source),
        confidence,
        // The counter covers the whole window; none of it need be of this part.
        steal_ns: steal_ns.filter(|_| stopped).map(|most_ns| [0, part.ns.min(most_ns)]),
        smi: None,
    })
}

fn kind_of_class(class: EventClass) -> &'static str {
    match class {
        EventClass::Softirq | EventClass::TimerWheel => "softirq",
        EventClass::Nmi => "nmi",
        EventClass::Switch | EventClass::Work | EventClass::Migrate => "task",
        EventClass::Exception => "exception",
        EventClass::Throttle => "throttled",
        _ => "irq",
    }
}

fn kind_of_blocking(blocking: Blocking) -> &'static str {
    match blocking {
        Blocking::InterruptsOff => "interrupts-off",
        Blocking::PreemptionOff => "preemption-off",
        Blocking::Lock => "lock",
        Blocking::KernelCode => "kernel-code",
        Blocking::ProbedFunction => "probed-function",
        Blocking::NotExecuting => "not-executing",
        Blocking::IdleExit => "idle-exit",
        Blocking::FrequencyChange => "frequency-change",
    }
}

fn known(confidence: Option<Confidence>) -> Known {
    match confidence {
        Some(Confidence::Exact) => Known::Exact,
        Some(Confidence::Order) => Known::ByOrder,
        None => Known::Unknown,
    }
}

fn source(text: &SourceText) -> Source {
    let functions = text.functions();
    Source {
        pid: text.pid,
        comm: text.who.clone(),
        cpu: text.cpu,
        syscall: text.began.as_deref().and_then(|began| began.strip_prefix(SYSTEM_CALL)).map(str::to_owned),
        stack: if functions.is_empty() { text.site.iter().cloned().collect() } else { functions },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn source_text() -> SourceText {
        let began = Some("system call munmap".to_owned());
        let frames = vec!["flush_tlb_mm_range".to_owned(), "do_munmap".to_owned()];
        SourceText { began, frames, ..SourceText::new(0, "churn", Some(7)) }
    }

    #[test]
    fn what_took_time_has_its_kind_and_who_asked_its_system_call_and_stack() {
        let ran = PathBox {
            source: Some(source_text()),
            confidence: Some(Confidence::Order),
            ..fixture::part(Step::Switch, 2, 30, true)
        };
        let taken = taken(&ran, None).unwrap();
        assert_eq!(taken.confidence, Known::ByOrder);
        let source = taken.source.unwrap();
        assert_eq!((source.pid, source.syscall.as_deref()), (Some(7), Some("munmap")));
        assert_eq!(source.stack, ["flush_tlb_mm_range", "do_munmap"]);
        assert_eq!(super::taken(&fixture::part(Step::Switch, 2, 30, false), None), None);
    }

    #[test]
    fn a_stopped_cpu_is_inferred_and_its_steal_time_bounded_by_the_counter_s_growth_and_one_step() {
        let stopped = |ns| PathBox {
            blocking: Some(Blocking::NotExecuting),
            confidence: Some(Confidence::Exact),
            ..fixture::part(Step::TimerLate, 2, ns, false)
        };
        let of = |ns, steal| taken(&stopped(ns), steal).unwrap();
        let half = of(50, Some(30));
        let expected = ("not-executing", Known::Inferred, Some([0, 30]));
        assert_eq!((half.kind, half.confidence, half.steal_ns), expected);
        assert_eq!(of(25, Some(30)).steal_ns, Some([0, 25]));
        assert_eq!(of(25, None).steal_ns, None, "no counter, no bound");
    }

    #[test]
    fn a_class_that_is_seen_without_a_way_to_its_source_is_no_answer() {
        let line = |seen, sources| Coverage {
            class: EventClass::Tlb,
            seen,
            sources,
            how: "how".to_owned(),
            needs: vec!["csd:csd_queue_cpu".to_owned()],
        };
        let lines = [line(true, None), line(true, Some(Confidence::Order)), line(false, None)];
        let answerable: Vec<bool> = questions(&lines, &[]).iter().map(|one| one.answerable).collect();
        assert_eq!(answerable, [false, true, false]);
        assert_eq!(questions(&lines, &[])[0].needs, ["csd:csd_queue_cpu"]);
    }
}
