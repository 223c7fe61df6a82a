//! How many digits of an estimate mean something: its interval decides.
//!
//! The last digit that is printed is the second significant one of the interval's half-width (the
//! rule for the digits of an uncertainty, Guide to the expression of uncertainty in measurement
//! 7.2.6). Counts are exact and have `format::count`; an observed extreme is as fine as its clock.

use crate::format;

/// What an estimate is of; decides its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A time, in ns.
    Time,
    /// A share of one.
    Share,
    /// Events per second.
    Rate,
    /// A number of another unit, or of none.
    Number,
}

impl Quantity {
    /// By the name of a unit in `analysis.json`: `ns`, `share`, `per s`.
    pub fn of(unit: &str) -> Self {
        match unit {
            "ns" => Self::Time,
            "share" => Self::Share,
            "per s" => Self::Rate,
            _ => Self::Number,
        }
    }
}

/// The digits that an interval leaves certain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// Values are multiples of it; `None` where no interval is known.
    step: Option<f64>,
}

impl Precision {
    /// Of an estimate with this interval. Without one, four significant digits are printed.
    pub fn of(interval: Option<[f64; 2]>) -> Self {
        let half = interval.map(|[low, high]| (high - low).abs() / 2.0);
        let step = half.filter(|half| *half > 0.0 && half.is_finite());
        Self { step: step.map(|half| 10f64.powf(half.log10().floor() - 1.0)) }
    }

    /// Of an estimate that is known to within `error` on both sides.
    pub fn within(error: f64) -> Self {
        Self::of(Some([-error, error]))
    }

    /// A value with its unit.
    pub fn text(self, value: f64, quantity: Quantity) -> String {
        let Some(step) = self.step.filter(|_| value.is_finite()) else { return plain(value, quantity) };
        let rounded = (value / step).round() * step;
        if rounded == 0.0 {
            return nought(step, quantity);
        }
        match quantity {
            Quantity::Time => {
                let (divisor, unit) = format::time_unit(rounded);
                format!("{} {unit}", decimals(rounded / divisor, step / divisor))
            }
            Quantity::Share if rounded.abs() < 1e-5 => exponent(rounded, step),
            Quantity::Share => format!("{} %", decimals(rounded * 100.0, step * 100.0)),
            Quantity::Rate => format!("{}/s", decimals(rounded, step)),
            Quantity::Number if rounded.abs() < 1e-3 => exponent(rounded, step),
            Quantity::Number => decimals(rounded, step),
        }
    }

    /// A difference: the same with its sign.
    pub fn signed(self, value: f64, quantity: Quantity) -> String {
        let text = self.text(value.abs(), quantity);
        match value {
            _ if self.rounds_to_nought(value) => text,
            v if v > 0.0 => format!("+{text}"),
            v if v < 0.0 => format!("-{text}"),
            _ => text,
        }
    }

    fn rounds_to_nought(self, value: f64) -> bool {
        self.step.is_some_and(|step| (value / step).round() == 0.0)
    }

    /// Both ends of an interval. An end that would be rounded to nought but is none keeps a digit
    /// of its own, so that what is clear of nought still reads so.
    pub fn range(self, [low, high]: [f64; 2], text: impl Fn(Self, f64) -> String) -> String {
        let end = |value: f64| {
            if value == 0.0 || !self.rounds_to_nought(value) {
                return text(self, value);
            }
            let step = 10f64.powf(value.abs().log10().floor());
            text(Self { step: Some(step) }, value)
        };
        format!("{} to {}", end(low), end(high))
    }

    /// The interval of a difference: `+1.7 us to +2.5 us`.
    pub fn signed_range(self, interval: [f64; 2], quantity: Quantity) -> String {
        self.range(interval, |precision, value| precision.signed(value, quantity))
    }
}

/// The interval of a time, with the digits that it leaves certain: `38 us to 52 us`.
pub fn times(interval_ns: [f64; 2]) -> String {
    let precision = Precision::of(Some(interval_ns));
    precision.range(interval_ns, |precision, end| precision.text(end, Quantity::Time))
}

/// A time with its interval behind it: `41 us (38 us to 52 us)`.
pub fn time_with(value_ns: f64, interval_ns: [f64; 2]) -> String {
    let value = Precision::of(Some(interval_ns)).text(value_ns, Quantity::Time);
    format!("{value} ({})", times(interval_ns))
}

/// What is nought to this precision, in the unit of its step.
fn nought(step: f64, quantity: Quantity) -> String {
    match quantity {
        Quantity::Time => format!("0 {}", format::time_unit(step).1),
        Quantity::Share => "0 %".to_owned(),
        Quantity::Rate => "0/s".to_owned(),
        Quantity::Number => "0".to_owned(),
    }
}

/// Where no interval is known.
fn plain(value: f64, quantity: Quantity) -> String {
    match quantity {
        Quantity::Time => format::ns_f(value),
        Quantity::Share => format::share(value),
        Quantity::Rate => format::rate(value),
        Quantity::Number => format::significant(value, 4),
    }
}

/// A multiple of `step` as a power of ten.
fn exponent(value: f64, step: f64) -> String {
    let digits = ((value.abs() / step).log10() + 1e-9).floor().clamp(0.0, 3.0) as usize;
    format!("{value:.digits$e}")
}

/// A multiple of `step` with the decimals that it needs; whole thousands are apart.
fn decimals(value: f64, step: f64) -> String {
    let places = (-step.log10() - 1e-9).ceil().clamp(0.0, 9.0) as usize;
    let text = format!("{value:.places$}");
    if value.abs() < 1e4 {
        return text;
    }
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{rest}", format::count(digits.parse().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_interval_decides_the_digits() {
        let cases: &[(f64, [f64; 2], &str, &str)] = &[
            (-17_830.123e3, [-25_000e3, -10_700e3], "-17.8 ms", "-25.0 ms to -10.7 ms"),
            (2_104.3, [1_683.0, 2_524.0], "+2.10 us", "+1.68 us to +2.52 us"),
            (-5_378_123.0, [-17.89e6, 6.973e6], "-5 ms", "-18 ms to +7 ms"),
            (812.4, [790.1, 834.9], "+812 ns", "+790 ns to +835 ns"),
            (812.4, [500.0, 1_500.0], "+810 ns", "+500 ns to +1.50 us"),
            (3.0, [-900.0, 900.0], "0 ns", "-900 ns to +900 ns"),
            (-300.0, [-58e3, 59e3], "0 us", "-58 us to +59 us"),
        ];
        for (value, interval, said, range) in cases {
            let precision = Precision::of(Some(*interval));
            assert_eq!(precision.signed(*value, Quantity::Time), *said);
            assert_eq!(precision.signed_range(*interval, Quantity::Time), *range);
        }
    }

    #[test]
    fn shares_rates_and_numbers_too() {
        let of = |low, high| Precision::of(Some([low, high]));
        assert_eq!(of(0.11, 0.14).text(0.124_99, Quantity::Share), "12.5 %");
        assert_eq!(of(2.8e-6, 3.4e-6).text(3.123e-6, Quantity::Share), "3.12e-6");
        assert_eq!(of(240.0, 260.0).text(249.83, Quantity::Rate), "250/s");
        assert_eq!(of(10_000.0, 14_000.0).text(12_345.0, Quantity::Rate), "12,300/s");
        assert_eq!(of(4.1e-5, 4.9e-5).text(4.512e-5, Quantity::Number), "4.51e-5");
        assert_eq!(of(1.0, 1.3).text(1.154, Quantity::Number), "1.15");
    }

    #[test]
    fn without_an_interval_a_value_is_as_it_was() {
        for none in [None, Some([4.0, 4.0]), Some([f64::NEG_INFINITY, 1.0])] {
            assert_eq!(Precision::of(none).text(12_345.0, Quantity::Time), format::ns(12_345));
        }
        assert_eq!(Precision::of(None).signed(0.125, Quantity::of("share")), "+12.5 %");
        assert_eq!(Precision::of(None).signed(-3.0, Quantity::of("per s")), "-3.000/s");
    }

    #[test]
    fn a_time_and_its_interval_have_as_many_digits() {
        assert_eq!(time_with(41_234.0, [38_201.0, 52_877.0]), "41.2 us (38.2 us to 52.9 us)");
        assert_eq!(Precision::within(4.8).signed(-17_830.123, Quantity::Number), "-17,830.1");
        assert_eq!(Precision::within(480.0).signed(-17_830.123, Quantity::Number), "-17,830");
    }

    #[test]
    fn an_end_clear_of_nought_reads_so() {
        let interval = [0.04e3, 20e3];
        let precision = Precision::of(Some(interval));
        assert_eq!(precision.signed_range(interval, Quantity::Time), "+40 ns to +20.0 us");
    }

    proptest! {
        #[test]
        fn what_is_printed_is_off_by_a_twentieth_of_the_half_width_at_most(
            value in -1e9f64..1e9, half in 1.0f64..1e9
        ) {
            let text = Precision::of(Some([value - half, value + half])).text(value, Quantity::Time);
            let (number, unit) = text.split_once(' ').unwrap_or(("0", "ns"));
            let scale = match unit { "ns" => 1.0, "us" => 1e3, "ms" => 1e6, _ => 1e9 };
            let read = number.replace(',', "").parse::<f64>().unwrap() * scale;
            prop_assert!((read - value).abs() <= half * 0.0501, "{text} for {value} +- {half}");
        }
    }
}
