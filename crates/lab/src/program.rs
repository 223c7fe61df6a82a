//! Runs the helpers that the lab drives (apt, dpkg-deb), with their failures as values.

use crate::error::{Error, IoContext, Result};
use crate::stop::Stop;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Polling interval of the helper's end and the stop request.
const POLL: Duration = Duration::from_millis(10);

/// A helper program and the package to install where it is missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
}

pub(crate) const APT_GET: Program =
    Program { name: "apt-get", package: "apt (where there is none, give --kernel PATH and no --packages)" };
pub(crate) const APT_CACHE: Program = Program { name: "apt-cache", package: APT_GET.package };
pub(crate) const DPKG_DEB: Program = Program { name: "dpkg-deb", package: "dpkg" };

impl Program {
    /// A command with messages in English and nothing on stdin.
    pub(crate) fn command<S: AsRef<OsStr>>(self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(self.name);
        command.args(args).env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        command
    }

    /// Runs to the end; a status other than 0 is an error with the line of stderr that names the
    /// cause. Killed when `stop` asks: fetching can take minutes.
    pub(crate) fn run(self, command: &mut Command, stop: &Stop) -> Result<String> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| spawn_error(self.name, self.package, error))?;
        let stdout = child.stdout.take().map(read_all);
        let stderr = child.stderr.take().map(read_all);
        let status = loop {
            if let Some(status) = child.try_wait().context("wait for", self.name)? {
                break status;
            }
            if stop.is_asked() {
                // Both fail only when it is gone already.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::StoppedEarly);
            }
            thread::sleep(POLL);
        };
        let text =
            |thread: Option<JoinHandle<String>>| thread.and_then(|t| t.join().ok()).unwrap_or_default();
        if status.success() {
            return Ok(text(stdout));
        }
        let message = last_complaint(&text(stderr));
        Err(Error::ProgramFailed { program: self.name.into(), status: status.to_string(), message })
    }
}

/// Reads a pipe to its end in a thread of its own, so that neither of two can fill up and block the
/// child.
fn read_all(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is what there is to show.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// "Not found" becomes the package to install.
pub(crate) fn spawn_error(program: &str, package: &'static str, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::NotFound {
        Error::ProgramMissing { program: program.into(), package }
    } else {
        Error::Io { action: "run", path: program.into(), reason: source }
    }
}

fn last_complaint(stderr: &str) -> String {
    let line = |wanted: &dyn Fn(&str) -> bool| stderr.lines().rev().map(str::trim).find(|line| wanted(line));
    // apt ends with generalities; its first "E:" line names the cause.
    stderr
        .lines()
        .find(|line| line.starts_with("E:"))
        .or_else(|| line(&|line| !line.is_empty()))
        .unwrap_or("no message")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SH: Program = Program { name: "sh", package: "dash" };

    #[test]
    fn output_and_failure() {
        let run = |script| SH.run(&mut SH.command(["-c", script]), &Stop::default());
        assert_eq!(run("echo out; echo noise >&2").unwrap(), "out\n");
        let error =
            run("echo 'E: no mirror' >&2; echo 'E: general advice' >&2; exit 100").unwrap_err().to_string();
        assert_eq!(error, "sh failed (exit status: 100): E: no mirror");
    }

    #[test]
    fn more_than_a_pipe_holds_does_not_block() {
        let script = "head -c 300000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero >&2";
        assert_eq!(SH.run(&mut SH.command(["-c", script]), &Stop::default()).unwrap().len(), 300_000);
    }

    #[test]
    fn stop_ends_it() {
        let stop = Stop::default();
        stop.stop();
        let result = SH.run(&mut SH.command(["-c", "exec sleep 600"]), &stop);
        assert!(matches!(result, Err(Error::StoppedEarly)), "{result:?}");
    }
}
