//! The system calls in which a task may wait, by their numbers on each architecture, and what it
//! waits for there.
//!
//! Sources: Linux arch/x86/entry/syscalls/syscall_64.tbl; include/uapi/asm-generic/unistd.h
//! (arm64). Tasks of another ABI (32 bits) have other numbers.

use serde::{Deserialize, Serialize};

/// What a task waits for in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// A futex: mutexes, condition variables, semaphores of the C library.
    Futex,
    /// A POSIX message queue.
    MessageQueue,
    /// What its first argument, a descriptor, stands for.
    Descriptor,
    /// Any of several descriptors.
    Poll,
    /// Time.
    Sleep,
    /// A signal.
    Signal,
    /// The end of a child.
    Child,
    /// A System V semaphore or message.
    SystemV,
    /// Something else: block I/O, io_uring, a file lock.
    Other,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Syscall {
    /// Its name.
    pub name: &'static str,
    /// Its number on x86-64.
    pub x86_64: Option<u32>,
    /// Its number on arm64.
    pub aarch64: Option<u32>,
    /// What a task waits for in it.
    pub wait: Wait,
}

impl Syscall {
    /// Its number on an architecture, named as Rust and uname(1) do.
    pub fn number(&self, arch: &str) -> Option<u32> {
        match arch {
            "x86_64" => self.x86_64,
            "aarch64" => self.aarch64,
            _ => None,
        }
    }
}

const fn call(name: &'static str, x86_64: u32, aarch64: u32, wait: Wait) -> Syscall {
    Syscall { name, x86_64: Some(x86_64), aarch64: Some(aarch64), wait }
}

/// Calls that only x86-64 still has.
const fn old(name: &'static str, x86_64: u32, wait: Wait) -> Syscall {
    Syscall { name, x86_64: Some(x86_64), aarch64: None, wait }
}

/// All calls that are distinguished.
pub const SYSCALLS: &[Syscall] = &[
    call("read", 0, 63, Wait::Descriptor),
    call("write", 1, 64, Wait::Descriptor),
    old("poll", 7, Wait::Poll),
    call("pread64", 17, 67, Wait::Descriptor),
    call("pwrite64", 18, 68, Wait::Descriptor),
    call("readv", 19, 65, Wait::Descriptor),
    call("writev", 20, 66, Wait::Descriptor),
    old("select", 23, Wait::Poll),
    old("pause", 34, Wait::Signal),
    call("nanosleep", 35, 101, Wait::Sleep),
    call("connect", 42, 203, Wait::Descriptor),
    call("accept", 43, 202, Wait::Descriptor),
    call("sendto", 44, 206, Wait::Descriptor),
    call("recvfrom", 45, 207, Wait::Descriptor),
    call("sendmsg", 46, 211, Wait::Descriptor),
    call("recvmsg", 47, 212, Wait::Descriptor),
    call("wait4", 61, 260, Wait::Child),
    call("semop", 65, 193, Wait::SystemV),
    call("msgsnd", 69, 189, Wait::SystemV),
    call("msgrcv", 70, 188, Wait::SystemV),
    call("flock", 73, 32, Wait::Other),
    call("fsync", 74, 82, Wait::Other),
    call("fdatasync", 75, 83, Wait::Other),
    call("rt_sigtimedwait", 128, 137, Wait::Signal),
    call("rt_sigsuspend", 130, 133, Wait::Signal),
    call("futex", 202, 98, Wait::Futex),
    call("io_getevents", 208, 4, Wait::Other),
    call("semtimedop", 220, 192, Wait::SystemV),
    call("clock_nanosleep", 230, 115, Wait::Sleep),
    old("epoll_wait", 232, Wait::Poll),
    call("mq_timedsend", 242, 182, Wait::MessageQueue),
    call("mq_timedreceive", 243, 183, Wait::MessageQueue),
    call("waitid", 247, 95, Wait::Child),
    call("pselect6", 270, 72, Wait::Poll),
    call("ppoll", 271, 73, Wait::Poll),
    call("epoll_pwait", 281, 22, Wait::Poll),
    call("accept4", 288, 242, Wait::Descriptor),
    call("recvmmsg", 299, 243, Wait::Descriptor),
    call("io_uring_enter", 426, 426, Wait::Other),
    call("epoll_pwait2", 441, 441, Wait::Poll),
    call("futex_waitv", 449, 449, Wait::Futex),
    call("futex_wait", 455, 455, Wait::Futex),
];

/// What a real-time thread does in a call that it should have done before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misuse {
    /// Its address space changes: an allocation, or one given back.
    Memory,
    /// A file is looked up, opened or written back.
    File,
    /// A thread or process is made.
    Thread,
    /// A scheduling policy is set: the first argument is whose, 0 for its own.
    Policy,
}

/// A call that a real-time thread should not make in its loop, beside those in which it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LintCall {
    /// The call.
    pub call: Syscall,
    /// What is wrong with it.
    pub misuse: Misuse,
}

const fn lint(call: Syscall, misuse: Misuse) -> LintCall {
    LintCall { call, misuse }
}

/// All of them.
pub const LINT: &[LintCall] = &[
    lint(call("mmap", 9, 222, Wait::Other), Misuse::Memory),
    lint(call("mprotect", 10, 226, Wait::Other), Misuse::Memory),
    lint(call("munmap", 11, 215, Wait::Other), Misuse::Memory),
    lint(call("brk", 12, 214, Wait::Other), Misuse::Memory),
    lint(call("mremap", 25, 216, Wait::Other), Misuse::Memory),
    lint(call("madvise", 28, 233, Wait::Other), Misuse::Memory),
    lint(old("open", 2, Wait::Other), Misuse::File),
    lint(old("stat", 4, Wait::Other), Misuse::File),
    lint(call("openat", 257, 56, Wait::Other), Misuse::File),
    lint(call("newfstatat", 262, 79, Wait::Other), Misuse::File),
    lint(call("statx", 332, 291, Wait::Other), Misuse::File),
    lint(call("openat2", 437, 437, Wait::Other), Misuse::File),
    lint(old("access", 21, Wait::Other), Misuse::File),
    lint(call("msync", 26, 227, Wait::Other), Misuse::File),
    lint(call("sendfile", 40, 71, Wait::Other), Misuse::File),
    lint(call("truncate", 76, 45, Wait::Other), Misuse::File),
    lint(call("ftruncate", 77, 46, Wait::Other), Misuse::File),
    lint(old("rename", 82, Wait::Other), Misuse::File),
    lint(old("unlink", 87, Wait::Other), Misuse::File),
    lint(old("readlink", 89, Wait::Other), Misuse::File),
    lint(call("sync", 162, 81, Wait::Other), Misuse::File),
    lint(call("getdents64", 217, 61, Wait::Other), Misuse::File),
    lint(call("unlinkat", 263, 35, Wait::Other), Misuse::File),
    lint(call("renameat", 264, 38, Wait::Other), Misuse::File),
    lint(call("readlinkat", 267, 78, Wait::Other), Misuse::File),
    lint(call("faccessat", 269, 48, Wait::Other), Misuse::File),
    lint(call("sync_file_range", 277, 84, Wait::Other), Misuse::File),
    lint(call("fallocate", 285, 47, Wait::Other), Misuse::File),
    lint(call("renameat2", 316, 276, Wait::Other), Misuse::File),
    lint(call("copy_file_range", 326, 285, Wait::Other), Misuse::File),
    lint(call("faccessat2", 439, 439, Wait::Other), Misuse::File),
    lint(call("sched_setscheduler", 144, 119, Wait::Other), Misuse::Policy),
    lint(call("clone", 56, 220, Wait::Other), Misuse::Thread),
    lint(old("fork", 57, Wait::Other), Misuse::Thread),
    lint(old("vfork", 58, Wait::Other), Misuse::Thread),
    lint(call("execve", 59, 221, Wait::Other), Misuse::Thread),
    lint(call("clone3", 435, 435, Wait::Other), Misuse::Thread),
];

/// The call of a number on an architecture, of those that are looked at for mistakes only.
pub fn lint_by_number(arch: &str, number: u64) -> Option<&'static LintCall> {
    LINT.iter().find(|one| one.call.number(arch).map(u64::from) == Some(number))
}

/// The call of a number on an architecture.
pub fn by_number(arch: &str, number: u64) -> Option<&'static Syscall> {
    SYSCALLS.iter().find(|one| one.number(arch).map(u64::from) == Some(number))
}

/// The in-kernel filter that lets these calls through, with those of [`LINT`] or not; `None` for an architecture whose numbers are
/// not known.
pub fn filter(arch: &str, with_lint: bool) -> Option<String> {
    let more = LINT.iter().map(|one| &one.call).filter(|_| with_lint);
    let calls = SYSCALLS.iter().chain(more);
    let terms: Vec<_> = calls.filter_map(|one| Some(format!("id == {}", one.number(arch)?))).collect();
    (!terms.is_empty()).then(|| terms.join(" || "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_and_names_are_of_one_call_each() {
        for arch in ["x86_64", "aarch64"] {
            let all = SYSCALLS.iter().chain(LINT.iter().map(|one| &one.call));
            let numbers: Vec<_> = all.filter_map(|one| one.number(arch)).collect();
            assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len(), "{arch}");
            assert_eq!(by_number(arch, u64::from(numbers[0])).map(|one| one.name), Some("read"));
        }
        assert_eq!(
            (by_number("x86_64", 202).map(|one| one.wait), filter("vax", true)),
            (Some(Wait::Futex), None)
        );
    }

    /// The C library of the machine that runs this test knows its own numbers.
    #[test]
    fn numbers_are_those_of_the_kernels_headers() {
        let text = std::fs::read_to_string("/usr/include/x86_64-linux-gnu/asm/unistd_64.h");
        let Ok(text) = text else {
            println!("skipped: the headers of the kernel are missing (package libc6-dev)");
            return;
        };
        for one in SYSCALLS.iter().chain(LINT.iter().map(|one| &one.call)) {
            let line =
                text.lines().find_map(|line| line.strip_prefix(&format!("#define __NR_{} ", one.name)));
            let Some(line) = line else { continue };
            assert_eq!(line.trim().parse(), Ok(one.x86_64.unwrap()), "{}", one.name);
        }
    }
}
