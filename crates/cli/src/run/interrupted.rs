//! The errors that are no failures: the user asked to stop, now or before.

use model::run::StoppedAt;

/// The user asked to stop, by the signal of this name.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) &'static str);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "interrupted by {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// A sample has reached the limit at which the user wanted to stop.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) StoppedAt);

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&report::stopped::sentence(&self.0))
    }
}

impl std::error::Error for Stopped {}
