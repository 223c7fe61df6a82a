//! A program and all its threads, stopped at each system call, whose calls a played kernel answers
//! (`ptrace(2)`). A call that is answered is made one that no kernel knows (-1), and its result is
//! set when it returns.

use super::kernel::{Action, Call, Kernel};
use super::tasks::Task;
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Whatever happens, the program has ended by then.
const LIMIT_S: u32 = 60;
/// A stop at a system call (PTRACE_O_TRACESYSGOOD).
const AT_CALL: i32 = libc::SIGTRAP | 0x80;
const OPTIONS: i32 = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_EXITKILL;

/// A call under way that this machine's kernel does not take as it is.
struct Pending {
    call: Call,
    before: libc::user_regs_struct,
    /// The result, where no other call is carried out in its place.
    answer: Option<i64>,
}

/// Runs a program to its end under a played kernel; gives its exit code.
pub(crate) fn run(command: &mut Command, kernel: &mut dyn Kernel) -> io::Result<i32> {
    // SAFETY: alarm and ptrace are async-signal-safe, as is making an error of errno.
    unsafe {
        command.pre_exec(|| {
            libc::alarm(LIMIT_S);
            traced(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0))
        });
    }
    let first = command.spawn()?.id() as i32;
    let (tid, _) = wait(first)?;
    // SAFETY: the child is stopped and ours; the argument is a number.
    traced(unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, tid, 0, OPTIONS) })?;
    resume(tid, 0)?;

    let mut known = HashSet::from([first]);
    let mut under_way = HashMap::new();
    loop {
        let (tid, status) = wait(-1)?;
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            under_way.remove(&tid);
            if tid == first {
                let killed = 128 + libc::WTERMSIG(status);
                return Ok(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { killed });
            }
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        let new = known.insert(tid);
        if signal == AT_CALL {
            stopped(tid, &mut under_way, kernel)?;
            resume(tid, 0)?;
        } else if signal == libc::SIGTRAP || (new && signal == libc::SIGSTOP) {
            resume(tid, 0)?;
        } else {
            resume(tid, signal)?;
        }
    }
}

/// A call begins or ends. One that is passed on is left alone at its end, too: of `execve` and
/// `rt_sigreturn` no register is as it was.
fn stopped(
    tid: i32,
    under_way: &mut HashMap<i32, Option<Pending>>,
    kernel: &mut dyn Kernel,
) -> io::Result<()> {
    let registers = registers(tid)?;
    let task = Task::open(tid, registers.rsp, registers.fs_base)?;
    let Some(pending) = under_way.remove(&tid) else {
        under_way.insert(tid, entered(&task, registers, kernel)?);
        return Ok(());
    };
    let Some(Pending { call, before, answer }) = pending else { return Ok(()) };
    let result = match answer {
        Some(answer) => answer,
        None => kernel.leave(&task, call, registers.rax as i64)?,
    };
    let after = libc::user_regs_struct { rax: result as u64, rip: registers.rip, ..before };
    set_registers(tid, &after)
}

fn entered(
    task: &Task,
    before: libc::user_regs_struct,
    kernel: &mut dyn Kernel,
) -> io::Result<Option<Pending>> {
    let call = Call { number: before.orig_rax as i64, args: arguments(&before) };
    let mut now = before;
    let answer = match kernel.enter(task, call)? {
        Action::Pass => return Ok(None),
        Action::Answer(answer) => {
            now.orig_rax = u64::MAX;
            Some(answer)
        }
        Action::Instead(other) => {
            now.orig_rax = other.number as u64;
            [now.rdi, now.rsi, now.rdx, now.r10, now.r8, now.r9] = other.args;
            None
        }
    };
    set_registers(task.tid, &now)?;
    Ok(Some(Pending { call, before, answer }))
}

fn arguments(of: &libc::user_regs_struct) -> [u64; 6] {
    [of.rdi, of.rsi, of.rdx, of.r10, of.r8, of.r9]
}

/// The next stop of a thread, or of any (-1) that this thread traces: other threads of this program
/// trace programs of their own.
fn wait(tid: i32) -> io::Result<(i32, i32)> {
    let mut status = 0;
    // SAFETY: the status is ours to write.
    let stopped = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
    if stopped > 0 { Ok((stopped, status)) } else { Err(io::Error::last_os_error()) }
}

fn resume(tid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: the thread is stopped and ours; the arguments are numbers.
    let resumed = traced(unsafe { libc::ptrace(libc::PTRACE_SYSCALL, tid, 0, signal) });
    // A thread that was killed meanwhile reports so at the next wait.
    if resumed.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH)) {
        return Ok(());
    }
    resumed
}

fn registers(tid: i32) -> io::Result<libc::user_regs_struct> {
    // SAFETY: a structure of integers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one such structure.
    traced(unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, 0, &raw mut registers) })?;
    Ok(registers)
}

fn set_registers(tid: i32, registers: &libc::user_regs_struct) -> io::Result<()> {
    // SAFETY: the kernel reads one such structure.
    traced(unsafe { libc::ptrace(libc::PTRACE_SETREGS, tid, 0, std::ptr::from_ref(registers)) })
}

fn traced(result: libc::c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
