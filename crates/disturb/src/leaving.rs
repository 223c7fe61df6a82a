//! What a stressor makes or changes that would outlive it, known before it begins.
//!
//! Names are made of the supervisor's process id and the order's number, so that the supervisor can
//! write them into its journal before the stressor exists. If either is killed, the other, the
//! guardian or the next call undoes what is there.

use super::changes::{Cgroup, Module};
use super::swap_file::SwapFile;
use journal::Change;
use journal::affinities::{ALL_TASKS, Shaken};
use journal::session::changes::Value;
use model::Cpus;
use record::changes::{Kprobe, TraceInstance};
use std::path::PathBuf;
use std::sync::Arc;
use sys::modules;

/// One thing to undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaving {
    /// A control group.
    Cgroup(Cgroup),
    /// A tracing instance.
    TraceInstance(TraceInstance),
    /// A probe of a kernel function.
    Kprobe(Kprobe),
    /// Another value of this file.
    Value(PathBuf),
    /// A module of this name, loaded from this file or unloaded.
    Module(&'static str, PathBuf),
    /// A swap area.
    SwapFile(SwapFile),
    /// Affinities that the kernel changes at the end of what comes after it, because these CPUs
    /// come and go, and so are restored last.
    Affinities(Cpus),
}

impl Leaving {
    /// What the stressor is given to know it by.
    pub fn target(&self) -> String {
        match self {
            Self::Cgroup(change) => change.target(),
            Self::TraceInstance(change) => change.target(),
            Self::Kprobe(change) => change.target(),
            Self::Value(path) => path.display().to_string(),
            Self::Module(name, file) => modules::target(name, file),
            Self::SwapFile(change) => change.target(),
            Self::Affinities(_) => ALL_TASKS.to_owned(),
        }
    }

    /// The change, with the present value; `None` where there is none that could be restored.
    pub fn change(&self) -> Option<Arc<dyn Change>> {
        Some(match self {
            Self::Cgroup(change) => Arc::new(change.clone()),
            Self::TraceInstance(change) => Arc::new(change.clone()),
            Self::Kprobe(change) => Arc::new(change.clone()),
            Self::Value(path) => Arc::new(Value::of(path)?),
            Self::Module(name, file) => Arc::new(Module::of(name, file)),
            Self::SwapFile(change) => Arc::new(change.clone()),
            Self::Affinities(cpus) => Arc::new(Shaken::now(cpus)),
        })
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
