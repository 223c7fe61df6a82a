//! `model --check MODEL` of a program that runs: jobs are held against their bounds as they end, a
//! line a second, and the first that takes longer is shown at once.

use super::live_text::{self, Ended};
use crate::trace_verb::watch::Onlooker;
use analysis::task_model::check::live::{LiveCheck, LiveState};
use analysis::task_model::shape::TaskModel;
use analysis::task_model::verdict::Guarantee;
use attribution::jobs::live::LiveJobs;
use ftrace::Symbols;
use model::watch::WatchedTask;
use record::live::{LivePages, LostEvents};
use record::recorder::Recorder;
use record::tasks::Tasks;
use std::path::PathBuf;
use sys::clock;

/// Pages are taken in so often, and a job that took longer is shown no later.
const STEP_NS: i64 = 100_000_000;

/// What becomes of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    Print,
    Omit,
}

/// The check of one program.
pub(super) struct Watching {
    /// Whose bounds these are.
    model: PathBuf,
    check: LiveCheck,
    recording: Option<Recording>,
    lines: Lines,
    stop_at_first: bool,
    state: Option<LiveState>,
    first_shown: bool,
    /// When recording began, when pages were last taken in, when a line was last printed.
    began_ns: i64,
    taken_ns: i64,
    line_ns: i64,
}

/// Where jobs come from.
struct Recording {
    jobs: LiveJobs,
    pages: LivePages,
    losses: LostEvents,
    dropped_pages: u64,
}

impl Watching {
    pub(super) fn new(
        model: PathBuf,
        (of, guarantee): (TaskModel, Guarantee),
        lines: Lines,
        stop_at_first: bool,
    ) -> Self {
        Self {
            model,
            check: LiveCheck::new(of, guarantee),
            recording: None,
            lines,
            stop_at_first,
            state: None,
            first_shown: false,
            began_ns: 0,
            taken_ns: 0,
            line_ns: 0,
        }
    }

    /// What came of it; `None` where recording never began.
    pub(super) fn ended(self) -> Option<Ended> {
        let Recording { jobs, .. } = self.recording?;
        Some(Ended {
            began_ns: self.began_ns,
            length_ns: self.taken_ns.abs_diff(self.began_ns),
            holes: jobs.holes(),
            left_out: jobs.left_out(),
            renewals: jobs.renewals(),
            state: self.state?,
        })
    }

    /// Takes in what has come, all of it up to a time where that is known.
    fn feed(&mut self, tasks: &Tasks, until_ns: Option<i64>) -> anyhow::Result<()> {
        let Some(recording) = &mut self.recording else { return Ok(()) };
        let chunk = recording.pages.take_with_watched();
        recording.dropped_pages += chunk.dropped_pages;
        let until_ns = until_ns.unwrap_or(chunk.until_ns);
        let check = &mut self.check;
        recording.jobs.pages(chunk.cpus, until_ns, |job| check.add(job))?;
        if recording.jobs.is_full() {
            recording.jobs.renew(symbols(), &list(tasks));
        }
        Ok(())
    }

    /// Finds how things stand, and says so: in full once a second, the first job beyond its bound
    /// at once.
    fn report(&mut self, tasks: &Tasks, now_ns: i64, is_line: bool) {
        let Some(recording) = &self.recording else { return };
        let jobs = recording.jobs.jobs(&list(tasks));
        let state = self.check.state(&jobs, |kept| recording.jobs.kept(kept));
        let print = self.lines == Lines::Print;
        if let Some(first) = state.first.as_ref().filter(|_| !self.first_shown) {
            self.first_shown = true;
            if print {
                print!("{}", live_text::first(first, self.began_ns));
            }
        }
        if is_line && print {
            let lost = recording.losses.count().unwrap_or(0);
            let lost = live_text::Lost { events: lost, dropped_pages: recording.dropped_pages };
            println!("{}", live_text::line(&state, now_ns.abs_diff(self.began_ns), &lost));
        }
        self.state = Some(state);
    }
}

impl Onlooker for Watching {
    fn begin(&mut self, recorder: &Recorder, tasks: &Tasks, t0_ns: i64) {
        let (formats, arch) = (recorder.formats().clone(), std::env::consts::ARCH);
        let names = self.check.names().clone();
        self.recording = Some(Recording {
            jobs: LiveJobs::new(formats, symbols(), arch, &list(tasks), t0_ns, names),
            pages: recorder.live(),
            losses: recorder.losses(),
            dropped_pages: 0,
        });
        (self.began_ns, self.taken_ns, self.line_ns) = (t0_ns, t0_ns, t0_ns);
        if self.lines == Lines::Print {
            println!("{}", live_text::begins(&self.model, self.check.names()));
        }
    }

    fn look(&mut self, tasks: &Tasks) -> anyhow::Result<bool> {
        let now_ns = clock::now_ns();
        if now_ns - self.taken_ns < STEP_NS {
            return Ok(false);
        }
        self.taken_ns = now_ns;
        self.feed(tasks, None)?;
        let is_line = now_ns - self.line_ns >= clock::SECOND_NS;
        if is_line {
            self.line_ns = now_ns;
        }
        let is_news = self.check.is_news() && !self.first_shown;
        if is_line || is_news {
            self.report(tasks, now_ns, is_line);
        }
        Ok(self.stop_at_first && self.first_shown)
    }

    fn end(&mut self, tasks: &Tasks, t1_ns: i64) -> anyhow::Result<()> {
        self.feed(tasks, Some(t1_ns))?;
        self.taken_ns = t1_ns;
        self.report(tasks, t1_ns, false);
        Ok(())
    }
}

fn list(tasks: &Tasks) -> Vec<WatchedTask> {
    tasks.tasks.values().cloned().collect()
}

/// The kernel's functions by address.
fn symbols() -> Symbols {
    Symbols::parse(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
}
