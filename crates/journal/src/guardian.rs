//! The guardian: a small process in a session of its own that restores the machine when stillcore
//! is killed.
//!
//! It holds the reading end of a pipe whose writing end only stillcore has. The pipe ends when
//! stillcore does, however it does.

use crate::recover::{self, Restored};
use crate::settings::Live;
use crate::{Owner, directories};
use std::io::Read;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use sys::{Error, signals};

/// How often a failed undo is tried again; each try on a busy target takes a second.
const ATTEMPTS: u32 = 20;

/// A guardian that watches this process.
#[derive(Debug)]
pub struct Guardian {
    child: Child,
    lifeline: Option<ChildStdin>,
}

impl Guardian {
    /// Starts a guardian over a journal.
    pub fn start(program: &Path, journal: &Path) -> Result<Self, Error> {
        let failed = |source| Error::os("start the guardian from", program.display(), source);
        let mut command = Command::new(program);
        command.args(["internal", "guardian"]).arg(journal).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed)?;
        let lifeline = child.stdin.take();
        Ok(Self { child, lifeline })
    }

    /// Releases the guardian; it first undoes the changes that are still open in the journal.
    pub fn release(mut self) {
        drop(self.lifeline.take());
        let _ = self.child.wait();
    }
}

/// Runs the guardian: waits for the end of the pipe on standard input, then undoes the open
/// changes. The hidden verb calls it.
pub fn watch(journal: &Path, owners: &[Owner]) -> Result<(), Error> {
    signals::ignore_end();
    // Fails only for a leader of a process group; then Ctrl-C reaches us, and is ignored.
    let _ = rustix::process::setsid();
    let mut end = [0u8; 1];
    while matches!(std::io::stdin().read(&mut end), Err(error) if error.kind() == std::io::ErrorKind::Interrupted)
    {
    }
    // On a crowded machine a killed process may hold on to what it had for long; nobody waits for a
    // guardian.
    for _ in 0..ATTEMPTS {
        if !journal.exists() || recover::undo_journal(journal, owners, &mut live())?.failed.is_empty() {
            break;
        }
    }
    // A journal has the name of its owner, in a directory of the state's.
    if let (Some(owner), Some(state)) = (journal.file_stem(), journal.parent().and_then(Path::parent)) {
        directories::remove_of(state, &owner.to_string_lossy());
    }
    Ok(())
}

/// Undoes the changes that calls killed together with their guardians have left under a state
/// directory.
pub fn recover(state: &Path, owners: &[Owner]) -> Result<Restored, Error> {
    directories::remove_left(state);
    recover::recover(state, owners, &mut live())
}

/// This machine; restoring a setting may need this program.
fn live() -> Live {
    Live::new(Path::new("/proc/self/exe"))
}
