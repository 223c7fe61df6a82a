//! Times as people type them: `5us`, `1.5ms`, `800ns`.

/// A time in ns; a number without a unit is none.
pub(crate) fn time_ns(text: &str) -> Option<i64> {
    let time = model::quantity::duration(text).ok()?;
    i64::try_from(time.as_nanos()).ok()
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
        assert_eq!(time_ns("1m30s"), Some(90_000_000_000));
        for wrong in ["5", "us", "-5us", "1e3us", "infs", "nans", "5 months", "99999999999999s"] {
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
