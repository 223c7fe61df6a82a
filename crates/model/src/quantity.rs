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

/// A length of time such as 20s, 500ms, 200us or 2m.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!("{text:?} is no length of time; expected a number with a unit, such as 20s, 500ms or 200us")
    };
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let unit_ns: f64 = match unit.trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(wrong()),
    };
    let ns = number.parse::<f64>().map_err(|_| wrong())? * unit_ns;
    if ns.is_finite() && ns < 1e18 { Ok(Duration::from_nanos(ns.round() as u64)) } else { Err(wrong()) }
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
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_of_time() {
        assert_eq!(duration("20s").unwrap(), Duration::from_secs(20));
        assert_eq!(duration("1.5ms").unwrap(), Duration::from_micros(1500));
        assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
        for text in ["", "20", "s", "-3s", "1e3s", "20 parsecs", "99999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_spelled_is_read(ns in 0u64..1 << 52) {
            prop_assert_eq!(duration(&spelled(ns)).unwrap().as_nanos() as u64, ns);
        }
    }
}
