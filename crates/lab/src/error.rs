//! What can go wrong in the lab, each with the path or value, the reason, and what was expected.
//!
//! Display is a lower-case fragment, one sentence, fit for "error: {fragment}".

use std::io;
use std::path::{Path, PathBuf};

/// Every failure of the lab. None of them leaves a guest running.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be read, written, made or removed.
    #[error("cannot {action} {}: {reason}", path.display())]
    Io {
        /// What was tried: "read", "write", "create"…
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said. Part of the sentence, so not a link of its own in the chain of
        /// causes.
        reason: io::Error,
    },
    /// A program that the lab drives is not on this machine.
    #[error("{program} not found: install package {package}")]
    ProgramMissing {
        /// The executable.
        program: String,
        /// The Debian package that carries it, or what to do instead.
        package: &'static str,
    },
    /// A program was run and failed.
    #[error("{program} failed ({status}): {message}")]
    ProgramFailed {
        /// The executable with its first argument.
        program: String,
        /// Exit status in words.
        status: String,
        /// The last line it wrote to stderr.
        message: String,
    },
    /// `--kernel` is neither a known name nor a file.
    #[error("no kernel {name:?}: expected one of {known}, or the path of a kernel image (vmlinuz)")]
    UnknownKernel {
        /// What was asked.
        name: String,
        /// The names that exist, joined by commas.
        known: String,
    },
    /// No apt source of this machine can serve the wanted suite.
    #[error("no Debian source in {}: expected one to fetch suite {suite} from; give --kernel PATH instead", dir.display())]
    NoMirror {
        /// The apt configuration directory that was searched.
        dir: PathBuf,
        /// Wanted Debian suite.
        suite: String,
    },
    /// The suite is reachable, but no package of the wanted series could be downloaded.
    #[error("no kernel package for {name} ({arch}) could be fetched from suite {suite}: {reason}")]
    NoPackage {
        /// Requested name, like "6.1-rt".
        name: String,
        /// Debian architecture.
        arch: String,
        /// Debian suite.
        suite: String,
        /// What was tried.
        reason: String,
    },
    /// A cached file is not the one that was stored.
    #[error("{} has changed since it was stored (SHA-256 {found}, expected {expected}): remove {} to fetch it again", path.display(), dir.display())]
    CacheDamaged {
        /// The file.
        path: PathBuf,
        /// The cached kernel it belongs to.
        dir: PathBuf,
        /// Digest as read.
        found: String,
        /// Digest in the manifest.
        expected: String,
    },
    /// Bytes are not what their format demands.
    #[error("{} is not a usable {format}: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// "ELF file", "kernel module"…
        format: &'static str,
        /// What is wrong, with the offset where that is known.
        reason: String,
    },
    /// A kernel module is neither in the package nor built in.
    #[error("no module {name:?} for kernel {release}{}", needed_by(wanted_by.as_deref()))]
    NoModule {
        /// Module or alias name.
        name: String,
        /// `uname -r` of the guest.
        release: String,
        /// The module that requires it, when not the user.
        wanted_by: Option<String>,
    },
    /// The program meant for the guest cannot run there.
    #[error("{} cannot run in the guest: {reason}; {remedy}", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// Why not.
        reason: String,
        /// What to give instead.
        remedy: String,
    },
    /// An argument has no meaning.
    #[error("{what} {value:?}: expected {expected}")]
    Argument {
        /// Which argument.
        what: &'static str,
        /// As given.
        value: String,
        /// What would be accepted.
        expected: String,
    },
    /// The output directory already holds something.
    #[error("{} is not empty: expected a new or empty directory for the results", path.display())]
    OutputNotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The guest was killed because its time was over.
    #[error("the guest did not finish within {timeout_s} s and was killed; its console so far is in {}", console.display())]
    Timeout {
        /// Limit, seconds.
        timeout_s: u64,
        /// Where the partial console was kept.
        console: PathBuf,
    },
    /// The caller asked to stop before there was a guest.
    #[error("stopped before the guest was booted")]
    StoppedEarly,
    /// The guest was killed because the caller requested it.
    #[error("stopped; the guest was killed, its console so far is in {}", console.display())]
    Stopped {
        /// Where the partial console was kept.
        console: PathBuf,
    },
    /// QEMU ended without a whole result.
    #[error("the guest ended without a whole result ({reason}); last console line: {last_line:?}; console in {}", console.display())]
    NoResult {
        /// What the frame reader or QEMU said.
        reason: String,
        /// Last non-empty line on the guest's console.
        last_line: String,
        /// Where the console was kept.
        console: PathBuf,
    },
    /// The result stream is damaged or hostile.
    #[error("bad result stream: {0}")]
    Frame(crate::frame::FrameError),
    /// An entry of the result tar may not be unpacked.
    #[error("result entry {name:?} refused: {reason}")]
    UnsafeEntry {
        /// Name in the tar.
        name: String,
        /// Why.
        reason: &'static str,
    },
}

/// Shorthand of this crate.
pub type Result<T> = std::result::Result<T, Error>;

fn needed_by(wanted_by: Option<&str>) -> String {
    wanted_by.map_or_else(String::new, |module| format!(" (needed by {module})"))
}

/// Adds the action and the path to an I/O result.
pub(crate) trait IoContext<T> {
    /// `action` is a verb: "read", "write", "create".
    fn context(self, action: &'static str, path: impl AsRef<Path>) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, action: &'static str, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|reason| Error::Io { action, path: path.as_ref().to_path_buf(), reason })
    }
}
