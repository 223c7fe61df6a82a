//! Estimates the probability that a job is late, by convolution; this is not a bound.
//!
//! Assumed: latencies are independent, distributed as observed, and take the core's time as if the
//! job itself ran; all tasks are released at once. The last is not the worst case for probabilities
//! (Chen and others, RTSS 2022). At the instant t of the window that leaves most to spare, s = t -
//! (C + B + sum ceil((t + J_k) / T_k) C_k), the job is late where the N(t) latencies of the window
//! add up to more than s. Sums go by squaring on [`CELLS`] cells of s; a latency between two cells
//! goes to both, so that means stay.

use crate::task::Task;

/// Cells from no lateness to all that there is to spare.
const CELLS: usize = 512;
/// Most instants of a window that are looked at.
const MOST_INSTANTS: u64 = 100_000;

/// What was observed: how often each latency.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares {
    /// Latency, ns, and its share of all.
    shares: Vec<(u64, f64)>,
}

impl Shares {
    /// From counts of latencies, ns.
    pub fn new(counts: &[(u64, u64)]) -> Self {
        let all: u64 = counts.iter().map(|one| one.1).sum();
        Self { shares: counts.iter().map(|&(ns, count)| (ns, count as f64 / all.max(1) as f64)).collect() }
    }

    /// P(sum of `n` latencies > spare).
    fn sum_exceeds(&self, n: u64, spare_ns: u64) -> f64 {
        // One cell more than the slack means beyond: any larger sum stays there.
        let cell = (spare_ns + 1) as f64 / CELLS as f64;
        let mut one = vec![0.0; CELLS + 1];
        for &(ns, share) in &self.shares {
            let at = ns as f64 / cell;
            let (low, part) = (at.floor() as usize, at.fract());
            one[low.min(CELLS)] += share * (1.0 - part);
            one[(low + 1).min(CELLS)] += share * part;
        }
        let mut sum = vec![0.0; CELLS + 1];
        sum[0] = 1.0;
        let mut left = n;
        while left > 0 {
            if left & 1 == 1 {
                sum = convolved(&sum, &one);
            }
            left >>= 1;
            if left > 0 {
                one = convolved(&one, &one);
            }
        }
        sum[CELLS]
    }
}

/// The law of a sum of two; the last cell is all that is at or above it.
fn convolved(first: &[f64], second: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; CELLS + 1];
    let used = second.iter().rposition(|share| *share > 0.0).map_or(0, |last| last + 1);
    for (i, one) in first.iter().enumerate().filter(|(_, one)| **one > 0.0) {
        let (near, far) = second[..used].split_at((CELLS - i).min(used));
        for (cell, other) in sum[i..].iter_mut().zip(near) {
            *cell += one * other;
        }
        sum[CELLS] += one * far.iter().sum::<f64>();
    }
    sum
}

/// P(late) of the task, as estimated; none where there are too many instants, and for deadlines
/// beyond periods.
pub(super) fn estimate(tasks: &[Task], index: usize, shares: &Shares) -> Option<f64> {
    let (task, higher) = (&tasks[index], &tasks[..index]);
    let Some(end) = task.deadline_ns.checked_sub(task.jitter_ns).filter(|end| *end > 0) else {
        return Some(1.0);
    };
    let jobs = |other: &Task, t: u64| t.saturating_add(other.jitter_ns).div_ceil(other.period_ns);
    let instants = higher.iter().fold(0, |sum: u64, other| sum.saturating_add(jobs(other, end)));
    if task.deadline_ns > task.period_ns
        || instants > MOST_INSTANTS
        || instants * (index as u64 + 1) > 100 * MOST_INSTANTS
    {
        return None;
    }
    let releases = higher.iter().flat_map(|other| {
        let first = other.jitter_ns / other.period_ns + 1;
        (first..).map(|job| job * other.period_ns - other.jitter_ns).take_while(|t| *t < end)
    });
    let spare = |t: u64| {
        let base = task.cost_ns + task.blocking_ns;
        let work = higher
            .iter()
            .fold(base, |sum: u64, other| sum.saturating_add(jobs(other, t).saturating_mul(other.cost_ns)));
        t.checked_sub(work).map(|spare| (spare, t))
    };
    let Some((spare_ns, t)) = releases.chain([end]).filter_map(spare).max() else { return Some(1.0) };
    let n = higher.iter().map(|other| jobs(other, t)).sum::<u64>() + 1;
    Some(shares.sum_exceeds(n, spare_ns).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By all combinations of `n` latencies.
    fn by_counting(counts: &[(u64, u64)], n: u32, spare_ns: u64) -> f64 {
        let all: u64 = counts.iter().map(|one| one.1).sum();
        let mut sums = vec![(0u64, 1.0f64)];
        for _ in 0..n {
            sums = sums
                .iter()
                .flat_map(|&(sum, p)| {
                    counts.iter().map(move |&(ns, count)| (sum + ns, p * count as f64 / all as f64))
                })
                .collect();
        }
        sums.into_iter().filter(|(sum, _)| *sum > spare_ns).map(|(_, p)| p).sum()
    }

    #[test]
    fn sums_on_the_grid_are_exact() {
        // With 511 to spare a cell is 1 ns.
        let counts = [(0, 5), (60, 3), (130, 1), (600, 1)];
        let shares = Shares::new(&counts);
        for n in 1..8 {
            let (ours, counted) = (shares.sum_exceeds(n.into(), 511), by_counting(&counts, n, 511));
            assert!((ours - counted).abs() < 1e-12, "{n}: {ours} {counted}");
        }
        assert!(shares.sum_exceeds(0, 511).abs() < 1e-15);
        assert!((shares.sum_exceeds(1, 0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn between_the_cells_the_mean_stays() {
        // Cells of 20 ns: 2,000 latencies of 4 or 6 ns add up to 400 or 600 of 512 cells, give or
        // take the 20 that dividing them costs.
        let spare_ns = 10_239;
        let n = 2_000;
        let near = Shares::new(&[(4, 1)]).sum_exceeds(n, spare_ns);
        let far = Shares::new(&[(6, 1)]).sum_exceeds(n, spare_ns);
        assert!(near < 1e-6 && far > 0.9999, "{near} {far}");
    }

    #[test]
    fn too_many_instants_are_not_looked_at() {
        let tasks = [Task::implicit(1, 1), Task::implicit(1 << 40, 1)];
        assert_eq!(estimate(&tasks, 1, &Shares::new(&[(0, 1)])), None);
        let late = Task { jitter_ns: 20, ..Task::implicit(10, 1) };
        assert_eq!(estimate(&[late], 0, &Shares::new(&[(0, 1)])), Some(1.0));
    }
}
