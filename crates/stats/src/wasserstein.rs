//! How far apart two groups' distributions are, in the unit of their values.
//!
//! The first Wasserstein distance is the area between the two distribution functions: how far the
//! average sample would have to move (Villani, "Topics in Optimal Transportation", 2003, §2.2). A
//! group's function is the mean of its runs', each with equal weight. Its probability comes from
//! exchanging the labels of runs ([`super::permute`]); formulas for independent samples do not hold
//! here.

/// A run's values with their counts, ascending.
pub type Steps = Vec<(i64, u64)>;

/// The area between the groups' distribution functions from `from` on, ns; `None` where a group has
/// no samples.
pub fn distance_ns(a: &[&Steps], b: &[&Steps], from: i64) -> Option<f64> {
    let mut jumps: Vec<(i64, f64)> = Vec::new();
    for (group, sign) in [(a, 1.0), (b, -1.0)] {
        for steps in group {
            let n: u64 = steps.iter().map(|(_, count)| count).sum();
            if n == 0 {
                return None;
            }
            let share = sign / (n as f64 * group.len() as f64);
            jumps.extend(steps.iter().map(|&(value, count)| (value, share * count as f64)));
        }
    }
    if a.is_empty() || b.is_empty() {
        return None;
    }
    jumps.sort_unstable_by_key(|jump| jump.0);
    let mut height = 0.0;
    let mut area = 0.0;
    for pair in jumps.windows(2) {
        height += pair[0].1;
        area += f64::abs(height) * (pair[1].0.max(from) as f64 - pair[0].0.max(from) as f64);
    }
    Some(area)
}

/// The runs' distribution functions on one grid, for a statistic that is computed for many
/// labellings.
pub struct Grid {
    /// Widths between grid points.
    widths: Vec<f64>,
    /// Of each run its distribution function at the points.
    heights: Vec<Vec<f64>>,
}

/// Points of a grid.
const POINTS: usize = 1_000;

impl Grid {
    /// Every value that occurs, or of more so many at even ranks.
    pub fn new(runs: &[&Steps]) -> Self {
        let mut points: Vec<i64> =
            runs.iter().flat_map(|steps| steps.iter().map(|(value, _)| *value)).collect();
        points.sort_unstable();
        points.dedup();
        if points.len() > POINTS {
            let last = points.len() - 1;
            points = (0..POINTS).map(|k| points[k * last / (POINTS - 1)]).collect();
            points.dedup();
        }
        let widths = points.windows(2).map(|pair| pair[1] as f64 - pair[0] as f64).collect();
        let heights = runs.iter().map(|steps| on(&points, steps)).collect();
        Self { widths, heights }
    }

    /// The distance between the runs that `second` names and the others.
    pub fn distance(&self, second: &[bool]) -> f64 {
        let ones = second.iter().filter(|one| **one).count().max(1) as f64;
        let others = (second.len() as f64 - ones).max(1.0);
        let between = |at: usize| -> f64 {
            let sign = |&one: &bool| if one { -1.0 / ones } else { 1.0 / others };
            self.heights.iter().zip(second).map(|(run, one)| run[at] * sign(one)).sum()
        };
        self.widths.iter().enumerate().map(|(at, width)| f64::abs(between(at)) * width).sum()
    }
}

fn on(points: &[i64], steps: &Steps) -> Vec<f64> {
    let n: u64 = steps.iter().map(|(_, count)| count).sum();
    let (mut next, mut upto) = (0, 0);
    let at = |point: &i64| {
        while let Some((value, count)) = steps.get(next)
            && value <= point
        {
            upto += count;
            next += 1;
        }
        upto as f64 / n.max(1) as f64
    };
    points.iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steps(values: &[i64]) -> Steps {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect()
    }

    #[test]
    fn agrees_with_scipy() {
        // scipy.stats.wasserstein_distance (1.17.1): ([1,2,2,9,40], [3,5,5,7]) and
        // ([10,20,30,1000], [11,19,33]).
        let far = |a: &[i64], b: &[i64]| distance_ns(&[&steps(a)], &[&steps(b)], i64::MIN).unwrap();
        assert!((far(&[1, 2, 2, 9, 40], &[3, 5, 5, 7]) - SCIPY[0]).abs() < 1e-9);
        assert!((far(&[10, 20, 30, 1000], &[11, 19, 33]) - SCIPY[1]).abs() < 1e-9);
    }

    const SCIPY: [f64; 2] = [8.8, 245.0];

    #[test]
    fn the_tail_alone_can_be_asked_for() {
        let (a, b) = (steps(&[1, 2, 100]), steps(&[3, 4, 160]));
        let tail = distance_ns(&[&a], &[&b], 50).unwrap();
        assert!((tail - 20.0).abs() < 1e-9, "a third of the samples moved by 60: {tail}");
        assert_eq!(distance_ns(&[&a], &[], 0), None);
        assert_eq!(distance_ns(&[&a], &[&Steps::new()], 0), None);
    }

    proptest! {
        #[test]
        fn a_shift_moves_every_sample_by_itself(values in proptest::collection::vec(-1000i64..1000, 1..200), by in -500i64..500) {
            let shifted: Vec<i64> = values.iter().map(|value| value + by).collect();
            let distance = distance_ns(&[&steps(&values)], &[&steps(&shifted)], i64::MIN).unwrap();
            prop_assert!((distance - by.abs() as f64).abs() < 1e-6);
        }

        #[test]
        fn the_grid_says_the_same_where_it_holds_every_value(a in proptest::collection::vec(0i64..300, 1..60), b in proptest::collection::vec(0i64..300, 1..60)) {
            let (a, b) = (steps(&a), steps(&b));
            let exact = distance_ns(&[&a], &[&b], i64::MIN).unwrap();
            prop_assert!((Grid::new(&[&a, &b]).distance(&[false, true]) - exact).abs() < 1e-6);
        }
    }
}
