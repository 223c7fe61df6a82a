//! What a stressor makes or changes that would outlive it, known before it begins.
//!
//! Names are made of the supervisor's process id and the order's number, so that the supervisor can write them into its journal before the
//! stressor exists: whoever of the two is killed, the other, the guardian or the next call takes back what is there.

use super::{Error, Order, catalogue};
use crate::isolate::undo::{ALL_TASKS, Transient};
use crate::record::tracefs;
use model::Cpus;
use std::fs;
use std::path::{Path, PathBuf};

/// One thing to take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    /// How it is taken back.
    pub kind: Transient,
    /// What it is.
    pub target: String,
}

impl Leaving {
    /// Affinities that the kernel widens at the end of what comes after it, and so are given back last.
    pub(in crate::disturb) fn affinities() -> Self {
        Self { kind: Transient::Affinities, target: ALL_TASKS.to_owned() }
    }
}

/// By what a stressor makes names, and chooses what to change.
#[derive(Debug)]
pub struct Mark<'a> {
    /// `PID-NUMBER`: unique among the running stressors.
    pub id: String,
    /// Where it runs.
    pub cpus: &'a Cpus,
    /// Where tracefs is, if anywhere.
    pub tracefs: Option<PathBuf>,
}

/// What an order, the `number`th of the calling process, may leave. The same for as long as the machine is the same.
pub fn of(order: &Order, number: usize, tracefs: Option<&Path>) -> Result<Vec<Leaving>, Error> {
    let spec = catalogue::find(&order.name)?;
    let mark = Mark {
        id: format!("{}-{number}", std::process::id()),
        cpus: &order.cpus,
        tracefs: tracefs.map(Path::to_owned).or_else(mounted),
    };
    Ok((spec.leaves)(&mark))
}

fn mounted() -> Option<PathBuf> {
    tracefs::mounted_at(&fs::read_to_string("/proc/mounts").ok()?)
}
