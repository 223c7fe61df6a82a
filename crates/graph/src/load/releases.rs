//! Release times, drawn: the same for the same seed.

use model::load::{Releases, Share};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::VecDeque;

/// Of so many releases one has all of the jitter, and one has none.
const EXTREMES: u64 = 32;

/// A release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    /// When, ns.
    pub(super) at_ns: i64,
    /// How many have passed unserved since the last one.
    pub(super) missed: u64,
}

/// Draws the releases of a thread.
#[derive(Debug)]
pub(super) struct Drawn {
    by: By,
    random: ChaCha8Rng,
}

#[derive(Debug)]
enum By {
    Period(Period),
    Curve(Curve),
}

#[derive(Debug)]
struct Period {
    first_ns: i64,
    every_ns: i64,
    jitter_ns: u64,
    left_out: Share,
    /// Number of the next.
    next: i64,
    /// How many came.
    n: u64,
}

/// In the first releases each is as near to those before as the curve allows: so all of it is
/// there. Those that follow are drawn so that all have the mean of those observed.
#[derive(Debug)]
struct Curve {
    least_ns: Vec<i64>,
    /// Of those after the densest, ns.
    mean_ns: i64,
    /// After so many all begins again.
    round: u64,
    /// Number of the next.
    next: u64,
    /// When the densest began.
    begin_ns: i64,
    /// The last, the newest first.
    before_ns: VecDeque<i64>,
}

impl Drawn {
    pub(super) fn new(releases: &Releases, start_ns: i64, seed: u64) -> Self {
        let by = match releases {
            Releases::Periodic { period_ns, offset_ns, jitter_ns, left_out } => By::Period(Period {
                first_ns: start_ns + signed(*offset_ns),
                every_ns: signed(*period_ns).max(1),
                jitter_ns: *jitter_ns,
                left_out: *left_out,
                next: 0,
                n: 0,
            }),
            Releases::Apart { least_ns, mean_ns, n } => {
                By::Curve(Curve::new(least_ns, *mean_ns, *n, start_ns))
            }
        };
        Self { by, random: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// The next release, at this time.
    pub(super) fn next(&mut self, now_ns: i64) -> Due {
        match &mut self.by {
            By::Period(period) => period.next(now_ns, &mut self.random),
            By::Curve(curve) => curve.next(now_ns, &mut self.random),
        }
    }
}

impl Period {
    fn next(&mut self, now_ns: i64, random: &mut ChaCha8Rng) -> Due {
        let mut missed = 0;
        loop {
            let number = self.next;
            self.next += 1;
            if self.left_out.in_job(number.unsigned_abs()) > 0 {
                continue;
            }
            let nominal_ns = self.first_ns.saturating_add(number.saturating_mul(self.every_ns));
            let passed = now_ns.saturating_sub(nominal_ns) / self.every_ns;
            if passed > 0 {
                // So many periods have passed altogether.
                missed += passed.unsigned_abs();
                self.next = number + passed;
                continue;
            }
            let late_ns = match self.n % EXTREMES {
                1 => self.jitter_ns,
                2 => 0,
                _ => upto(random, self.jitter_ns),
            };
            self.n += 1;
            return Due { at_ns: nominal_ns.saturating_add(signed(late_ns)), missed };
        }
    }
}

impl Curve {
    fn new(least_ns: &[u64], mean_ns: u64, n: u64, start_ns: i64) -> Self {
        let dense = least_ns.len() as u64;
        let round = n.max(dense + 2);
        let (distances, dense_ns) = (round - 1, least_ns.last().copied().unwrap_or(0));
        let rest_ns = mean_ns.saturating_mul(distances).saturating_sub(dense_ns) / (distances - dense);
        Self {
            least_ns: least_ns.iter().map(|ns| signed(*ns)).collect(),
            mean_ns: signed(rest_ns).max(1),
            round,
            next: 0,
            begin_ns: start_ns,
            before_ns: VecDeque::new(),
        }
    }

    fn next(&mut self, now_ns: i64, random: &mut ChaCha8Rng) -> Due {
        let place = self.next % self.round;
        let dense = usize::try_from(place).ok().and_then(|place| self.least_ns.get(place.checked_sub(1)?));
        let mut at_ns = match (self.before_ns.front(), dense) {
            (None, _) => self.begin_ns,
            (Some(_), Some(after_ns)) => self.begin_ns.saturating_add(*after_ns),
            (Some(last_ns), None) => {
                let least_ns = self.least_ns.first().copied().unwrap_or(0).min(self.mean_ns);
                let more_ns = upto(random, 2 * (self.mean_ns - least_ns).unsigned_abs());
                last_ns.saturating_add(least_ns).saturating_add(signed(more_ns))
            }
        };
        for (before_ns, least_ns) in self.before_ns.iter().zip(&self.least_ns) {
            at_ns = at_ns.max(before_ns.saturating_add(*least_ns));
        }
        let mut missed = 0;
        if at_ns.saturating_add(self.mean_ns) < now_ns {
            // Far behind: the others come later by as much.
            (missed, self.begin_ns) = (1, self.begin_ns.saturating_add(now_ns - at_ns));
            at_ns = now_ns;
        }
        if place == 0 {
            self.begin_ns = at_ns;
        }
        self.next += 1;
        self.before_ns.push_front(at_ns);
        self.before_ns.truncate(self.least_ns.len());
        Due { at_ns, missed }
    }
}

fn upto(random: &mut ChaCha8Rng, most: u64) -> u64 {
    most.checked_add(1).map_or(0, |choices| random.next_u64() % choices)
}

pub(super) fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn draw(releases: &Releases, count: usize) -> Vec<i64> {
        let mut drawn = Drawn::new(releases, 1_000, 7);
        (0..count).map(|_| drawn.next(0).at_ns).collect()
    }

    fn none() -> Share {
        Share { n: 0, of: 1 }
    }

    #[test]
    fn periodic_releases_use_all_of_their_jitter_and_no_more() {
        let releases = Releases::Periodic { period_ns: 100, offset_ns: 30, jitter_ns: 20, left_out: none() };
        let all = draw(&releases, 64);
        let late: Vec<i64> = all.iter().zip(0..).map(|(at, number)| at - 1_030 - 100 * number).collect();
        assert_eq!((late.iter().min(), late.iter().max()), (Some(&0), Some(&20)));
        assert_eq!(all, draw(&releases, 64));
    }

    #[test]
    fn releases_are_left_out_and_missed() {
        let left_out = Share { n: 1, of: 4 };
        let releases = Releases::Periodic { period_ns: 100, offset_ns: 0, jitter_ns: 0, left_out };
        assert_eq!(draw(&releases, 4), [1_000, 1_100, 1_200, 1_400]);
        let mut drawn = Drawn::new(&releases, 1_000, 7);
        assert_eq!(drawn.next(1_150), Due { at_ns: 1_100, missed: 1 });
    }

    #[test]
    fn releases_that_are_far_behind_are_postponed() {
        let releases = Releases::Apart { least_ns: vec![100, 200], mean_ns: 100, n: 50 };
        let mut drawn = Drawn::new(&releases, 1_000, 7);
        assert_eq!(drawn.next(0), Due { at_ns: 1_000, missed: 0 });
        assert_eq!(drawn.next(5_000), Due { at_ns: 5_000, missed: 1 });
        assert_eq!(drawn.next(5_000), Due { at_ns: 5_100, missed: 0 });
    }

    proptest! {
        /// Superadditive curves, as all shortest distances are.
        #[test]
        fn releases_stay_apart_as_the_curve_says_and_reach_it(
            gaps in prop::collection::vec(1u64..1_000, 2..30),
            more in 0u64..500,
        ) {
            let times: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            let all: Vec<u64> = std::iter::once(0).chain(times).collect();
            let least = |k: usize| (0..all.len() - k).map(|at| all[at + k] - all[at]).min().unwrap();
            let least_ns: Vec<u64> = (1..all.len().min(9)).map(least).collect();
            let mean_ns = all.last().unwrap() / (all.len() as u64 - 1) + more;
            let n = all.len() as u64;
            let found = draw(&Releases::Apart { least_ns: least_ns.clone(), mean_ns, n }, 300);
            for (k, least) in least_ns.iter().enumerate() {
                let distances = found.windows(k + 2).map(|some| some[k + 1] - some[0]);
                prop_assert_eq!(distances.min().unwrap(), *least as i64);
            }
        }
    }
}
