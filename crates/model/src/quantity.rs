//! How lengths of time and numbers of bytes are typed, on command lines and in files.

use std::time::Duration;

/// A number of bytes such as 64K or 20M; none where the text is no such number.
pub fn bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.char_indices().last()? {
        (at, 'K' | 'k') => (&text[..at], 1 << 10),
        (at, 'M' | 'm') => (&text[..at], 1 << 20),
        (at, 'G' | 'g') => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// What a length of time may be, for errors and hints.
pub const TIME_UNITS: &str = "units are ns, us, ms, s, m, h, d, also combined (1h30m)";

/// Units of time and their nanoseconds.
const UNITS: [(&str, f64); 9] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
];

/// A text that is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no length of time: {why}; expected a number with a unit, such as 200us, 20s or 1h30m")]
pub struct NotATime {
    /// The text.
    pub text: String,
    /// Why not.
    pub why: WhyNotATime,
}

/// Why a text is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WhyNotATime {
    /// A number without a unit.
    #[error("unit missing")]
    UnitMissing,
    /// A unit that does not exist.
    #[error("unknown unit {0:?}")]
    UnknownUnit(String),
    /// No number before a unit.
    #[error("number missing")]
    NumberMissing,
    /// More than 31 years.
    #[error("too long")]
    TooLong,
}

/// A length of time such as 20s, 500ms or 200us, or several together: 1h30m.
pub fn duration(text: &str) -> Result<Duration, NotATime> {
    duration_ns(text).map(Duration::from_nanos).map_err(|why| NotATime { text: text.to_owned(), why })
}

fn duration_ns(text: &str) -> Result<u64, WhyNotATime> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut rest = text.trim();
    let mut ns = 0.0;
    loop {
        let (number, after) = rest.split_at(rest.find(|c| !is_number(c)).unwrap_or(rest.len()));
        let number: f64 = number.parse().map_err(|_| WhyNotATime::NumberMissing)?;
        let after = after.trim_start();
        let (unit, others) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        let unit = unit.trim_end();
        let unit_ns = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ns)| *ns);
        ns += number
            * match unit_ns {
                Some(unit_ns) => unit_ns,
                None if unit.is_empty() => return Err(WhyNotATime::UnitMissing),
                None => return Err(WhyNotATime::UnknownUnit(unit.to_owned())),
            };
        if others.is_empty() {
            break;
        }
        rest = others;
    }
    if ns.is_finite() && ns < 1e18 { Ok(ns.round() as u64) } else { Err(WhyNotATime::TooLong) }
}

/// Nanoseconds as [`duration`] reads them back exactly, in the largest unit that divides them.
pub fn spelled(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match units.iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", ns / unit),
        None => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::WhyNotATime::{NumberMissing, TooLong, UnitMissing, UnknownUnit};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_of_time() {
        assert_eq!(duration("20s").unwrap(), Duration::from_secs(20));
        assert_eq!(duration("1.5ms").unwrap(), Duration::from_micros(1500));
        assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
        for (text, s) in [("1h30m", 5400), ("1d", 86_400), ("2d 1h 5s", 176_405), ("1m500ms500ms", 61)] {
            assert_eq!(duration(text).unwrap(), Duration::from_secs(s), "{text}");
        }
        for (text, why) in [
            ("", NumberMissing),
            ("20", UnitMissing),
            ("1h30", UnitMissing),
            ("s", NumberMissing),
            ("-3s", NumberMissing),
            ("1e3s", UnknownUnit("e".to_owned())),
            ("20 parsecs", UnknownUnit("parsecs".to_owned())),
            ("1.2.3s", NumberMissing),
            ("99999999999h", TooLong),
        ] {
            assert_eq!(duration(text).unwrap_err().why, why, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_spelled_is_read(ns in 0u64..1 << 52) {
            prop_assert_eq!(duration(&spelled(ns)).unwrap().as_nanos() as u64, ns);
        }
    }
}
