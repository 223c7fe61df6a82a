//! `--stop-over`: the first sample at or above a limit ends the measurement. Shared by the verbs
//! that measure in one window.

use clap::Args;
use model::quantity::duration;
use std::error::Error;
use std::time::Duration;

/// What ends a measurement before its time.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Stopping {
    /// Stop at the first sample at or above this value; exit 2. With --trace, keep the last stretch
    /// of the trace and report the cause.
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub(crate) stop_over: Option<Duration>,
}

impl Stopping {
    /// The limit, ns.
    pub(crate) fn limit_ns(self) -> Option<i64> {
        self.stop_over.map(|limit| i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// A time that a sample can reach or not.
fn limit(text: &str) -> Result<Duration, Box<dyn Error + Send + Sync>> {
    match duration(text)? {
        Duration::ZERO => Err("every sample reaches 0s: expected at least 1ns".into()),
        limit => Ok(limit),
    }
}
