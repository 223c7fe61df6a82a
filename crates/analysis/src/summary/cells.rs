//! How often limits were reached in each of some hundred cells of consecutive samples, so that
//! dependence can be computed at any limit afterwards.
//!
//! Cells begin with one sample; when there are 1,024, neighbours are joined and cells become twice
//! as long. Limits are known to a 32nd of an octave, which is near enough for how samples depend on
//! each other there.

use super::counts::{edge, place};
use stats::effective::{self, Tau};

/// Buckets an octave, as a power of two.
const FINE: u32 = 5;
const BUCKETS: usize = (65 - FINE as usize) << FINE;
/// Cells before they are joined.
const MOST: usize = effective::CELLS;

/// Cells of one series.
#[derive(Debug, Clone)]
pub(crate) struct Cells {
    done: Vec<Box<[u32]>>,
    open: Box<[u32]>,
    /// Samples in the open cell, and in a whole one.
    filled: usize,
    length: usize,
}

impl Default for Cells {
    fn default() -> Self {
        Self { done: Vec::with_capacity(MOST), open: vec![0; BUCKETS].into(), filled: 0, length: 1 }
    }
}

impl Cells {
    /// The next samples.
    pub(crate) fn add(&mut self, mut values: &[i64]) {
        while !values.is_empty() {
            let (now, later) = values.split_at(values.len().min(self.length - self.filled));
            for value in now {
                self.open[place((*value).max(0) as u64, FINE)] += 1;
            }
            self.filled += now.len();
            values = later;
            if self.filled == self.length {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.done.push(std::mem::replace(&mut self.open, vec![0; BUCKETS].into()));
        self.filled = 0;
        if self.done.len() == MOST {
            let mut pairs = std::mem::take(&mut self.done).into_iter();
            while let (Some(mut one), Some(other)) = (pairs.next(), pairs.next()) {
                one.iter_mut().zip(other.iter()).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
                self.done.push(one);
            }
            self.length *= 2;
        }
    }

    /// τ of the indicator of reaching a limit: of the least bucket that begins there or beyond.
    pub(crate) fn tau(&self, from_ns: i64) -> Tau {
        let mut first = place(from_ns.max(0) as u64, FINE);
        if edge(first, FINE) < from_ns.max(0) as u64 {
            first += 1;
        }
        let reached =
            |cell: &[u32]| cell[first.min(BUCKETS)..].iter().map(|&count| f64::from(count)).sum::<f64>();
        let counts: Vec<f64> = self.done.iter().map(|cell| reached(cell)).collect();
        effective::of_counts(&counts, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::Ar1;

    #[test]
    fn dependence_is_that_of_the_series_however_it_comes_in() {
        let values = Ar1::new(0.9, 21).values(120_000);
        let (mut whole, mut pieces) = (Cells::default(), Cells::default());
        whole.add(&values);
        values.chunks(777).for_each(|piece| pieces.add(piece));
        // Limits at which a bucket begins: there is no other difference.
        for limit in [19_968, 20_992, 22_016] {
            let direct = effective::of_reaching(&values, limit).samples;
            assert!((whole.tau(limit).samples - pieces.tau(limit).samples).abs() < 1e-12);
            let tau = whole.tau(limit).samples;
            assert!((tau / direct - 1.0).abs() < 0.3, "{limit}: {tau}, not {direct}");
        }
        assert_eq!(Cells::default().tau(5), Tau::ONE);
    }
}
