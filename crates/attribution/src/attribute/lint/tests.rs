//! Mistakes made by hand: what counts, and what is a thread's start or end.

use super::program::{Lint, Recorded};
use super::rules::{RULES, Rule};
use super::shape::{Faults, LintSection};
use crate::attribute::locks::shape::{EveryLock, FreeSignal, LockSection, ThreadName};
use crate::attribute::watch::event::{Leaves, WatchEvent, What};
use crate::labels::LabelId;
use crate::prio::Prio;
use model::kernel_locks::OwnedKind;
use model::watch::{Descriptor, KernelThreadName, LintFacts, SCHEMA, TaskSettings, WatchRecord, WatchedTask};
use std::collections::BTreeSet;

const CONTROL: i32 = 10;
const PROCESS: i32 = 9;
/// Threads of the kernel.
const KWORKER: i32 = 31;
const IRQ: i32 = 32;
/// On x86-64.
const MMAP: u64 = 9;
const WRITE: u64 = 1;
const POLL: u64 = 7;
const FUTEX: u64 = 202;
const CLOCK_NANOSLEEP: u64 = 230;
const SCHED_SETSCHEDULER: u64 = 144;
const EXECVE: u64 = 59;
const FIFO_60: i64 = 39;
const ALL: Recorded = Recorded { faults: true, fault_stacks: false, every_locking: true };
const NICE_0: i64 = 120;

fn record(allowed: &str, isolated: &str) -> WatchRecord {
    let task = WatchedTask {
        tid: CONTROL,
        tgid: PROCESS,
        comm: "control".to_owned(),
        policy: "SCHED_FIFO 60".to_owned(),
        reservation: None,
        before: true,
        syscall: None,
    };
    let settings = TaskSettings {
        tid: CONTROL,
        allowed: allowed.parse().unwrap(),
        has_rttime: true,
        locked_kib: Some(64),
    };
    let descriptor = |fd, target: &str| Descriptor { tgid: PROCESS, fd, target: target.to_owned() };
    let kernel_threads = vec![
        KernelThreadName { tid: KWORKER, comm: "kworker/1:0".to_owned() },
        KernelThreadName { tid: IRQ, comm: "irq/24-eth0".to_owned() },
    ];
    WatchRecord {
        schema: SCHEMA.to_owned(),
        asked: String::new(),
        arch: "x86_64".to_owned(),
        tasks: vec![task],
        descriptors: vec![
            descriptor(3, "/var/log/x"),
            descriptor(4, "/dev/pts/1"),
            descriptor(5, "socket:[7]"),
            descriptor(6, "/dev/null"),
        ],
        glibc: Vec::new(),
        lock_words: Vec::new(),
        lint: Some(LintFacts { isolated: isolated.parse().unwrap(), tasks: vec![settings], kernel_threads }),
        command: None,
    }
}

fn call(ts_ns: i64, number: u64, arguments: [u64; 3]) -> WatchEvent {
    let what = What::CallEnter { number, arguments };
    WatchEvent { ts_ns, cpu: 0, pid: CONTROL, in_task: true, what }
}

fn leaves(ts_ns: i64, prio: i64, leaves: Leaves) -> WatchEvent {
    let prios = [prio, NICE_0].map(Prio::new);
    let what = What::Switch { prev: (CONTROL, 0), leaves, next: (0, 0), prios };
    WatchEvent { ts_ns, cpu: 0, pid: CONTROL, in_task: true, what }
}

fn text(label: LabelId) -> String {
    format!("label {label}")
}

fn waits(ts_ns: i64) -> WatchEvent {
    leaves(ts_ns, FIFO_60, Leaves::Sleeps)
}

fn lint(record: &WatchRecord, events: &[WatchEvent]) -> LintSection {
    let mut lint = Lint::new(record, ALL);
    for event in events {
        let sleeps = matches!(event.what, What::Switch { leaves: Leaves::Sleeps, .. });
        if sleeps {
            lint.event(&call(event.ts_ns, CLOCK_NANOSLEEP, [1, 1, 0]));
        }
        lint.event(event);
        if sleeps {
            lint.event(&WatchEvent { what: What::CallExit { result: 0 }, ..*event });
        }
    }
    lint.finish();
    lint.section(&|_| "control".to_owned(), &text, None)
}

/// Rule, what exactly, how often.
fn found(events: &[WatchEvent]) -> Vec<(Rule, String, u64)> {
    let section = lint(&record("1", ""), events);
    section.findings.into_iter().map(|one| (one.rule, one.detail, one.n)).collect()
}

#[test]
fn the_loop_counts_and_neither_the_start_nor_the_end() {
    let map = |ts_ns| call(ts_ns, MMAP, [0; 3]);
    let events =
        [map(1), waits(2), map(3), waits(4), map(5), waits(6), map(7), leaves(8, FIFO_60, Leaves::Ended)];
    assert_eq!(found(&events), [(Rule::Memory, "mmap".to_owned(), 2)]);
    // The recording ends in the loop.
    assert_eq!(found(&events[..5]), [(Rule::Memory, "mmap".to_owned(), 2)]);
}

#[test]
fn a_sleep_outside_of_a_call_is_no_wait() {
    let record = record("1", "");
    let mut lint = Lint::new(&record, ALL);
    let returns = |ts_ns| WatchEvent { what: What::CallExit { result: 0 }, ..call(ts_ns, 0, [0; 3]) };
    for event in [
        call(1, CLOCK_NANOSLEEP, [1, 1, 0]),
        waits(2),
        returns(3),
        // It ends, and sleeps for a lock of the kernel.
        call(4, MMAP, [0; 3]),
        returns(5),
        waits(6),
        leaves(7, FIFO_60, Leaves::Ended),
    ] {
        lint.event(&event);
    }
    lint.finish();
    assert!(lint.section(&|_| String::new(), &text, None).findings.is_empty());
}

#[test]
fn a_new_thread_that_the_c_library_holds_back_has_not_begun_its_loop() {
    let mut record = record("1", "");
    record.tasks[0].before = false;
    let mut lint = Lint::new(&record, ALL);
    let returns = |ts_ns| WatchEvent { what: What::CallExit { result: 0 }, ..call(ts_ns, 0, [0; 3]) };
    for event in [
        call(1, FUTEX, [7, 128, 2]),
        waits(2),
        returns(3),
        // Its allocator's first memory.
        call(4, MMAP, [0; 3]),
        returns(5),
        call(6, CLOCK_NANOSLEEP, [1, 1, 0]),
        waits(7),
        returns(8),
    ] {
        lint.event(&event);
    }
    lint.finish();
    assert!(lint.section(&|_| String::new(), &text, None).findings.is_empty());
}

#[test]
fn a_thread_that_inherits_a_priority_is_not_real_time() {
    let boost =
        |ts_ns, raised| WatchEvent { what: What::Boost { pid: CONTROL, raised }, ..call(ts_ns, 0, [0; 3]) };
    let fair = |ts_ns| leaves(ts_ns, NICE_0, Leaves::Sleeps);
    let events = [fair(1), boost(2, true), leaves(3, FIFO_60, Leaves::Runnable), boost(4, false), fair(5)];
    assert_eq!(lint(&record("1", ""), &events).threads, 0);
}

#[test]
fn who_is_too_late_to_sleep_ends_its_turn_and_who_never_waits_is_named() {
    let returns = |ts_ns| WatchEvent { what: What::CallExit { result: 0 }, ..call(ts_ns, 0, [0; 3]) };
    let late = [waits(1), call(2, MMAP, [0; 3]), returns(3), call(4, CLOCK_NANOSLEEP, [1, 1, 0]), returns(5)];
    let mut events = late.to_vec();
    events.push(leaves(6, FIFO_60, Leaves::Ended));
    assert_eq!(found(&events), [(Rule::Memory, "mmap".to_owned(), 1)]);
    let section = lint(&record("1", ""), &[leaves(1, FIFO_60, Leaves::Runnable), call(2, MMAP, [0; 3])]);
    assert_eq!((section.threads, section.findings.len()), (1, 0));
    assert!(section.not_applied[0].why.starts_with("control[10] did not wait"), "{section:?}");
}

#[test]
fn a_thread_that_is_not_real_time_breaks_no_rule() {
    let fair = |ts_ns| leaves(ts_ns, NICE_0, Leaves::Sleeps);
    let section = lint(&record("1", ""), &[fair(1), call(2, MMAP, [0; 3]), fair(3)]);
    assert_eq!((section.findings.len(), section.threads), (0, 0));
}

#[test]
fn sleeps_until_a_time_and_descriptors_of_messages_are_right() {
    let sleep = |ts_ns, flags| call(ts_ns, CLOCK_NANOSLEEP, [1, flags, 0]);
    let write = |ts_ns, fd| call(ts_ns, WRITE, [fd, 0, 0]);
    let events = [waits(1), sleep(2, 1), write(3, 5), write(4, 6), write(5, 99), waits(6)];
    assert_eq!(found(&events), []);
    let events = [waits(1), sleep(2, 0), write(3, 3), write(4, 4), waits(6)];
    assert_eq!(
        found(&events),
        [
            (Rule::RelativeSleep, "clock_nanosleep".to_owned(), 1),
            (Rule::File, "write of /var/log/x".to_owned(), 1),
            (Rule::Terminal, "write of /dev/pts/1".to_owned(), 1),
        ]
    );
}

#[test]
fn a_policy_that_a_thread_gives_itself_came_late_unless_a_program_begins_with_it() {
    let sets = |whose: i32| call(2, SCHED_SETSCHEDULER, [u64::from(whose.cast_unsigned()), 1, 0]);
    let fair = leaves(1, NICE_0, Leaves::Sleeps);
    let rules = |events: &[WatchEvent]| -> Vec<Rule> { found(events).into_iter().map(|one| one.0).collect() };
    assert_eq!(rules(&[fair, sets(0), waits(3)]), [Rule::BornOther]);
    assert_eq!(rules(&[fair, sets(CONTROL), waits(3)]), [Rule::BornOther]);
    // Of another thread, and before the program.
    assert_eq!(rules(&[fair, sets(77), waits(3)]), []);
    assert_eq!(rules(&[fair, sets(0), call(3, EXECVE, [0; 3]), waits(4)]), []);
}

#[test]
fn settings_are_judged_for_real_time_threads() {
    let of = |allowed, isolated| -> Vec<(Rule, String)> {
        let section = lint(&record(allowed, isolated), &[waits(1), waits(2)]);
        section.findings.into_iter().map(|one| (one.rule, one.detail)).collect()
    };
    assert_eq!(of("2-3", "2-3"), []);
    assert_eq!(of("0-1", "2-3"), []);
    assert_eq!(of("1-2", "2-3"), [(Rule::Affinity, "CPUs 1,2, of which 2 isolated".to_owned())]);
    let mut unlimited = record("1", "");
    unlimited.lint.as_mut().unwrap().tasks[0].has_rttime = false;
    let rules = |events: &[WatchEvent]| -> Vec<Rule> {
        lint(&unlimited, events).findings.into_iter().map(|one| one.rule).collect()
    };
    assert_eq!(rules(&[waits(1)]), [Rule::NoBudget]);
    assert_eq!(rules(&[leaves(1, 0, Leaves::Sleeps)]), [Rule::Priority, Rule::NoBudget]);
    // Deadline tasks have a budget of their own.
    assert_eq!(rules(&[leaves(1, -1, Leaves::Sleeps)]), []);
}

#[test]
fn every_rule_has_one_row_and_says_what_to_do() {
    let names: BTreeSet<&str> = RULES.iter().map(|(_, name, ..)| *name).collect();
    let rules: BTreeSet<Rule> = RULES.iter().map(|(rule, ..)| *rule).collect();
    assert_eq!((names.len(), rules.len()), (RULES.len(), RULES.len()));
    for (rule, name, what, remedy) in RULES {
        assert!(!what.is_empty() && !remedy.is_empty(), "{name}");
        assert_eq!(serde_json::to_value(rule).unwrap(), name);
    }
}

#[test]
fn a_wait_that_a_less_urgent_thread_of_the_kernel_ends_is_found_and_no_other() {
    let runs = |ts_ns, tid, prio| {
        let prios = [NICE_0, prio].map(Prio::new);
        let what = What::Switch { prev: (0, 0), leaves: Leaves::Runnable, next: (tid, 0), prios };
        WatchEvent { ts_ns, cpu: 1, pid: 0, in_task: true, what }
    };
    let wakes = |ts_ns, pid, in_task| {
        let what = What::Waking { task: (CONTROL, 0), prio: Prio::new(FIFO_60) };
        WatchEvent { ts_ns, cpu: 1, pid, in_task, what }
    };
    let from = |ts_ns| WatchEvent { what: What::Callers(4), ..call(ts_ns, 0, [0; 3]) };
    let polls = |ts_ns| [call(ts_ns, POLL, [0, 1, 0]), from(ts_ns), leaves(ts_ns, FIFO_60, Leaves::Sleeps)];
    let returns = |ts_ns| {
        let what = What::CallExit { result: 1 };
        WatchEvent { ts_ns, cpu: 0, pid: CONTROL, in_task: true, what }
    };
    let turn = |ts_ns: i64, woken: &[WatchEvent]| {
        polls(ts_ns).into_iter().chain(woken.iter().copied()).chain([returns(ts_ns + 9)]).collect::<Vec<_>>()
    };
    let found = |woken: &[WatchEvent]| {
        let record = record("1", "");
        let mut lint = Lint::new(&record, ALL);
        let events = [turn(0, &[]), turn(10, woken), turn(20, woken), turn(30, &[])].concat();
        events.iter().for_each(|event| lint.event(event));
        lint.finish();
        let all = lint.section(&|_| "control".to_owned(), &text, None).findings;
        // Where in the program it waits.
        assert!(all.iter().all(|one| one.callers.as_deref() == Some("label 4")), "{all:?}");
        all.into_iter().map(|one| (one.rule, one.detail, one.n)).collect::<Vec<_>>()
    };
    let kworker = [runs(11, KWORKER, NICE_0), wakes(12, KWORKER, true)];
    assert_eq!(found(&kworker), [(Rule::KernelThread, "kworker/1:0[31], nice 0".to_owned(), 2)]);
    let below = [runs(11, IRQ, 49), wakes(12, IRQ, true)];
    assert_eq!(found(&below), [(Rule::KernelThread, "irq/24-eth0[32], priority 50".to_owned(), 2)]);
    assert_eq!(found(&[runs(11, IRQ, 9), wakes(12, IRQ, true)]), [], "more urgent");
    assert_eq!(found(&[wakes(12, IRQ, true)]), [], "its priority is not known");
    assert_eq!(found(&[runs(11, KWORKER, NICE_0), wakes(12, KWORKER, false)]), [], "an interrupt wakes it");
    assert_eq!(found(&[runs(11, PROCESS, NICE_0), wakes(12, PROCESS, true)]), [], "a thread of the program");
}

#[test]
fn a_condition_without_its_mutex_counts_where_one_of_the_threads_is_real_time() {
    let name = |tid: i32| ThreadName { tid, comm: format!("t{tid}"), prio: None };
    let signal = |tid: i32, waiter: i32| FreeSignal {
        condition: 0x80,
        tgid: Some(PROCESS),
        mutex: 0x10,
        thread: name(tid),
        n: 3,
        first_ns: 5,
        waiters: vec![name(waiter)],
        callers: None,
    };
    let found = |signals: Vec<FreeSignal>| {
        let record = record("1", "");
        let mut lint = Lint::new(&record, ALL);
        [waits(0), waits(10)].iter().for_each(|event| lint.event(event));
        let every = Some(EveryLock { signals, ..EveryLock::default() });
        let locks = LockSection { every, ..LockSection::default() };
        let all = lint.section(&|_| "control".to_owned(), &text, Some(&locks)).findings;
        all.into_iter().map(|one| (one.rule, one.tid, one.n)).collect::<Vec<_>>()
    };
    assert_eq!(found(vec![signal(CONTROL, 12)]), [(Rule::Condition, CONTROL, 3)]);
    assert_eq!(found(vec![signal(12, CONTROL)]), [(Rule::Condition, 12, 3)]);
    assert_eq!(found(vec![signal(12, 13)]), []);
    let record = record("1", "");
    let mut lint = Lint::new(&record, Recorded { every_locking: false, ..ALL });
    lint.finish();
    let section = lint.section(&|_| String::new(), &text, None);
    assert!(section.not_applied.iter().any(|one| one.rule == Rule::Condition), "{section:?}");
}

#[test]
fn a_finding_has_where_in_the_program_it_was_done() {
    let from = |ts_ns, label| WatchEvent { what: What::Callers(label), ..call(ts_ns, 0, [0; 3]) };
    let exit = |ts_ns| WatchEvent { what: What::CallExit { result: 0 }, ..call(ts_ns, 0, [0; 3]) };
    let events = [
        waits(0),
        // The stack behind the call's begin, and behind its end.
        call(1, MMAP, [0; 3]),
        from(2, 5),
        exit(3),
        from(4, 6),
        // A write to a socket is no mistake: its stack belongs to no finding.
        call(5, MMAP, [0; 3]),
        call(6, WRITE, [5, 0, 0]),
        from(7, 7),
        call(8, WRITE, [4, 0, 0]),
        from(9, 8),
        // A page fault has none of its own.
        WatchEvent { what: What::PageFault { address: 0x7000 }, ..call(9, 0, [0; 3]) },
        from(9, 9),
        waits(10),
    ];
    let findings = lint(&record("1", ""), &events).findings;
    let found: Vec<_> = findings.iter().map(|one| (one.rule, one.n, one.callers.as_deref())).collect();
    assert_eq!(
        found,
        [
            (Rule::PageFault, 1, None),
            (Rule::Memory, 2, Some("label 5")),
            (Rule::Terminal, 1, Some("label 8")),
        ]
    );
}

#[test]
fn a_page_fault_has_its_place_and_the_time_that_the_thread_slept_in_it() {
    let fault = |ts_ns, page: u64| WatchEvent {
        what: What::PageFault { address: page * 0x1000 + 8 },
        ..call(ts_ns, 0, [0; 3])
    };
    let from = |ts_ns, label| WatchEvent { what: What::Callers(label), ..call(ts_ns, 0, [0; 3]) };
    let sleeps = |ts_ns| leaves(ts_ns, FIFO_60, Leaves::Sleeps);
    let runs = |ts_ns| {
        let prios = [NICE_0, FIFO_60].map(Prio::new);
        let what = What::Switch { prev: (0, 0), leaves: Leaves::Runnable, next: (CONTROL, 0), prios };
        WatchEvent { ts_ns, cpu: 0, pid: 0, in_task: true, what }
    };
    let contends = |ts_ns| WatchEvent {
        what: What::Contends { lock: 1, kind: OwnedKind::RwSemaphore, name: None },
        ..call(ts_ns, 0, [0; 3])
    };
    let turn = |ts_ns| {
        [
            call(ts_ns, CLOCK_NANOSLEEP, [1, 1, 0]),
            sleeps(ts_ns),
            WatchEvent { what: What::CallExit { result: 0 }, ..call(ts_ns, 0, [0; 3]) },
        ]
    };
    let faults = [
        fault(11, 7),
        from(12, 5),
        // Twice in the same fault.
        sleeps(13),
        runs(43),
        sleeps(44),
        runs(49),
        // A fault without sleep, and without a stack of its own.
        fault(50, 8),
        // What it sleeps for behind a call, or for a lock, is no page.
        fault(60, 9),
        call(61, MMAP, [0; 3]),
        from(61, 6),
        sleeps(62),
        runs(99),
        fault(100, 10),
        contends(101),
        from(101, 7),
        sleeps(102),
        runs(199),
    ];
    let events: Vec<_> = turn(0).into_iter().chain(faults).chain(turn(200)).collect();
    let record = record("1", "");
    let found = |recorded: Recorded| {
        let mut lint = Lint::new(&record, recorded);
        events.iter().for_each(|event| lint.event(event));
        lint.finish();
        let mut findings = lint.section(&|_| "control".to_owned(), &text, None).findings;
        findings.retain(|one| one.rule == Rule::PageFault);
        assert_eq!(findings.len(), 1);
        findings.remove(0)
    };
    let all = found(Recorded { fault_stacks: true, ..ALL });
    assert_eq!((all.n, all.detail.as_str(), all.first_ns), (4, "at 0x7000", Some(11)));
    assert_eq!(all.callers.as_deref(), Some("label 5"));
    assert_eq!(all.faults, Some(Faults { slept: 1, longest_ns: 35, locked_kib: Some(64) }));
    // The trace may lack the switches by which it came back: its next event shows that it has a CPU.
    let mut lint = Lint::new(&record, Recorded { fault_stacks: true, ..ALL });
    let came = |event: &&WatchEvent| matches!(event.what, What::Switch { next: (CONTROL, _), .. });
    events.iter().filter(|event| !came(event)).for_each(|event| lint.event(event));
    lint.finish();
    let findings = lint.section(&|_| "control".to_owned(), &text, None).findings;
    let unseen = findings.into_iter().find_map(|one| one.faults).unwrap();
    assert_eq!((unseen.slept, unseen.longest_ns), (1, 37));
    // Where faults are recorded without stacks, the next stack is that of another event.
    let all = found(ALL);
    assert_eq!((all.n, all.callers, all.faults.unwrap().slept), (4, None, 1));
}
