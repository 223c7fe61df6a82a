//! Numbers with their units, the same wherever a reader meets them.
//!
//! ASCII only: a serial console must show it. The page puts typographic units in their place
//! (`html::filters`).

/// A time with four significant digits in the largest unit that keeps it at 1 or above: `812 ns`,
/// `12.35 us`, `1.234 ms`.
pub fn ns(value_ns: i64) -> String {
    ns_f(value_ns as f64)
}

/// The same for a time that is not a whole number of ns.
pub fn ns_f(value_ns: f64) -> String {
    let (divisor, unit) = time_unit(value_ns);
    let scaled = value_ns / divisor;
    if unit == "ns" && value_ns.fract() == 0.0 {
        return format!("{scaled:.0} ns");
    }
    format!("{} {unit}", significant(scaled, 4))
}

/// The largest unit that keeps a time at 1 or above, and its ns.
pub(crate) fn time_unit(value_ns: f64) -> (f64, &'static str) {
    match value_ns.abs() {
        s if s < 999.95 => (1.0, "ns"),
        s if s < 999_950.0 => (1e3, "us"),
        s if s < 999_950_000.0 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

/// A time in ms to the last nanosecond, three decimals at least: `7.000 ms`, `3.041872 ms`.
pub fn ms_exact(value_ns: u64) -> String {
    let (whole, rest) = (value_ns / 1_000_000, value_ns % 1_000_000);
    let digits = format!("{rest:06}");
    let kept = digits.trim_end_matches('0').len().max(3);
    format!("{}.{} ms", count(whole), &digits[..kept])
}

/// The length of a measurement: `10.0 s`, `10.0 min`, `3.5 h`.
pub fn span(value_ns: u64) -> String {
    let seconds = value_ns as f64 / 1e9;
    match seconds {
        s if s < 1.0 => ns(value_ns as i64),
        s if s < 300.0 => format!("{s:.1} s"),
        s if s < 10_800.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A count with its thousands apart: `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate per second: `1,250/s`, `249.8/s`, `0.0033/s`.
pub fn rate(per_s: f64) -> String {
    match per_s {
        0.0 => "0/s".to_owned(),
        r if r >= 999.5 => format!("{}/s", count(r.round() as u64)),
        r if r >= 0.1 => format!("{}/s", significant(r, 4)),
        r => format!("{}/s", significant(r, 2)),
    }
}

/// An upper bound of a rate: two significant digits, rounded up, so that what is printed still is a
/// bound.
pub fn rate_up(per_s: f64) -> String {
    format!("{}/s", significant(two_digits_up(per_s), 2))
}

/// An upper bound without a unit: two significant digits, rounded up.
pub(crate) fn bound(value: f64) -> String {
    let bound = two_digits_up(value);
    if bound >= 1e4 { count(bound.round() as u64) } else { significant(bound, 2) }
}

fn two_digits_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    let step = 10f64.powf(value.log10().floor() - 1.0);
    // A bound that is a round number itself must not be lifted by the error of the division.
    (value / step - 1e-9).ceil() * step
}

/// A moment of a clock, in seconds with all its digits, as `trace-cmd report` and `--window` have
/// it.
pub fn instant(t_ns: i64) -> String {
    let sign = if t_ns < 0 { "-" } else { "" };
    let ns = t_ns.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// A round time as short as it reads, for ticks and thresholds: `20 us`, `0.5 ms`, `1.25 s`.
pub fn ns_round(value_ns: f64) -> String {
    let (divisor, unit) = match value_ns.abs() {
        s if s < 999.5 => (1.0, "ns"),
        s if s < 999_500.0 => (1e3, "us"),
        s if s < 999_500_000.0 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", short(value_ns / divisor))
}

/// A number without the zeros it does not need, four decimals at most.
pub fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    match trimmed(&text) {
        "" | "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// An upper bound of a share, rounded up like [`rate_up`].
pub fn share_up(value: f64) -> String {
    share(two_digits_up(value))
}

/// A share of one as a percentage, down to where powers of ten read better: `12.5 %`, `0.041 %`,
/// `3.1e-6`.
pub fn share(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v.abs() < 1e-5 => format!("{v:.1e}"),
        v => format!("{} %", significant(v * 100.0, 3)),
    }
}

/// An RFC 3339 moment without its fraction of a second.
pub fn moment(rfc3339: &str) -> String {
    let Some((seconds, rest)) = rfc3339.split_once('.') else { return rfc3339.to_owned() };
    format!("{seconds}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// Memory: `3,412 KiB`.
pub fn kib(value: u64) -> String {
    format!("{} KiB", count(value))
}

/// The size of a working set: `64 B`, `4 KiB`, `1 MiB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        b if b < 1024 || !b.is_multiple_of(1024) => format!("{} B", count(b)),
        b if b.is_multiple_of(1 << 20) => format!("{} MiB", count(b >> 20)),
        b => format!("{} KiB", count(b >> 10)),
    }
}

/// `1 sample`, `2 samples`.
pub fn plural(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{} {noun}s", count(n)) }
}

/// The name of a quantile as the field writes it: 0.5 → `p50`, 0.9999 → `p99.99`.
pub fn quantile_name(p: f64) -> String {
    format!("p{}", trimmed(&format!("{:.4}", p * 100.0)))
}

/// `value` with `digits` significant digits, no exponent, trailing zeros kept up to the precision
/// asked.
pub(crate) fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    // The exponent after rounding: 999.96 with four digits is 1000.
    let rounded = format!("{value:.*e}", (digits - 1).max(0) as usize);
    let magnitude: i32 = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let decimals = (digits - 1 - magnitude).max(0) as usize;
    format!("{value:.decimals$}")
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_time_takes_the_unit_that_keeps_it_readable() {
        let cases: &[(i64, &str)] = &[
            (0, "0 ns"),
            (812, "812 ns"),
            (-412, "-412 ns"),
            (999, "999 ns"),
            (1_000, "1.000 us"),
            (12_345, "12.35 us"),
            (999_960, "1.000 ms"),
            (1_234_567, "1.235 ms"),
            (2_500_000_000, "2.500 s"),
        ];
        for (value, text) in cases {
            assert_eq!(ns(*value), *text);
        }
        assert_eq!(ns_f(23.71), "23.71 ns");
    }

    #[test]
    fn exact_milliseconds_keep_every_nanosecond() {
        assert_eq!(ms_exact(7_000_000), "7.000 ms");
        assert_eq!(ms_exact(3_041_872), "3.041872 ms");
        assert_eq!(ms_exact(29_000_001), "29.000001 ms");
    }

    #[test]
    fn rates_shares_counts_and_names() {
        assert_eq!(rate(1250.4), "1,250/s");
        assert_eq!(rate(249.8), "249.8/s");
        assert_eq!(rate(0.3), "0.3000/s");
        assert_eq!(rate(0.0033), "0.0033/s");
        assert_eq!(rate(0.0), "0/s");
        assert_eq!(rate_up(0.075), "0.075/s");
        assert_eq!(rate_up(0.3), "0.30/s");
        assert_eq!(rate_up(0.3001), "0.31/s");
        assert_eq!(rate_up(0.0), "0/s");
        assert_eq!(share_up(3e-4), "0.0300 %");
        assert_eq!(share_up(3.01e-7), "3.1e-7");
        assert_eq!(ns_round(20_000.0), "20 us");
        assert_eq!(ns_round(500_000.0), "500 us");
        assert_eq!(short(0.25), "0.25");
        assert_eq!(share(0.125), "12.5 %");
        assert_eq!(share(0.000_41), "0.0410 %");
        assert_eq!(share(3.1e-6), "3.1e-6");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
        assert_eq!(quantile_name(0.5), "p50");
        assert_eq!(quantile_name(0.999_99), "p99.999");
        assert_eq!(
            [size(64), size(1_536), size(65_536), size(4 << 20)],
            ["64 B", "1,536 B", "64 KiB", "4 MiB"]
        );
        assert_eq!(plural(1, "sample"), "1 sample");
        assert_eq!(moment("2026-03-01T09:30:00.25899717Z"), "2026-03-01T09:30:00Z");
        assert_eq!(moment("2026-03-01T09:30:00.5+01:00"), "2026-03-01T09:30:00+01:00");
        assert_eq!(moment("then"), "then");
        assert_eq!(span(600_000_000_000), "10.0 min");
    }

    proptest! {
        #[test]
        fn a_printed_bound_is_a_bound_and_close(rate in 1e-6f64..1e6) {
            let read: f64 = rate_up(rate).trim_end_matches("/s").parse().unwrap();
            prop_assert!(read >= rate * (1.0 - 1e-9) && read <= rate * 1.1 + 1e-12, "{read} for {rate}");
        }

        #[test]
        fn exact_milliseconds_read_back(value in 0u64..1 << 53) {
            let text = ms_exact(value).replace([',', '.'], "");
            let digits = text.trim_end_matches(" ms");
            let decimals = ms_exact(value).split_once('.').map_or(0, |(_, d)| d.len() - 3);
            let read: u64 = digits.parse::<u64>().unwrap() * 10u64.pow(6 - decimals as u32);
            prop_assert_eq!(read, value);
        }

        #[test]
        fn a_time_is_never_off_by_more_than_its_last_digit(value in 1i64..1 << 50) {
            let text = ns(value);
            let (number, unit) = text.split_once(' ').unwrap();
            let scale = match unit { "ns" => 1.0, "us" => 1e3, "ms" => 1e6, _ => 1e9 };
            let read = number.parse::<f64>().unwrap() * scale;
            prop_assert!((read - value as f64).abs() <= value as f64 * 5.1e-4, "{text} for {value}");
        }
    }
}
