//! Axes: from data to pixels, and where the ticks go.

use super::micro;
use crate::format::{self, short};

/// How values are laid out along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Linear,
    Log,
}

/// What the numbers of an axis mean; decides how ticks read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unit {
    /// Times, in ns.
    Ns,
    /// Seconds.
    Seconds,
    /// Counts.
    Count,
    /// Shares of one.
    Share,
    /// Events per second.
    PerSecond,
}

/// An axis between two data values and two pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    pub(super) kind: Kind,
    pub(super) unit: Unit,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) from_px: f64,
    pub(super) to_px: f64,
}

/// A tick: where, and what it says; minor ticks say nothing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) px: f64,
    pub(super) label: Option<String>,
}

impl Axis {
    /// A logarithmic axis over whole decades that hold both values (which must be above 0).
    pub(super) fn decades(unit: Unit, low: f64, high: f64, px: [f64; 2]) -> Self {
        let floor = low.max(f64::MIN_POSITIVE).log10().floor();
        let ceil = high.max(low).log10().ceil().max(floor + 1.0);
        Self {
            kind: Kind::Log,
            unit,
            low: 10f64.powf(floor),
            high: 10f64.powf(ceil),
            from_px: px[0],
            to_px: px[1],
        }
    }

    /// A logarithmic axis that ends at the values themselves, a little room on both sides.
    pub(super) fn log_tight(unit: Unit, low: f64, high: f64, px: [f64; 2]) -> Self {
        let (low, high) = (low.max(f64::MIN_POSITIVE), high.max(low * 1.01));
        let room = ((high / low).log10() * 0.04).max(0.03);
        let (low, high) = (low / 10f64.powf(room), high * 10f64.powf(room));
        Self { kind: Kind::Log, unit, low, high, from_px: px[0], to_px: px[1] }
    }

    /// A linear axis.
    pub(super) fn linear(unit: Unit, low: f64, high: f64, px: [f64; 2]) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { kind: Kind::Linear, unit, low, high, from_px: px[0], to_px: px[1] }
    }

    /// Pixel of a value, clipped to the axis.
    pub(super) fn px(&self, value: f64) -> f64 {
        let part = match self.kind {
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Log => {
                let value = value.max(self.low);
                (value / self.low).log10() / (self.high / self.low).log10()
            }
        };
        self.from_px + part.clamp(0.0, 1.0) * (self.to_px - self.from_px)
    }

    /// Ticks from low to high.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        match self.kind {
            Kind::Linear => self.linear_ticks(),
            Kind::Log => self.log_ticks(),
        }
    }

    fn linear_ticks(&self) -> Vec<Tick> {
        // Beside an upright axis labels lie under each other, and need less room.
        let room = if self.to_px < self.from_px { 40.0 } else { 90.0 };
        let step = nice_step((self.high - self.low) / ((self.to_px - self.from_px).abs() / room).max(2.0));
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let tick = |k: i64| Tick { px: self.px(k as f64 * step), label: Some(self.label(k as f64 * step)) };
        (first..=last).map(tick).collect()
    }

    /// Labels on decades; on 2 and 5 as well where fewer than two decades leave room.
    fn log_ticks(&self) -> Vec<Tick> {
        let span = (self.high / self.low).log10();
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let every = (span / 9.0).ceil().max(1.0) as i32;
        let mut ticks = Vec::new();
        for decade in first..=last {
            for digit in 1..10 {
                let value = f64::from(digit) * 10f64.powi(decade);
                if value < self.low * (1.0 - 1e-9) || value > self.high * (1.0 + 1e-9) {
                    continue;
                }
                let labelled = match digit {
                    1 => (decade - first) % every == 0,
                    2 | 5 => span < 2.5,
                    _ => false,
                };
                if span < 5.0 || digit == 1 {
                    ticks.push(Tick { px: self.px(value), label: labelled.then(|| self.label(value)) });
                }
            }
        }
        ticks
    }

    fn label(&self, value: f64) -> String {
        match self.unit {
            Unit::Ns => micro(&format::ns_round(value)),
            Unit::Seconds => format!("{} s", short(value)),
            Unit::Count | Unit::PerSecond => count(value),
            Unit::Share => share(value),
        }
    }
}

fn nice_step(rough: f64) -> f64 {
    let decade = 10f64.powf(rough.max(f64::MIN_POSITIVE).log10().floor());
    let digit = rough / decade;
    decade * [1.0, 2.0, 5.0, 10.0].into_iter().find(|&nice| digit <= nice + 1e-9).unwrap_or(10.0)
}

pub(super) fn count(value: f64) -> String {
    match value {
        v if v >= 999_500.0 => format!("{} M", short(v / 1e6)),
        v if v >= 999.5 => format!("{} k", short(v / 1e3)),
        v => short(v),
    }
}

/// Shares as percentages down to a thousandth of a percent, then as powers of ten.
fn share(value: f64) -> String {
    if value >= 0.999e-5 || value <= 0.0 {
        format!("{} %", short(value * 100.0))
    } else {
        format!("{value:.0e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().filter_map(|tick| tick.label).collect()
    }

    #[test]
    fn decades_are_labelled_in_the_units_of_the_field() {
        let axis = Axis::decades(Unit::Ns, 812.0, 2_400_000.0, [0.0, 500.0]);
        assert_eq!(labels(&axis), ["100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]);
        let whole = Axis::linear(Unit::Share, 0.0, 1.0, [100.0, 0.0]);
        assert_eq!(labels(&whole), ["0 %", "50 %", "100 %"]);
        let share = Axis::decades(Unit::Share, 2e-6, 1.0, [300.0, 0.0]);
        assert_eq!(labels(&share), ["1e-6", "0.001 %", "0.01 %", "0.1 %", "1 %", "10 %", "100 %"]);
    }

    #[test]
    fn linear_steps_are_round() {
        for (rough, step) in [(0.13, 0.2), (7.0, 10.0), (20.0, 20.0)] {
            assert!((nice_step(rough) - step).abs() < 1e-12, "{rough}");
        }
        let axis = Axis::linear(Unit::Seconds, 0.0, 61.0, [0.0, 400.0]);
        assert_eq!(labels(&axis), ["0 s", "20 s", "40 s", "60 s"]);
    }

    proptest! {
        #[test]
        fn pixels_rise_with_values_and_stay_inside(
            low in 1f64..1e6, factor in 1.1f64..1e6, a in 0f64..1.2, b in 0f64..1.2
        ) {
            let high = low * factor;
            for axis in [
                Axis::decades(Unit::Ns, low, high, [40.0, 700.0]),
                Axis::log_tight(Unit::Ns, low, high, [40.0, 700.0]),
                Axis::linear(Unit::Ns, low, high, [40.0, 700.0]),
            ] {
                let at = |part: f64| axis.px(low + part * (high - low));
                prop_assert!((40.0..=700.0).contains(&at(a)));
                prop_assert!(a > b || at(a) <= at(b));
                let ticks = axis.ticks();
                prop_assert!(ticks.len() <= 64, "{}", ticks.len());
                prop_assert!(ticks.iter().all(|tick| (40.0..=700.0).contains(&tick.px)));
            }
        }
    }
}
