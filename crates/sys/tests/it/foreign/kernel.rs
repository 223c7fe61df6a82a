//! What a kernel of another kind does with the calls of a traced program: the answers, and the
//! record of what was asked.

use super::call::{Line, flags};
use super::tasks::Task;
use std::io;

/// A system call at its entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) number: i64,
    pub(crate) args: [u64; 6],
}

/// What becomes of it.
#[derive(Debug)]
pub(crate) enum Action {
    /// This machine's kernel takes it.
    Pass,
    /// It is not carried out; this is its result, an error as a negative number.
    Answer(i64),
    /// This machine's kernel takes another one; [`Kernel::leave`] makes the result.
    Instead(Call),
}

/// A kernel that is played.
pub(crate) trait Kernel {
    /// A call is about to be carried out.
    fn enter(&mut self, task: &Task, call: Call) -> io::Result<Action>;

    /// A call that was carried out instead of `call` has ended with `result`; gives the result of
    /// `call`.
    fn leave(&mut self, task: &Task, call: Call, result: i64) -> io::Result<i64>;

    /// The calls so far, a line each.
    fn lines(&self) -> Vec<String>;
}

/// Where the path argument of `open` and `openat` is.
pub(crate) fn path_argument(call: &Call) -> Option<usize> {
    match call.number {
        libc::SYS_open => Some(0),
        libc::SYS_openat => Some(1),
        _ => None,
    }
}

/// The same call with its path replaced by one that this machine has.
pub(crate) fn redirected(task: &Task, call: &Call, at: usize, path: &str) -> io::Result<Action> {
    let mut instead = *call;
    instead.args[at] = task.scratch(format!("{path}\0").as_bytes())?;
    Ok(Action::Instead(instead))
}

/// How a file was opened. What concerns its descriptor in this process alone is left out: libraries
/// of C and of Rust differ in O_CLOEXEC, and musl adds O_LARGEFILE everywhere.
pub(crate) fn access(flags_argument: u64) -> String {
    let kept = flags_argument & !(libc::O_CLOEXEC as u64 | 0x8000);
    match kept & libc::O_ACCMODE as u64 {
        0 => "read",
        1 => "write",
        2 => "read-write",
        _ => "none",
    }
    .to_owned()
        + &match kept & !(libc::O_ACCMODE as u64) {
            0 => String::new(),
            more => format!("|{more:#x}"),
        }
}

/// `mmap` of a device.
pub(crate) fn mapping(device: &str, call: &Call) -> String {
    let [_, length, protection, kind, _, offset] = call.args;
    Line::of("mmap")
        .with("device", device)
        .with("length", length)
        .with("protection", flags(protection, &[(1, "read"), (2, "write"), (4, "exec")]))
        .with("flags", flags(kind, &[(1, "shared"), (2, "private"), (0x10, "fixed"), (0x20, "anonymous")]))
        .with("offset", offset)
        .text()
}
