//! For tests of what a killed call leaves: the process ends itself, as SIGKILL would, right before
//! or right after a write.

use journal::settings::{Occupied, Settings};
use model::Cpus;
use model::plan::StepKind;

/// Settings that end the process at a write: 2k before the k-th, 2k+1 after it.
pub(crate) struct Crashing<'a> {
    inner: &'a mut dyn Settings,
    at: Option<u64>,
    moment: u64,
}

impl<'a> Crashing<'a> {
    /// `at` none never crashes.
    pub(crate) fn new(inner: &'a mut dyn Settings, at: Option<u64>) -> Self {
        Self { inner, at, moment: 0 }
    }

    fn pass(&mut self) {
        if self.at == Some(self.moment) {
            std::process::abort();
        }
        self.moment += 1;
    }
}

impl Settings for Crashing<'_> {
    fn read(&mut self, kind: StepKind, target: &str) -> Result<Option<String>, sys::Error> {
        self.inner.read(kind, target)
    }

    fn write(&mut self, kind: StepKind, target: &str, value: &str) -> Result<(), sys::Error> {
        self.pass();
        let written = self.inner.write(kind, target, value);
        self.pass();
        written
    }

    fn user(&mut self, kind: StepKind, target: &str) -> Option<String> {
        self.inner.user(kind, target)
    }

    fn occupy(&mut self, cpus: &Cpus) -> Occupied {
        self.inner.occupy(cpus)
    }
}
