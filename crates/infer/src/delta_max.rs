//! The longest interval with n releases: a lower limit on how many come in any interval.
//!
//! Values are those of `infer_delta_max`, `_hi` and `_lo` of `rt-model-inference`: the interval is
//! open, and the first and the last release end one without another.

use crate::delta_min::Distances;
use crate::window::{Disorder, Window};
use std::collections::VecDeque;

/// Computes the curve of a stream. Memory: `most` windows and values.
#[derive(Debug, Clone)]
pub struct DeltaMax {
    distances: Distances,
    most: usize,
    recent: VecDeque<Window>,
    curve: Vec<i64>,
}

impl DeltaMax {
    /// For up to `most` releases, at least 1. [`Distances::Longest`] is safe for lower limits.
    pub fn new(distances: Distances, most: usize) -> Self {
        Self { distances, most: most.max(1), recent: VecDeque::new(), curve: Vec::new() }
    }

    /// Adds the next release.
    pub fn add(&mut self, window: Window) -> Result<(), Disorder> {
        match self.recent.back() {
            Some(last) if !last.is_before(window) => return Err(Disorder),
            Some(_) => {}
            None => self.recent.push_back(moved(window, -1)),
        }
        lengthen(&mut self.curve, &self.recent, window, self.distances, self.most);
        if self.recent.len() == self.most + 1 {
            self.recent.pop_front();
        }
        self.recent.push_back(window);
        Ok(())
    }

    /// `v[n]`: the length of the longest interval with at most n releases, ns; empty before the
    /// first.
    pub fn curve(&self) -> Vec<i64> {
        let mut curve = self.curve.clone();
        if let Some(last) = self.recent.back() {
            lengthen(&mut curve, &self.recent, moved(*last, 1), self.distances, self.most);
        }
        curve
    }
}

fn moved(window: Window, ns: i64) -> Window {
    Window {
        earliest_ns: window.earliest_ns.saturating_add(ns),
        latest_ns: window.latest_ns.saturating_add(ns),
    }
}

fn lengthen(
    curve: &mut Vec<i64>,
    recent: &VecDeque<Window>,
    window: Window,
    distances: Distances,
    most: usize,
) {
    for (between, earlier) in recent.iter().rev().enumerate().take(most + 1) {
        let distance = match distances {
            Distances::Shortest => window.earliest_ns.saturating_sub(earlier.latest_ns),
            Distances::Longest => window.latest_ns.saturating_sub(earlier.earliest_ns),
        };
        let length = distance.saturating_sub(1).max(0);
        match curve.get_mut(between) {
            Some(longest) => *longest = length.max(*longest),
            None => curve.push(length),
        }
    }
}

/// The fewest releases in any interval of this length; `None` beyond the end of the curve.
pub fn min_releases(curve: &[i64], length_ns: i64) -> Option<usize> {
    if length_ns > *curve.last()? {
        return None;
    }
    curve.iter().position(|longest| *longest >= length_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_interval_counts_neither_of_its_ends() {
        let mut delta = DeltaMax::new(Distances::Longest, 2);
        [0, 10, 12, 30].into_iter().for_each(|at| delta.add(Window::at(at)).unwrap());
        let curve = delta.curve();
        assert_eq!(curve, [17, 19, 29]);
        assert_eq!(min_releases(&curve, 17), Some(0));
        assert_eq!(min_releases(&curve, 18), Some(1));
        assert_eq!(min_releases(&curve, 30), None);
    }
}
