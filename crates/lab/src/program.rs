//! Runs the helpers that the lab drives (apt, dpkg-deb), with their failures as values.

use crate::error::{Error, IoContext, Result};
use std::ffi::OsStr;
use std::io;
use std::process::{Command, Output, Stdio};

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

    /// Runs to the end; a status other than 0 is an error with the last line of stderr.
    pub(crate) fn run(self, command: &mut Command) -> Result<String> {
        let output = command.output().map_err(|source| self.spawn_error(source))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Error::ProgramFailed {
            program: self.name.into(),
            status: output.status.to_string(),
            message: last_complaint(&output),
        })
    }

    fn spawn_error(self, source: io::Error) -> Error {
        spawn_error(self.name, self.package, source)
    }
}

/// "Not found" becomes the package to install.
pub(crate) fn spawn_error(program: &str, package: &'static str, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::NotFound {
        Error::ProgramMissing { program: program.into(), package }
    } else {
        Err::<(), _>(source).context("run", program).expect_err("made from an error")
    }
}

fn last_complaint(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = |wanted: &dyn Fn(&str) -> bool| stderr.lines().rev().map(str::trim).find(|line| wanted(line));
    // apt ends with generalities; its first "E:" line names the cause.
    stderr
        .lines()
        .find(|line| line.starts_with("E:"))
        .or_else(|| line(&|line| !line.is_empty()))
        .unwrap_or("no message")
        .to_owned()
}
