//! The most interference in any stretch of a length, while the stretches stream by.

use std::collections::VecDeque;

/// The shortest length that is looked at, ns, and the longest: what lies between two lengths counts
/// as the longer one.
const SHORTEST_NS: u64 = 1 << 12;
const LENGTHS: usize = 29;

/// The lengths: each second one is twice the one before the last.
const fn length_ns(at: usize) -> u64 {
    let power = SHORTEST_NS << (at / 2);
    if at.is_multiple_of(2) { power } else { power + power / 2 }
}

/// The longest, ns: 67 ms.
pub(super) const LONGEST_NS: u64 = length_ns(LENGTHS - 1);

/// The most interference in any stretch, by the length of the stretch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Most {
    /// By length.
    ns: [u64; LENGTHS],
    /// The longest single stretch of interference, which lengths that hold no other one share.
    longest_ns: u64,
}

impl Most {
    /// The shortest stretch in which so much work, ns, ends in spite of the most interference: its
    /// length, the interference, and the length for which that was looked up. `None` where it is
    /// longer than the longest length.
    pub(super) fn ends(&self, work_ns: u64) -> Option<(u64, u64, u64)> {
        (0..LENGTHS).find_map(|at| {
            let most = self.ns[at].max(self.longest_ns);
            let ns = work_ns.checked_add(most)?;
            (ns <= length_ns(at)).then_some((ns, most, length_ns(at)))
        })
    }

    /// The most interference in a stretch of this length, ns, and the length that was looked up.
    #[cfg(test)]
    pub(super) fn within(&self, ns: u64) -> Option<(u64, u64)> {
        let at = (0..LENGTHS).find(|at| length_ns(*at) >= ns)?;
        Some((self.ns[at].max(self.longest_ns).min(ns), length_ns(at)))
    }

    /// The larger of each.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            ns: std::array::from_fn(|at| self.ns[at].max(other.ns[at])),
            longest_ns: self.longest_ns.max(other.longest_ns),
        }
    }
}

/// A stretch of interference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Busy {
    t0_ns: i64,
    t1_ns: i64,
    /// Interference until then, ns.
    earlier: u64,
}

impl Busy {
    fn ns(&self) -> u64 {
        self.t1_ns.abs_diff(self.t0_ns)
    }
}

/// The interference on one CPU.
#[derive(Debug, Default)]
pub(super) struct Demand {
    /// The last stretches, by time; they do not touch.
    recent: VecDeque<Busy>,
    /// Stretches that are no longer in `recent`.
    gone: usize,
    /// The first stretch, counted from the beginning, that ends inside the length before the last
    /// end; by length.
    first: [usize; LENGTHS],
    most: Most,
}

impl Demand {
    /// Something ran; what ran inside it came before. `needed_ns`: nobody asks for the time before.
    pub(super) fn add(&mut self, [mut t0_ns, mut t1_ns]: [i64; 2], needed_ns: i64) {
        while let Some(last) = self.recent.back().copied()
            && last.t1_ns >= t0_ns
        {
            t0_ns = t0_ns.min(last.t0_ns);
            t1_ns = t1_ns.max(last.t1_ns);
            self.recent.pop_back();
        }
        let earlier = self.recent.back().map_or(0, |last| last.earlier + last.ns());
        self.recent.push_back(Busy { t0_ns, t1_ns, earlier });
        let until_ns = earlier + t1_ns.abs_diff(t0_ns);
        self.most.longest_ns = self.most.longest_ns.max(t1_ns.abs_diff(t0_ns));
        let newest = self.gone + self.recent.len() - 1;
        // The most is found at a stretch's end: from any other place one moves there without loss.
        for at in (0..LENGTHS).rev() {
            let from_ns = t1_ns.saturating_sub_unsigned(length_ns(at));
            let mut first = self.first[at].clamp(self.gone, newest);
            while first < newest && self.recent[first - self.gone].t1_ns <= from_ns {
                first += 1;
            }
            self.first[at] = first;
            if first == newest {
                break;
            }
            let Busy { t0_ns, earlier, .. } = self.recent[first - self.gone];
            let outside_ns = from_ns.saturating_sub(t0_ns).max(0).unsigned_abs();
            let inside_ns = until_ns - earlier - outside_ns;
            self.most.ns[at] = self.most.ns[at].max(inside_ns);
        }
        let old_ns = needed_ns.min(t1_ns.saturating_sub_unsigned(LONGEST_NS));
        while self.recent.front().is_some_and(|first| first.t1_ns < old_ns) {
            self.recent.pop_front();
            self.gone += 1;
        }
    }

    /// How much of a stretch of time was interference, ns.
    pub(super) fn inside(&self, [t0_ns, t1_ns]: [i64; 2]) -> u64 {
        let until = |at_ns: i64| {
            let next = self.recent.partition_point(|busy| busy.t0_ns < at_ns);
            let Some(last) = next.checked_sub(1).map(|at| self.recent[at]) else { return 0 };
            last.earlier + last.ns().min(at_ns.abs_diff(last.t0_ns))
        };
        // Time before the first stretch that is still known has none that is asked for.
        let first_ns = self.recent.front().map_or(0, |first| first.earlier);
        until(t1_ns).max(first_ns) - until(t0_ns).max(first_ns)
    }

    /// What it came to.
    pub(super) fn most(&self) -> Most {
        self.most
    }
}
