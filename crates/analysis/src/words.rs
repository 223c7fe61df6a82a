//! Numbers in sentences, in ASCII: `41.2 us`, `12.5 per s`, `0.031 %`.

/// A number in its unit: `ns`, `share` or `per s`.
pub(crate) fn figure(value: f64, unit: &str) -> String {
    match unit {
        "ns" => time(value),
        "share" => format!("{} %", digits(value * 100.0)),
        _ if value != 0.0 && value.abs() < 1e-4 => format!("less than 0.0001 {unit}"),
        _ => format!("{} {unit}", digits(value)),
    }
}

/// A number with commas between thousands.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let comma = |at: usize| at > 0 && (digits.len() - at).is_multiple_of(3);
    digits
        .chars()
        .enumerate()
        .flat_map(|(at, digit)| comma(at).then_some(',').into_iter().chain([digit]))
        .collect()
}

/// A time in ns in the unit that suits it.
pub(crate) fn time(value_ns: f64) -> String {
    let (scaled, unit) = match value_ns.abs() {
        size if size < 999.5 => return format!("{value_ns:.0} ns"),
        size if size < 999_500.0 => (value_ns / 1e3, "us"),
        size if size < 999_500_000.0 => (value_ns / 1e6, "ms"),
        _ => (value_ns / 1e9, "s"),
    };
    format!("{} {unit}", digits(scaled))
}

/// Three significant digits, and no more noughts than needed.
fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if magnitude < -6 {
        return format!("{value:.1e}");
    }
    format!("{value:.*}", (2 - magnitude).max(0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_in_the_unit_that_suits() {
        assert_eq!(figure(812.0, "ns"), "812 ns");
        assert_eq!(figure(41_234.0, "ns"), "41.2 us");
        assert_eq!(figure(-1_500_000.0, "ns"), "-1.50 ms");
        assert_eq!(figure(0.000_31, "share"), "0.0310 %");
        assert_eq!(figure(1249.7, "per s"), "1250 per s");
        assert_eq!(figure(0.0, "per s"), "0 per s");
        assert_eq!([7, 999, 10_000, 1_234_567].map(count), ["7", "999", "10,000", "1,234,567"]);
    }
}
