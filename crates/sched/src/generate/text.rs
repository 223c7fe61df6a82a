//! Times and laws as users write them: `72us`, `uniform:10ms:100ms`.

use super::{GenerateError, Periods, wrong};

/// Units of time and their nanoseconds: those of all command lines.
const UNITS: [(&str, u64); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// A time such as `72us`, `1.5ms`, `10ms` or `1m30s`, ns. Exact: no floating point.
pub fn read_time(text: &str) -> Result<u64, GenerateError> {
    let bad = || wrong("time", format!("{text:?}"), "a number with a unit, such as 72us, 1.5ms or 10ms");
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (mut rest, mut ns) = (text, 0_u64);
    loop {
        let (number, after) = rest.split_at(rest.find(|c| !is_number(c)).ok_or_else(bad)?);
        let (unit, others) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        let unit_ns = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ns)| *ns).ok_or_else(bad)?;
        ns = amount_ns(number, unit_ns).and_then(|part| ns.checked_add(part)).ok_or_else(bad)?;
        if others.is_empty() {
            return Ok(ns);
        }
        rest = others;
    }
}

/// So many units, ns; none where that is no whole number of ns.
fn amount_ns(number: &str, unit_ns: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let whole_ns = whole.parse::<u64>().ok()?.checked_mul(unit_ns)?;
    if part.is_empty() {
        return Some(whole_ns);
    }
    let scale = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part_ns = part.parse::<u64>().ok()?.checked_mul(unit_ns / scale)?;
    unit_ns.is_multiple_of(scale).then(|| whole_ns.checked_add(part_ns))?
}

/// A law: `uniform:LOW:HIGH[:GRANULARITY]`, `log-uniform:LOW:HIGH[:GRANULARITY]`,
/// `harmonic:LOW:HIGH[:FACTOR]` or `list:T,T,…`.
pub fn read_periods(text: &str) -> Result<Periods, GenerateError> {
    let bad = || {
        let expected = "uniform:LOW:HIGH[:GRANULARITY], log-uniform:LOW:HIGH[:GRANULARITY], harmonic:LOW:HIGH[:FACTOR] or list:T,T,…";
        wrong("periods", format!("{text:?}"), expected)
    };
    let period = |text: &str| {
        read_time(text).map_err(|error| match error {
            GenerateError::Spec { found, expected, .. } => {
                GenerateError::Spec { field: "periods", found, expected }
            }
            other => other,
        })
    };
    let (law, rest) = text.split_once(':').ok_or_else(bad)?;
    if law == "list" {
        let mut values = rest.split(',').map(period).collect::<Result<Vec<u64>, _>>()?;
        values.sort_unstable();
        return Ok(Periods::List(values));
    }
    let parts: Vec<&str> = rest.split(':').collect();
    let (low_ns, high_ns, more) = match parts[..] {
        [low, high] => (period(low)?, period(high)?, None),
        [low, high, more] => (period(low)?, period(high)?, Some(more)),
        _ => return Err(bad()),
    };
    let granularity_ns = || more.map_or(Ok(1), period);
    match law {
        "uniform" => Ok(Periods::Uniform { low_ns, high_ns, granularity_ns: granularity_ns()? }),
        "log-uniform" => Ok(Periods::LogUniform { low_ns, high_ns, granularity_ns: granularity_ns()? }),
        "harmonic" => {
            let factor = more.map_or(Some(2), |factor| factor.parse().ok().filter(|factor| *factor >= 2));
            Ok(Periods::harmonic(low_ns, high_ns, factor.ok_or_else(bad)?))
        }
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_exact() {
        for (text, ns) in [
            ("72us", 72_000),
            ("1.5ms", 1_500_000),
            ("0.001us", 1),
            ("10ms", 10_000_000),
            ("3s", 3_000_000_000),
        ] {
            assert_eq!(read_time(text).unwrap(), ns);
        }
        for bad in ["", "72", "us", "1.5ns", "-1us", "1.2.3us", "1e3us", ".5us", "99999999999999s", "1 us"] {
            assert!(read_time(bad).unwrap_err().to_string().starts_with("time: "), "{bad}");
        }
    }

    #[test]
    fn laws() {
        let uniform = Periods::Uniform { low_ns: 10_000_000, high_ns: 100_000_000, granularity_ns: 1 };
        assert_eq!(read_periods("uniform:10ms:100ms").unwrap(), uniform);
        let log =
            Periods::LogUniform { low_ns: 1_000_000, high_ns: 1_000_000_000, granularity_ns: 1_000_000 };
        assert_eq!(read_periods("log-uniform:1ms:1s:1ms").unwrap(), log);
        assert_eq!(read_periods("harmonic:1us:10us:3").unwrap(), Periods::List(vec![1000, 3000, 9000]));
        assert_eq!(read_periods("list:5us,2us").unwrap(), Periods::List(vec![2000, 5000]));
        for bad in [
            "",
            "uniform",
            "uniform:1ms",
            "uniform:1:2",
            "normal:1ms:2ms",
            "harmonic:1ms:2ms:1",
            "uniform:1ms:2ms:3ms:4ms",
        ] {
            assert!(read_periods(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_law_or_an_error(text in ".{0,40}", law in "(uniform|list|harmonic|log-uniform):[0-9a-z.:,]{0,20}") {
            let _ = read_periods(&text);
            if let Ok(periods) = read_periods(&law) {
                // The parsed text is either a valid law or refused.
                let _ = super::super::Generator::new(super::super::Spec { periods, ..Default::default() }, 1).map(|g| g.set(0));
            }
        }
    }
}
