//! What the user sees while it runs: bars on a terminal, one line per step in a pipe. Always on
//! stderr.

use crate::terminal;
use indicatif::{ProgressBar, ProgressStyle};
use measure::window::Progress;
use std::time::Duration;

/// Columns of a step's name, and of its bar where there is room.
const NAME: usize = 28;
const BAR: usize = 30;
/// The bar of a narrow terminal.
const SHORT_BAR: usize = 10;
/// A terminal narrower than this is narrow.
const NARROW: usize = 110;

/// Reports what is being done.
pub(crate) struct Reporter {
    /// Columns of the terminal, if there is one.
    columns: Option<usize>,
    quiet: bool,
}

/// One step that takes time.
pub(crate) struct Step {
    bar: Option<ProgressBar>,
    /// Columns behind the bar.
    room: usize,
}

impl Reporter {
    /// Looks at stderr. A quiet one shows no steps.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { columns: terminal::columns_of_stderr().map(usize::from), quiet }
    }

    /// One line.
    pub(crate) fn say(text: &str) {
        eprintln!("{text}");
    }

    /// Begins a step of a known length.
    pub(crate) fn step(&self, name: &str, length: Duration) -> Step {
        if !self.quiet && self.columns.is_none() {
            Self::say(&format!("{name}, {:.1} s", length.as_secs_f64()));
        }
        self.step_of(name, length.as_millis() as u64)
    }
}

impl Reporter {
    /// Begins a step of a known number of parts.
    pub(crate) fn count(&self, name: &str, parts: u64) -> Step {
        let step = self.step_of(name, parts);
        if !self.quiet && self.columns.is_none() {
            Self::say(&format!("{name}: {parts} runs"));
        }
        step
    }

    fn step_of(&self, name: &str, length: u64) -> Step {
        let Some(columns) = self.columns.filter(|_| !self.quiet) else {
            return Step { bar: None, room: 0 };
        };
        let wide = if columns < NARROW { SHORT_BAR } else { BAR };
        let bar = ProgressBar::new(length);
        // Only numbers are filled into the template; a wrong one shows in the first test that runs
        // it.
        if let Ok(style) = ProgressStyle::with_template(&format!("{{prefix:{NAME}}} {{bar:{wide}}} {{msg}}"))
        {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(name.to_owned());
        let room = columns.saturating_sub(name.chars().count().max(NAME) + wide + 3);
        Step { bar: Some(bar), room }
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
        bar.set_message(whole_parts(&figures(progress), self.room));
    }

    /// Shows how far it is, in words of the caller's own.
    pub(crate) fn update(&self, elapsed: Duration, words: impl FnOnce() -> String) {
        let Some(bar) = &self.bar else { return };
        bar.set_position(elapsed.as_millis() as u64);
        bar.set_message(whole_parts(&words(), self.room));
    }

    /// Ends it.
    pub(crate) fn done(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// As many of the parts between commas as there is room for: a line that the terminal breaks is
/// drawn again below itself, and a number that is cut is another number.
fn whole_parts(text: &str, room: usize) -> String {
    let mut kept = String::new();
    for part in text.split(", ") {
        let comma = if kept.is_empty() { "" } else { ", " };
        if kept.chars().count() + comma.len() + part.chars().count() > room {
            break;
        }
        kept.push_str(comma);
        kept.push_str(part);
    }
    kept
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
        "observed max {max}, p99 {}, p50 {}, {missed} missed",
        time(live.quantile_ns(0.99)),
        time(live.quantile_ns(0.5))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_cut() {
        let text = "observed max 50.14 us, p99 62.53 us, p50 4.2 us, 0 missed";
        assert_eq!(whole_parts(text, 80), text);
        assert_eq!(whole_parts(text, 40), "observed max 50.14 us, p99 62.53 us");
        assert_eq!(whole_parts(text, 10), "");
    }
}
