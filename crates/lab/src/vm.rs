//! One QEMU process: started, its console streamed, its time limited, and never left behind.
//!
//! The guest dies with us in three ways: `Drop` and [`Stop`] kill it, and for our own kill -9 the
//! launcher given in the [`crate::Spec`] binds it to this process (PR_SET_PDEATHSIG, prctl(2)).
//! That signal is sent when the *thread* that started the child ends, so [`Vm::start`] and
//! [`Vm::watch`] belong to one thread.

use crate::error::Result;
use crate::program::spawn_error;
use crate::stop::Stop;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Polling interval of deadline and stop request while the console is silent.
const POLL: Duration = Duration::from_millis(50);

/// Why [`Vm::watch`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// QEMU ended by itself.
    Exited(ExitStatus),
    /// Killed: the time was over.
    Timeout,
    /// Killed: somebody asked.
    Stopped,
    /// Killed: nothing was on the console for the given time.
    Silent,
}

/// Limits of one boot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Wall-clock limit.
    pub timeout: Duration,
    /// Limit until the first byte on the console.
    pub silence: Option<Duration>,
}

/// A running QEMU.
#[derive(Debug)]
pub(crate) struct Vm {
    child: Child,
    started: Instant,
    console: Receiver<Vec<u8>>,
    complaints: Option<JoinHandle<String>>,
}

impl Vm {
    /// Starts QEMU. `words` is [`crate::qemu::command_line`]'s, `package` carries its first word.
    pub(crate) fn start(launcher: &[OsString], words: &[OsString], package: &'static str) -> Result<Self> {
        let mut all = launcher.iter().chain(words);
        let program = all.next().cloned().unwrap_or_default();
        let mut command = Command::new(&program);
        command.args(all).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C on the terminal is for us to handle; QEMU must not see it first.
        command.process_group(0);
        let mut child =
            command.spawn().map_err(|error| spawn_error(&program.to_string_lossy(), package, error))?;
        let (send, console) = mpsc::channel();
        if let Some(mut stdout) = child.stdout.take() {
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(len @ 1..) = stdout.read(&mut buffer) {
                    if send.send(buffer[..len].to_vec()).is_err() {
                        break;
                    }
                }
            });
        }
        let complaints = child.stderr.take().map(|mut stderr| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                // What was read before an error is what there is to show.
                let _ = stderr.read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        Ok(Self { child, started: Instant::now(), console, complaints })
    }

    /// Streams the console until QEMU ends or has to be killed.
    pub(crate) fn watch(
        &mut self,
        limits: Limits,
        stop: &Stop,
        console: &mut dyn FnMut(&[u8]),
    ) -> Result<End> {
        let mut silent = true;
        loop {
            match self.console.recv_timeout(POLL) {
                Ok(bytes) => {
                    silent = false;
                    console(&bytes);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    if let Some(end) = self.ended()? {
                        return Ok(end);
                    }
                    thread::sleep(POLL);
                }
            }
            let elapsed = self.started.elapsed();
            let end = if stop.is_asked() {
                End::Stopped
            } else if elapsed > limits.timeout {
                End::Timeout
            } else if silent && limits.silence.is_some_and(|limit| elapsed > limit) {
                End::Silent
            } else {
                continue;
            };
            self.kill();
            self.console.iter().for_each(|bytes| console(&bytes));
            return Ok(end);
        }
    }

    fn ended(&mut self) -> Result<Option<End>> {
        use crate::error::IoContext;
        Ok(self.child.try_wait().context("wait for", "QEMU")?.map(End::Exited))
    }

    /// Kills QEMU and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// What QEMU wrote to stderr. Only after [`Vm::watch`] has returned, or it waits for QEMU's
    /// end.
    pub(crate) fn complaints(&mut self) -> String {
        self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> Vm {
        let words: Vec<OsString> = ["sh", "-c", script].map(OsString::from).to_vec();
        Vm::start(&[], &words, "dash").unwrap()
    }

    const LONG: Limits = Limits { timeout: Duration::from_secs(600), silence: None };

    fn watch(vm: &mut Vm, limits: Limits, stop: &Stop) -> (End, String) {
        let mut seen = Vec::new();
        let end = vm.watch(limits, stop, &mut |bytes| seen.extend_from_slice(bytes)).unwrap();
        (end, String::from_utf8(seen).unwrap())
    }

    #[test]
    fn streams_all_and_returns_the_status() {
        let mut vm = start("echo one; echo two; echo oops >&2; exit 3");
        let (end, seen) = watch(&mut vm, LONG, &Stop::default());
        assert_eq!(seen, "one\ntwo\n");
        assert!(matches!(end, End::Exited(status) if status.code() == Some(3)), "{end:?}");
        assert_eq!(vm.complaints(), "oops\n");
    }

    #[test]
    fn silence_and_timeout_kill() {
        let silence = Limits { silence: Some(Duration::from_millis(1)), ..LONG };
        assert_eq!(watch(&mut start("exec sleep 600"), silence, &Stop::default()).0, End::Silent);
        let timeout = Limits { timeout: Duration::from_millis(1), silence: None };
        assert_eq!(watch(&mut start("exec sleep 600"), timeout, &Stop::default()).0, End::Timeout);
    }

    #[test]
    fn stop_kills_and_keeps_what_was_printed() {
        let stop = Stop::default();
        let mut vm = start("echo begun; exec sleep 600");
        let mut seen = Vec::new();
        let asking = stop.clone();
        let end = vm.watch(LONG, &stop, &mut |bytes| {
            seen.extend_from_slice(bytes);
            asking.stop();
        });
        assert_eq!(end.unwrap(), End::Stopped);
        assert_eq!(seen, b"begun\n");
    }

    #[test]
    fn dropped_is_dead() {
        let vm = start("exec sleep 600");
        let proc = format!("/proc/{}/stat", vm.child.id());
        assert!(std::path::Path::new(&proc).exists());
        drop(vm);
        assert!(!std::path::Path::new(&proc).exists());
    }

    #[test]
    fn a_missing_emulator_names_its_package() {
        let words = [OsString::from("qemu-system-nothing")];
        let error = Vm::start(&[], &words, "qemu-system-x86").unwrap_err().to_string();
        assert_eq!(error, "qemu-system-nothing not found: install package qemu-system-x86");
    }
}
