//! What an isolation leaves where it is because its user says so: tasks by process, name, control
//! group or policy, interrupts by number or name. It is asked of the machine anew each time, so
//! that a thread which starts later is known too.

use super::placed::{Placed, Started};
use machine::{Irq, KernelThread, Policy, Root, UserThread, lineage, memberships, process, thread, wildcard};
use model::Error;
use std::fmt;
use std::str::FromStr;

/// The kernel's names of tasks have no more bytes.
const NAME: usize = 15;

/// One thing to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// A process with its threads and what it starts, or one thread; no start until [`Keep::found`]
    /// has looked for it.
    Process {
        /// Its number.
        pid: u32,
        /// When it started, in clock ticks since boot.
        start: Option<u64>,
    },
    /// Threads of this name, and processes of it with all their threads; `*` stands for any part.
    Name(String),
    /// What runs in this control group or below.
    Group(String),
    /// Threads of these policies.
    Policies {
        /// As the user named them.
        name: String,
        /// The policies.
        policies: Vec<Policy>,
    },
    /// An interrupt.
    Interrupt(u32),
    /// Interrupts with a handler of this name; `*` stands for any part.
    InterruptName(String),
}

impl FromStr for Keep {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || {
            let expected = "a PID, a task's name, /CONTROL/GROUP, irq:NUMBER, irq:NAME, or policy:fifo, rr, deadline or realtime";
            Error::invalid("--keep", format!("{text:?} names nothing"), expected)
        };
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
        let (kind, rest) = text.split_once(':').unwrap_or(("", text));
        if rest.is_empty() {
            return Err(bad());
        }
        match kind {
            "pid" => match rest.split_once('-') {
                Some((pid, start)) => {
                    let known = number(pid).zip(start.parse().ok());
                    known.map(|(pid, start)| Self::Process { pid, start: Some(start) }).ok_or_else(bad)
                }
                None => number(rest).map(|pid| Self::Process { pid, start: None }).ok_or_else(bad),
            },
            "irq" => Ok(rest.parse().map_or_else(|_| Self::InterruptName(rest.to_owned()), Self::Interrupt)),
            "policy" if rest == "realtime" => {
                let policies = vec![Policy::Fifo, Policy::Rr, Policy::Deadline];
                Ok(Self::Policies { name: rest.to_owned(), policies })
            }
            "policy" => {
                let policies = vec![Policy::of_name(rest).ok_or_else(bad)?];
                Ok(Self::Policies { name: rest.to_owned(), policies })
            }
            "cgroup" => group(rest).ok_or_else(bad),
            "comm" => Ok(Self::Name(rest.to_owned())),
            _ if text.starts_with('/') => group(text).ok_or_else(bad),
            _ => {
                let name = || Self::Name(text.to_owned());
                Ok(number(text).map_or_else(name, |pid| Self::Process { pid, start: None }))
            }
        }
    }
}

/// As `/proc/PID/cgroup` spells it; below the root, which has everything.
fn group(path: &str) -> Option<Keep> {
    let path = path.strip_prefix("/sys/fs/cgroup").unwrap_or(path).trim_matches('/');
    (!path.is_empty()).then(|| Keep::Group(format!("/{path}")))
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, start: None } => write!(f, "pid:{pid}"),
            Self::Process { pid, start: Some(start) } => write!(f, "pid:{pid}-{start}"),
            Self::Name(name) => write!(f, "comm:{name}"),
            Self::Group(path) => write!(f, "cgroup:{path}"),
            Self::Policies { name, .. } => write!(f, "policy:{name}"),
            Self::Interrupt(number) => write!(f, "irq:{number}"),
            Self::InterruptName(name) => write!(f, "irq:{name}"),
        }
    }
}

impl Keep {
    /// The same with the process that has the number now: another one may have it later. Error:
    /// there is none.
    pub fn found(self, root: &Root) -> Result<Self, Error> {
        let Self::Process { pid, start: None } = self else { return Ok(self) };
        let captured = || thread(root, pid).map(|thread| thread.start);
        let start = lineage(root, pid).map(|line| line.start).or_else(captured);
        let start = start.ok_or_else(|| {
            Error::invalid("--keep", format!("no process or thread has the number {pid}"), "one that runs")
        })?;
        Ok(Self::Process { pid, start: Some(start) })
    }

    /// Whether it outlives the process it is given to.
    pub fn is_lasting(&self) -> bool {
        !matches!(self, Self::Process { .. })
    }

    /// Whether it is about a thread of this process.
    pub(super) fn has_thread(&self, root: &Root, thread: &UserThread) -> bool {
        match self {
            Self::Process { pid, start } => {
                let start = start.unwrap_or_default();
                (thread.tid, thread.start) == (*pid, start)
                    || i32::try_from(*pid)
                        .is_ok_and(|pid| Placed::of(vec![Started { pid, start }]).has(root, thread.pid))
            }
            Self::Name(name) => is_named(name, &thread.name) || is_named(name, &process_name(root, thread)),
            Self::Group(path) => {
                let groups = memberships(root, thread.pid).unwrap_or_default();
                groups.iter().any(|own| is_below(&own.path, path))
            }
            Self::Policies { policies, .. } => policies.contains(&thread.policy),
            Self::Interrupt(_) | Self::InterruptName(_) => false,
        }
    }

    /// Whether it is about a kernel thread; that of an interrupt goes with it.
    pub(super) fn has_kernel_thread(&self, thread: &KernelThread) -> bool {
        let of_interrupt = || thread.name.strip_prefix("irq/")?.split_once('-');
        match self {
            Self::Process { pid, start } => thread.pid == *pid && Some(thread.start) == *start,
            Self::Name(name) => is_named(name, &thread.name),
            Self::Interrupt(number) => of_interrupt().is_some_and(|(own, _)| own.parse() == Ok(*number)),
            // The kernel cuts the handler's name to what room is left.
            Self::InterruptName(name) => of_interrupt().is_some_and(|(_, own)| {
                wildcard(name, own) || (thread.name.len() == NAME && name.starts_with(own))
            }),
            Self::Group(_) | Self::Policies { .. } => false,
        }
    }

    /// Whether it is about an interrupt.
    pub(super) fn has_interrupt(&self, irq: &Irq) -> bool {
        match self {
            Self::Interrupt(number) => irq.number == *number,
            Self::InterruptName(name) => irq.names.iter().any(|own| wildcard(name, own)),
            _ => false,
        }
    }
}

fn is_named(name: &str, own: &str) -> bool {
    let cut = || name.len() > NAME && !name.contains('*') && name.get(..NAME) == Some(own);
    wildcard(name, own) || cut()
}

fn process_name(root: &Root, thread: &UserThread) -> String {
    if thread.tid == thread.pid {
        return thread.name.clone();
    }
    process(root, thread.pid).map(|process| process.name).unwrap_or_default()
}

fn is_below(own: &str, path: &str) -> bool {
    own.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;

    fn keep(text: &str) -> Keep {
        text.parse().unwrap()
    }

    #[test]
    fn every_spelling_is_read_and_written() {
        for (text, written) in [
            ("812", "pid:812"),
            ("pid:812-5000", "pid:812-5000"),
            ("rtapp", "comm:rtapp"),
            ("comm:812", "comm:812"),
            ("/system.slice/rt.service/", "cgroup:/system.slice/rt.service"),
            ("/sys/fs/cgroup/rt", "cgroup:/rt"),
            ("irq:30", "irq:30"),
            ("irq:eth0-rx*", "irq:eth0-rx*"),
            ("policy:fifo", "policy:fifo"),
            ("policy:realtime", "policy:realtime"),
            ("a:b", "comm:a:b"),
        ] {
            assert_eq!(keep(text).to_string(), written, "{text}");
            assert_eq!(keep(written), keep(text), "{text}");
        }
        for text in ["", "irq:", "pid:x", "pid:0", "policy:fast", "/", "cgroup:/sys/fs/cgroup"] {
            let error = text.parse::<Keep>().unwrap_err().to_string();
            assert!(error.contains("names nothing") && error.lines().count() == 1, "{text}: {error}");
        }
    }

    fn thread(tid: u32, pid: u32, name: &str, policy: Policy) -> UserThread {
        let (name, allowed) = (name.to_owned(), "3".parse().unwrap());
        UserThread { tid, pid, name, start: 5, allowed, last: 3, policy, priority: 0 }
    }

    #[test]
    fn tasks_are_known_by_process_name_group_and_policy() {
        let zeros = "0 ".repeat(15);
        let stat = |pid: u32, parent: u32| format!("{pid} (rtapp) S {parent} 7 7 {zeros}5 0 0");
        let (_dir, root) = tree(&[
            ("proc/7/stat", &stat(7, 1)),
            ("proc/9/stat", &stat(9, 7)),
            ("proc/7/cgroup", "0::/system.slice/rt.service\n"),
        ]);
        let worker = thread(8, 7, "loop", Policy::Fifo);
        let child = thread(9, 9, "helper", Policy::Other);
        for (text, of_worker, of_child) in [
            ("7", true, true),
            ("pid:7-6", false, false),
            ("8", false, false),
            ("rtapp", true, false),
            ("loop", true, false),
            ("help*", false, true),
            ("/system.slice", true, false),
            ("/system", false, false),
            ("policy:fifo", true, false),
            ("policy:rr", false, false),
            ("irq:7", false, false),
        ] {
            let keep = keep(text);
            // Number 8 is a thread's, of which this tree has no file.
            let keep = if text == "8" { keep } else { keep.found(&root).unwrap() };
            assert_eq!(
                (keep.has_thread(&root, &worker), keep.has_thread(&root, &child)),
                (of_worker, of_child),
                "{text}"
            );
        }
        assert!(keep("pid:8-5").has_thread(&root, &worker), "the thread alone");
        assert!(keep("99").found(&root).unwrap_err().to_string().contains("no process or thread"));
        assert!(is_named("a-name-of-twenty-bytes", "a-name-of-twent"));
    }

    #[test]
    fn interrupts_are_known_by_number_and_name_and_their_threads_with_them() {
        let set = "3".parse::<model::Cpus>().unwrap();
        let irq = Irq {
            number: 30,
            names: vec!["eth0-rx-0".to_owned()],
            allowed: set.clone(),
            effective: set.clone(),
            movable: Some(true),
        };
        let name = "irq/30-eth0-rx-".to_owned();
        let thread = KernelThread {
            pid: 50,
            name,
            start: 5,
            allowed: set,
            movable: true,
            policy: Policy::Fifo,
            priority: 50,
            last: None,
        };
        for (text, expected) in
            [("irq:30", true), ("irq:eth0-rx-0", true), ("irq:eth0*", true), ("irq:3", false)]
        {
            assert_eq!(keep(text).has_interrupt(&irq), expected, "{text}");
            assert_eq!(keep(text).has_kernel_thread(&thread), expected, "{text}");
        }
        assert!(!keep("policy:fifo").has_kernel_thread(&thread));
    }
}
