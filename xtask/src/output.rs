//! Where the commands of a step write: the terminal, or a log of their own, so that steps may run
//! beside each other.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The terminal, or a log.
#[derive(Debug)]
pub(crate) enum Output {
    Terminal,
    Log { path: PathBuf, file: File },
}

impl Output {
    /// A new log.
    pub(crate) fn log(path: PathBuf) -> Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        }
        let file = File::create(&path).with_context(|| format!("create {}", path.display()))?;
        Ok(Self::Log { path, file })
    }

    /// One line of the step itself.
    pub(crate) fn line(&mut self, text: &str) -> Result<()> {
        match self {
            Self::Terminal => println!("{text}"),
            Self::Log { path, file } => {
                writeln!(file, "{text}").with_context(|| format!("write {}", path.display()))?;
            }
        }
        Ok(())
    }

    /// Bytes of a command, as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Terminal => std::io::stdout().write_all(bytes).context("write to the terminal"),
            Self::Log { path, file } => {
                file.write_all(bytes).with_context(|| format!("write {}", path.display()))
            }
        }
    }

    /// Where a command's own output goes.
    pub(crate) fn stdio(&self) -> Result<Stdio> {
        Ok(match self {
            Self::Terminal => Stdio::inherit(),
            Self::Log { path, file } => {
                file.try_clone().with_context(|| format!("write {}", path.display()))?.into()
            }
        })
    }

    /// Runs a command in `folder` without input, and fails unless it succeeds.
    pub(crate) fn run<S: AsRef<OsStr>>(&mut self, folder: &Path, program: &str, args: &[S]) -> Result<()> {
        let words: Vec<_> = args.iter().map(|a| a.as_ref().to_string_lossy()).collect();
        self.line(&format!("$ {program} {}", words.join(" ")))?;
        let status = Command::new(program)
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(self.stdio()?)
            .stderr(self.stdio()?)
            .status()
            .with_context(|| format!("run {program}"))?;
        if !status.success() {
            bail!("{program} {}: {status}", words.first().map_or("", |word| word.as_ref()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_an_error_with_its_status_and_its_output_is_in_the_log() {
        let place = std::env::temp_dir().join(format!("xtask-output-{}", std::process::id()));
        let mut output = Output::log(place.join("step.log")).unwrap();
        let here = Path::new(".");
        assert!(output.run(here, "echo", &["seen"]).is_ok());
        let failed = format!("{:#}", output.run(here, "false", &["x"]).unwrap_err());
        assert!(failed.contains("false x: exit status: 1"), "{failed}");
        assert!(output.run(here, "no-such-program-here", &[] as &[&str]).is_err());
        let log = fs::read_to_string(place.join("step.log")).unwrap();
        fs::remove_dir_all(&place).unwrap();
        assert!(log.starts_with("$ echo seen\nseen\n$ false x\n"), "{log}");
    }
}
