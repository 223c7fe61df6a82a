//! What the user sees while it runs: bars on a terminal, one line per step in a pipe. Always on
//! stderr.

use indicatif::{ProgressBar, ProgressStyle};
use measure::window::Progress;
use std::io::IsTerminal;
use std::time::Duration;

/// Reports what is being done.
pub(crate) struct Reporter {
    terminal: bool,
    quiet: bool,
}

/// One step that takes time.
pub(crate) struct Step {
    bar: Option<ProgressBar>,
}

impl Reporter {
    /// Looks at stderr. A quiet one shows no steps.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { terminal: std::io::stderr().is_terminal(), quiet }
    }

    /// One line.
    pub(crate) fn say(text: &str) {
        eprintln!("{text}");
    }

    /// Begins a step of a known length.
    pub(crate) fn step(&self, name: &str, length: Duration) -> Step {
        if !self.quiet && !self.terminal {
            Self::say(&format!("{name}, {:.1} s", length.as_secs_f64()));
        }
        self.step_of(name, length.as_millis() as u64)
    }
}

impl Reporter {
    /// Begins a step of a known number of parts.
    pub(crate) fn count(&self, name: &str, parts: u64) -> Step {
        let step = self.step_of(name, parts);
        if !self.quiet && !self.terminal {
            Self::say(&format!("{name}: {parts} runs"));
        }
        step
    }

    fn step_of(&self, name: &str, length: u64) -> Step {
        if self.quiet || !self.terminal {
            return Step { bar: None };
        }
        let bar = ProgressBar::new(length);
        // The template is a constant; a wrong one shows in the first test that runs it.
        if let Ok(style) = ProgressStyle::with_template("{prefix:28} {bar:30} {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(name.to_owned());
        Step { bar: Some(bar) }
    }
}

impl Step {
    /// Shows that so many parts are done.
    pub(crate) fn at(&self, part: u64, words: impl FnOnce() -> String) {
        let Some(bar) = &self.bar else { return };
        bar.set_position(part);
        bar.set_message(words());
    }

    /// Shows how far it is.
    pub(crate) fn show(&self, progress: Progress<'_>) {
        let Some(bar) = &self.bar else { return };
        bar.set_position((progress.elapsed_ns.max(0) / 1_000_000) as u64);
        bar.set_message(figures(progress));
    }

    /// Shows how far it is, in words of the caller's own.
    pub(crate) fn update(&self, elapsed: Duration, words: impl FnOnce() -> String) {
        let Some(bar) = &self.bar else { return };
        bar.set_position(elapsed.as_millis() as u64);
        bar.set_message(words());
    }

    /// Ends it.
    pub(crate) fn done(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What was stored so far: of the probe with the largest value, its median, 99th percentile and
/// maximum.
fn figures(progress: Progress<'_>) -> String {
    let worst = progress.probes.iter().max_by_key(|probe| probe.live().max_ns);
    let Some(live) = worst.map(measure::handle::ProbeDrain::live).filter(|live| live.count > 0) else {
        return String::new();
    };
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| report::format::ns(ns as i64));
    let missed: u64 = progress.probes.iter().map(|probe| probe.live().missed).sum();
    let max = live.max_ns.map_or_else(|| "-".to_owned(), report::format::ns);
    format!(
        "p50 {} p99 {} observed max {max}, {missed} missed",
        time(live.quantile_ns(0.5)),
        time(live.quantile_ns(0.99))
    )
}
