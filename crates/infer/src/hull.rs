//! The releases that can be the earliest, or the latest, of all under some period: the corners of
//! the convex hull of their times over their numbers, a few dozen of thousands.
//!
//! Andrew's monotone chain (Information Processing Letters 9, 1979), one side at a time.

/// One side of a hull.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    points: Vec<Point>,
    is_above: bool,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    number: i64,
    ns: i64,
}

impl Side {
    /// Of the earliest.
    pub(crate) const fn below() -> Self {
        Self { points: Vec::new(), is_above: false }
    }

    /// Of the latest.
    pub(crate) const fn above() -> Self {
        Self { points: Vec::new(), is_above: true }
    }

    /// Adds a release; its number is above those before.
    pub(crate) fn push(&mut self, number: i64, ns: i64) {
        let point = Point { number, ns };
        while let [.., before, last] = self.points.as_slice() {
            let turn = turn(*before, *last, point);
            if if self.is_above { turn < 0 } else { turn > 0 } {
                break;
            }
            self.points.pop();
        }
        self.points.push(point);
    }

    /// How many corners it has.
    pub(crate) fn corners(&self) -> usize {
        self.points.len()
    }

    /// The time of release 0 that the earliest, or the latest, release stands for under this period,
    /// ns; 0 without any. Times and periods of decades fit; beyond that the result saturates.
    pub(crate) fn extreme_ns(&self, period_ns: i64) -> i64 {
        let origins = self.points.iter().map(|point| {
            let ns = i128::from(point.ns) - i128::from(point.number) * i128::from(period_ns);
            ns.clamp(i128::from(i64::MIN / 4), i128::from(i64::MAX / 4)) as i64
        });
        if self.is_above { origins.max() } else { origins.min() }.unwrap_or(0)
    }
}

/// Above 0 where the way over three points turns to later times.
fn turn(a: Point, b: Point, c: Point) -> i128 {
    let across = |one: Point| i128::from(one.number) - i128::from(a.number);
    let up = |one: Point| i128::from(one.ns) - i128::from(a.ns);
    across(b) * up(c) - across(c) * up(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn corners_are_enough(
            times in prop::collection::vec(0i64..10_000, 1..60),
            period in 0i64..3_000,
        ) {
            let (mut below, mut above) = (Side::below(), Side::above());
            for (number, ns) in (0..).zip(&times) {
                below.push(number, *ns);
                above.push(number, *ns);
            }
            let origins = || (0..).zip(&times).map(|(number, ns)| ns - number * period);
            prop_assert_eq!(Some(below.extreme_ns(period)), origins().min());
            prop_assert_eq!(Some(above.extreme_ns(period)), origins().max());
        }
    }
}
