//! All threads of a program, event by event.

use super::facts;
use super::kernel_threads::KernelThreads;
use super::rules::Rule;
use super::shape::{Faults, Finding, LintSection, NotApplied};
use super::signals;
use super::thread::ThreadLint;
use crate::attribute::locks::shape::{EveryLock, FreeSignal, LockKind, LockSection};
use crate::attribute::watch::event::{Leaves, WatchEvent, What};
use crate::labels::LabelId;
use crate::prio::Prio;
use model::syscalls::{self, Misuse, Wait};
use model::watch::WatchRecord;
use rustc_hash::FxHashMap;

/// `TIMER_ABSTIME`, include/uapi/linux/time.h.
const ABSOLUTE: u64 = 1;

/// The mistakes of a program while its trace streams by.
pub(crate) struct Lint<'r> {
    record: &'r WatchRecord,
    /// Threads of the program, with their processes where known.
    processes: FxHashMap<i32, i32>,
    threads: FxHashMap<i32, ThreadLint>,
    kernel_threads: KernelThreads,
    recorded: Recorded,
}

/// What the events show besides calls and the scheduler's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded {
    /// Page faults.
    pub(crate) faults: bool,
    /// Each of them with where in the program it was.
    pub(crate) fault_stacks: bool,
    /// Every locking, and every signal of a condition.
    pub(crate) every_locking: bool,
}

impl<'r> Lint<'r> {
    pub(crate) fn new(record: &'r WatchRecord, recorded: Recorded) -> Self {
        let processes: FxHashMap<i32, i32> = record.tasks.iter().map(|task| (task.tid, task.tgid)).collect();
        let waits = |number| syscalls::by_number(&record.arch, number).map(|call| call.wait);
        let thread = |task: &model::watch::WatchedTask| {
            if task.before {
                ThreadLint::new(task.syscall.and_then(|call| waits(call.number)))
            } else {
                ThreadLint::default()
            }
        };
        let threads = record.tasks.iter().map(|task| (task.tid, thread(task))).collect();
        let kernel_threads = KernelThreads::new(record.lint.as_ref());
        Self { record, processes, threads, kernel_threads, recorded }
    }

    /// Takes the next event.
    pub(crate) fn event(&mut self, event: &WatchEvent) {
        // Whoever does something has a CPU, though the trace may lack the switch.
        if event.in_task {
            self.threads.get_mut(&event.pid).into_iter().for_each(|thread| thread.runs(event.ts_ns));
        }
        match event.what {
            What::Switch { prev, next, leaves, prios } => {
                self.kernel_threads.runs(next.0, prios[1]);
                if let Some(thread) = self.threads.get_mut(&prev.0) {
                    match leaves {
                        Leaves::Ended => thread.ended(),
                        _ => thread.leaves(prios[0], leaves.waits(), event.ts_ns),
                    }
                }
                self.threads.get_mut(&next.0).into_iter().for_each(|thread| thread.runs(event.ts_ns));
            }
            What::Waking { task: (tid, _), .. } if event.in_task => {
                let Self { threads, kernel_threads, .. } = self;
                let Some(thread) = threads.get_mut(&tid) else { return };
                let waker = thread.waits_as().and_then(|prio| kernel_threads.below(event.pid, prio));
                if let Some(waker) = waker {
                    thread.is_woken(Rule::KernelThread, || waker, event.ts_ns);
                }
            }
            What::Fork { parent, child } if self.threads.contains_key(&parent) => {
                self.threads.entry(child).or_default();
            }
            What::CallEnter { number, arguments } => self.call(event, number, arguments),
            What::Callers(callers) => {
                self.threads.get_mut(&event.pid).into_iter().for_each(|thread| thread.came_from(callers));
            }
            What::Boost { pid, raised } => {
                if let Some(thread) = self.threads.get_mut(&pid) {
                    thread.inherits = raised;
                }
            }
            What::CallExit { .. } => {
                if let Some(thread) = self.threads.get_mut(&event.pid) {
                    thread.did_other();
                    thread.returns();
                }
            }
            What::PageFault { address } if event.in_task => {
                if let Some(thread) = self.threads.get_mut(&event.pid) {
                    thread.faults(address, event.ts_ns);
                    if !self.recorded.fault_stacks {
                        // The next stack is that of whatever comes behind it.
                        thread.stays_unplaced();
                    }
                }
            }
            // What it sleeps for now is a lock: those are counted as such.
            What::Contends { .. } => {
                self.threads.get_mut(&event.pid).into_iter().for_each(ThreadLint::did_other);
            }
            What::Delivered { signal, handled: true } => {
                if let Some(thread) = self.threads.get_mut(&event.pid) {
                    thread.did(Rule::Signal, || signals::name(signal), event.ts_ns);
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, event: &WatchEvent, number: u64, arguments: [u64; 3]) {
        let Self { record, processes, threads, .. } = self;
        // Only the program's own threads make calls in this trace.
        let thread = threads.entry(event.pid).or_default();
        thread.calls();
        let (arch, ts_ns) = (record.arch.as_str(), event.ts_ns);
        thread.in_wait = syscalls::by_number(arch, number).map(|call| call.wait).filter(|wait| match wait {
            Wait::Descriptor => {
                let target = record.target(processes.get(&event.pid), arguments[0]);
                target.is_some_and(|target| of_file(target).is_none())
            }
            Wait::Other => false,
            _ => true,
        });
        if let Some(one) = syscalls::lint_by_number(arch, number) {
            let rule = match one.misuse {
                Misuse::Memory => Rule::Memory,
                Misuse::File => Rule::File,
                Misuse::Thread => Rule::Thread,
                Misuse::Policy => {
                    // A main thread has no creator that could have given it one.
                    let is_main = processes.get(&event.pid) == Some(&event.pid);
                    if [0, event.pid].contains(&(arguments[0] as i32)) && !is_main {
                        thread.sets_policy(ts_ns);
                    }
                    return;
                }
            };
            if one.call.name == "execve" {
                thread.executes();
            }
            thread.did(rule, || one.call.name.to_owned(), ts_ns);
            return;
        }
        let Some(call) = syscalls::by_number(arch, number) else { return };
        match (call.wait, call.name) {
            (_, "nanosleep") => thread.did(Rule::RelativeSleep, || call.name.to_owned(), ts_ns),
            (_, "clock_nanosleep") if arguments[1] & ABSOLUTE == 0 => {
                thread.did(Rule::RelativeSleep, || call.name.to_owned(), ts_ns);
            }
            (_, "fsync" | "fdatasync" | "flock") => {
                thread.did(Rule::File, || call.name.to_owned(), ts_ns);
            }
            (Wait::Descriptor, _) => {
                let target = record.target(processes.get(&event.pid), arguments[0]);
                if let Some((rule, target)) = target.and_then(|target| Some((of_file(target)?, target))) {
                    thread.did(rule, || format!("{} of {target}", call.name), ts_ns);
                }
            }
            _ => {}
        }
    }

    /// Events are missing: nothing follows from it, since only what was seen is reported.
    pub(crate) fn finish(&mut self) {
        self.threads.values_mut().filter(|thread| !thread.has_no_loop()).for_each(ThreadLint::waits);
    }

    /// The section. `comm`: the name of a task; `text`: that of a label; `locks`: what is known of
    /// them.
    pub(crate) fn section(
        &self,
        comm: &dyn Fn(i32) -> String,
        text: &dyn Fn(LabelId) -> String,
        locks: Option<&LockSection>,
    ) -> LintSection {
        let mut findings = Vec::new();
        for (tid, thread) in &self.threads {
            let Some(prio) = thread.realtime else { continue };
            findings.extend(thread.found.iter().map(|(found, count)| Finding {
                rule: found.rule,
                tid: *tid,
                comm: comm(*tid),
                prio: prio.number(),
                detail: found.detail.clone(),
                n: count.n,
                first_ns: Some(count.first_ns),
                callers: count.callers.map(text),
                faults: (found.rule == Rule::PageFault).then(|| Faults {
                    slept: count.slept.n,
                    longest_ns: count.slept.longest_ns,
                    locked_kib: facts::locked_kib(self.record, *tid),
                }),
                suppressed: false,
            }));
            findings.extend(facts::of_thread(self.record, *tid, prio).into_iter().map(|fact| Finding {
                rule: fact.rule,
                tid: *tid,
                comm: comm(*tid),
                prio: prio.number(),
                detail: fact.detail,
                n: 1,
                first_ns: None,
                callers: None,
                faults: None,
                suppressed: false,
            }));
        }
        findings.extend(locks.into_iter().flat_map(|section| self.without_inheritance(section)));
        let every = locks.and_then(|section| section.every.as_ref());
        findings.extend(every.into_iter().flat_map(|every| self.without_mutex(every)));
        merge_faults(&mut findings);
        findings
            .sort_by(|a, b| (a.rule, &a.comm, a.tid, &a.detail).cmp(&(b.rule, &b.comm, b.tid, &b.detail)));
        LintSection {
            findings,
            not_applied: self.not_applied(comm, locks),
            threads: self.threads.values().filter(|thread| thread.realtime.is_some()).count() as u64,
            unused: Vec::new(),
        }
    }

    /// Waits of real-time threads for locks that do not inherit, with a less urgent holder.
    fn without_inheritance(&self, section: &LockSection) -> Vec<Finding> {
        let urgency = |prio: Option<i16>| prio.map_or(Prio::UNKNOWN, |prio| Prio::new(i64::from(prio)));
        let mut all = Vec::new();
        for lock in section.locks.iter().filter(|lock| may_lack_inheritance(lock.kind)) {
            let Some(holder) = lock.holders.iter().max_by_key(|holder| holder.thread.prio) else { continue };
            let holds = urgency(holder.thread.prio);
            for waiter in &lock.waiters {
                let Some(thread) = self.threads.get(&waiter.thread.tid) else { continue };
                let Some(prio) = thread.realtime else { continue };
                // The C library holds a new thread back until it is set up.
                let is_start = thread.is_new()
                    && thread.first_wait_ns.is_none_or(|first_ns| waiter.first_ns <= first_ns);
                let waits = waiter.waited.map_or(0, |waited| waited.n) + waiter.lasting;
                let n = waits - u64::from(is_start && waits > 0);
                if n > 0 && holds.is_known() && holds > prio {
                    let name = format!("{} {:#x}", lock.kind.words(), lock.word);
                    all.push(Finding {
                        rule: Rule::NoInheritance,
                        tid: waiter.thread.tid,
                        comm: waiter.thread.comm.clone(),
                        prio: prio.number(),
                        detail: format!("{name}, held by {}", holder.thread.comm),
                        n,
                        first_ns: (!is_start).then_some(waiter.first_ns),
                        callers: None,
                        faults: None,
                        suppressed: false,
                    });
                }
            }
        }
        all
    }

    /// Conditions that were signalled without their mutex, where one of the threads is real-time.
    fn without_mutex(&self, every: &EveryLock) -> Vec<Finding> {
        let is_realtime = |tid: i32| self.threads.get(&tid).is_some_and(|thread| thread.realtime.is_some());
        let of = |one: &FreeSignal| {
            let waiter = one.waiters.iter().find(|waiter| is_realtime(waiter.tid));
            let waiter = waiter.or_else(|| one.waiters.first().filter(|_| is_realtime(one.thread.tid)))?;
            Some(Finding {
                rule: Rule::Condition,
                tid: one.thread.tid,
                comm: one.thread.comm.clone(),
                prio: one.thread.prio,
                detail: format!(
                    "condition {:#x}, for which {} waited with mutex {:#x}",
                    one.condition, waiter.comm, one.mutex
                ),
                n: one.n,
                first_ns: Some(one.first_ns),
                callers: one.callers.clone(),
                faults: None,
                suppressed: false,
            })
        };
        every.signals.iter().filter_map(of).collect()
    }

    fn not_applied(&self, comm: &dyn Fn(i32) -> String, locks: Option<&LockSection>) -> Vec<NotApplied> {
        let mut all = Vec::new();
        if !self.recorded.every_locking {
            let why = "signals of conditions were not recorded; --locks=every records them";
            all.push(NotApplied { rule: Rule::Condition, why: why.to_owned() });
        }
        if !self.recorded.faults {
            let why =
                "page faults were not recorded: this kernel has no exceptions:page_fault_user (x86 only)";
            all.push(NotApplied { rule: Rule::PageFault, why: why.to_owned() });
        }
        if locks.is_some_and(|locks| locks.locks.iter().any(|lock| lock.kind == LockKind::ByValue)) {
            let why = "the memory of locks was not recorded: what looks like a mutex may be a futex of the program's own";
            all.push(NotApplied { rule: Rule::NoInheritance, why: why.to_owned() });
        }
        let mut without: Vec<String> = self
            .threads
            .iter()
            .filter(|(_, thread)| thread.has_no_loop())
            .map(|(tid, _)| format!("{}[{tid}]", comm(*tid)))
            .collect();
        without.sort();
        if !without.is_empty() {
            let why = format!(
                "{} did not wait while recorded, so that no loop is known: page faults, memory, sleeps, signals, files, terminals and threads were not judged there",
                without.join(", ")
            );
            all.push(NotApplied { rule: Rule::Memory, why });
        }
        all
    }
}

/// Locks of the program that are known as such, and may not inherit.
fn may_lack_inheritance(kind: LockKind) -> bool {
    !matches!(kind, LockKind::Inheriting | LockKind::ByValue | LockKind::Unknown) && !kind.is_of_kernel()
}

/// The rule that a descriptor breaks: files and terminals; what is made for messages breaks none.
fn of_file(target: &str) -> Option<Rule> {
    let terminal = ["/dev/pts/", "/dev/tty", "/dev/console"];
    match target {
        _ if terminal.iter().any(|start| target.starts_with(start)) => Some(Rule::Terminal),
        _ if target.starts_with("/dev/") || target.starts_with("/memfd:") => None,
        _ if target.starts_with('/') => Some(Rule::File),
        _ => None,
    }
}

/// One finding a thread for all its page faults: addresses are of no use by the hundred.
fn merge_faults(findings: &mut Vec<Finding>) {
    let mut merged: FxHashMap<i32, Finding> = FxHashMap::default();
    // What is said of all is of the first.
    findings.sort_by_key(|finding| finding.first_ns);
    findings.retain(|finding| {
        if finding.rule != Rule::PageFault {
            return true;
        }
        let faults = finding.faults.map(|faults| Faults { slept: 0, ..faults });
        let all = merged.entry(finding.tid).or_insert_with(|| Finding { n: 0, faults, ..finding.clone() });
        all.n += finding.n;
        if let (Some(all), Some(one)) = (&mut all.faults, finding.faults) {
            all.slept += one.slept;
            all.longest_ns = all.longest_ns.max(one.longest_ns);
        }
        if all.callers.is_none() {
            all.callers.clone_from(&finding.callers);
        }
        false
    });
    findings.extend(merged.into_values());
}
