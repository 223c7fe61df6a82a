//! Settings of a machine as pairs of reading and writing, one file a kind: planning, applying,
//! verifying and undoing are then the same few lines for all of them.

mod file;
mod flag;
mod group;
mod held;
mod member;
mod occupied;
mod process;
pub mod reach;
mod service;
mod swap;
mod task;
pub mod value;

pub use held::hold;
pub use occupied::{Occupied, occupy};
pub use task::Task;

use model::Cpus;
use model::plan::StepKind;
use std::path::{Path, PathBuf};
use sys::Error;

/// A machine whose settings can be read and written: this one, or a simulated one in tests.
pub trait Settings {
    /// The present value; `None` where the target does not exist (any more).
    fn read(&mut self, kind: StepKind, target: &str) -> Result<Option<String>, Error>;

    /// Writes a value that `read` could have returned, or that a plan requires.
    fn write(&mut self, kind: StepKind, target: &str, value: &str) -> Result<(), Error>;

    /// Who else needs the value that was set by now, so that it cannot be undone.
    fn user(&mut self, kind: StepKind, target: &str) -> Option<String>;

    /// Keeps CPUs busy for several ticks, and then until the answer is dropped.
    fn occupy(&mut self, cpus: &Cpus) -> Occupied;
}

/// This machine.
#[derive(Debug)]
pub struct Live {
    program: PathBuf,
    /// Settings of a made machine, which are files like any other.
    tree: Option<PathBuf>,
}

impl Live {
    /// `program` is this very binary, which keeps files open where a setting lasts only as long as
    /// that, and CPUs busy.
    pub fn new(program: &Path) -> Self {
        Self { program: program.to_owned(), tree: None }
    }

    /// A machine that was made as files below `tree`: tests set these as they would the kernel's.
    pub fn below(program: &Path, tree: &Path) -> Self {
        Self { program: program.to_owned(), tree: Some(tree.to_owned()) }
    }
}

impl Settings for Live {
    fn read(&mut self, kind: StepKind, target: &str) -> Result<Option<String>, Error> {
        match kind {
            StepKind::File | StepKind::Kept => file::read(target),
            StepKind::Flag => flag::read(target),
            StepKind::Task => Ok(task::read(target)),
            StepKind::Service => service::read(target),
            StepKind::Process => Ok(process::read(target)),
            StepKind::Swap => swap::read(target),
            StepKind::Group => Ok(Some(group::read(target))),
            StepKind::Controller => group::read_controller(target),
            StepKind::Member => Ok(member::read(target)),
            StepKind::Held => Ok(Some(held::read(target))),
            StepKind::Affinities => Ok(None),
        }
    }

    fn write(&mut self, kind: StepKind, target: &str, value: &str) -> Result<(), Error> {
        if self.tree.as_ref().is_none_or(|tree| !Path::new(target).starts_with(tree)) {
            reach::check(kind, target)?;
            reach::check_value(kind, value)?;
        }
        match kind {
            StepKind::File | StepKind::Kept => file::write(target, value),
            StepKind::Flag => flag::write(target, value),
            StepKind::Task => task::write(target, value),
            StepKind::Service => service::write(target, value),
            StepKind::Process => process::write(target, value),
            StepKind::Swap => swap::write(target, value),
            StepKind::Group => group::write(target, value),
            StepKind::Controller => group::write_controller(target, value),
            StepKind::Member => member::write(target, value),
            StepKind::Held => held::write(&self.program, target, value),
            StepKind::Affinities => Ok(()),
        }
    }

    fn user(&mut self, kind: StepKind, target: &str) -> Option<String> {
        (kind == StepKind::Controller).then(|| group::user(target)).flatten()
    }

    fn occupy(&mut self, cpus: &Cpus) -> Occupied {
        Occupied::start(&self.program, cpus)
    }
}
