//! How often a callback is activated: through every way from a source, each with the most by which
//! an activation may come later than at its source.

use crate::bounds::Releases;
use crate::flow::{Rounds, Unanswered};

/// The external activations of every callback.
pub(super) struct Sources(pub(super) Vec<Option<Releases>>);

/// One way from a source, or several of the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    source: usize,
    later_ns: u64,
    count: u64,
}

/// Bounds the activations in any interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Arrivals {
    ways: Vec<Way>,
}

impl Arrivals {
    /// Those of a source.
    pub(super) fn from_source(source: usize, jitter_ns: u64) -> Self {
        Self { ways: vec![Way { source, later_ns: jitter_ns, count: 1 }] }
    }

    /// Adds those of another callback, each as much as this later.
    pub(super) fn add(&mut self, other: &Self, later_ns: u64) {
        for way in &other.ways {
            let later_ns = way.later_ns.saturating_add(later_ns);
            match self.ways.iter_mut().find(|one| one.source == way.source && one.later_ns == later_ns) {
                Some(one) => one.count = one.count.saturating_add(way.count),
                None => self.ways.push(Way { later_ns, ..*way }),
            }
        }
    }

    /// The most in an interval of this length, open at one end; none where there are too many to
    /// look at.
    pub(super) fn within(&self, length_ns: u64, sources: &mut Sources) -> Option<u64> {
        if length_ns == 0 {
            return Some(0);
        }
        self.ways.iter().try_fold(0u64, |sum, way| {
            let releases = sources.0.get_mut(way.source)?.as_mut()?;
            let each = releases.within(length_ns.saturating_add(way.later_ns))?;
            Some(sum.saturating_add(each.saturating_mul(way.count)))
        })
    }

    /// In the long run, at most, in each ns.
    pub(super) fn rate(&self, sources: &Sources) -> f64 {
        let of = |way: &Way| {
            let releases = sources.0.get(way.source).and_then(Option::as_ref);
            releases.map_or(0.0, Releases::rate) * way.count as f64
        };
        self.ways.iter().map(of).sum()
    }

    /// Appends all t up to `last`, included, at which an interval of length t + 1 may have more
    /// activations than one of length t.
    pub(super) fn steps(
        &self,
        last: u64,
        sources: &mut Sources,
        rounds: &mut Rounds,
        steps: &mut Vec<u64>,
    ) -> Result<(), Unanswered> {
        for way in &self.ways {
            let Some(Some(releases)) = sources.0.get_mut(way.source) else { continue };
            for number in 0.. {
                let far = releases.until(number).ok_or(Unanswered::Undecided)?;
                let step = far.saturating_sub(way.later_ns);
                if step > last {
                    break;
                }
                rounds.take()?;
                steps.push(step);
            }
        }
        Ok(())
    }
}
