//! The side of Cobalt (Xenomai 3.3) that threads are made by, and sleep by.
//!
//! It refuses what `bind`, `cobalt_sched_policy_param`, `cobalt_map_user` and `clock_nanosleep`
//! refuse (kernel/cobalt/posix/syscall.c, thread.c, process.c, clock.c). The heaps are memory of
//! this machine's kernel, and so are the clocks. The window by which the library sees that a
//! thread has left primary mode never says so, so it does not ask to go back.

use super::call::{Field, Line, flags};
use super::kernel::{Action, Call, Kernel};
use super::recording::THREAD;
use super::tasks::Task;
use std::collections::HashMap;
use std::io;

/// Set in the numbers of its calls (include/cobalt/uapi/syscall.h).
const CALL: i64 = 0x1000_0000;
const BIND: i64 = 0;
const THREAD_CREATE: i64 = 1;
const THREAD_SETMODE: i64 = 3;
const THREAD_SETNAME: i64 = 4;
const THREAD_JOIN: i64 = 5;
const THREAD_SETSCHEDPARAM: i64 = 7;
const THREAD_GETSCHEDPARAM: i64 = 8;
const CLOCK_NANOSLEEP: i64 = 25;
const MUTEX_INIT: i64 = 26;
const COND_INIT: i64 = 33;
const OPEN: i64 = 77;
const CLOSE: i64 = 79;
const IOCTL: i64 = 80;
const MMAP: i64 = 85;
const MIGRATE: i64 = 88;
const GET_CURRENT: i64 = 92;

const REVISION: u32 = 19;
const FEATURES: u32 = 0x8000_0000 | 0x2000_0000 | 0x0400_0000;
/// Highest of SCHED_FIFO (`XNSCHED_FIFO_MAX_PRIO`).
const HIGHEST: u32 = 256;
/// What there is on a kernel with the core.
const PRESENCE: &str = "/proc/xenomai";
/// A descriptor of the core: no program has one of Linux that is as high.
const HEAP_FD: i64 = 1 << 20;
const HEAP_BYTES: u32 = 1 << 16;
/// Where in the shared heap the window of every thread is.
const WINDOW: u32 = 0;

const REQUEST: [Field; 2] =
    [Field { name: "feat_req", offset: 0, size: 4 }, Field { name: "abi_rev", offset: 4, size: 4 }];
const PRIORITY: [Field; 1] = [Field { name: "sched_priority", offset: 0, size: 4 }];
const TIME: [Field; 2] =
    [Field { name: "tv_sec", offset: 0, size: 8 }, Field { name: "tv_nsec", offset: 8, size: 8 }];

#[derive(Debug, Default)]
pub(crate) struct Cobalt {
    bound: bool,
    /// Policy and priority of threads that have a twin.
    twins: HashMap<i32, (u32, u32)>,
    /// Threads in the order of their first calls, and those.
    lines: Vec<(i32, Vec<String>)>,
}

impl Cobalt {
    fn note(&mut self, task: &Task, line: String) {
        if let Some((_, lines)) = self.lines.iter_mut().find(|(tid, _)| *tid == task.tid) {
            lines.push(line);
        } else {
            self.lines.push((task.tid, vec![line]));
        }
    }

    fn core(&mut self, task: &Task, number: i64, args: [u64; 6]) -> io::Result<Action> {
        let (line, action) = match number {
            BIND => {
                let line = Line::of("bind").bytes(&task.read::<8>(args[0])?, &REQUEST);
                (line, Action::Answer(self.bind(task, args[0])?))
            }
            THREAD_CREATE..=THREAD_GETSCHEDPARAM | GET_CURRENT => {
                let (line, result) = self.of_threads(task, number, args)?;
                (line, Action::Answer(result))
            }
            CLOCK_NANOSLEEP => {
                let line = Line::of("clock_nanosleep").with("clock", args[0]);
                let line = line.with("flags", flags(args[1], &[(1, "absolute")]));
                let line = line.bytes(&task.read::<16>(args[2])?, &TIME).with("remaining", place(args[3]));
                let linux = Call { number: libc::SYS_clock_nanosleep, args };
                let refused = self.refused_sleep(task, args).map(|error| Action::Answer(-i64::from(error)));
                (line, refused.unwrap_or(Action::Instead(linux)))
            }
            MUTEX_INIT => (Line::of("mutex_init"), Action::Answer(0)),
            COND_INIT => (Line::of("cond_init"), Action::Answer(0)),
            OPEN => (Line::of("open").with("path", task.text(args[0])), Action::Answer(HEAP_FD)),
            CLOSE => (Line::of("close"), Action::Answer(0)),
            IOCTL => {
                task.write(args[2], &HEAP_BYTES.to_le_bytes())?;
                (Line::of("ioctl").with("request", format!("{:#x}", args[1])), Action::Answer(0))
            }
            MMAP => (Line::of("mmap"), Action::Instead(heap())),
            MIGRATE => (Line::of("migrate").with("domain", args[0]), Action::Answer(0)),
            other => (Line::of("call").with("number", other), Action::Answer(-i64::from(libc::ENOSYS))),
        };
        self.note(task, line.text());
        Ok(action)
    }

    fn of_threads(&mut self, task: &Task, number: i64, args: [u64; 6]) -> io::Result<(Line, i64)> {
        let twin = self.twins.get(&task.tid).copied();
        let unless_twin = |error: i32| if twin.is_some() { 0 } else { -i64::from(error) };
        Ok(match number {
            THREAD_CREATE => {
                let line = thread("thread_create", task, args[0]).with("policy", args[1]);
                let line = line.bytes(&task.read::<4>(args[2])?, &PRIORITY);
                task.write(args[4], &WINDOW.to_le_bytes())?;
                let result = self.create(task, args[1] as u32, task.read_u32(args[2])?);
                (line.with("personality", args[3] as i32), result)
            }
            THREAD_SETMODE => {
                let line = Line::of("thread_setmode").with("clear", format!("{:#x}", args[0]));
                let line = line.with("set", format!("{:#x}", args[1])).with("before", place(args[2]));
                (line, unless_twin(libc::EPERM))
            }
            THREAD_SETNAME => (Line::of("thread_setname").with("name", task.text(args[1])), 0),
            THREAD_JOIN => (Line::of("thread_join"), -i64::from(libc::ESRCH)),
            THREAD_SETSCHEDPARAM => {
                let line = thread("thread_setschedparam_ex", task, args[0]).with("policy", args[1]);
                task.write(args[3], &WINDOW.to_le_bytes())?;
                task.write(args[4], &1u32.to_le_bytes())?;
                self.twins.insert(task.tid, (args[1] as u32, task.read_u32(args[2])?));
                (line.bytes(&task.read::<4>(args[2])?, &PRIORITY), 0)
            }
            THREAD_GETSCHEDPARAM => {
                let (policy, priority) = twin.unwrap_or_default();
                task.write(args[1], &policy.to_le_bytes())?;
                task.write(args[2], &priority.to_le_bytes())?;
                (thread("thread_getschedparam_ex", task, args[0]), unless_twin(libc::ESRCH))
            }
            GET_CURRENT => {
                task.write(args[0], &1u32.to_le_bytes())?;
                (Line::of("get_current"), unless_twin(libc::EPERM))
            }
            other => (Line::of("call").with("number", other), -i64::from(libc::ENOSYS)),
        })
    }

    fn refused_sleep(&self, task: &Task, [clock, flags, ..]: [u64; 6]) -> Option<i32> {
        match (clock, flags) {
            _ if !self.twins.contains_key(&task.tid) => Some(libc::EPERM),
            (0 | 1 | 4, 0 | 1) => None,
            (0 | 1 | 4, _) => Some(libc::EINVAL),
            _ => Some(libc::EOPNOTSUPP),
        }
    }

    fn bind(&mut self, task: &Task, request: u64) -> io::Result<i64> {
        let (features, revision) = (task.read_u32(request)?, task.read_u32(request + 4)?);
        let error = match (features & !FEATURES, revision) {
            (0, REVISION) => 0,
            (0, _) => libc::ENOEXEC,
            _ => libc::EINVAL,
        };
        self.bound = error == 0;
        Ok(-i64::from(error))
    }

    fn create(&mut self, task: &Task, policy: u32, priority: u32) -> i64 {
        const FIFO: u32 = libc::SCHED_FIFO as u32;
        let known = match policy {
            FIFO => (1..=HIGHEST).contains(&priority),
            other => other == 0 && priority == 0,
        };
        let error = match (self.bound, known, self.twins.contains_key(&task.tid)) {
            (false, ..) => libc::EPERM,
            (true, false, _) => libc::EINVAL,
            (true, true, true) => libc::EBUSY,
            (true, true, false) => 0,
        };
        if error == 0 {
            self.twins.insert(task.tid, (policy, priority));
        }
        -i64::from(error)
    }
}

/// Memory for a heap.
fn heap() -> Call {
    let access = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    Call { number: libc::SYS_mmap, args: [0, u64::from(HEAP_BYTES), access, kind, u64::MAX, 0] }
}

/// A thread by the number that the library gives it, which is `pthread_self`.
fn thread(name: &str, task: &Task, key: u64) -> Line {
    Line::of(name).with("thread", if key == task.thread_pointer { "self" } else { "another" })
}

fn place(address: u64) -> &'static str {
    if address == 0 { "none" } else { "some" }
}

impl Kernel for Cobalt {
    fn enter(&mut self, task: &Task, call: Call) -> io::Result<Action> {
        if call.number & CALL != 0 && call.number > 0 {
            return self.core(task, call.number & !CALL, call.args);
        }
        match call.number {
            libc::SYS_stat if task.text(call.args[0]) == PRESENCE => Ok(Action::Answer(0)),
            libc::SYS_statx | libc::SYS_newfstatat if task.text(call.args[1]) == PRESENCE => {
                Ok(Action::Answer(0))
            }
            libc::SYS_mlockall if self.bound => {
                let named = [(1, "current"), (2, "future"), (4, "on-fault")];
                let line = Line::of("mlockall").with("flags", flags(call.args[0], &named));
                self.note(task, line.text());
                Ok(Action::Answer(0))
            }
            libc::SYS_sched_setscheduler if self.bound => {
                let [named, policy, parameters, ..] = call.args;
                let priority = task.read_u32(parameters)?;
                let line = Line::of("sched_setscheduler").with("task", task.named(named));
                self.note(task, line.with("policy", policy).with("priority", priority).text());
                Ok(Action::Answer(0))
            }
            _ => Ok(Action::Pass),
        }
    }

    /// `mmap` of the core writes the address, and returns no more than an error; a sleep is that
    /// of Linux.
    fn leave(&mut self, task: &Task, call: Call, result: i64) -> io::Result<i64> {
        if call.number & !CALL == CLOCK_NANOSLEEP {
            return Ok(result);
        }
        task.write(call.args[2], &result.to_le_bytes())?;
        Ok(0)
    }

    fn lines(&self) -> Vec<String> {
        let of_one = |(at, (_, lines)): (usize, &(i32, Vec<String>))| {
            [vec![format!("{THREAD} {}", at + 1)], lines.clone()].concat()
        };
        self.lines.iter().enumerate().flat_map(of_one).collect()
    }
}
