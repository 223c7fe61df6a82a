//! How far a study is, and how long the rest takes at the pace so far.

use report::format;
use std::time::{Duration, Instant};
use study::experiment::Planned;

/// Cells that are being run.
pub(super) struct Pace {
    begun: Instant,
    cells: usize,
    done: usize,
    /// Expected time of all of them, and of those that are done.
    expected: Duration,
    past: Duration,
}

impl Pace {
    /// Begins.
    pub(super) fn of(todo: &[&Planned]) -> Self {
        Self {
            begun: Instant::now(),
            cells: todo.len(),
            done: 0,
            expected: todo.iter().map(|planned| planned.expected()).sum(),
            past: Duration::ZERO,
        }
    }

    /// Counts one that has ended: `3 of 12, about 40 s left`.
    pub(super) fn ended(&mut self, planned: &Planned) -> String {
        self.done += 1;
        self.past += planned.expected();
        self.describe(self.begun.elapsed())
    }

    fn describe(&self, elapsed: Duration) -> String {
        let count = format!("{} of {}", self.done, self.cells);
        if self.done >= self.cells || self.past.is_zero() {
            return count;
        }
        let rest = self.expected.saturating_sub(self.past).as_secs_f64() / self.past.as_secs_f64();
        let left = Duration::from_secs_f64((elapsed.as_secs_f64() * rest).min(1e9));
        format!("{count}, about {} left", format::span(left.as_nanos() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_the_pace_so_far() {
        let pace = |done, past| Pace {
            begun: Instant::now(),
            cells: 4,
            done,
            expected: Duration::from_secs(40),
            past: Duration::from_secs(past),
        };
        assert_eq!(pace(1, 10).describe(Duration::from_secs(20)), "1 of 4, about 60.0 s left");
        assert_eq!(pace(3, 30).describe(Duration::from_secs(15)), "3 of 4, about 5.0 s left");
        assert_eq!(pace(4, 40).describe(Duration::from_secs(15)), "4 of 4");
        assert_eq!(pace(1, 10).describe(Duration::from_secs(3000)), "1 of 4, about 150.0 min left");
        assert_eq!(pace(0, 0).describe(Duration::from_secs(15)), "0 of 4");
    }
}
