//! Times as people type them: `5us`, `1.5ms`, `800ns`.

const UNITS: [(&str, f64); 5] = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

/// A time in ns; a number without a unit is none.
pub(crate) fn time_ns(text: &str) -> Option<i64> {
    let (digits, factor) =
        UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
    let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let number: f64 = digits.trim().parse().ok().filter(|_| digits.trim().bytes().all(plain))?;
    let ns = (number * factor).round();
    (ns < i64::MAX as f64).then_some(ns as i64)
}

/// A whole number of ns in the largest unit that keeps it whole.
pub(crate) fn short_time(ns: i64) -> String {
    match ns {
        ns if ns != 0 && ns % 1_000_000_000 == 0 => format!("{}s", ns / 1_000_000_000),
        ns if ns != 0 && ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns if ns != 0 && ns % 1_000 == 0 => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(time_ns("1.5us"), Some(1500));
        assert_eq!(time_ns("20 ms"), Some(20_000_000));
        for wrong in ["5", "us", "-5us", "1e3us", "infs", "nans", "5m", "99999999999999s"] {
            assert_eq!(time_ns(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(ns in 0i64..1 << 50) {
            prop_assert_eq!(time_ns(&short_time(ns)), Some(ns));
        }
    }
}
