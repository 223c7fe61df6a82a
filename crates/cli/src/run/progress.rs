//! What the user sees while it runs: bars on a terminal, a line a step in a pipe. Always on stderr.

use indicatif::{ProgressBar, ProgressStyle};
use linux::window::Progress;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Tells what is being done.
pub(crate) struct Teller {
    terminal: bool,
    quiet: bool,
}

/// One step that takes time.
pub(crate) struct Step {
    bar: Option<ProgressBar>,
}

impl Teller {
    /// Looks at stderr. A quiet one shows no steps.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { terminal: std::io::stderr().is_terminal(), quiet }
    }

    /// One line.
    pub(crate) fn say(text: &str) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    /// Begins a step of a known length.
    pub(crate) fn step(&self, name: &str, length: Duration) -> Step {
        if self.quiet {
            return Step { bar: None };
        }
        if !self.terminal {
            Self::say(&format!("{name}, {:.1} s", length.as_secs_f64()));
            return Step { bar: None };
        }
        let bar = ProgressBar::new(length.as_millis() as u64);
        // The template is a constant; a wrong one shows in the first test that runs it.
        if let Ok(style) = ProgressStyle::with_template("{prefix:28} {bar:30} {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(name.to_owned());
        Step { bar: Some(bar) }
    }
}

impl Step {
    /// Shows how far it is.
    pub(crate) fn show(&self, progress: Progress<'_>) {
        let Some(bar) = &self.bar else { return };
        bar.set_position((progress.elapsed_ns.max(0) / 1_000_000) as u64);
        if let Some(max) = progress.observed_max_ns() {
            bar.set_message(format!("observed max {}", report::format::ns(max)));
        }
    }

    /// Ends it.
    pub(crate) fn done(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
