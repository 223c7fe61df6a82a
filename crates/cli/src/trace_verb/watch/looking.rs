//! Who looks on while a program is watched.

use record::live::Keep;
use record::recorder::Recorder;
use record::tasks::Tasks;

/// Who looks on while a program is watched.
pub(crate) trait Onlooker {
    /// Recording is about to begin; `tasks` are the threads that there are.
    fn begin(&mut self, recorder: &Recorder, tasks: &Tasks, t0_ns: i64);
    /// Called some times a second; returns whether recording is to end.
    fn look(&mut self, tasks: &Tasks) -> anyhow::Result<bool>;
    /// All has come, up to this time.
    fn end(&mut self, tasks: &Tasks, t1_ns: i64) -> anyhow::Result<()>;
}

/// Whether somebody looks on, and what is left of the recording.
#[derive(Default)]
pub(crate) struct Looking<'a> {
    /// What becomes of the pages.
    pub(crate) keep: Keep,
    /// Who looks on.
    pub(crate) by: Option<&'a mut dyn Onlooker>,
}
