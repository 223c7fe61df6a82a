//! Names of processes that have ended before they could be asked, and who sets affinities: from a
//! tracing instance of our own.
//!
//! `task:task_newtask` and `task:task_rename` give each process its name when it is made and when
//! it becomes another program; they cost something where processes begin, and nothing else. A probe
//! of `sched_setaffinity` sees who calls it, where the kernel has kprobes. Switching these on
//! patches the kernel's text once, when holding begins: an IPI to every CPU. Buffers are of the
//! housekeeping CPUs, small, and read in passing; what they lost is not known.

use journal::session::Session;
use model::Cpus;
use record::changes::{Kprobe, TraceInstance};
use record::instance::Instance;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use sys::tracefs;

/// Names that are kept: of the processes that began last.
const MOST: usize = 4096;
/// Of each CPU, KiB.
const BUFFER_KIB: u64 = 32;
/// Our probe, `group/name`.
const PROBE: &str = "stillcore/setaffinity";
/// `sched_setaffinity(pid_t pid, …)` of Linux kernel/sched: its first argument.
const FUNCTION: &str = "sched_setaffinity target=$arg1:s32";

/// What the trace says.
#[derive(Debug, Default)]
struct Seen {
    names: BTreeMap<u32, String>,
    /// In the order of their beginning.
    order: VecDeque<u32>,
    /// Task, and who has set its affinity last.
    pinned: BTreeMap<u32, u32>,
}

/// The instance, as long as it is held.
pub(super) struct Names {
    trace: Option<Trace>,
    why_not: Option<String>,
    seen: Seen,
}

struct Trace {
    session: Session,
    pipe: File,
    /// The beginning of a line whose end is yet to be read.
    begun: String,
    affinities: bool,
}

impl Names {
    /// Without a trace.
    pub(super) fn none(why: &str) -> Self {
        Self { trace: None, why_not: Some(why.to_owned()), seen: Seen::default() }
    }

    /// Switches the events on; what keeps it from that is no error.
    pub(super) fn begin(state: &Path, cpus: &Cpus) -> Self {
        if !sys::process::in_first_pid_namespace() {
            return Self::none("this PID namespace has other numbers than the kernel's events");
        }
        match open(state, cpus) {
            Ok(trace) => Self { trace: Some(trace), why_not: None, seen: Seen::default() },
            Err(error) => Self::none(&format!("{error:#}")),
        }
    }

    /// Why there is no trace.
    pub(super) fn why_not(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// Whether calls that set affinities are seen.
    pub(super) fn sees_affinities(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.affinities)
    }

    /// Takes in what has been recorded since.
    pub(super) fn read(&mut self) {
        let Some(trace) = &mut self.trace else { return };
        let mut bytes = [0u8; 1 << 13];
        while let Ok(length) = trace.pipe.read(&mut bytes) {
            if length == 0 {
                break;
            }
            trace.begun.push_str(&String::from_utf8_lossy(&bytes[..length]));
            while let Some(end) = trace.begun.find('\n') {
                let line: String = trace.begun.drain(..=end).collect();
                self.seen.line(&line);
            }
        }
    }

    /// The last name that a process had.
    pub(super) fn of(&self, pid: u32) -> Option<&str> {
        self.seen.names.get(&pid).map(String::as_str)
    }

    /// Who has set the affinity of a task last.
    pub(super) fn pinned_by(&self, tid: u32) -> Option<u32> {
        self.seen.pinned.get(&tid).copied()
    }

    /// Forgets who has set affinities, but those of these tasks: the others are right.
    pub(super) fn forget_affinities_but(&mut self, tids: &BTreeSet<u32>) {
        self.seen.pinned.retain(|target, _| tids.contains(target));
    }

    /// Takes the instance away.
    pub(super) fn end(self) -> Vec<String> {
        match self.trace {
            Some(Trace { session, pipe, .. }) => {
                // An instance that is read cannot be removed.
                drop(pipe);
                session.close()
            }
            None => Vec::new(),
        }
    }
}

fn open(state: &Path, cpus: &Cpus) -> anyhow::Result<Trace> {
    let mut session = Session::open(&std::env::current_exe()?, state)?;
    match begin(&mut session, cpus) {
        Ok((pipe, affinities)) => Ok(Trace { session, pipe, begun: String::new(), affinities }),
        Err(error) => {
            session.close();
            Err(error)
        }
    }
}

fn begin(session: &mut Session, cpus: &Cpus) -> anyhow::Result<(File, bool)> {
    let tracefs = session.tracefs()?;
    // Before the instance, so that undoing, newest first, removes what uses it first.
    let probe = define(session, &tracefs);
    let path = Instance::path_of(&tracefs, &format!("stillcore-hold-{}", std::process::id()));
    let make = || Instance::create(path.clone(), cpus, BUFFER_KIB);
    let (instance, _) = session.change(TraceInstance { path: path.clone() }, make)?;
    instance.overwrite()?;
    for event in ["task:task_newtask", "task:task_rename"] {
        anyhow::ensure!(instance.enable_all(event)?, "this kernel has no event {event}");
    }
    let affinities = probe && instance.enable_all(&PROBE.replace('/', ":")).unwrap_or(false);
    instance.record(true)?;
    Ok((tracefs::open_without_waiting(&path.join("trace_pipe"))?, affinities))
}

/// Whether there is an event of `sched_setaffinity` now.
fn define(session: &mut Session, tracefs: &Path) -> bool {
    let file = tracefs.join("kprobe_events");
    let make = || tracefs::write(&file, &format!("p:{PROBE} {FUNCTION}\n"));
    let change = Kprobe { file: file.clone(), event: PROBE.to_owned() };
    file.exists() && session.change(change, make).is_ok()
}

impl Seen {
    /// A line of `trace_pipe` (Linux kernel/trace/trace_output.c):
    /// `NAME-PID [CPU] FLAGS TIME: EVENT: FIELDS`. Names are whatever their owners like, so that
    /// the last place is taken where a name may look like the rest.
    fn line(&mut self, line: &str) {
        if let Some((_, fields)) = line.split_once(": task_newtask: ") {
            let named = number(fields, "pid=").zip(between(fields, " comm=", " clone_flags="));
            self.name(named);
        } else if let Some((before, fields)) = line.split_once(": task_rename: ") {
            // Since 6.14 the event does not repeat its own number.
            let pid = number(fields, "pid=").or_else(|| caller(before));
            self.name(
                pid.zip(
                    between(fields, " newcomm=", " oom_score_adj=")
                        .or_else(|| between(fields, "newcomm=", " oom_score_adj=")),
                ),
            );
        } else if let Some((before, fields)) = line.split_once(": setaffinity: ") {
            let target = fields.rsplit_once("target=").and_then(|(_, word)| word.trim().parse().ok());
            if let (Some(by), Some(target)) = (caller(before), target) {
                if self.pinned.len() >= MOST {
                    self.pinned.clear();
                }
                // 0 is the caller itself.
                self.pinned.insert(if target == 0 { by } else { target }, by);
            }
        }
    }

    fn name(&mut self, named: Option<(u32, String)>) {
        let Some((pid, name)) = named else { return };
        if self.names.insert(pid, name).is_none() {
            self.order.push_back(pid);
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.names.remove(&oldest);
        }
    }
}

fn number(fields: &str, before: &str) -> Option<u32> {
    fields.strip_prefix(before)?.split(' ').next()?.parse().ok()
}

fn between(fields: &str, before: &str, after: &str) -> Option<String> {
    let (left, _) = fields.rsplit_once(after)?;
    Some(left.rsplit_once(before)?.1.to_owned())
}

/// The number in `NAME-PID [CPU] FLAGS TIME`.
fn caller(before: &str) -> Option<u32> {
    let (left, _) = before.rsplit_once(" [")?;
    left.trim_end().rsplit_once('-')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_the_kernel_s_lines_whatever_processes_are_called() {
        let mut seen = Seen::default();
        for line in [
            "           sh-7       [001] .....  12.000001: task_newtask: pid=9 comm=sh clone_flags=1200000 oom_score_adj=0",
            "        <...>-9       [001] .....  12.000002: task_rename: pid=9 oldcomm=sh newcomm=tee oom_score_adj=0",
            "   a-5 [000] x-10      [003] .....  12.000003: task_rename: oldcomm=a newcomm=b c newcomm=irq tool oom_score_adj=0",
            "           sh-11      [001] .....  12.000001: task_newtask: pid=12 comm= comm=x clone_flags=0 oom_score_adj=0",
            "      taskset-13      [000] .....  12.000004: setaffinity: (sched_setaffinity+0x0/0x2a0) target=77",
            "  a-5 [000] y-14      [000] .....  12.000005: setaffinity: (sched_setaffinity+0x0/0x2a0) target=0",
            "CPU:2 [LOST 12 EVENTS]",
            "",
        ] {
            seen.line(line);
        }
        let name = |pid: u32| seen.names.get(&pid).map(String::as_str);
        assert_eq!([name(9), name(10), name(12), name(7)], [Some("tee"), Some("irq tool"), Some("x"), None]);
        assert_eq!(seen.pinned, BTreeMap::from([(77, 13), (14, 14)]));
    }

    #[test]
    fn only_the_last_names_are_kept() {
        let mut seen = Seen::default();
        for pid in 1..=10_000u32 {
            seen.line(&format!("x-1 [000] ..... 1.0: task_newtask: pid={pid} comm=x clone_flags=0"));
        }
        assert_eq!((seen.names.len(), seen.order.len()), (MOST, MOST));
        assert!(seen.names.contains_key(&10_000) && !seen.names.contains_key(&1));
    }
}
