//! What can go wrong with disturbances as a whole; what goes wrong with one operation is counted in
//! its record instead.

use std::io;
use std::path::{Path, PathBuf};

/// A disturbance that could not be started, set up or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No stressor has this name.
    #[error("no stressor is called {name:?}; expected one of {known}")]
    UnknownStressor {
        /// The requested name.
        name: String,
        /// The catalogue's names.
        known: String,
    },
    /// No suite has this name.
    #[error("no suite is called {name:?}; expected one of {known}")]
    UnknownSuite {
        /// The requested name.
        name: String,
        /// The catalogue's names.
        known: String,
    },
    /// The built-in suites do not read.
    #[error("the catalogue of suites: {reason}")]
    Suites {
        /// Why.
        reason: String,
    },
    /// This kernel or machine lacks what a stressor needs: it is not applicable here.
    #[error("{what}")]
    Absent {
        /// What is lacking.
        what: String,
    },
    /// What is to be filled is more than can be given without swapping or the out-of-memory killer.
    #[error(
        "the stressors would fill {} of memory; by {}, {} can be had without swapping; expected less: fewer stressors, workers or bytes \
         of each, or fewer CPUs",
        size(*wanted),
        by.display(),
        size(*available)
    )]
    Memory {
        /// Bytes.
        wanted: u64,
        /// Bytes.
        available: u64,
        /// The file that says so.
        by: PathBuf,
    },
    /// A stressor needs at least one CPU to run on.
    #[error("no CPU is left for {what}; expected at least one housekeeping CPU")]
    NoCpu {
        /// What was to run there.
        what: String,
    },
    /// The arguments of a stressor's child process were not understood.
    #[error("stressor arguments {text:?}: {source}; expected the JSON that the supervisor passes")]
    Arguments {
        /// What was given.
        text: String,
        /// Where it stops making sense.
        source: serde_json::Error,
    },
    /// The supervisor was gone before its child could begin.
    #[error("the process that started this stressor is gone; expected process {expected} as parent")]
    Orphan {
        /// The supervisor's process id.
        expected: i32,
    },
    /// A child process could not be started.
    #[error("cannot start {}: {source}; expected a stillcore program", exe.display())]
    Spawn {
        /// The program.
        exe: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A system call that a stressor cannot do without was refused.
    #[error("cannot {action}: {source}")]
    Refused {
        /// What was attempted.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A file could not be read, written, created or removed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A directory is not one of ours.
    #[error("{} is not a control group of stillcore; expected a name such as stillcore-1234", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
    /// Processes in a control group survived SIGKILL for as long as was waited.
    #[error("{} still holds {left} processes that SIGKILL does not end", path.display())]
    Survivors {
        /// The control group.
        path: PathBuf,
        /// How many.
        left: usize,
    },
}

impl From<Error> for sys::Error {
    fn from(error: Error) -> Self {
        Self::of(error)
    }
}

/// With three digits at least where that means something.
fn size(bytes: u64) -> String {
    const MIB: f64 = (1 << 20) as f64;
    let mib = bytes as f64 / MIB;
    if mib < 1024.0 { format!("{mib:.1} MiB") } else { format!("{:.2} GiB", mib / 1024.0) }
}

impl Error {
    pub(super) fn absent(what: impl Into<String>) -> Self {
        Self::Absent { what: what.into() }
    }

    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    /// For `map_err` on system calls.
    pub(super) fn refused<E: Into<io::Error>>(action: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::Refused { action, source: source.into() }
    }
}
