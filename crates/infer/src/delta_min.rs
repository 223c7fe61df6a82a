//! The shortest interval with n releases: an upper limit on how many come in any interval.
//!
//! Values are those of `infer_delta_min`, `_hi` and `_lo` of `rt-model-inference`: `v[n]` counts
//! both ends of the interval, so `v[1] = 1`.

use crate::window::{Disorder, Window};

/// Which end of a window to take where its release is uncertain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distances {
    /// As short as the windows permit: `v[n]` is at most the true value. Safe for upper limits.
    Shortest,
    /// As long as the windows permit: `v[n]` is at least the true value.
    Longest,
}

/// Computes the curve of a stream. Memory: `most` windows and values.
#[derive(Debug, Clone)]
pub struct DeltaMin {
    distances: Distances,
    most: usize,
    /// The last windows; beyond `most - 1`, dropped many at a time.
    recent: Vec<Window>,
    curve: Vec<i64>,
}

impl DeltaMin {
    /// For up to `most` releases, at least 2.
    pub fn new(distances: Distances, most: usize) -> Self {
        Self { distances, most: most.max(2), recent: Vec::new(), curve: vec![0, 1] }
    }

    /// Adds the next release.
    pub fn add(&mut self, window: Window) -> Result<(), Disorder> {
        if self.recent.last().is_some_and(|last| !last.is_before(window)) {
            return Err(Disorder);
        }
        let earlier = self.recent.iter().rev().take(self.most - 1);
        let known = self.curve.len() - 2;
        for (shortest, earlier) in self.curve[2..].iter_mut().zip(earlier.clone()) {
            *shortest = length_ns(window, *earlier, self.distances).min(*shortest);
        }
        self.curve.extend(earlier.skip(known).map(|earlier| length_ns(window, *earlier, self.distances)));
        if self.recent.len() >= self.most.saturating_mul(2) {
            self.recent.drain(..self.recent.len() - self.most);
        }
        self.recent.push(window);
        Ok(())
    }

    /// `v[n]`: the length of the shortest interval with n releases, ns; empty before the first.
    pub fn curve(&self) -> &[i64] {
        if self.recent.is_empty() { &[] } else { &self.curve }
    }

    /// The shortest time from one release to the next, ns.
    pub fn separation_ns(&self) -> Option<i64> {
        self.curve.get(2).map(|length| length - 1)
    }
}

#[inline]
fn length_ns(window: Window, earlier: Window, distances: Distances) -> i64 {
    let distance = match distances {
        Distances::Shortest => window.earliest_ns.saturating_sub(earlier.latest_ns),
        Distances::Longest => window.latest_ns.saturating_sub(earlier.earliest_ns),
    };
    distance.saturating_add(1).max(1)
}

/// The most releases in any interval of this length; `None` beyond the end of the curve.
pub fn max_releases(curve: &[i64], length_ns: i64) -> Option<usize> {
    if length_ns >= *curve.last()? {
        return None;
    }
    curve.iter().skip(1).position(|shortest| *shortest > length_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(releases: &[i64], most: usize) -> Vec<i64> {
        let mut delta = DeltaMin::new(Distances::Shortest, most);
        releases.iter().for_each(|at| delta.add(Window::at(*at)).unwrap());
        delta.curve().to_vec()
    }

    #[test]
    fn the_shortest_interval_counts_both_its_ends() {
        assert_eq!(curve(&[0, 10, 12, 30], 4), [0, 1, 3, 13, 31]);
        assert_eq!(curve(&[0, 10, 12, 30], 3), [0, 1, 3, 13]);
        assert_eq!(curve(&[], 3), [] as [i64; 0]);
    }

    #[test]
    fn the_inverse_counts_releases() {
        let curve = curve(&[0, 10, 12, 30], 4);
        assert_eq!(max_releases(&curve, 0), Some(0));
        assert_eq!(max_releases(&curve, 2), Some(1));
        assert_eq!(max_releases(&curve, 13), Some(3));
        assert_eq!(max_releases(&curve, 31), None);
    }

    #[test]
    fn windows_make_distances_shorter_or_longer() {
        let windows = [Window { earliest_ns: 0, latest_ns: 4 }, Window { earliest_ns: 10, latest_ns: 15 }];
        let of = |distances| {
            let mut delta = DeltaMin::new(distances, 2);
            windows.iter().for_each(|one| delta.add(*one).unwrap());
            delta.separation_ns()
        };
        assert_eq!((of(Distances::Shortest), of(Distances::Longest)), (Some(6), Some(15)));
    }

    #[test]
    fn releases_out_of_order_are_refused() {
        let mut delta = DeltaMin::new(Distances::Shortest, 4);
        delta.add(Window::at(5)).unwrap();
        assert_eq!(delta.add(Window::at(4)), Err(Disorder));
    }
}
