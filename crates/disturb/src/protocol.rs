//! What a supervisor and a stressor's process say to each other.

use crate::Error;
use model::Cpus;
use model::stressor::StressorRecord;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;

/// The supervisor's order to a child, as one JSON argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StressArgs {
    /// The CPUs to run on.
    pub cpus: Cpus,
    /// How long to run unless stopped earlier, ns.
    pub duration_ns: i64,
    /// Operations per second; absent is the stressor's own default, 0 is as fast as it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Bytes to work on; absent is the stressor's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Loops, or whatever the stressor has several of; absent is its own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Where to make files; absent is the stressor's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// CPUs that are measured, for stressors that need a thread there.
    #[serde(default)]
    pub measured: Cpus,
    /// The supervisor's process id, which must still be the parent; 0 where it is not to be
    /// checked.
    #[serde(default)]
    pub supervisor: i32,
    /// Control groups to enter, with what each confines.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// What the supervisor undoes, from the entry's `leaves`.
    #[serde(default)]
    pub leaves: Vec<String>,
    /// Whether the supervisor shares a page for counting operations.
    #[serde(default)]
    pub metered: bool,
    /// Nice value, 0 to 19; never below the one inherited.
    #[serde(default)]
    pub nice: i32,
    /// Whether operations begin only when a byte comes on standard input.
    #[serde(default)]
    pub held: bool,
    /// How long it does nothing after its last operation, before it takes anything down, ns.
    #[serde(default)]
    pub linger_ns: i64,
}

/// A control group that a stressor enters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its directory.
    pub dir: PathBuf,
    /// What it confines: `cpuset`, `memory`, `pids`; empty for a group that only holds its members
    /// together.
    pub controllers: Vec<String>,
}

/// One line from a child to its supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// All is prepared; operations begin, or wait for the word.
    Ready {
        /// How the child is confined.
        confined_by: Vec<String>,
    },
    /// The end of a run.
    Record(Box<StressorRecord>),
    /// This kernel or machine lacks what the stressor needs.
    Absent {
        /// What.
        reason: String,
    },
    /// The run could not be made.
    Failed {
        /// Why.
        reason: String,
    },
}

impl Line {
    pub(crate) fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        let failed = |error| Error::Refused { action: "write to the supervisor", source: error };
        let mut text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        out.write_all(&text).and_then(|()| out.flush()).map_err(failed)
    }
}
