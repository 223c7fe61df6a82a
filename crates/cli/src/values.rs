//! Values of options that several verbs take.

use clap::ValueEnum;
use model::Error;
use model::quantity::duration;
use std::time::Duration;

/// The longest time that a guest may take.
const MOST_OF_A_GUEST: Duration = Duration::from_secs(7 * 86_400);

/// The time that a guest, or a command in it, may take: above zero, at most a week.
pub(crate) fn guest_time(text: &str) -> Result<Duration, Box<dyn std::error::Error + Send + Sync>> {
    let time = duration(text)?;
    if time.is_zero() || time > MOST_OF_A_GUEST {
        return Err(Error::invalid("time", format!("{text:?}"), "above 0s, at most 7d").into());
    }
    Ok(time)
}

/// Which lockings of a watched program are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LockMode {
    /// Those that have to wait; a free lock costs nothing.
    #[default]
    Contended,
    /// Every one, by probes on the C library.
    Every,
}

/// Recording of kernel events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceMode {
    /// Record if possible.
    Auto,
    /// Record; fail if not possible.
    On,
    /// Do not record.
    Off,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_has_a_week_at_most() {
        for (text, s) in [("90s", 90), ("10m", 600), ("1h30m", 5400), ("7d", 604_800)] {
            assert_eq!(guest_time(text).unwrap(), Duration::from_secs(s));
        }
        for text in ["", "90", "0s", "s", "-1s", "8d", "99999999999999999999h", "1\u{b5}"] {
            assert!(guest_time(text).is_err(), "{text}");
        }
    }
}
