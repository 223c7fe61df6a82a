//! cyclictest's live table: frames over one another, also where no terminal reads them. The first
//! sample of a thread is in its count but in no live value; the values at the end include it.

use super::plan::Plan;
use super::text::{self, Line};
use machine::Root;
use measure::handle::ProbeDrain;
use measure::window::Progress;
use std::io::{self, Write};

/// Polls of the probes per frame, which makes ten frames per second.
const LOOKS: u32 = 5;

/// What is on the screen.
pub(super) struct Screen<'a> {
    plan: &'a Plan,
    unit_ns: i64,
    only_new_maxima: bool,
    looks: u32,
    max_ns: Option<i64>,
    drawn: bool,
}

impl<'a> Screen<'a> {
    /// An empty one.
    pub(super) fn new(plan: &'a Plan, unit_ns: i64, only_new_maxima: bool) -> Self {
        Self { plan, unit_ns, only_new_maxima, looks: 0, max_ns: None, drawn: false }
    }

    /// Draws a frame when it is time for one.
    pub(super) fn look(&mut self, progress: Progress<'_>) -> io::Result<()> {
        self.looks += 1;
        let max_ns = progress.probes.iter().filter_map(|probe| probe.live().peak_ns).max();
        if !self.looks.is_multiple_of(LOOKS) || (self.only_new_maxima && max_ns <= self.max_ns) {
            return Ok(());
        }
        self.max_ns = max_ns;
        let lines: Vec<_> = progress.probes.iter().map(|probe| live(probe, self.unit_ns)).collect();
        let frame = self.frame(&lines);
        let above = if self.drawn { self.back() } else { String::new() };
        self.drawn = true;
        put(&format!("{above}{frame}"))
    }

    /// The last frame; `before` comes above it, so that the lines of the threads are the last.
    pub(super) fn end(&self, before: &str, lines: &[Line]) -> String {
        let above = if self.drawn { self.back() + "\u{1b}[J" } else { String::new() };
        above + before + &self.frame(lines)
    }

    fn frame(&self, lines: &[Line]) -> String {
        let loadavg = Root::live().maybe("proc/loadavg").unwrap_or_default();
        text::head(self.plan, &loadavg) + &text::stat(lines, &self.plan.threads, self.unit_ns == 1)
    }

    /// Back to the first line of the frame.
    fn back(&self) -> String {
        format!("\u{1b}[{}A", self.plan.threads.len() + 2)
    }
}

fn live(probe: &ProbeDrain, unit_ns: i64) -> Line {
    let live = probe.live();
    let unit = |ns: Option<i64>| ns.unwrap_or(0) / unit_ns;
    let min = live.min_ns.map_or(1_000_000, |ns| ns / unit_ns);
    let mean = live.mean_ns().unwrap_or(0.0) as i64 / unit_ns;
    let figures = [min, unit(live.last_ns), mean, unit(live.max_ns)];
    Line { tid: probe.pid() as i32, priority: probe.spec().policy.priority, cycles: live.stored, figures }
}

/// Writes to standard output at once.
pub(super) fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
