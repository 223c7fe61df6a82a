//! A command that is there but has not begun: a process whose id is known before its program runs
//! its first instruction.
//!
//! It is this same program, reading from a pipe at [`super::spawn::SHARED_FD`], and becomes the
//! command when a byte arrives. Should this process die first, the pipe ends, and the command never
//! begins.

use super::spawn::{SHARED_FD, die_with_parent, share};
use crate::error::Error;
use crate::signals;
use rustix::fd::{AsFd, FromRawFd, OwnedFd};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// The exit code of a shell for a command that cannot be executed.
const CANNOT_EXECUTE: i32 = 127;

/// A command that waits to begin.
pub struct Held {
    child: Child,
    go: File,
}

impl Held {
    /// Makes the process. `quiet` sends the command's standard output to standard error, where
    /// standard output is for another answer.
    pub fn spawn(program: &Path, words: &[OsString], quiet: bool) -> Result<Self, Error> {
        let failed = |source: std::io::Error| Error::os("start", words[0].display(), source);
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|error| failed(error.into()))?;
        let mut command = Command::new(program);
        command.args(["internal", "held"]).args(words);
        if quiet {
            let error = std::io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
            command.stdout(Stdio::from(error));
        }
        die_with_parent(&mut command);
        share(&mut command, &read);
        let child = command.spawn().map_err(failed)?;
        Ok(Self { child, go: File::from(write) })
    }

    /// Its process id, before and after it begins.
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Lets it begin.
    pub fn begin(&mut self) -> Result<(), Error> {
        self.go.write_all(b"g").map_err(|source| Error::os("begin", "the command", source))
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(|source| Error::os("wait for", "the command", source))
    }

    /// Asks it and its process group to end by a signal of this name, as the terminal would.
    pub fn signal(&self, name: &str) {
        let signal = match name {
            "SIGINT" => rustix::process::Signal::INT,
            "SIGHUP" => rustix::process::Signal::HUP,
            "SIGKILL" => rustix::process::Signal::KILL,
            _ => rustix::process::Signal::TERM,
        };
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid()) {
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }
}

/// Exit code and signal of a status.
pub fn code_and_signal(status: ExitStatus) -> (Option<i32>, Option<i32>) {
    (status.code(), status.signal())
}

/// In the child: waits for the word to begin, then becomes the command. Returns only where that
/// fails.
pub fn become_command(words: &[OsString]) -> i32 {
    // SAFETY: the parent put the pipe there, and nothing else in this process uses that number.
    let mut pipe = File::from(unsafe { OwnedFd::from_raw_fd(SHARED_FD) });
    let mut byte = [0u8; 1];
    let Some((program, arguments)) = words.split_first() else { return CANNOT_EXECUTE };
    if !matches!(pipe.read(&mut byte), Ok(1)) {
        return CANNOT_EXECUTE;
    }
    drop(pipe);
    signals::unblock_end();
    let error = Command::new(program).args(arguments).exec();
    let _ = writeln!(std::io::stderr(), "stillcore: cannot execute {}: {error}", program.display());
    CANNOT_EXECUTE
}
